import { recordOf } from './checkpoint.ts';
import { type Generation, type Generations, isStale } from './generations.ts';
import type { Reader } from './reader.ts';
import type { Scan } from './scan.ts';
import type { Slices } from './schedule.ts';

interface DrainDeps {
  generations: Generations;
  reader: Reader;
  scan: Scan;
  slices: Slices;
}

/**
 * Reads files to their end. Groups take turns, chunk by chunk; in a group the oldest generation with something to read goes
 * first. `pass` numbers the call; `isStopped` ends it after the current chunk.
 */
type Drain = (stale: Iterable<Generation>, pass: number, isStopped: () => boolean) => Promise<void>;

export function createDrain({ generations, reader, scan, slices }: DrainDeps): Drain {
  /** Returns false if the file is to be tried again in the next scan. */
  const turn = async (of: Generation, pass: number): Promise<boolean> => {
    const place = of.place!;
    const turned = reader.turn(of, pass);
    const result = turned instanceof Promise ? await turned : turned;
    if (result === 'changed') scan.rewritten(of);
    else if (place.isGzip) {
      if (result === 'end') scan.unpacked(of);
      else if (result === 'broken' && scan.broken(of)) return true;
      return result === 'more' || result === 'end';
    } else if (result !== 'more') place.drainedBy = pass;
    // The record is encoded here, in a slice, so that a freeze of many files has next to nothing to encode.
    if (result === 'end') recordOf({ of, place, copies: generations.copiesOf(of) });
    return true;
  };

  /**
   * Finds the oldest generation of a group that has something to read. The generations before it have been read, so a search
   * continues where the last one ended.
   */
  const createSearch = (pass: number) => {
    const reached = new Map<string, number>();
    const isNext = (of: Generation) => isStale(of) && of.place!.drainedBy !== pass;
    return (path: string): Generation | undefined => {
      const members = generations.group(path);
      let at = reached.get(path) ?? 0;
      while (at < members.length && !isNext(members[at]!)) at++;
      reached.set(path, at);
      return members[at] ?? (at > 0 ? members.find(isNext) : undefined);
    };
  };

  return async (stale, pass, isStopped) => {
    const groups = new Set<string>();
    for (const { group } of stale) groups.add(group);
    const nextOf = createSearch(pass);
    /** Archives are unpacked one after the other, because an archive stays open until it is read to its end. */
    let unpacked: Generation | undefined;
    while (groups.size > 0) {
      for (const path of groups) {
        const next = nextOf(path);
        const isOthersTurn =
          unpacked?.place?.isUnpacking && unpacked.group !== path && groups.has(unpacked.group);
        if (!next || scan.isBlocked(next)) groups.delete(path);
        else if (!next.place!.isGzip || !isOthersTurn) {
          if (next.place!.isGzip) unpacked = next;
          if (!(await turn(next, pass))) groups.delete(path);
        }
        if (isStopped()) return;
        if (slices.spent()) await slices.turn();
      }
    }
  };
}
