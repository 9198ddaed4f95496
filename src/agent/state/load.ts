import type { DurableValues } from '../../core/durable.ts';
import type { Durable } from '../../core/ports.ts';
import type { StoredSnapshot, UnreadFile } from './files.ts';
import type { Outcomes } from './outcomes.ts';
import { isLocked, type Place } from './place.ts';
import { type Restored, restoreNewest, SectionUnreadable } from './restore.ts';

export interface LoadDeps {
  place: Place;
  outcomes: Outcomes;
  values: DurableValues;
  durables: readonly Durable[];
}

async function enter({ place, outcomes }: LoadDeps): Promise<readonly StoredSnapshot[]> {
  try {
    return (await place.enter()).snapshots;
  } catch (cause) {
    if (isLocked(cause)) throw cause;
    outcomes.degrade('no_directory', cause);
    return (await place.look()).snapshots;
  }
}

async function setAside({ place, outcomes }: LoadDeps, unread: readonly UnreadFile[]): Promise<void> {
  try {
    for (const one of unread) await place.setAside(one);
  } catch (cause) {
    outcomes.degrade('no_directory', cause);
    await place.leave();
  }
}

/** Enters the directory and restores; see `State.load`. Gives the directory back if it throws. */
export async function loadState(deps: LoadDeps): Promise<Restored> {
  const snapshots = await enter(deps);
  try {
    const restored = restoreNewest(snapshots, deps);
    await setAside(deps, restored.refused);
    return restored;
  } catch (error) {
    if (error instanceof SectionUnreadable) await setAside(deps, [{ file: error.file, cause: error }]);
    await deps.place.leave();
    throw error;
  }
}
