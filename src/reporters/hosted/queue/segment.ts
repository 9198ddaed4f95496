import { type FileHandle, open, unlink } from 'node:fs/promises';
import { systemCode } from '../../../core/errors.ts';
import type { Batch } from '../batch.ts';
import { encodeRecord, headBytes, isWhole, type RecordHead, readHead } from './record.ts';

/** A record's place in its file. */
export interface Placed {
  readonly head: RecordHead;
  readonly at: number;
}

/**
 * One file of the queue: `'SVQS' · u32 version · f64 where the first record that is still wanted begins`, then
 * records one after another. The mark is written in place, so that a restart does not send again what was sent.
 * Nothing is fsynced: a kill loses nothing that was written, a power failure may lose the newest batches.
 */
export interface Segment {
  /** Bytes of the file. */
  readonly bytes: number;
  /** Records that are still wanted. */
  wanted: number;
  /** Appends a record; rejects as the file system does, with the file as it was or `isTorn`. */
  append(batch: Batch): Promise<Placed>;
  /** A write failed half way and could not be undone: nothing more is appended. */
  readonly isTorn: boolean;
  /** The body of a record; undefined if it is not what was written. */
  body(record: Placed): Promise<Buffer | undefined>;
  /** Records before this place are not wanted any more. */
  mark(at: number): Promise<void>;
  /** Nothing in it is wanted any more. */
  empty(): Promise<void>;
  /** Whether somebody has deleted the file. */
  isGone(): Promise<boolean>;
  remove(): Promise<void>;
  close(): Promise<void>;
}

const magic = 0x5351_5653;
const version = 1;
export const segmentHeadBytes = 16;

function fileHead(): Buffer {
  const head = Buffer.alloc(segmentHeadBytes);
  head.writeUInt32LE(magic, 0);
  head.writeUInt32LE(version, 4);
  head.writeDoubleLE(segmentHeadBytes, 8);
  return head;
}

function markBytes(at: number): Buffer {
  const bytes = Buffer.alloc(8);
  bytes.writeDoubleLE(at);
  return bytes;
}

function segmentOf(path: string, file: FileHandle, size: number): Segment {
  let bytes = size;
  let isTorn = false;

  const undo = async (): Promise<void> => {
    try {
      await file.truncate(bytes);
    } catch {
      // The failure that led here is the one that is told.
      isTorn = true;
    }
  };
  return {
    wanted: 0,
    get bytes() {
      return bytes;
    },
    get isTorn() {
      return isTorn;
    },
    async append(batch) {
      const record = encodeRecord(batch);
      const at = bytes;
      try {
        const { bytesWritten } = await file.write(record, 0, record.length, at);
        if (bytesWritten < record.length) {
          const rest = await file.write(
            record,
            bytesWritten,
            record.length - bytesWritten,
            at + bytesWritten,
          );
          if (bytesWritten + rest.bytesWritten < record.length)
            throw new Error('the file takes no more bytes');
        }
      } catch (error) {
        await undo();
        throw error;
      }
      bytes += record.length;
      return { head: readHead(record)!, at };
    },
    async body({ head, at }) {
      const body = Buffer.allocUnsafe(head.bodyBytes);
      const { bytesRead } = await file.read(body, 0, body.length, at + headBytes);
      return isWhole(head, body.subarray(0, bytesRead)) ? body : undefined;
    },
    async mark(at) {
      await file.write(markBytes(at), 0, 8, 8);
    },
    async empty() {
      // In this order: a mark behind the end of a file says that nothing in it is wanted.
      await file.truncate(segmentHeadBytes);
      await file.write(markBytes(segmentHeadBytes), 0, 8, 8);
      bytes = segmentHeadBytes;
    },
    isGone: async () => (await file.stat()).nlink === 0,
    async remove() {
      await file.close();
      await unlink(path).catch((error: unknown) => {
        if (systemCode(error) !== 'ENOENT') throw error;
      });
    },
    close: () => file.close(),
  };
}

/** A new file; rejects as the file system does, also if there is one already. */
export async function createSegment(path: string): Promise<Segment> {
  const file = await open(path, 'wx+');
  try {
    await file.write(fileHead(), 0, segmentHeadBytes, 0);
  } catch (error) {
    await file.close();
    await unlink(path).catch(() => {});
    throw error;
  }
  return segmentOf(path, file, segmentHeadBytes);
}

export interface OpenedSegment {
  readonly segment: Segment;
  /** Records that are still wanted. */
  readonly records: readonly Placed[];
  /** Bytes behind the last whole record: torn off by a kill, or not ours. */
  readonly tornBytes: number;
}

async function wantedFrom(file: FileHandle): Promise<number | undefined> {
  const head = Buffer.alloc(segmentHeadBytes);
  const { bytesRead } = await file.read(head, 0, segmentHeadBytes, 0);
  const isOurs = head.readUInt32LE(0) === magic && head.readUInt32LE(4) === version;
  return bytesRead === segmentHeadBytes && isOurs ? head.readDoubleLE(8) : undefined;
}

/** For reading at least: what is on a disk that has become read-only can still be sent. */
function openLeft(path: string): Promise<FileHandle> {
  return open(path, 'r+').catch((error: unknown) => {
    if (systemCode(error) !== 'EROFS') throw error;
    return open(path, 'r');
  });
}

/** A file that an earlier process left. Rejects as the file system does. */
export async function openSegment(path: string): Promise<OpenedSegment> {
  const file = await openLeft(path);
  const { size } = await file.stat();
  const from = await wantedFrom(file);
  const records: Placed[] = [];
  let at = from !== undefined && from >= segmentHeadBytes ? from : size;
  const head = Buffer.alloc(headBytes);
  while (at + headBytes <= size) {
    await file.read(head, 0, headBytes, at);
    const found = readHead(head);
    if (!found || at + headBytes + found.bodyBytes > size) break;
    records.push({ head: found, at });
    at += headBytes + found.bodyBytes;
  }
  const segment = segmentOf(path, file, size);
  segment.wanted = records.length;
  const tornBytes = from === undefined ? size : Math.max(0, size - at);
  return { segment, records, tornBytes };
}
