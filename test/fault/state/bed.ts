import { onTestFinished } from 'vitest';
import type { StateFs } from '../../../src/agent/state/snapshot-files.ts';
import { createState, type State } from '../../../src/agent/state/state.ts';
import type { Durable, Log, LogFields, LogLevel } from '../../../src/core/ports.ts';
import { type ManualClock, manualClock } from '../../clock.ts';
import { newFolder } from '../../folder.ts';
import { type NamedCounters, namedCounters } from './values.ts';

interface Entry {
  level: LogLevel;
  msg: string;
  fields: LogFields;
}

export function keptLog(): { log: Log; entries: Entry[] } {
  const entries: Entry[] = [];
  const log: Log = {
    write: (level, msg, fields = {}) => void entries.push({ level, msg, fields }),
    named: () => log,
  };
  return { log, entries };
}

/** A directory that is removed with the test. */
export function temporaryDirectory(): string {
  const directory = newFolder();
  return directory;
}

interface Bed {
  state: State;
  values: NamedCounters;
  entries: Entry[];
  clock: ManualClock;
}

interface BedOptions {
  directory: string;
  fsync?: boolean;
  durables?: readonly Durable[];
  fs?: StateFs;
}

/** A state that is not loaded yet; it is closed when the test ends. */
export function stateBed({ directory, fsync = false, durables = [], fs }: BedOptions): Bed {
  const { log, entries } = keptLog();
  const values = namedCounters();
  const clock = manualClock();
  const state = createState({ directory, fsync }, { values, durables, clock, log, fs });
  onTestFinished(() => state.close());
  return { state, values, entries, clock };
}

export async function loadedBed(options: BedOptions): Promise<Bed> {
  const bed = stateBed(options);
  await bed.state.load();
  return bed;
}

/** What is shown after a restart: loads the directory again. The state before it must be closed. */
export async function afterRestart(options: BedOptions): Promise<Readonly<Record<string, number>>> {
  const { state, values } = await loadedBed(options);
  await state.commit();
  await state.close();
  return values.shown();
}

export const errors = (entries: readonly Entry[]) => entries.filter(({ level }) => level === 'error');
