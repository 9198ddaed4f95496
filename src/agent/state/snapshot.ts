import { endianness } from 'node:os';
import { crc32 } from 'node:zlib';
import { AgentError } from '../../core/errors.ts';

/**
 * Everything that survives a restart, as bytes (integers little-endian, u32 by default):
 *
 *     magic (8) · version · table length · table                 changes only with the series
 *     sequence (f64) · count of values · count of sections
 *     values (f64 each, the machine's byte order) · sections: length of name, length, name, bytes
 *     CRC-32 of all before it
 */
export interface SnapshotContent {
  readonly table: Uint8Array;
  readonly values: Float64Array;
  readonly sections: ReadonlyMap<string, Uint8Array>;
}

export interface Snapshot extends SnapshotContent {
  readonly sequence: number;
}

/** Larger snapshots are neither written nor read. */
export const maxSnapshotBytes = 2 ** 30;

const snapshotVersion = 1;
/**
 * The first bytes of a snapshot. They end with the byte order, so that a machine with another byte order rejects the snapshot.
 */
const magic = Buffer.from(`svcstat${endianness().charAt(0)}`, 'latin1');
const tableAt = magic.length + 8;
const numbersBytes = 16;
const sectionHeadBytes = 8;
const checksumBytes = 4;

const bytesOf = (values: Float64Array) => new Uint8Array(values.buffer, values.byteOffset, values.byteLength);

/** Whether `buffer` contains `bytes` at `at`. */
const sameBytes = (buffer: Buffer, at: number, bytes: Uint8Array) =>
  buffer.compare(bytes, 0, bytes.length, at, at + bytes.length) === 0;

function corrupt(what: string, got?: number, allowed?: string): AgentError {
  return new AgentError('snapshot_corrupt', { where: 'state snapshot', what, got, allowed });
}

function checkEnvelope(bytes: Buffer): void {
  if (bytes.length < magic.length || !sameBytes(bytes, 0, magic)) {
    throw corrupt('foreign: its header is not that of a snapshot of this architecture');
  }
  if (bytes.length < tableAt + numbersBytes + checksumBytes) throw corrupt('torn: too short', bytes.length);
  const got = bytes.readUInt32LE(magic.length);
  if (got !== snapshotVersion)
    throw corrupt('of an unknown version', got, `this agent reads version ${snapshotVersion}`);
  const endAt = bytes.length - checksumBytes;
  if (crc32(bytes.subarray(0, endAt)) !== bytes.readUInt32LE(endAt))
    throw corrupt('torn: its checksum does not match');
}

/** Reads consecutive parts of `bytes[at, endAt)`. Throws `snapshot_corrupt` on a length beyond the end. */
function createCursor(bytes: Buffer, startAt: number, endAt: number) {
  let at = startAt;
  const take = (length: number, what: string): Buffer => {
    if (length > endAt - at) throw corrupt(`${what} is longer than the file`, length);
    at += length;
    return bytes.subarray(at - length, at);
  };
  return { take, atEnd: () => at === endAt };
}

type Cursor = ReturnType<typeof createCursor>;

function takeSections(cursor: Cursor, count: number): Map<string, Uint8Array> {
  const sections = new Map<string, Uint8Array>();
  for (let i = 0; i < count; i++) {
    const head = cursor.take(sectionHeadBytes, 'the head of a section');
    const name = cursor.take(head.readUInt32LE(0), 'the name of a section').toString('utf8');
    if (sections.has(name)) throw corrupt(`section ${JSON.stringify(name)} is a duplicate`);
    sections.set(name, cursor.take(head.readUInt32LE(4), `section ${JSON.stringify(name)}`));
  }
  return sections;
}

/**
 * Decodes a snapshot. Its table and sections are views of the bytes. Never allocates more than the bytes that it is given. Throws
 * `snapshot_corrupt` for a foreign, torn or malformed file, and for another version.
 */
export function decodeSnapshot(input: Uint8Array): Snapshot {
  const bytes = Buffer.from(input.buffer, input.byteOffset, input.byteLength);
  checkEnvelope(bytes);
  const cursor = createCursor(bytes, tableAt, bytes.length - checksumBytes);
  const table = cursor.take(bytes.readUInt32LE(magic.length + 4), 'the table');
  const numbers = cursor.take(numbersBytes, 'the head of the values');
  const sequence = numbers.readDoubleLE(0);
  if (!Number.isSafeInteger(sequence) || sequence < 0) throw corrupt('its sequence is not a whole number');
  const valueBytes = cursor.take(numbers.readUInt32LE(8) * 8, 'the array of values');
  const sections = takeSections(cursor, numbers.readUInt32LE(12));
  if (!cursor.atEnd()) throw corrupt('it is longer than its parts');
  const values = new Float64Array(valueBytes.length / 8);
  bytesOf(values).set(valueBytes);
  return { sequence, table, values, sections };
}

interface Encoder {
  /**
   * Encodes the content in a buffer that the next call overwrites. A table that is the same array as last time is neither copied
   * nor summed again. Throws `internal` if the snapshot would be larger than `maxSnapshotBytes`.
   */
  encode(content: SnapshotContent, sequence: number): Uint8Array;
  /** Whether the last encoded snapshot has exactly this content, whatever its sequence. */
  holds(content: SnapshotContent): boolean;
}

interface Placed {
  readonly name: Buffer;
  readonly at: number;
  readonly bytes: Uint8Array;
}

interface SnapshotLayout {
  readonly valuesAt: number;
  readonly sections: readonly Placed[];
  readonly endAt: number;
}

function snapshotLayout({ table, values, sections }: SnapshotContent): SnapshotLayout {
  const valuesAt = tableAt + table.length + numbersBytes;
  let at = valuesAt + values.byteLength;
  const placed: Placed[] = [];
  for (const [key, bytes] of sections) {
    const name = Buffer.from(key, 'utf8');
    placed.push({ name, at, bytes });
    at += sectionHeadBytes + name.length + bytes.length;
  }
  return { valuesAt, sections: placed, endAt: at };
}

function tooLarge(got: number): AgentError {
  const fault = {
    where: 'state snapshot',
    what: 'too large',
    got,
    allowed: `at most ${maxSnapshotBytes} bytes`,
  };
  return new AgentError('internal', fault);
}

function writeSection(buffer: Buffer, { name, at, bytes }: Placed): void {
  buffer.writeUInt32LE(name.length, at);
  buffer.writeUInt32LE(bytes.length, at + 4);
  buffer.set(name, at + sectionHeadBytes);
  buffer.set(bytes, at + sectionHeadBytes + name.length);
}

function sameSection(buffer: Buffer, { name, at, bytes }: Placed): boolean {
  const bytesAt = at + sectionHeadBytes + name.length;
  return (
    buffer.readUInt32LE(at) === name.length &&
    buffer.readUInt32LE(at + 4) === bytes.length &&
    sameBytes(buffer, at + sectionHeadBytes, name) &&
    sameBytes(buffer, bytesAt, bytes)
  );
}

export function createEncoder(): Encoder {
  let buffer = Buffer.alloc(0);
  let usedBytes = 0;
  let table: Uint8Array | undefined;
  let tableCrc = 0;

  const reserve = (wantedBytes: number): void => {
    if (wantedBytes <= buffer.length && wantedBytes * 4 > buffer.length) return;
    buffer = Buffer.allocUnsafeSlow(Math.ceil(wantedBytes * 1.25));
    table = undefined;
  };
  const writeTable = (next: Uint8Array): void => {
    if (table === next) return;
    buffer.set(magic);
    buffer.writeUInt32LE(snapshotVersion, magic.length);
    buffer.writeUInt32LE(next.length, magic.length + 4);
    buffer.set(next, tableAt);
    tableCrc = crc32(buffer.subarray(0, tableAt + next.length));
    table = next;
  };

  return {
    encode(content, sequence) {
      const { valuesAt, sections, endAt } = snapshotLayout(content);
      usedBytes = endAt + checksumBytes;
      if (usedBytes > maxSnapshotBytes) throw tooLarge(usedBytes);
      reserve(usedBytes);
      writeTable(content.table);
      const numbersAt = valuesAt - numbersBytes;
      buffer.writeDoubleLE(sequence, numbersAt);
      buffer.writeUInt32LE(content.values.length, numbersAt + 8);
      buffer.writeUInt32LE(sections.length, numbersAt + 12);
      buffer.set(bytesOf(content.values), valuesAt);
      for (const section of sections) writeSection(buffer, section);
      buffer.writeUInt32LE(crc32(buffer.subarray(numbersAt, endAt), tableCrc), endAt);
      return buffer.subarray(0, usedBytes);
    },
    holds(content) {
      const { valuesAt, sections, endAt } = snapshotLayout(content);
      return (
        table === content.table &&
        usedBytes === endAt + checksumBytes &&
        buffer.readUInt32LE(valuesAt - 8) === content.values.length &&
        sameBytes(buffer, valuesAt, bytesOf(content.values)) &&
        sections.every((section) => sameSection(buffer, section))
      );
    },
  };
}
