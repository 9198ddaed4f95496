import { recordOf } from './checkpoint.ts';
import { type Generation, isStale, type Place } from './generation.ts';
import type { ScanDeps } from './places.ts';
import type { Scan } from './scan.ts';

/**
 * Reads files to their end. Groups take turns, chunk by chunk; in a group the oldest generation with something to read goes
 * first. `isStopped` ends the call after the current chunk.
 */
type Drain = (stale: Iterable<Generation>, isStopped: () => boolean) => Promise<void>;

/** The files whose beginning this call has read, and the files that it has read to their end. */
interface Progress {
  readonly begun: Set<Place>;
  readonly ended: Set<Place>;
}

export function createDrain(
  { generations, reader, slices }: Pick<ScanDeps, 'generations' | 'reader' | 'slices'>,
  scan: Scan,
): Drain {
  /** Returns false if the file is to be tried again in the next scan. */
  const turn = async (of: Generation, { begun, ended }: Progress): Promise<boolean> => {
    const place = of.place!;
    const isFirst = !begun.has(place);
    begun.add(place);
    const turned = reader.turn(of, isFirst);
    const result = turned instanceof Promise ? await turned : turned;
    if (result === 'changed') scan.rewritten(of);
    else if (place.isGzip) {
      if (result === 'end') scan.unpacked(of);
      else if (result === 'broken' && scan.broken(of)) return true;
      return result === 'more' || result === 'end';
    } else if (result !== 'more') ended.add(place);
    // The record is encoded here, in a slice, so that a freeze of many files has next to nothing to encode.
    if (result === 'end') recordOf({ of, place, copies: generations.copiesOf(of) });
    return true;
  };

  /**
   * Finds the oldest generation of a group that has something to read. The generations before it have been read, so a search
   * continues where the last search ended.
   */
  const createSearch = ({ ended }: Progress) => {
    const reached = new Map<string, number>();
    const isNext = (of: Generation) => isStale(of) && !ended.has(of.place!);
    return (path: string): Generation | undefined => {
      const members = generations.group(path);
      let at = reached.get(path) ?? 0;
      while (at < members.length && !isNext(members[at]!)) at++;
      reached.set(path, at);
      return members[at] ?? (at > 0 ? members.find(isNext) : undefined);
    };
  };

  return async (stale, isStopped) => {
    const progress: Progress = { begun: new Set(), ended: new Set() };
    const groups = new Set<string>();
    for (const { group } of stale) groups.add(group);
    const nextOf = createSearch(progress);
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
          if (!(await turn(next, progress))) groups.delete(path);
        }
        if (isStopped()) return;
        if (slices.spent()) await slices.turn();
      }
    }
  };
}
