import type { Clock, Drops } from '../../../core/ports.ts';
import type { DropReason } from '../../../core/reasons.ts';
import type { Batch } from '../protocol.ts';
import { createStore, type Store, type Stored } from './directory.ts';
import { headBytes, recordBytes } from './segment.ts';

export interface QueueOptions {
  /** A folder of the queue's own, which need not exist; undefined: there is no disk to write to. */
  directory: string | undefined;
  maxBytes: number;
  maxAgeMs: number;
}

export interface QueueDeps {
  clock: Clock;
  drops: Drops;
  /** The disk does not take what it is given; batches wait in memory meanwhile. */
  diskFailed(error: unknown): void;
  diskWorks(): void;
  /** What waits: bytes, and the wall clock, ms, of the oldest batch; undefined when nothing waits. */
  changed(bytes: number, oldestMs: number | undefined): void;
}

/** A batch that waits. */
export interface Held {
  readonly batch: Batch;
  readonly entry: Entry;
}

/**
 * Batches between their making and their delivery, oldest first, within bounds of bytes and age; what is over
 * them goes, oldest first, counted by points. Kept in files; in memory, where a kill loses them, while the disk
 * does not take them.
 */
export interface Queue {
  /** Takes up what an earlier process left. Never rejects. */
  open(): Promise<void>;
  /** Never rejects. */
  append(batch: Batch): Promise<void>;
  /**
   * The oldest batch, or the one behind it. What cannot be read is counted and passed over. The oldest is in hand
   * until it is removed or laid down: it is not dropped meanwhile, for it may be just arriving. Never rejects.
   */
  peek(place: 0 | 1): Promise<Held | undefined>;
  /** Nothing is in hand any more: what was has not arrived. */
  layDown(): void;
  /** Done with a batch. Never rejects. */
  remove(held: Held): Promise<void>;
  /** The points that waited in memory, and are lost. Never rejects. */
  close(): Promise<number>;
}

/** What may wait in memory while the disk fails. */
const mostMemoryBytes = 16_777_216;
/** A queue that is dropped from loses a file at a time. */
const files = 16;

export function createQueue({ directory, maxBytes, maxAgeMs }: QueueOptions, deps: QueueDeps): Queue {
  const { clock, drops } = deps;
  const store: Store | undefined =
    directory === undefined ? undefined : createStore(directory, Math.ceil(maxBytes / files));
  const waiting = createWaiting(clock);
  let inHand: Entry | undefined;
  let last: Promise<unknown> = Promise.resolve();

  /** One at a time: what is appended and what is taken meet in the same files. */
  const inTurn = <T>(work: () => Promise<T>): Promise<T> => {
    const result = last.then(work);
    last = result.catch(() => {});
    return result;
  };
  const onDisk = async (work: () => Promise<unknown>): Promise<void> => {
    try {
      await work();
    } catch (error) {
      deps.diskFailed(error);
    }
  };
  const tell = (): void => deps.changed(waiting.bytes, waiting.at(0)?.timeMs);
  const leave = async (entry: Entry): Promise<void> => {
    const { kept } = entry;
    if (waiting.leave(entry) && isStored(kept)) {
      await onDisk(async () => store?.release(kept, waiting.firstStored()));
    }
  };
  const drop = async (entry: Entry, reason: DropReason): Promise<void> => {
    drops.count('hosted', reason, entry.points);
    await leave(entry);
  };
  /** Drops the oldest for as long as there is a reason to. */
  const dropWhile = async (reason: DropReason, isDue: (oldest: Entry) => boolean, inMemory = false) => {
    const oldest = () => waiting.droppable(inHand, inMemory);
    for (let entry = oldest(); entry && isDue(entry); entry = oldest()) await drop(entry, reason);
  };
  const dropOld = () => dropWhile('too_old', ({ bornMs }) => clock.monotonicMs() - bornMs > maxAgeMs);
  const makeRoom = (bytes: number) =>
    dropWhile('queue_full', () => (store?.bytes ?? 0) + waiting.memoryBytes + bytes > maxBytes);
  const keep = async (batch: Batch, bytes: number): Promise<void> => {
    try {
      if (!store) throw new Error('there is no state directory');
      waiting.enter(await store.append(batch), batch, bytes);
      deps.diskWorks();
    } catch (error) {
      deps.diskFailed(error);
      await dropWhile('queue_full', () => waiting.memoryBytes + bytes > mostMemoryBytes, true);
      waiting.enter(batch, batch, bytes);
    }
  };

  const bodyOf = async ({ segment, ...record }: Stored): Promise<Buffer | undefined> => {
    try {
      return await segment.body(record);
    } catch (error) {
      deps.diskFailed(error);
      return undefined;
    }
  };
  const read = async (entry: Entry): Promise<Held | undefined> => {
    const { kept } = entry;
    if (!isStored(kept)) return { batch: kept, entry };
    const body = await bodyOf(kept);
    const { form, points, timeMs } = kept.head;
    return body && { batch: { form, points, timeMs, body }, entry };
  };

  return {
    open: () =>
      inTurn(async () => {
        await onDisk(async () => {
          const { stored, torn } = (await store?.load()) ?? { stored: [], torn: 0 };
          if (torn > 0) drops.count('hosted', 'corrupt', torn);
          for (const record of stored) waiting.enter(record, record.head, headBytes + record.head.bodyBytes);
        });
        await dropOld();
        await makeRoom(0);
        tell();
      }),
    append: (batch) =>
      inTurn(async () => {
        const bytes = recordBytes(batch);
        await dropOld();
        if (bytes > maxBytes) drops.count('hosted', 'queue_full', batch.points);
        else {
          await makeRoom(bytes);
          await keep(batch, bytes);
        }
        tell();
      }),
    peek: (place) =>
      inTurn(async () => {
        await dropOld();
        let held: Held | undefined;
        for (let entry = waiting.at(place); entry && !held; entry = waiting.at(place)) {
          held = await read(entry);
          if (!held) await drop(entry, 'corrupt');
        }
        if (place === 0) inHand = held?.entry;
        tell();
        return held;
      }),
    remove: ({ entry }) =>
      inTurn(async () => {
        if (inHand === entry) inHand = undefined;
        await leave(entry);
        tell();
      }),
    layDown() {
      inHand = undefined;
    },
    close: () =>
      inTurn(async () => {
        await onDisk(async () => store?.close());
        return waiting.memoryPoints;
      }),
  };
}

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
