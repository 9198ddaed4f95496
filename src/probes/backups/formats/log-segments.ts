import { createHash } from 'node:crypto';
import { basename, join } from 'node:path';
import { crc32 } from 'node:zlib';
import { errorText, systemCode } from '../../../core/errors.ts';
import {
  compressionOf,
  createByteReader,
  decompress,
  encryptionOf,
  hashed,
  NoDecompressor,
  type Pace,
  readThrottled,
} from './byte-stream.ts';
import { headOf } from './manifest.ts';
import { type ByteReader, Truncated } from './pgdump.ts';
import {
  archivedName,
  checksumOf,
  type LogKind,
  type SegmentContent,
  type SegmentsToVerify,
} from './segments.ts';
import {
  checkWalStart,
  longHeaderBytes,
  UnknownFormat,
  verifyWalSegment,
  type WalMark,
  type WalReading,
  type WalRemainder,
} from './wal-segment.ts';

interface SegmentsReading extends Pace {
  /** The directory with the segments. */
  path: string;
}

/**
 * Reads archived segments of a log in their order and to their ends, whatever the level of integrity. Every record and event is
 * compared with its checksum, including those that begin in one segment and end in the next. A segment that was removed meanwhile
 * is left out.
 */
export async function readSegmentContents(
  { path, ...pace }: SegmentsReading,
  { log, names, newest, places = {}, ...before }: SegmentsToVerify,
): Promise<Record<string, SegmentContent>> {
  const contents: Record<string, SegmentContent> = {};
  let { remainder, after } = before;
  for (const name of names) {
    try {
      const content = await readSegment(join(path, name), name, {
        ...{ log, newest, remainder, pace },
        places: places[name] ?? [],
      });
      contents[name] = { ...content, after };
      remainder = content.wal?.remainder;
      after = name;
    } catch (thrown) {
      remainder = undefined;
      after = undefined;
      const code = systemCode(thrown);
      if (code === 'ENOENT') continue;
      if (code !== undefined && /^E(?!RR_)[A-Z]+$/.test(code)) throw thrown;
      contents[name] =
        thrown instanceof UnknownFormat || thrown instanceof NoDecompressor
          ? { unverified: thrown.message }
          : { fault: thrown instanceof Truncated ? 'it is cut off' : errorText(thrown) };
    }
  }
  return contents;
}

/** Suffixes of files whose content Node or a program can read. */
const readableSuffix = /\.(gz|zst|xz|bz2|lz4)$/;
const anySuffix = /\.[a-z][a-z0-9]*$/;

/** The size of all segments, from the first page of an archived segment. Throws if that page cannot be read. */
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

/**
 * Reports where a restore may end, in the order of one archived segment. Throws an error that states the fault of the segment.
 */
export async function readWalMarks(
  file: string,
  remainder: WalRemainder | undefined,
  onMark: (mark: WalMark) => void,
): Promise<WalReading> {
  const compression = compressionOf(await headOf(file, 8));
  const source = readThrottled(file, { bytesPerSecond: Number.POSITIVE_INFINITY });
  const plain = compression ? decompress(source, compression) : source;
  return verifyWalSegment(createByteReader(plain), archivedName(basename(file)), remainder, onMark);
}

interface Reading {
  log: LogKind;
  newest: string;
  remainder?: WalRemainder;
  places: readonly number[];
  pace: Pace;
}

async function readSegment(
  file: string,
  name: string,
  { log, newest, remainder, places, pace }: Reading,
): Promise<SegmentContent> {
  const head = await headOf(file, 32);
  const compression = compressionOf(head);
  const encryption = encryptionOf(head);
  if (encryption !== undefined) throw new UnknownFormat(`it is encrypted (${encryption})`);
  if (!compression && readableSuffix.test(name)) throw new Error('its content does not match its suffix');
  if (!compression && anySuffix.test(name)) throw new UnknownFormat('the format is not known');
  const md5 = createHash('md5');
  const source = hashed(readThrottled(file, pace), md5);
  const sha1 = checksumOf(name);
  const hash = createHash('sha1');
  const plain = compression ? decompress(source, compression) : source;
  const bytes = createByteReader(sha1 === undefined ? plain : hashed(plain, hash));
  const content =
    log === 'wal'
      ? walContent(await verifyWalSegment(bytes, archivedName(name), remainder))
      : await readBinaryLog(bytes, name === newest, places);
  if (sha1 !== undefined && hash.digest('hex') !== sha1)
    throw new Error('it does not match the checksum in its name');
  return { ...content, bytes: bytes.position, md5: md5.digest('hex') };
}

const walContent = ({ newestMs, ...wal }: WalReading): SegmentContent => ({ newestMs, wal });

/**
 * Reads the events of a binary log file of MySQL or MariaDB (MySQL Internals, "Binary Log Event"; MariaDB, "Replication
 * Protocol"). With binlog_checksum = CRC32, which is the default of both, every event ends with a checksum.
 */

const magic = Buffer.from([0xfe, 0x62, 0x69, 0x6e]);
const encryptedMagic = Buffer.from([0xfd, 0x62, 0x69, 0x6e]);
const headerBytes = 19;
const checksumBytes = 4;
const pieceBytes = 65_536;

const [queryEvent, stopEvent, rotateEvent, formatEvent, xidEvent] = [2, 3, 4, 15, 16];
const [gtidEvent, gtidListEvent, startEncryption] = [162, 163, 164];
/** Events that begin or end a file. Their time is from the clock of the server that writes the file. */
const ofFile: ReadonlySet<number> = new Set([stopEvent, rotateEvent, gtidListEvent]);
/** Events of a transaction. They have the number of the server on which the transaction was first committed. */
const ofTransaction: ReadonlySet<number> = new Set([queryEvent, xidEvent, gtidEvent]);
/** The flag in the format event that is set while the server writes the file; a file that a crash left still has the flag. */
const inUse = 0x1;
const flagsAt = 17;

function checkBinaryLogStart(head: Buffer): void {
  if (head.subarray(0, 4).equals(encryptedMagic)) throw new UnknownFormat('the binary log is encrypted');
  if (!head.subarray(0, 4).equals(magic)) throw new Error('it does not begin as a binary log');
}

/**
 * Reads a file to its end, and checks position, length and checksum of every event. `isNewest`: the server may still write the
 * file, so it may end anywhere. Throws an error that states the fault, and `UnknownFormat`.
 */
async function readBinaryLog(
  bytes: ByteReader,
  isNewest: boolean,
  wanted: readonly number[],
): Promise<SegmentContent> {
  checkBinaryLogStart(await bytes.take(4));
  const found = {
    events: 0,
    hasChecksums: false,
    isInUse: false,
    lastType: 0,
  };
  const gtids = createGtids();
  const times = createTimes(gtids);
  const places: Record<number, string | null> = Object.fromEntries(wanted.map((place) => [place, null]));
  const notePlace = () => {
    if (places[bytes.position] === null) places[bytes.position] = gtids.now();
  };
  let isCut = false;
  try {
    while (!(await bytes.isAtEnd())) {
      notePlace();
      const { type, atMs, server, body, isChecked } = await readEvent(bytes, found);
      if (isChecked) found.hasChecksums = true;
      found.events += 1;
      found.lastType = type;
      times.take(type, atMs, server, body);
    }
    notePlace();
  } catch (thrown) {
    if (!(thrown instanceof Truncated) || !isNewest || found.events === 0) throw thrown;
    isCut = true;
  }
  if (found.events === 0) throw new Error('it has no event');
  const isClosed = found.lastType === rotateEvent || found.lastType === stopEvent;
  if (!isClosed && !found.isInUse && !isNewest)
    throw new Error('it is cut off: the event that a server writes last is missing');
  if (!found.hasChecksums) throw new UnknownFormat('its events have no checksums (binlog_checksum = NONE)');
  const { newestMs, ...ofServers } = times.found();
  return {
    newestMs,
    binlog: {
      isClosed,
      ...(isCut && { isCut }),
      ...ofServers,
      ...gtids.positions(),
      ...(wanted.length > 0 && { places }),
    },
  };
}

/** Finds out whose transactions are in a file, and up to when. */
function createTimes(gtids: ReturnType<typeof createGtids>) {
  const transactions = createTransactions();
  const committedMs: Record<number, Record<number, number>> = {};
  let [owner, begunMs, skips] = [0, 0, false];
  let lastServer: number | undefined;
  let newestMs: number | undefined;
  return {
    take(type: number, atMs: number, server: number, body: Buffer) {
      if (type === formatEvent) [owner, begunMs] = [server, atMs];
      if (ofTransaction.has(type)) lastServer = server;
      const isNext = gtids.take(type, body, server);
      // This gap is the only sign of transactions that a replica was told to skip.
      if (!isNext && server !== owner) skips = true;
      // Transactions that a replica has not received yet may be older than the files of its own log, so the times of these files
      // prove nothing.
      const isOwn = gtids.areOf(owner) ?? lastServer === owner;
      const isCommit = transactions.endsAt(type, body);
      if (atMs === 0 || skips) return;
      if (isCommit || (ofFile.has(type) && isOwn)) newestMs = atMs;
      if (!isCommit) return;
      const ofServer = committedMs[server] ?? {};
      committedMs[server] = ofServer;
      ofServer[gtids.domain()] = atMs;
    },
    found: () => ({ newestMs, begunMs, owner, committedMs, ...(skips && { skips: true }) }),
  };
}

/** Reads one event. Throws if it is damaged. */
async function readEvent(
  bytes: ByteReader,
  found: { events: number; hasChecksums: boolean; isInUse: boolean },
) {
  const start = bytes.position;
  const header = Buffer.from(await bytes.take(headerBytes));
  const type = header[4]!;
  const length = header.readUInt32LE(9);
  const end = header.readUInt32LE(13);
  const isPlaced = end === 0 || end === (start + length) % 2 ** 32;
  if (length < headerBytes || !isPlaced) throw new Error(`the event at ${start} is damaged`);
  if (found.events === 0 && type !== formatEvent) throw new Error('it does not begin with a format event');
  if (type === startEncryption) throw new UnknownFormat('the binary log is encrypted');
  if (type === formatEvent) {
    found.isInUse = (header.readUInt16LE(flagsAt) & inUse) !== 0;
    // The checksum of this event is computed as for a closed file.
    header.writeUInt16LE(header.readUInt16LE(flagsAt) & ~inUse, flagsAt);
  }
  const { crc, last, stored, body } = await readBody(bytes, header, length - headerBytes);
  // The algorithm is in the byte before the checksum, which this event has in any case.
  const isChecked = type === formatEvent ? last === 1 : found.hasChecksums;
  if (isChecked && crc !== stored) throw new Error(`the event at ${start} does not match its checksum`);
  return { type, atMs: header.readUInt32LE(0) * 1000, server: header.readUInt32LE(5), body, isChecked };
}

/**
 * Reads the beginning of an event's body, the checksum of the event without its own last four bytes, and the value of these
 * bytes.
 */
async function readBody(bytes: ByteReader, header: Buffer, length: number) {
  let crc = crc32(header);
  let last = 0;
  let body: Buffer | undefined;
  for (let rest = length - checksumBytes; rest > 0; ) {
    const piece = await bytes.take(Math.min(rest, pieceBytes));
    rest -= piece.length;
    crc = crc32(piece, crc);
    last = piece.at(-1)!;
    body ??= piece;
  }
  const end = await bytes.take(Math.min(length, checksumBytes));
  const stored = length < checksumBytes ? undefined : end.readUInt32LE(0);
  return { crc, last, stored, body: body ?? Buffer.alloc(0) };
}

/**
 * Tracks after which events no transaction is half written: from a file that is cut off, a transaction without its end is not
 * restored.
 */
function createTransactions() {
  let isOpen = false;
  return {
    endsAt(type: number, body: Buffer): boolean {
      if (type === gtidEvent) isOpen = (body[gtidFlagsAt]! & isStandalone) === 0;
      const statement = type === queryEvent ? statementOf(body) : '';
      if (/^BEGIN/i.test(statement)) isOpen = true;
      const isEnd = type === xidEvent || type === formatEvent || ofFile.has(type);
      if (isEnd || /^(?:COMMIT|ROLLBACK(?! TO))/i.test(statement)) isOpen = false;
      return !isOpen && (type === xidEvent || type === queryEvent);
    },
  };
}

const [gtidFlagsAt, isStandalone] = [12, 1];

function statementOf(body: Buffer): string {
  // The body has thread, duration, length of the database’s name, error, length of the status variables, the variables, and the
  // name.
  if (body.length < 13) return '';
  const at = 13 + body.readUInt16LE(11) + body[8]! + 1;
  return body.toString('latin1', at, at + 16);
}

/**
 * Reads MariaDB's positions (MariaDB, "Replication Protocol", GTID_EVENT and GTID_LIST_EVENT). Every file begins with the last
 * positions of the file before it.
 */
function createGtids() {
  const last = new Map<number, { server: number; sequence: bigint }>();
  let from: string | undefined;
  let domain = 0;
  const text = (withServer = false) =>
    [...last]
      .sort(([one], [other]) => one - other)
      .map(([domain, { server, sequence }]) => [domain, ...(withServer ? [server] : []), sequence].join('-'))
      .join(',');
  return {
    /** Takes an event; false if its transaction is not the next transaction of its domain. */
    take(type: number, body: Buffer, server: number): boolean {
      if (type === gtidListEvent && body.length >= 4) {
        const count = body.readUInt32LE(0) & 0xfffffff;
        if (body.length < 4 + 16 * count) return true;
        for (let at = 4; at < 4 + 16 * count; at += 16)
          last.set(body.readUInt32LE(at), {
            server: body.readUInt32LE(at + 4),
            sequence: body.readBigUInt64LE(at + 8),
          });
        from = text();
      }
      if (type !== gtidEvent || body.length < 12) return true;
      domain = body.readUInt32LE(8);
      const sequence = body.readBigUInt64LE(0);
      const before = last.get(domain)?.sequence;
      last.set(domain, { server, sequence });
      return before === undefined || sequence === before + 1n;
    },
    /** The domain of the transaction; 0 for a log without positions. */
    domain: () => domain,
    now: () => (from === undefined ? '' : text(true)),
    /** Whether the last transaction of each domain is from this server; undefined for a log without positions. */
    areOf: (owner: number) =>
      from === undefined
        ? undefined
        : last.size > 0 && [...last.values()].every(({ server }) => server === owner),
    positions: () => (from === undefined ? {} : { fromGtids: from, toGtids: text() }),
  };
}
