import type { DurableValues } from '../../core/durable.ts';
import { AgentError } from '../../core/errors.ts';
import type { Durable } from '../../core/ports.ts';
import type { StoredSnapshot, UnreadFile } from './files.ts';

export interface Restored {
  /** The snapshot's sequence; 0 if the state begins with nothing. */
  readonly sequence: number;
  /** Sections that no durable asked for, to be kept until their component is back. */
  readonly carried: ReadonlyMap<string, Uint8Array>;
  /** Snapshots whose table could not be read, newer than the one taken. */
  readonly refused: readonly UnreadFile[];
}

/** A section that cannot be read: others may have been taken by then, and half a state gives wrong numbers. */
export class SectionUnreadable extends AgentError {
  readonly file: string;

  constructor(file: string, section: string, cause: unknown) {
    const what = `section ${JSON.stringify(section)} cannot be read; the file is set aside`;
    const allowed = 'start again, from the snapshot before it or from nothing';
    super('state_unreadable', { where: file, what, allowed }, cause);
    this.file = file;
  }
}

function restoreSections(
  { file, sections }: StoredSnapshot,
  durables: readonly Durable[],
): Map<string, Uint8Array> {
  const rest = new Map(sections);
  for (const durable of durables) {
    const section = rest.get(durable.name);
    if (!section) continue;
    rest.delete(durable.name);
    try {
      durable.restore(section);
    } catch (cause) {
      throw new SectionUnreadable(file, durable.name, cause);
    }
  }
  // Copied, or a small section would keep the whole file in memory.
  return new Map([...rest].map(([name, bytes]) => [name, bytes.slice()]));
}

/** Takes the newest snapshot whose table `values` can read. Throws `SectionUnreadable`. */
export function restoreNewest(
  snapshots: readonly StoredSnapshot[],
  { values, durables }: { values: DurableValues; durables: readonly Durable[] },
): Restored {
  const refused: UnreadFile[] = [];
  for (const snapshot of snapshots) {
    try {
      values.restore(snapshot.table, snapshot.values);
    } catch (cause) {
      refused.push({ file: snapshot.file, cause });
      continue;
    }
    return { sequence: snapshot.sequence, carried: restoreSections(snapshot, durables), refused };
  }
  return { sequence: 0, carried: new Map(), refused };
}
