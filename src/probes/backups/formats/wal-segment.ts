import { crc32c } from './manifest.ts';
import type { ByteReader } from './pgdump.ts';

/**
 * Reads the pages and records of a WAL segment (PostgreSQL, access/xlog_internal.h and access/xlogrecord.h). Every record has a
 * CRC-32C. A record can begin in one segment and end in the next.
 */

/** The magic numbers of the versions 9.5 to 18. The record format of other versions is not known. */
const [oldestMagic, newestMagic] = [0xd087, 0xd118];
const shortHeaderBytes = 24;
export const longHeaderBytes = 40;
const recordHeaderBytes = 24;
/** Offset of the CRC in a record's header. The CRC covers the record's data first, and then the header before it. */
const crcAt = 20;
const [xidAt, infoAt, managerAt] = [4, 16, 17];

const isContinuation = 0x1;
const hasLongHeader = 0x2;
/** The flag of a page on which the record that began on the previous page was abandoned, after a crash. */
const isOverwritten = 0x8;
const allFlags = 0xf;

const resourceManagerXlog = 0;
const switchRecord = 0x40;
const resourceManagerXact = 1;
/** Operations of a record that end a transaction: commit, or commit of a prepared one. */
const commitRecords: readonly number[] = [0x00, 0x30];
const abortRecords: readonly number[] = [0x20, 0x40];
const restorePointRecord = 0x70;
const commitOperation = 0x70;
const checkpointRecords: readonly number[] = [0x00, 0x10];
/** Offset in a checkpoint of the time of its beginning, in seconds, from PostgreSQL 12 on. */
const checkpointTimeAt = 64;
const magicOf12 = 0xd101;
/** How much of a record's data is stored: the headers of the data, then the beginning of a commit or a checkpoint. */
const keptBytes = 128;

/** The error for a format that the agent does not support, or an encrypted segment. */
export class UnknownFormat extends Error {}

/** A record whose rest is in the next segment. */
interface OpenRecord {
  header: Buffer;
  /** The beginning of the data after the header. */
  data: Buffer;
  /** The number of bytes that are still missing, including those of the header. */
  missing: number;
  crc: number;
}

/** What the next segment begins with, as JSON. `open` is missing if no record continues. */
export interface WalRemainder {
  /** The newest time so far, ms since the epoch. */
  newestMs?: number;
  /** The record that continues. Its bytes are in base64. */
  open?: { header: string; data: string; missing: number; crc: number };
}

/** What a good segment shows. */
export interface WalReading {
  /** Undefined if a record continues that began before the first byte that was read. */
  remainder?: WalRemainder;
  /**
   * The time of the newest commit, or of the beginning of the newest checkpoint: everything that was committed before it is in
   * this or in earlier segments.
   */
  newestMs?: number;
  /** Identifier of the cluster of databases, decimal. */
  systemId: string;
  segmentBytes: number;
}

/** A possible end of a restore: a transaction that was committed or aborted, or a named restore point. */
export type WalMark = {
  /** The position in the log at which the record ends. */
  end: bigint;
} & ({ xid: number; micros: number; name?: undefined } | { name: string; xid?: undefined });

interface PageHeader {
  magic: number;
  info: number;
  timeline: number;
  address: bigint;
  /** The number of bytes of a record that continues from the previous page. */
  rest: number;
}

function pageHeader(page: Buffer): PageHeader {
  return {
    magic: page.readUInt16LE(0),
    info: page.readUInt16LE(2),
    timeline: page.readUInt32LE(4),
    address: page.readBigUInt64LE(8),
    rest: page.readUInt32LE(16),
  };
}

interface WalStart {
  segmentBytes: number;
  pageBytes: number;
  systemId: string;
}

const isPowerOfTwo = (value: number) => value > 0 && (value & (value - 1)) === 0;

/**
 * Checks the beginning of a segment against its name (24 hex digits). Throws an error that states the fault, and `UnknownFormat`.
 */
export function checkWalStart(head: Buffer, name: string): WalStart {
  if (head.length < longHeaderBytes) throw new Error('the segment is cut off');
  const { magic, info, timeline, address } = pageHeader(head);
  if (magic < 0xd000 || magic > 0xdfff || (info & hasLongHeader) === 0)
    throw new Error('it does not begin as a WAL segment');
  if (magic < oldestMagic || magic > newestMagic)
    throw new UnknownFormat(`WAL of format ${magic.toString(16)} is not known`);
  const segmentBytes = head.readUInt32LE(32);
  const pageBytes = head.readUInt32LE(36);
  if (
    !isPowerOfTwo(segmentBytes) ||
    segmentBytes < 2 ** 20 ||
    !isPowerOfTwo(pageBytes) ||
    pageBytes > zeros.length
  )
    throw new Error('the header of its first page is damaged');
  const [named, id, segment] = [0, 8, 16].map((at) => Number.parseInt(name.slice(at, at + 8), 16));
  // The first segment of a timeline begins with a copy of the segment from which the timeline forked.
  if (timeline > named!) throw new Error(`it is of timeline ${timeline}`);
  const expected = (BigInt(id!) << 32n) + BigInt(segment!) * BigInt(segmentBytes);
  if (address !== expected) throw new Error('its position in the log does not match its name');
  return { segmentBytes, pageBytes, systemId: head.readBigUInt64LE(24).toString() };
}

/** Reads the header of a page. Throws if it is not the header of the page at this address of the log. */
function checkPageHeader(page: Buffer, expected: { magic: number; address: bigint; offset: number }) {
  const header = pageHeader(page);
  const isLong = (header.info & hasLongHeader) !== 0;
  if (
    header.magic !== expected.magic ||
    header.address !== expected.address ||
    header.info > allFlags ||
    isLong !== (expected.offset === 0)
  )
    throw new Error(`the header of the page at ${expected.offset} is damaged`);
  return header;
}

/** Reads the records of one page after the other. */
function createRecordReader(
  remainder: WalRemainder | undefined,
  magic: number,
  onMark: ((mark: WalMark) => void) | undefined,
) {
  let open = opened(remainder);
  let newestMs: number | undefined;
  /** The number of bytes of a record that began before the first byte that was read. */
  let unknownRest = 0;
  let isSwitched = false;

  const complete = (record: OpenRecord, at: bigint) => {
    const crc = (crc32c(record.header.subarray(0, crcAt), record.crc) ^ 0xffffffff) >>> 0;
    if (crc !== record.header.readUInt32LE(crcAt)) throw new Error(`the record before ${lsn(at)} is damaged`);
    isSwitched =
      record.header[managerAt] === resourceManagerXlog && (record.header[infoAt]! & 0xf0) === switchRecord;
    newestMs = timeOf(record, magic, newestMs ?? remainder?.newestMs) ?? newestMs;
    const mark = onMark && markIn(record, at);
    if (mark) onMark(mark);
    open = undefined;
  };

  return {
    /** Whether a record says that the log of the segment ends with it. */
    get isSwitched() {
      return isSwitched;
    },
    get newestMs() {
      return newestMs;
    },
    get remainder(): WalRemainder | undefined {
      if (unknownRest > 0) return undefined;
      const knownMs = newestMs ?? remainder?.newestMs;
      const known = knownMs !== undefined && { newestMs: knownMs };
      if (open === undefined) return { ...known };
      const { header, data, ...rest } = open;
      return {
        ...known,
        open: { header: header.toString('base64'), data: data.toString('base64'), ...rest },
      };
    },
    /** Reads the header of a page at `offset`, which says what continues in the page. Throws if that is not the open record. */
    beginPage(header: PageHeader, offset: number) {
      const goesOn = (header.info & isContinuation) !== 0;
      if ((header.info & isOverwritten) !== 0) {
        open = undefined;
        unknownRest = 0;
      } else if (offset === 0 && remainder === undefined) unknownRest = goesOn ? header.rest : 0;
      else if (unknownRest === 0 && (goesOn !== (open !== undefined) || header.rest !== (open?.missing ?? 0)))
        throw new Error(`the record that goes on in the page at ${offset} is damaged`);
    },
    /** Reads the page from `at` until the page or the log ends; returns the position. Throws at a damaged record. */
    readPage(page: Buffer, address: bigint, at: number): number {
      while (at < page.length && !isSwitched) {
        if (unknownRest > 0) {
          const passed = Math.min(unknownRest, page.length - at);
          unknownRest -= passed;
          at = unknownRest > 0 ? page.length : aligned(at + passed);
          continue;
        }
        // A record begins at a multiple of 8, so its length never crosses a page.
        open ??= begin(page.readUInt32LE(at), address + BigInt(at));
        at = readInto(open, page, at);
        if (open.missing > 0) continue;
        complete(open, address + BigInt(at));
        at = aligned(at);
      }
      return at;
    },
  };
}

/**
 * Reads a segment to its end: the header of every page, the checksum of every record. Without `remainder` the rest of a record
 * that began in the segment before is skipped. `onMark` is called with each possible end of a restore, in the order of the log.
 * Throws an error that states the fault.
 */
export async function verifyWalSegment(
  bytes: ByteReader,
  name: string,
  remainder?: WalRemainder,
  onMark?: (mark: WalMark) => void,
): Promise<WalReading> {
  const head = await bytes.take(longHeaderBytes);
  const { segmentBytes, pageBytes, systemId } = checkWalStart(head, name);
  const { magic, address: startAddress } = pageHeader(head);
  const records = createRecordReader(remainder, magic, onMark);
  for (let offset = 0; offset < segmentBytes; offset += pageBytes) {
    const page =
      offset === 0
        ? Buffer.concat([head, await bytes.take(pageBytes - longHeaderBytes)])
        : await bytes.take(pageBytes);
    if (records.isSwitched) {
      if (!isZero(page))
        throw new Error(`the page at ${offset} is not empty, after the end of the segment’s log`);
      continue;
    }
    const address = startAddress + BigInt(offset);
    records.beginPage(checkPageHeader(page, { magic, address, offset }), offset);
    const end = records.readPage(page, address, offset === 0 ? longHeaderBytes : shortHeaderBytes);
    if (records.isSwitched && !isZero(page.subarray(end)))
      throw new Error(`the page at ${offset} is not empty behind its last record`);
  }
  if (!(await bytes.isAtEnd())) throw new Error(`it is longer than ${segmentBytes} bytes`);
  return { remainder: records.remainder, newestMs: records.newestMs, systemId, segmentBytes };
}

function opened(remainder: WalRemainder | undefined): OpenRecord | undefined {
  if (remainder?.open === undefined) return undefined;
  const { header, data, ...rest } = remainder.open;
  return { header: Buffer.from(header, 'base64'), data: Buffer.from(data, 'base64'), ...rest };
}

/** PostgreSQL counts microseconds since 2000. */
const epochMs = Date.UTC(2000, 0, 1);

/**
 * The newest time that the log shows with this record, ms; undefined for other records than those of commits and checkpoints. A
 * checkpoint states when it began, and its record is behind commits that are newer. `beforeMs`: the newest time before the record.
 */
function timeOf(
  { header, data }: OpenRecord,
  magic: number,
  beforeMs: number | undefined,
): number | undefined {
  const [info, manager] = [header[infoAt]!, header[managerAt]!];
  const isCommit = manager === resourceManagerXact && commitRecords.includes(info & commitOperation);
  const isCheckpoint =
    magic >= magicOf12 && manager === resourceManagerXlog && checkpointRecords.includes(info & 0xf0);
  const main = isCommit || isCheckpoint ? mainData(data) : undefined;
  if (main === undefined || main.length < (isCommit ? 8 : checkpointTimeAt + 8)) return undefined;
  if (isCommit) return epochMs + Math.floor(Number(main.readBigInt64LE(0)) / 1000);
  const beganMs = Number(main.readBigInt64LE(checkpointTimeAt)) * 1000;
  return Math.max(beganMs, beforeMs ?? beganMs);
}

/**
 * The mark for a transaction that ends, or a restore point; undefined for other records. A restore point has a time, then its
 * name.
 */
function markIn({ header, data }: OpenRecord, end: bigint): WalMark | undefined {
  const [info, manager] = [header[infoAt]!, header[managerAt]!];
  const isXact = manager === resourceManagerXact;
  const operation = info & commitOperation;
  const isEnd = isXact && (commitRecords.includes(operation) || abortRecords.includes(operation));
  const isPoint = manager === resourceManagerXlog && (info & 0xf0) === restorePointRecord;
  const main = isEnd || isPoint ? mainData(data) : undefined;
  if (main === undefined || main.length < 8) return undefined;
  if (isEnd)
    return { end, xid: header.readUInt32LE(xidAt), micros: epochMs * 1000 + Number(main.readBigInt64LE(0)) };
  const name = main.subarray(8);
  return { end, name: name.subarray(0, name.indexOf(0)).toString('utf8') };
}

const [originId, topLevelId, longId, shortId] = [253, 252, 254, 255];

/** The main data of a record without pages. An origin and the number of a transaction may come before it. */
function mainData(data: Buffer): Buffer | undefined {
  for (let at = 0; at < data.length; ) {
    const id = data[at];
    if (id === shortId) return data.subarray(at + 2);
    if (id === longId) return data.subarray(at + 5);
    if (id === originId) at += 3;
    else if (id === topLevelId) at += 5;
    else return undefined;
  }
  return undefined;
}

const aligned = (at: number) => (at + 7) & ~7;
const lsn = (at: bigint) => `${(at >> 32n).toString(16)}/${(at & 0xffffffffn).toString(16)}`.toUpperCase();
const zeros = Buffer.alloc(65_536);
const isZero = (bytes: Buffer) => bytes.equals(zeros.subarray(0, bytes.length));

function begin(length: number, at: bigint): OpenRecord {
  if (length < recordHeaderBytes) throw new Error(`the record at ${lsn(at)} is damaged`);
  return { header: Buffer.alloc(0), data: Buffer.alloc(0), missing: length, crc: 0xffffffff };
}

/** Reads what the page has of the record; returns the position after it. */
function readInto(record: OpenRecord, page: Buffer, at: number): number {
  const end = Math.min(at + record.missing, page.length);
  const headerEnd = Math.min(end, at + recordHeaderBytes - record.header.length);
  if (headerEnd > at) record.header = Buffer.concat([record.header, page.subarray(at, headerEnd)]);
  record.crc = crc32c(page.subarray(headerEnd, end), record.crc);
  const isTimed = record.header[managerAt]! <= resourceManagerXact;
  if (isTimed && record.data.length < keptBytes) {
    const kept = Math.min(end, headerEnd + keptBytes - record.data.length);
    record.data = Buffer.concat([record.data, page.subarray(headerEnd, kept)]);
  }
  record.missing -= end - at;
  return end;
}
