import { recordOf } from './checkpoint.ts';
import type { GzipReader } from './gzip.ts';
import type { Reader } from './reader.ts';
import type { Rotation } from './rotation.ts';
import type { Slices } from './schedule.ts';
import { isStale, type TrackedFile, type Tracker } from './tracked-file.ts';

interface DrainDeps {
  tracker: Tracker;
  reader: Reader;
  gzip: GzipReader;
  rotation: Rotation;
  slices: Slices;
}

/**
 * Reads files to their end. Groups take turns, chunk by chunk; in a group the oldest generation with something to read goes
 * first. `pass` numbers the call; `isStopped` ends it after the current chunk.
 */
export type Drain = (stale: Iterable<TrackedFile>, pass: number, isStopped: () => boolean) => Promise<void>;

export function createDrain({ tracker, reader, gzip, rotation, slices }: DrainDeps): Drain {
  const turnPlain = (file: TrackedFile, pass: number) => {
    const turn = reader.turn(file, pass);
    if (turn === 'changed') rotation.rewritten(file);
    else if (turn !== 'more') file.drainedBy = pass;
    // Encoded here, in a slice, so that a freeze of many files has next to nothing to encode.
    if (turn === 'end') recordOf(file);
  };

  /** Returns false if the file is to be tried again in the next scan. */
  const turnGzip = async (file: TrackedFile): Promise<boolean> => {
    const turn = await gzip.turn(file);
    if (turn === 'changed') rotation.mistaken(file);
    else if (turn === 'end') rotation.unpacked(file);
    else if (turn === 'broken' && rotation.broken(file)) return true;
    return turn !== 'closed' && turn !== 'broken';
  };

  /** The oldest generation of a group with something to read. Those before it were read: the search goes on where it ended. */
  const createSearch = (pass: number) => {
    const reached = new Map<string, number>();
    const isNext = (file: TrackedFile) => isStale(file) && file.drainedBy !== pass;
    return (path: string): TrackedFile | undefined => {
      const members = tracker.group(path);
      let at = reached.get(path) ?? 0;
      while (at < members.length && !isNext(members[at]!)) at++;
      reached.set(path, at);
      return members[at] ?? (at > 0 ? members.find(isNext) : undefined);
    };
  };

  return async (stale, pass, isStopped) => {
    const groups = new Set<string>();
    for (const file of stale) groups.add(file.path);
    const nextOf = createSearch(pass);
    /** Archives are unpacked one after the other: each one begun stays open. */
    let unpacked: TrackedFile | undefined;
    while (groups.size > 0) {
      for (const path of groups) {
        const next = nextOf(path);
        if (!next || rotation.isBlocked(next)) groups.delete(path);
        else if (rotation.isCopyAfterAll(next)) groups.delete(path);
        else if (next.compressed) {
          if (unpacked?.isUnpacking && unpacked.path !== path && groups.has(unpacked.path)) continue;
          unpacked = next;
          if (!(await turnGzip(next))) groups.delete(path);
        } else turnPlain(next, pass);
        if (isStopped()) return;
        if (slices.spent()) await slices.turn();
      }
    }
  };
}
