import { mkdir, readdir } from 'node:fs/promises';
import { join } from 'node:path';
import { systemCode } from '../../../core/errors.ts';
import { makeDirectory } from '../../../core/make-directory.ts';
import type { Clock, Drops } from '../../../core/ports.ts';
import type { DropReason } from '../../../core/reasons.ts';
import type { Batch } from '../protocol.ts';
import {
  createSegment,
  headBytes,
  openSegment,
  type QueueSegment,
  type RecordPosition,
  recordBytes,
  segmentHeadBytes,
} from './segment.ts';

/** A batch on disk. */
interface StoredBatch extends RecordPosition {
  readonly segment: QueueSegment;
}

/** The queue's files. Methods reject with the file system's errors. */
interface QueueDirectory {
  /** The total size of all files in bytes. */
  readonly bytes: number;
  /** Loads the batches that earlier processes left, oldest first. `torn` is the number of files whose end cannot be read. */
  load(): Promise<{ stored: readonly StoredBatch[]; torn: number }>;
  append(batch: Batch): Promise<StoredBatch>;
  /** Frees a batch; `next` is the oldest batch that is still needed. */
  release(stored: StoredBatch, next: StoredBatch | undefined): Promise<void>;
  close(): Promise<void>;
}

const fileName = /^(\d{12})\.queue$/;

function createQueueDirectory(directory: string, segmentBytes: number): QueueDirectory {
  /** The files, oldest first; the last one may be appended to while `isOpen`. */
  const segments: QueueSegment[] = [];
  let isOpen = false;
  let nextNumber = 0;

  const drop = async (segment: QueueSegment): Promise<void> => {
    segments.splice(segments.indexOf(segment), 1);
    await segment.remove();
  };
  /** Creates a file with the next free number: files of an earlier process may not have been readable before. */
  const createNext = async (): Promise<QueueSegment> => {
    for (;;) {
      const name = `${String(nextNumber++).padStart(12, '0')}.queue`;
      try {
        return await createSegment(join(directory, name));
      } catch (error) {
        if (systemCode(error) !== 'EEXIST') throw error;
      }
    }
  };
  const openNext = async (): Promise<QueueSegment> => {
    await makeDirectory(mkdir, directory, 0o700);
    const segment = await createNext();
    segments.push(segment);
    isOpen = true;
    return segment;
  };
  const segmentFor = async (batch: Batch): Promise<QueueSegment> => {
    const last = segments.at(-1);
    if (!isOpen || !last) return openNext();
    const isFull = last.needed > 0 && last.bytes + recordBytes(batch) > segmentBytes;
    if (!isFull && !last.isTorn && !(await last.isGone())) return last;
    isOpen = false;
    if (last.needed === 0) await drop(last).catch(() => {});
    return openNext();
  };
  const loadFile = async (name: string, stored: StoredBatch[]): Promise<boolean> => {
    const { segment, records, tornBytes } = await openSegment(join(directory, name));
    segments.push(segment);
    stored.push(...records.map((record) => ({ ...record, segment })));
    if (records.length === 0) await drop(segment);
    return tornBytes > 0;
  };

  return {
    get bytes() {
      return segments.reduce((sum, segment) => sum + segment.bytes, 0);
    },
    async load() {
      await makeDirectory(mkdir, directory, 0o700);
      const names = (await readdir(directory)).filter((name) => fileName.test(name)).sort();
      const stored: StoredBatch[] = [];
      let torn = 0;
      for (const name of names) {
        nextNumber = Number(fileName.exec(name)![1]) + 1;
        const isTorn = await loadFile(name, stored).catch(() => true);
        if (isTorn) torn += 1;
      }
      return { stored, torn };
    },
    async append(batch) {
      const segment = await segmentFor(batch);
      const placed = await segment.append(batch);
      segment.needed += 1;
      return { ...placed, segment };
    },
    async release({ segment }, next) {
      segment.needed -= 1;
      if (segment.needed > 0) {
        if (next?.segment === segment) await segment.mark(next.at);
      } else if (isOpen && segment === segments.at(-1)) {
        if (segment.bytes > segmentHeadBytes) await segment.empty();
      } else await drop(segment);
    },
    async close() {
      await Promise.all(segments.map((segment) => segment.close()));
    },
  };
}

/** The number of points that wait in a directory to which no queue writes. Rejects with the file system's error. */
export async function pointsLeftIn(directory: string): Promise<number> {
  const files = createQueueDirectory(directory, 0);
  const { stored } = await files.load();
  await files.close();
  return stored.reduce((sum, { head }) => sum + head.points, 0);
}

interface QueueOptions {
  /** The queue's directory, created if missing; if undefined, the queue is in memory. */
  directory: string | undefined;
  maxBytes: number;
  maxAgeMs: number;
}

interface QueueDeps {
  clock: Clock;
  drops: Drops;
  /** Called when a write failed; batches stay in memory until writes succeed again. */
  diskFailed(error: unknown): void;
  diskWorks(): void;
  /**
   * Called with the number of queued bytes, and the wall-clock time, ms, of the oldest batch; undefined if the queue is empty.
   */
  changed(bytes: number, oldestMs: number | undefined): void;
}

export interface QueuedBatch {
  readonly batch: Batch;
  readonly entry: QueueEntry;
}

/**
 * Batches that wait for delivery, oldest first, within limits of bytes and age. Beyond the limits the oldest batches are dropped
 * and counted by points. The queue is stored in files. While writes fail, new batches are stored in memory, where a kill loses
 * them. No method rejects.
 */
export interface Queue {
  /** Loads the batches that an earlier process left. */
  open(): Promise<void>;
  append(batch: Batch): Promise<void>;
  /**
   * The oldest batch (0), or the batch behind it (1). Batches that cannot be read are counted and skipped. The queue does not drop
   * the oldest batch until it is removed or released, because it may be in transit.
   */
  peek(place: 0 | 1): Promise<QueuedBatch | undefined>;
  /** Releases the oldest batch, which was not delivered. */
  release(): void;
  /** Removes a batch that was delivered or given up. */
  remove(queued: QueuedBatch): Promise<void>;
  /** Closes the files and returns the number of points in memory, which are lost. */
  close(): Promise<number>;
}

/** The maximum size of the batches in memory while writes fail. */
const mostMemoryBytes = 16_777_216;
/** The number of files of the queue: disk space is freed one file at a time. */
const fileCount = 16;

export function createQueue(options: QueueOptions, deps: QueueDeps): Queue {
  const { directory, maxBytes } = options;
  const files =
    directory === undefined ? undefined : createQueueDirectory(directory, Math.ceil(maxBytes / fileCount));
  const contents = createContents(files, options, deps);
  const { entries } = contents;
  let last: Promise<unknown> = Promise.resolve();

  /** Runs one operation at a time, because all of them use the same files. */
  const inTurn = <T>(work: () => Promise<T>): Promise<T> => {
    const result = last.then(work);
    last = result.catch(() => {});
    return result;
  };
  const notify = (): void => deps.changed(entries.bytes, entries.at(0)?.timeMs);

  return {
    open: () =>
      inTurn(async () => {
        await contents.load();
        await contents.dropOld();
        await contents.makeRoom(0);
        notify();
      }),
    append: (batch) =>
      inTurn(async () => {
        const bytes = recordBytes(batch);
        await contents.dropOld();
        if (bytes > maxBytes) deps.drops.count('hosted', 'queue_full', batch.points);
        else {
          await contents.makeRoom(bytes);
          await contents.add(batch, bytes);
        }
        notify();
      }),
    peek: (place) =>
      inTurn(async () => {
        await contents.dropOld();
        let queued: QueuedBatch | undefined;
        for (let entry = entries.at(place); entry && !queued; entry = entries.at(place)) {
          queued = await contents.read(entry);
          if (!queued) await contents.drop(entry, 'corrupt');
        }
        if (place === 0) contents.held = queued?.entry;
        notify();
        return queued;
      }),
    remove: ({ entry }) =>
      inTurn(async () => {
        if (contents.held === entry) contents.held = undefined;
        await contents.remove(entry);
        notify();
      }),
    release() {
      contents.held = undefined;
    },
    close: () =>
      inTurn(async () => {
        await contents.close();
        return entries.memoryPoints;
      }),
  };
}

/** The batches of a queue, in files and in memory. */
interface QueueContents {
  readonly entries: Omit<EntryList, 'add' | 'remove'>;
  /** The batch that may be in transit, and so is not dropped. */
  held: QueueEntry | undefined;
  load(): Promise<void>;
  /** Stores a batch in a file, or in memory if that fails. */
  add(batch: Batch, bytes: number): Promise<void>;
  read(entry: QueueEntry): Promise<QueuedBatch | undefined>;
  remove(entry: QueueEntry): Promise<void>;
  drop(entry: QueueEntry, reason: DropReason): Promise<void>;
  /** Drops batches that are over the limit of age. */
  dropOld(): Promise<void>;
  /** Drops the oldest batches until there is room for `bytes`. */
  makeRoom(bytes: number): Promise<void>;
  close(): Promise<void>;
}

function createContents(
  files: QueueDirectory | undefined,
  { maxBytes, maxAgeMs }: QueueOptions,
  { clock, drops, diskFailed, diskWorks }: QueueDeps,
): QueueContents {
  const entries = createEntryList(clock);

  const onDisk = async (work: () => Promise<unknown>): Promise<void> => {
    try {
      await work();
    } catch (error) {
      diskFailed(error);
    }
  };
  /** Drops the oldest batches while `isDue`. */
  const dropWhile = async (reason: DropReason, isDue: (oldest: QueueEntry) => boolean, inMemory = false) => {
    const oldest = () => entries.droppable(contents.held, inMemory);
    for (let entry = oldest(); entry && isDue(entry); entry = oldest()) await contents.drop(entry, reason);
  };
  const bodyOf = async ({ segment, ...record }: StoredBatch): Promise<Buffer | undefined> => {
    try {
      return await segment.body(record);
    } catch (error) {
      diskFailed(error);
      return undefined;
    }
  };

  const contents: QueueContents = {
    entries,
    held: undefined,
    load: () =>
      onDisk(async () => {
        const { stored, torn } = (await files?.load()) ?? { stored: [], torn: 0 };
        if (torn > 0) drops.count('hosted', 'corrupt', torn);
        for (const record of stored) entries.add(record, record.head, headBytes + record.head.bodyBytes);
      }),
    async add(batch, bytes) {
      try {
        if (!files) throw new Error('no state directory');
        entries.add(await files.append(batch), batch, bytes);
        diskWorks();
      } catch (error) {
        diskFailed(error);
        await dropWhile('queue_full', () => entries.memoryBytes + bytes > mostMemoryBytes, true);
        entries.add(batch, batch, bytes);
      }
    },
    async read(entry) {
      const { kept } = entry;
      if (!isStored(kept)) return { batch: kept, entry };
      const body = await bodyOf(kept);
      const { format, points, timeMs } = kept.head;
      return body && { batch: { format, points, timeMs, body }, entry };
    },
    async remove(entry) {
      const { kept } = entry;
      if (entries.remove(entry) && isStored(kept)) {
        await onDisk(async () => files?.release(kept, entries.firstStored()));
      }
    },
    async drop(entry, reason) {
      drops.count('hosted', reason, entry.points);
      await contents.remove(entry);
    },
    dropOld: () => dropWhile('too_old', ({ bornMs }) => clock.monotonicMs() - bornMs > maxAgeMs),
    makeRoom: (bytes) =>
      dropWhile('queue_full', () => (files?.bytes ?? 0) + entries.memoryBytes + bytes > maxBytes),
    close: () => onDisk(async () => files?.close()),
  };
  return contents;
}

/** A batch in the queue. Its body is on disk if it could be written. */
interface QueueEntry {
  readonly points: number;
  readonly bytes: number;
  readonly timeMs: number;
  /** The monotonic time of its creation, so that a jump of the wall clock does not change the age. */
  readonly bornMs: number;
  readonly kept: StoredBatch | Batch;
}

const isStored = (kept: StoredBatch | Batch): kept is StoredBatch => 'segment' in kept;

/** The entries in order, and their size. */
interface EntryList {
  readonly bytes: number;
  /** The size of the entries that are not on disk. */
  readonly memoryBytes: number;
  readonly memoryPoints: number;
  at(place: number): QueueEntry | undefined;
  /** The oldest entry, or the oldest entry in memory, except for the held entry. */
  droppable(held: QueueEntry | undefined, inMemory: boolean): QueueEntry | undefined;
  firstStored(): StoredBatch | undefined;
  add(kept: StoredBatch | Batch, batch: Pick<Batch, 'points' | 'timeMs'>, bytes: number): void;
  /** Removes an entry; false if it was not in the list. */
  remove(entry: QueueEntry): boolean;
}

function createEntryList(clock: Clock): EntryList {
  const entries: QueueEntry[] = [];
  let bytes = 0;
  let memoryBytes = 0;
  const count = ({ kept, bytes: own }: QueueEntry, sign: 1 | -1): void => {
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
    droppable: (held, inMemory) =>
      entries.find((entry) => entry !== held && !(inMemory && isStored(entry.kept))),
    firstStored() {
      const kept = entries.find((entry) => isStored(entry.kept))?.kept;
      return kept && isStored(kept) ? kept : undefined;
    },
    add(kept, { points, timeMs }, own) {
      const ageMs = Math.max(0, clock.nowMs() - timeMs);
      const entry = { points, timeMs, bytes: own, bornMs: clock.monotonicMs() - ageMs, kept };
      entries.push(entry);
      count(entry, 1);
    },
    remove(entry) {
      const place = entries.indexOf(entry);
      if (place < 0) return false;
      entries.splice(place, 1);
      count(entry, -1);
      return true;
    },
  };
}
