import { AgentError } from '../../../core/errors.ts';
import { marksLimit } from './chain.ts';
import {
  type Generation,
  type Known,
  knownBytes,
  newGeneration,
  newPlace,
  type Place,
  type Status,
} from './generation.ts';

/** A generation, where it was read, and the files that hold it but are not read. */
export interface Recorded {
  readonly of: Generation;
  readonly place: Place | undefined;
  readonly copies: readonly Omit<Known, 'of' | 'absences'>[];
}

const version = 4;

/*
 * Section `log-positions`: version and count u32 little-endian, then records. Each record is its length u32 and that many bytes.
 * The first record is `Head` as JSON; each of the others is a generation, as `encode` writes it. Numbers are varints
 * (`record-bytes.ts`).
 */
interface Head {
  /** Absolute patterns that earlier scans looked at. */
  readonly patterns: readonly string[];
  readonly lastNumber: number;
}

/** Everything that the tailer needs after a restart. */
interface Positions extends Head {
  readonly generations: readonly Recorded[];
}

const statuses: readonly Status[] = ['followed', 'lost', 'ended'];
const losses: readonly Generation['lostBy'][] = [undefined, 'truncated', 'vanished'];

/** Bits of the first byte. The two lowest bits are the status; the next two say how the generation was lost. */
const flags = { hasPlace: 16, isLive: 32, isGzip: 64, isBlank: 128 };
/** Bits of the second byte. */
const more = { hasSum: 1, hasSinkState: 2, wasLive: 4 };
const partsLimit = 16;

type FileOf = Pick<Known, 'dev' | 'ino' | 'size' | 'mtimeNs'>;

function writeFile(to: RecordWriter, { dev, ino, size, mtimeNs }: FileOf): void {
  to.id(dev);
  to.id(ino);
  to.time(mtimeNs);
  // The size -1 marks a copy that is to be compared again.
  to.number(size + 1);
}

const readFile = (from: RecordReader) => {
  const [dev, ino, mtimeNs] = [from.id(), from.id(), from.time()];
  return { dev, ino, mtimeNs, size: from.number() - 1 };
};

/** The encoded record of a generation. It is encoded again only after the generation changed. */
export function recordOf(recorded: Recorded): Buffer {
  recorded.of.record ??= encode(recorded);
  return recorded.of.record;
}

const writer = createRecordWriter();

/**
 * Encodes one generation. The place of a deleted file is left out because its inode belongs to another file after a restart; a
 * generation of which nothing is known is left out because it cannot be found again.
 */
function encode({ of, place, copies }: Recorded): Buffer {
  const { chain, rest, group, home, lost } = of;
  const sinkState = of.sink ? of.sink.state() : of.sinkState;
  const there = place?.state === 'unlinked' ? undefined : place;
  const isGone = place !== undefined && !there;
  const isUnknown = there !== undefined && knownBytes(of) === 0;
  const grown = isGone && !place.isGzip ? Math.max(of.size, place.size) : of.size;
  const to = writer.begin();
  to.byte(
    statuses.indexOf(isGone ? 'lost' : of.status) |
      (losses.indexOf(isGone ? 'vanished' : of.lostBy) << 2) |
      (there ? flags.hasPlace : 0) |
      (there?.state === 'live' ? flags.isLive : 0) |
      (there?.isGzip ? flags.isGzip : 0) |
      (there?.isBlank ? flags.isBlank : 0),
  );
  to.byte(
    (chain.sum === undefined ? 0 : more.hasSum) |
      (sinkState ? more.hasSinkState : 0) |
      (lost?.wasLive ? more.wasLive : 0),
  );
  to.text(group);
  to.text(home, group);
  to.number(of.number);
  to.number(chain.offset);
  to.number(isUnknown ? 0 : grown);
  if (chain.sum !== undefined) to.sum(chain.sum);
  to.text(chain.tail);
  to.number(chain.marks.length);
  for (const mark of chain.marks) to.sum(mark);
  to.bytes(rest);
  if (sinkState) to.bytes(sinkState);
  to.text(lost?.key ?? '');
  to.number(of.parts.length);
  for (const { size, sum } of of.parts) {
    to.number(size);
    to.sum(sum);
  }
  if (there) {
    writeFile(to, { ...there, size: isUnknown ? 0 : there.size, mtimeNs: there.readMtimeNs });
    to.text(there.real, group);
    to.text(there.at, group);
  }
  to.number(copies.length);
  for (const copy of copies) {
    to.byte(Number(copy.isGzip));
    writeFile(to, copy);
    to.text(copy.path, group);
  }
  return to.end();
}

/** Reads a list of `count` items. With a damaged count, the list ends where the bytes end. */
const listOf = <T>(count: number, read: () => T): T[] => {
  const items: T[] = [];
  while (items.length < count) items.push(read());
  return items;
};

function decode(record: Buffer): Recorded {
  const from = createRecordReader(record);
  const [flag, others] = [from.byte(), from.byte()];
  const status = statuses[flag & 3];
  if (status === undefined || (flag & 12) === 12) throw new RangeError('status');
  const group = from.text();
  const home = from.text(group);
  const number = from.number();
  const [offset, size] = [from.number(), from.number()];
  const sum = others & more.hasSum ? from.sum() : undefined;
  const tail = from.text();
  const markCount = from.number();
  if (markCount > marksLimit) throw new RangeError('marks');
  const marks = listOf(markCount, from.sum);
  const rest = Buffer.from(from.bytes());
  const sinkState = others & more.hasSinkState ? Buffer.from(from.bytes()) : undefined;
  const key = from.text();
  const partCount = from.number();
  if (partCount > partsLimit) throw new RangeError('parts');
  const parts = listOf(partCount, () => ({ size: from.number(), sum: from.sum() }));
  const of = newGeneration({
    number,
    group,
    home,
    claimants: [],
    status,
    lostBy: losses[(flag >> 2) & 3],
    chain: { offset, sum, tail, marks },
    size,
    parts,
    rest,
    restBytes: rest.length,
    sinkState,
  });
  const dev = /^\d+(?=:)/.exec(key)?.[0];
  const wasLive = (others & more.wasLive) !== 0;
  if (status === 'lost') of.lost = { key, dev: dev === undefined ? undefined : BigInt(dev), wasLive };
  const place = flag & flags.hasPlace ? readPlace(from, flag, group) : undefined;
  const copies = listOf(from.number(), () => {
    const isGzip = from.byte() === 1;
    return { ...readFile(from), isGzip, path: from.text(group) };
  });
  from.end();
  return { of, place, copies };
}

function readPlace(from: RecordReader, flag: number, group: string): Place {
  const file = readFile(from);
  const place = newPlace({
    ...file,
    real: from.text(group),
    at: from.text(group),
    state: flag & flags.isLive ? 'live' : 'rotated',
    isGzip: (flag & flags.isGzip) !== 0,
  });
  return Object.assign(place, { readMtimeNs: place.mtimeNs, isBlank: (flag & flags.isBlank) !== 0 });
}

/** Encodes the positions; returns the bytes of the last call while nothing has changed. */
export function createPositionsEncoder(): (head: Head, records: readonly Buffer[]) => Uint8Array {
  let last: { bytes: Uint8Array; head: Buffer; records: readonly Buffer[] } | undefined;
  return ({ patterns, lastNumber }, records) => {
    const head = Buffer.from(JSON.stringify({ patterns, lastNumber }));
    const isSame =
      last?.records.length === records.length && records.every((one, i) => one === last?.records[i]);
    if (last && isSame && last.head.equals(head)) return last.bytes;
    const all = [head, ...records];
    const bytes = Buffer.allocUnsafe(all.reduce((sum, { length }) => sum + 4 + length, 8));
    let at = bytes.writeUInt32LE(version, 0);
    at = bytes.writeUInt32LE(records.length, at);
    for (const record of all) {
      at = bytes.writeUInt32LE(record.length, at);
      bytes.set(record, at);
      at += record.length;
    }
    last = { bytes, head, records };
    return bytes;
  };
}

function unreadable(what: string, cause?: unknown): AgentError {
  return new AgentError('state_unreadable', { where: 'state section logs', what }, cause);
}

/** Decodes a section of the snapshot. Throws `state_unreadable` on bytes that the encoder did not write. */
export function decodePositions(section: Uint8Array): Positions {
  const bytes = Buffer.from(section.buffer, section.byteOffset, section.byteLength);
  let at = 0;
  const take = (length: number) => {
    if (at + length > bytes.length) throw unreadable('cut off');
    at += length;
    return bytes.subarray(at - length, at);
  };
  const number = () => take(4).readUInt32LE(0);
  if (number() !== version) throw unreadable('unknown version');
  const count = number();
  const { patterns, lastNumber } = headOf(take(number()));
  const generations: Recorded[] = [];
  while (generations.length < count) {
    const record = take(number());
    try {
      generations.push(decode(record));
    } catch (thrown) {
      throw unreadable('a file record cannot be read', thrown);
    }
  }
  if (at !== bytes.length) throw unreadable('bytes after its end');
  return { patterns, lastNumber, generations };
}

function headOf(json: Buffer): Head {
  try {
    const { patterns, lastNumber } = JSON.parse(json.toString());
    if (Array.isArray(patterns) && Number.isSafeInteger(lastNumber)) return { patterns, lastNumber };
  } catch (thrown) {
    throw unreadable('broken head', thrown);
  }
  throw unreadable('broken head');
}

type RecordWriter = ReturnType<typeof createRecordWriter>;
type RecordReader = ReturnType<typeof createRecordReader>;

/** How a text is written, in the two lowest bits of the number before it; the other bits are its length in bytes. */
const textForms = { usual: 0, latin1: 1, utf16: 2 };
const wideLetter = /[^\0-\xff]/;
const encodings: readonly (BufferEncoding | undefined)[] = [undefined, 'latin1', 'utf16le'];

/**
 * Writes the bytes of records: numbers as varints, texts with one byte per character where that is enough. `begin` starts the
 * next record; all records share one buffer.
 */
function createRecordWriter() {
  let buffer = Buffer.allocUnsafe(1024);
  let at = 0;
  const reserve = (length: number): number => {
    if (at + length > buffer.length) {
      const larger = Buffer.allocUnsafe(Math.max(2 * buffer.length, at + length));
      buffer.copy(larger, 0, 0, at);
      buffer = larger;
    }
    at += length;
    return at - length;
  };
  const to = {
    begin() {
      at = 0;
      return to;
    },
    byte(value: number) {
      const from = reserve(1);
      buffer[from] = value;
    },
    /** A whole number from 0 to 2^53 - 1. */
    number(value: number) {
      let rest = value;
      for (; rest >= 0x80; rest = Math.floor(rest / 0x80)) to.byte((rest % 0x80) | 0x80);
      to.byte(rest);
    },
    /** Four bytes, for a checksum. */
    sum(value: number) {
      const from = reserve(4);
      buffer.writeUInt32LE(value, from);
    },
    /** An unsigned and a signed number of 64 bits. */
    id(value: bigint) {
      const from = reserve(8);
      buffer.writeBigUInt64LE(value, from);
    },
    time(value: bigint) {
      const from = reserve(8);
      buffer.writeBigInt64LE(value, from);
    },
    /** A text, which may have lone surrogates. If it equals `usual`, only a mark is written. */
    text(value: string, usual?: string): void {
      if (value === usual) {
        to.number(textForms.usual);
        return;
      }
      const isWide = wideLetter.test(value);
      const length = isWide ? 2 * value.length : value.length;
      to.number(4 * length + (isWide ? textForms.utf16 : textForms.latin1));
      const from = reserve(length);
      buffer.write(value, from, isWide ? 'utf16le' : 'latin1');
    },
    bytes(value: Uint8Array) {
      to.number(value.length);
      const from = reserve(value.length);
      buffer.set(value, from);
    },
    end: () => Buffer.from(buffer.subarray(0, at)),
  };
  return to;
}

/**
 * The counterpart of the writer: each call reads what the writer's call of the same name wrote, and throws a `RangeError` on
 * anything else.
 */
function createRecordReader(record: Buffer) {
  let at = 0;
  const take = (length: number): number => {
    if (length > record.length - at) throw new RangeError(`ends after ${record.length} bytes`);
    at += length;
    return at - length;
  };
  const from = {
    byte: () => record[take(1)]!,
    number(): number {
      let value = 0;
      for (let unit = 1; unit <= Number.MAX_SAFE_INTEGER; unit *= 0x80) {
        const byte = from.byte();
        value += (byte & 0x7f) * unit;
        if (byte < 0x80 && value <= Number.MAX_SAFE_INTEGER) return value;
      }
      throw new RangeError('a number is too large');
    },
    sum: () => record.readUInt32LE(take(4)),
    id: () => record.readBigUInt64LE(take(8)),
    time: () => record.readBigInt64LE(take(8)),
    text(usual?: string): string {
      const mark = from.number();
      if (mark === textForms.usual && usual !== undefined) return usual;
      const encoding = encodings[mark % 4];
      if (encoding === undefined) throw new RangeError('a text has no form');
      const length = Math.floor(mark / 4);
      const begin = take(length);
      return record.toString(encoding, begin, begin + length);
    },
    bytes(): Buffer {
      const length = from.number();
      const begin = take(length);
      return record.subarray(begin, begin + length);
    },
    end() {
      if (at !== record.length) throw new RangeError('bytes after its end');
    },
  };
  return from;
}
