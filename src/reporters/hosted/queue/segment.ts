import { type FileHandle, open, unlink } from 'node:fs/promises';
import { crc32 } from 'node:zlib';
import { systemCode } from '../../../core/errors.ts';
import { type Batch, type Form, forms } from '../protocol.ts';

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
  const isOurs = head.readUInt32LE(0) === segmentMagic && head.readUInt32LE(4) === version;
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

/**
 * A batch in a queue's file (little-endian):
 *
 *     u32 'SVQ1' · u32 body bytes · u32 points · u32 form · f64 time, ms · u32 crc32 of the body ·
 *     u32 crc32 of the 28 bytes before · body
 */
export interface RecordHead {
  readonly bodyBytes: number;
  readonly points: number;
  readonly form: Form;
  readonly timeMs: number;
  readonly bodyCrc: number;
}

export const headBytes = 32;
const recordMagic = 0x3151_5653;
const crcAt = 28;

/** Bytes of a batch in a file. */
export const recordBytes = ({ body }: Batch): number => headBytes + body.length;

export function encodeRecord({ form, points, timeMs, body }: Batch): Buffer {
  const record = Buffer.allocUnsafe(headBytes + body.length);
  record.writeUInt32LE(recordMagic, 0);
  record.writeUInt32LE(body.length, 4);
  record.writeUInt32LE(points, 8);
  record.writeUInt32LE(forms.indexOf(form), 12);
  record.writeDoubleLE(timeMs, 16);
  record.writeUInt32LE(crc32(body), 24);
  record.writeUInt32LE(crc32(record.subarray(0, crcAt)), crcAt);
  body.copy(record, headBytes);
  return record;
}

/** The head that stands here, or undefined if none does. */
export function readHead(bytes: Buffer): RecordHead | undefined {
  if (bytes.length < headBytes || bytes.readUInt32LE(0) !== recordMagic) return undefined;
  if (crc32(bytes.subarray(0, crcAt)) !== bytes.readUInt32LE(crcAt)) return undefined;
  const form = forms[bytes.readUInt32LE(12)];
  if (!form) return undefined;
  return {
    bodyBytes: bytes.readUInt32LE(4),
    points: bytes.readUInt32LE(8),
    form,
    timeMs: bytes.readDoubleLE(16),
    bodyCrc: bytes.readUInt32LE(24),
  };
}

export const isWhole = (head: RecordHead, body: Buffer): boolean =>
  body.length === head.bodyBytes && crc32(body) === head.bodyCrc;
