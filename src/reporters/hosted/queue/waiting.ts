import type { Clock } from '../../../core/ports.ts';
import type { Batch } from '../batch.ts';
import type { Stored } from './store.ts';

/** What waits, without its body if that is on disk. */
export interface Entry {
  readonly points: number;
  readonly bytes: number;
  readonly timeMs: number;
  /** On the monotonic clock, so that a jump of the wall clock makes nothing older. */
  readonly bornMs: number;
  readonly kept: Stored | Batch;
}

export const isStored = (kept: Stored | Batch): kept is Stored => 'segment' in kept;

/** Entries in the order of their coming, and their bytes. */
export interface Waiting {
  readonly bytes: number;
  /** Of those that are not on disk. */
  readonly memoryBytes: number;
  readonly memoryPoints: number;
  at(place: number): Entry | undefined;
  /** The oldest, or the oldest in memory, but not the one in hand. */
  droppable(inHand: Entry | undefined, inMemory?: boolean): Entry | undefined;
  firstStored(): Stored | undefined;
  enter(kept: Stored | Batch, batch: Pick<Batch, 'points' | 'timeMs'>, bytes: number): void;
  /** False if it is not there any more. */
  leave(entry: Entry): boolean;
}

export function createWaiting(clock: Clock): Waiting {
  const entries: Entry[] = [];
  let bytes = 0;
  let memoryBytes = 0;
  const count = ({ kept, bytes: own }: Entry, sign: 1 | -1): void => {
    bytes += sign * own;
    if (!isStored(kept)) memoryBytes += sign * own;
  };
  return {
    get bytes() {
      return bytes;
    },
    get memoryBytes() {
      return memoryBytes;
    },
    get memoryPoints() {
      return entries.reduce((sum, { kept, points }) => sum + (isStored(kept) ? 0 : points), 0);
    },
    at: (place) => entries[place],
    droppable: (inHand, inMemory = false) =>
      entries.find((entry) => entry !== inHand && !(inMemory && isStored(entry.kept))),
    firstStored() {
      const kept = entries.find((entry) => isStored(entry.kept))?.kept;
      return kept && isStored(kept) ? kept : undefined;
    },
    enter(kept, { points, timeMs }, own) {
      const ageMs = Math.max(0, clock.nowMs() - timeMs);
      const entry = { points, timeMs, bytes: own, bornMs: clock.monotonicMs() - ageMs, kept };
      entries.push(entry);
      count(entry, 1);
    },
    leave(entry) {
      const place = entries.indexOf(entry);
      if (place < 0) return false;
      entries.splice(place, 1);
      count(entry, -1);
      return true;
    },
  };
}
