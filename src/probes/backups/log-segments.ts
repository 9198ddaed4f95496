import { createHash } from 'node:crypto';
import { basename, join } from 'node:path';
import { crc32 } from 'node:zlib';
import { errorText, systemCode } from '../../core/errors.ts';
import type { IntegrityLevel } from '../../core/reasons.ts';
import {
  compressionOf,
  createByteReader,
  decompress,
  NoDecompressor,
  type Pace,
  readThrottled,
} from './byte-stream.ts';
import { headOf } from './manifest.ts';
import { type ByteReader, Truncated } from './pgdump.ts';
import { archivedName, type SegmentsToVerify } from './segments.ts';
import {
  checkWalStart,
  longHeaderBytes,
  UnknownFormat,
  verifyWalSegment,
  type WalRemainder,
} from './wal-segment.ts';

interface SegmentReading extends Pace {
  /** The directory of the segments. */
  path: string;
  level: IntegrityLevel;
}

export interface VerifiedSegments {
  /** What is wrong with each segment that is damaged, by name. */
  damaged: Readonly<Record<string, string>>;
  /** Why a segment cannot be verified. */
  unverified?: string;
  /** What was verified, for people. */
  verified: string;
}

/**
 * Verifies archived segments of a log in their order. `header`: each begins as its format and its name say.
 * `checksum` and `full`: every record and event matches its checksum; `full` also those that begin in one segment
 * and end in the next. A segment that was removed meanwhile is skipped.
 */
export async function verifySegments(
  request: SegmentReading,
  segments: SegmentsToVerify,
): Promise<VerifiedSegments> {
  const damaged: Record<string, string> = {};
  let unverified: string | undefined;
  let lastMsg = '';
  let remainder: WalRemainder | undefined;
  const isFull = request.level === 'full' && segments.log === 'wal';
  const names = isFull && segments.before ? [segments.before, ...segments.names] : segments.names;
  for (const name of names) {
    try {
      const verified = await verifySegment(request, segments, name, isFull ? remainder : undefined);
      remainder = verified.remainder;
      lastMsg = verified.msg;
    } catch (thrown) {
      remainder = undefined;
      const code = systemCode(thrown);
      if (code === 'ENOENT' || name === segments.before) continue;
      if (code !== undefined && /^E(?!RR_)[A-Z]+$/.test(code)) throw thrown;
      if (thrown instanceof UnknownFormat || thrown instanceof NoDecompressor) unverified ??= thrown.message;
      else damaged[name] = thrown instanceof Truncated ? 'it is cut off' : errorText(thrown);
    }
  }
  const verified = names.length === 1 ? lastMsg : `${names.length} segments, the last: ${lastMsg}`;
  return { damaged, unverified, verified };
}

/** Suffixes whose content Node or a program can read. */
const readableSuffix = /\.(gz|zst|xz|bz2|lz4)$/;
const anySuffix = /\.[a-z][a-z0-9]*$/;

/** The size of all segments, from the first page of an archived one. Throws if that page cannot be read. */
export async function walSegmentBytesIn(file: string): Promise<number> {
  const compression = compressionOf(await headOf(file, 8));
  const source = readThrottled(file, { bytesPerSecond: Number.POSITIVE_INFINITY });
  const plain = compression ? decompress(source, compression) : source;
  try {
    const head = await createByteReader(plain).take(longHeaderBytes);
    return checkWalStart(head, archivedName(basename(file))).segmentBytes;
  } finally {
    await plain.return(undefined);
  }
}

async function verifySegment(
  { path, level, ...pace }: SegmentReading,
  { log, newest }: SegmentsToVerify,
  name: string,
  remainder: WalRemainder | undefined,
): Promise<{ msg: string; remainder?: WalRemainder }> {
  const file = join(path, name);
  const compression = compressionOf(await headOf(file, 8));
  if (!compression && readableSuffix.test(name)) throw new Error('its content does not match its suffix');
  if (!compression && anySuffix.test(name)) throw new UnknownFormat('the format is not known');
  const source = readThrottled(file, pace);
  const sha1 = /-([0-9a-f]{40})(?:\.|$)/.exec(name)?.[1];
  const hash = sha1 === undefined || level === 'header' ? undefined : createHash('sha1');
  const plain = compression ? decompress(source, compression) : source;
  const bytes = createByteReader(
    hash
      ? (async function* () {
          for await (const chunk of plain) {
            hash.update(chunk);
            yield chunk;
          }
        })()
      : plain,
  );
  if (level === 'header') {
    const head = await bytes.take(log === 'wal' ? longHeaderBytes : 4);
    if (log === 'wal') checkWalStart(head, archivedName(name));
    else checkBinaryLogStart(head);
    await plain.return(undefined);
    return { msg: 'begins as its name says' };
  }
  const verified =
    log === 'wal'
      ? {
          msg: 'every record matches its checksum',
          remainder: await verifyWalSegment(bytes, archivedName(name), remainder),
        }
      : { msg: await verifyBinaryLog(bytes, name === newest) };
  if (hash && hash.digest('hex') !== sha1) throw new Error('it does not match the checksum in its name');
  return verified;
}

/**
 * The events of a binary log file of MySQL or MariaDB (MySQL Internals, "Binary Log Event"; MariaDB, "Replication
 * Protocol"). With binlog_checksum = CRC32, which is the default of both, every event ends with one.
 */

const magic = Buffer.from([0xfe, 0x62, 0x69, 0x6e]);
const encryptedMagic = Buffer.from([0xfd, 0x62, 0x69, 0x6e]);
const headerBytes = 19;
const checksumBytes = 4;
const pieceBytes = 65_536;

const [stopEvent, rotateEvent, formatEvent, startEncryption] = [3, 4, 15, 164];
/** In the format event, as long as the server writes the file; a file that a crash left keeps it. */
const inUse = 0x1;
const flagsAt = 17;

function checkBinaryLogStart(head: Buffer): void {
  if (head.subarray(0, 4).equals(encryptedMagic)) throw new UnknownFormat('the binary log is encrypted');
  if (!head.subarray(0, 4).equals(magic)) throw new Error('it does not begin as a binary log');
}

/**
 * Reads a file to its end: the place, length and checksum of every event. `isNewest`: the server may still write
 * it, so that it may end anywhere. Returns what was verified; throws what is wrong, and `UnknownFormat`.
 */
async function verifyBinaryLog(bytes: ByteReader, isNewest: boolean): Promise<string> {
  checkBinaryLogStart(await bytes.take(4));
  let events = 0;
  let hasChecksums = false;
  let isInUse = false;
  let lastType = 0;
  try {
    while (!(await bytes.isAtEnd())) {
      const start = bytes.position;
      const header = Buffer.from(await bytes.take(headerBytes));
      const type = header[4]!;
      const length = header.readUInt32LE(9);
      const end = header.readUInt32LE(13);
      const isPlaced = end === 0 || end === (start + length) % 2 ** 32;
      if (length < headerBytes || !isPlaced) throw new Error(`the event at ${start} is damaged`);
      if (events === 0 && type !== formatEvent) throw new Error('it does not begin with a format event');
      if (type === startEncryption) throw new UnknownFormat('the binary log is encrypted');
      if (type === formatEvent) {
        isInUse = (header.readUInt16LE(flagsAt) & inUse) !== 0;
        // The checksum of this event is that of a file that is closed.
        header.writeUInt16LE(header.readUInt16LE(flagsAt) & ~inUse, flagsAt);
      }
      const { crc, last, stored } = await readBody(bytes, header, length - headerBytes);
      // The algorithm is the byte before the checksum, which this event has in any case.
      if (type === formatEvent) hasChecksums = last === 1;
      if (hasChecksums && crc !== stored)
        throw new Error(`the event at ${start} does not match its checksum`);
      events += 1;
      lastType = type;
    }
  } catch (thrown) {
    if (!(thrown instanceof Truncated) || !isNewest) throw thrown;
    throw new UnknownFormat('the newest file ends within an event: the server still writes it');
  }
  if (events === 0) throw new Error('it has no event');
  const isClosed = lastType === rotateEvent || lastType === stopEvent;
  if (!isClosed && !isInUse && !isNewest)
    throw new Error('it is cut off: the event that a server writes last is missing');
  if (!hasChecksums) throw new UnknownFormat('its events have no checksums (binlog_checksum = NONE)');
  return `${events} events match their checksums`;
}

/** The checksum of an event without its own last four bytes, the byte before those, and their value. */
async function readBody(bytes: ByteReader, header: Buffer, length: number) {
  let crc = crc32(header);
  let last = 0;
  for (let rest = length - checksumBytes; rest > 0; ) {
    const piece = await bytes.take(Math.min(rest, pieceBytes));
    rest -= piece.length;
    crc = crc32(piece, crc);
    last = piece.at(-1)!;
  }
  const end = await bytes.take(Math.min(length, checksumBytes));
  return { crc, last, stored: length < checksumBytes ? undefined : end.readUInt32LE(0) };
}
