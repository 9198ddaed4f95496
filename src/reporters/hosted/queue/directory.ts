import { mkdir, readdir } from 'node:fs/promises';
import { join } from 'node:path';
import { systemCode } from '../../../core/errors.ts';
import type { Batch } from '../protocol.ts';
import {
  createSegment,
  openSegment,
  type RecordPosition,
  recordBytes,
  type Segment,
  segmentHeadBytes,
} from './segment.ts';

/** A batch on disk. */
export interface StoredBatch extends RecordPosition {
  readonly segment: Segment;
}

/** The queue's files. Methods reject with the file system's errors. */
export interface QueueDirectory {
  /** Bytes of all files. */
  readonly bytes: number;
  /** Batches that earlier processes left, oldest first; `torn`: number of files whose end cannot be read. */
  load(): Promise<{ stored: readonly StoredBatch[]; torn: number }>;
  append(batch: Batch): Promise<StoredBatch>;
  /** Frees a batch; `next` is the oldest one that is still needed. */
  release(stored: StoredBatch, next: StoredBatch | undefined): Promise<void>;
  close(): Promise<void>;
}

const fileName = /^(\d{12})\.queue$/;

export function createQueueDirectory(directory: string, segmentBytes: number): QueueDirectory {
  /** Oldest first; the last one may be appended to while `isOpen`. */
  const segments: Segment[] = [];
  let isOpen = false;
  let nextNumber = 0;

  const drop = async (segment: Segment): Promise<void> => {
    segments.splice(segments.indexOf(segment), 1);
    await segment.remove();
  };
  /** Uses the next free number: files of an earlier process may not have been readable before. */
  const createNext = async (): Promise<Segment> => {
    for (;;) {
      const name = `${String(nextNumber++).padStart(12, '0')}.queue`;
      try {
        return await createSegment(join(directory, name));
      } catch (error) {
        if (systemCode(error) !== 'EEXIST') {
          nextNumber -= 1;
          throw error;
        }
      }
    }
  };
  const openNext = async (): Promise<Segment> => {
    await mkdir(directory, { recursive: true, mode: 0o700 });
    const segment = await createNext();
    segments.push(segment);
    isOpen = true;
    return segment;
  };
  const segmentFor = async (batch: Batch): Promise<Segment> => {
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
      await mkdir(directory, { recursive: true, mode: 0o700 });
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
