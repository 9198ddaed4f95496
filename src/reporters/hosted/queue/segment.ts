import { type FileHandle, open, unlink } from 'node:fs/promises';
import { crc32 } from 'node:zlib';
import { systemCode } from '../../../core/errors.ts';
import { type Batch, type BatchFormat, batchFormats } from '../protocol.ts';

/** A record and its offset in the file. */
export interface RecordPosition {
  readonly head: RecordHead;
  readonly at: number;
}

/**
 * One file of the queue: `'SVQS' · u32 version · f64 offset of the first record that is still needed`, followed by the records.
 * The offset is updated in place, so that a restart does not send delivered batches again. Nothing is fsynced: a kill loses
 * nothing that was written, but a power failure may lose the newest batches.
 */
export interface QueueSegment {
  /** The size of the file in bytes. */
  readonly bytes: number;
  /** The number of records that are still needed. */
  needed: number;
  /** Appends a record. Rejects with the file system's error; the file is then unchanged, or `isTorn`. */
  append(batch: Batch): Promise<RecordPosition>;
  /** Whether an incomplete write could not be undone, so that nothing more can be appended. */
  readonly isTorn: boolean;
  /** The body of a record; undefined if it is corrupt. */
  body(record: RecordPosition): Promise<Buffer | undefined>;
  /** Marks the records before this offset as no longer needed. */
  mark(at: number): Promise<void>;
  /** Removes all records. */
  empty(): Promise<void>;
  /** Whether the file was deleted by someone else. */
  isGone(): Promise<boolean>;
  remove(): Promise<void>;
  close(): Promise<void>;
}

const segmentMagic = 0x5351_5653;
const version = 1;
export const segmentHeadBytes = 16;

function fileHead(): Buffer {
  const head = Buffer.alloc(segmentHeadBytes);
  head.writeUInt32LE(segmentMagic, 0);
  head.writeUInt32LE(version, 4);
  head.writeDoubleLE(segmentHeadBytes, 8);
  return head;
}

function markBytes(at: number): Buffer {
  const bytes = Buffer.alloc(8);
  bytes.writeDoubleLE(at);
  return bytes;
}

function segmentOf(path: string, { file, isReadOnly }: Opened, size: number): QueueSegment {
  let bytes = size;
  let isTorn = false;

  /** Opens the file again if its disk was read-only, because the disk may be writable by now. */
  const makeWritable = async (): Promise<void> => {
    if (!isReadOnly) return;
    const writable = await open(path, 'r+');
    await file.close();
    file = writable;
    isReadOnly = false;
  };

  const undo = async (): Promise<void> => {
    try {
      await file.truncate(bytes);
    } catch {
      // The caller reports the error of the write.
      isTorn = true;
    }
  };
  return {
    needed: 0,
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
          if (bytesWritten + rest.bytesWritten < record.length) throw new Error('incomplete write');
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
      return isIntact(head, body.subarray(0, bytesRead)) ? body : undefined;
    },
    async mark(at) {
      await makeWritable();
      await file.write(markBytes(at), 0, 8, 8);
    },
    async empty() {
      // The order matters: an offset beyond the end of the file means that no record is needed.
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

/** Creates a file. Rejects with the file system's error, also if the file exists. */
export async function createSegment(path: string): Promise<QueueSegment> {
  const file = await open(path, 'wx+');
  try {
    await file.write(fileHead(), 0, segmentHeadBytes, 0);
  } catch (error) {
    await file.close();
    await unlink(path).catch(() => {});
    throw error;
  }
  return segmentOf(path, { file, isReadOnly: false }, segmentHeadBytes);
}

interface OpenedSegment {
  readonly segment: QueueSegment;
  /** The records that are still needed. */
  readonly records: readonly RecordPosition[];
  /** The number of bytes after the last complete record: an incomplete write, or a foreign file. */
  readonly tornBytes: number;
}

/** The offset of the first record that is still needed; undefined if the file has no valid head. */
async function firstNeeded(file: FileHandle): Promise<number | undefined> {
  const head = Buffer.alloc(segmentHeadBytes);
  const { bytesRead } = await file.read(head, 0, segmentHeadBytes, 0);
  const isOurs = head.readUInt32LE(0) === segmentMagic && head.readUInt32LE(4) === version;
  const from = head.readDoubleLE(8);
  const isOffset = Number.isSafeInteger(from) && from >= segmentHeadBytes;
  return bytesRead === segmentHeadBytes && isOurs && isOffset ? from : undefined;
}

interface Opened {
  file: FileHandle;
  isReadOnly: boolean;
}

/** Opens a file, read-only if it cannot be written to: batches on a read-only disk can still be sent. */
async function openExisting(path: string): Promise<Opened> {
  try {
    return { file: await open(path, 'r+'), isReadOnly: false };
  } catch (error) {
    if (systemCode(error) !== 'EROFS') throw error;
    return { file: await open(path, 'r'), isReadOnly: true };
  }
}

/** Opens a file that an earlier process left. Rejects with the file system's error. */
export async function openSegment(path: string): Promise<OpenedSegment> {
  const opened = await openExisting(path);
  const { file } = opened;
  const { size } = await file.stat();
  const from = await firstNeeded(file);
  const records: RecordPosition[] = [];
  let at = from ?? size;
  const head = Buffer.alloc(headBytes);
  while (at + headBytes <= size) {
    await file.read(head, 0, headBytes, at);
    const found = readHead(head);
    if (!found || at + headBytes + found.bodyBytes > size) break;
    records.push({ head: found, at });
    at += headBytes + found.bodyBytes;
  }
  const tornBytes = from === undefined ? size : Math.max(0, size - at);
  // The end is cut off, so that the next start does not count it again; on a read-only disk it stays.
  if (tornBytes > 0) await file.truncate(at).catch(() => {});
  const segment = segmentOf(path, opened, (await file.stat()).size);
  segment.needed = records.length;
  return { segment, records, tornBytes };
}

/**
 * A batch in a queue's file (little-endian):
 *
 *     u32 'SVQ1' · u32 body bytes · u32 points · u32 form · f64 time, ms · u32 crc32 of the body ·
 *     u32 crc32 of the 28 bytes before · body
 */
interface RecordHead {
  readonly bodyBytes: number;
  readonly points: number;
  readonly format: BatchFormat;
  readonly timeMs: number;
  readonly bodyCrc: number;
}

export const headBytes = 32;
const recordMagic = 0x3151_5653;
const crcAt = 28;

/** The size of a batch in a file. */
export const recordBytes = ({ body }: Batch): number => headBytes + body.length;

function encodeRecord({ format, points, timeMs, body }: Batch): Buffer {
  const record = Buffer.allocUnsafe(headBytes + body.length);
  record.writeUInt32LE(recordMagic, 0);
  record.writeUInt32LE(body.length, 4);
  record.writeUInt32LE(points, 8);
  record.writeUInt32LE(batchFormats.indexOf(format), 12);
  record.writeDoubleLE(timeMs, 16);
  record.writeUInt32LE(crc32(body), 24);
  record.writeUInt32LE(crc32(record.subarray(0, crcAt)), crcAt);
  body.copy(record, headBytes);
  return record;
}

/** The record head at the start of `bytes`; undefined if it is invalid. */
function readHead(bytes: Buffer): RecordHead | undefined {
  if (bytes.length < headBytes || bytes.readUInt32LE(0) !== recordMagic) return undefined;
  if (crc32(bytes.subarray(0, crcAt)) !== bytes.readUInt32LE(crcAt)) return undefined;
  const format = batchFormats[bytes.readUInt32LE(12)];
  if (!format) return undefined;
  return {
    bodyBytes: bytes.readUInt32LE(4),
    points: bytes.readUInt32LE(8),
    format,
    timeMs: bytes.readDoubleLE(16),
    bodyCrc: bytes.readUInt32LE(24),
  };
}

const isIntact = (head: RecordHead, body: Buffer): boolean =>
  body.length === head.bodyBytes && crc32(body) === head.bodyCrc;
