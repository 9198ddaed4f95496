import { endianness } from 'node:os';
import { crc32 } from 'node:zlib';
import { AgentError } from '../../core/errors.ts';

/**
 * Everything that survives a restart, as bytes (integers little-endian, u32 unless told):
 *
 *     magic (8) · version · table length · table                 changes only with the series
 *     sequence (f64) · count of values · count of sections
 *     values (f64 each, the machine's byte order) · sections: length of name, length, name, bytes
 *     CRC-32 of all before it
 */
export interface Content {
  readonly table: Uint8Array;
  readonly values: Float64Array;
  readonly sections: ReadonlyMap<string, Uint8Array>;
}

export interface Snapshot extends Content {
  readonly sequence: number;
}

/** Larger ones are neither written nor read. */
export const maxSnapshotBytes = 2 ** 30;

export const snapshotVersion = 1;
/** Ends in the byte order, so that a snapshot carried to another kind of machine is foreign, not garbled. */
export const magic = Buffer.from(`svcstat${endianness().charAt(0)}`, 'latin1');
export const tableAt = magic.length + 8;
export const numbersBytes = 16;
export const sectionHeadBytes = 8;
export const checksumBytes = 4;

export const bytesOf = (values: Float64Array) =>
  new Uint8Array(values.buffer, values.byteOffset, values.byteLength);

/** Whether `bytes` stand in `buffer` at `at`, both within its bounds. */
export const sameBytes = (buffer: Buffer, at: number, bytes: Uint8Array) =>
  buffer.compare(bytes, 0, bytes.length, at, at + bytes.length) === 0;

function corrupt(what: string, got?: number, allowed?: string): AgentError {
  return new AgentError('snapshot_corrupt', { where: 'state snapshot', what, got, allowed });
}

function checkEnvelope(bytes: Buffer): void {
  if (bytes.length < magic.length || !sameBytes(bytes, 0, magic)) {
    throw corrupt('foreign: it does not begin as a snapshot of this kind of machine does');
  }
  if (bytes.length < tableAt + numbersBytes + checksumBytes) throw corrupt('torn: too short', bytes.length);
  const got = bytes.readUInt32LE(magic.length);
  if (got !== snapshotVersion)
    throw corrupt('of an unknown version', got, `this agent reads version ${snapshotVersion}`);
  const endAt = bytes.length - checksumBytes;
  if (crc32(bytes.subarray(0, endAt)) !== bytes.readUInt32LE(endAt))
    throw corrupt('torn: its checksum does not hold');
}

/** Hands out consecutive parts of `bytes[at, endAt)`; throws `snapshot_corrupt` on a length that leads out of it. */
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
    if (sections.has(name)) throw corrupt(`section ${JSON.stringify(name)} is there twice`);
    sections.set(name, cursor.take(head.readUInt32LE(4), `section ${JSON.stringify(name)}`));
  }
  return sections;
}

/**
 * A snapshot from its bytes, which table and sections keep referring to. Never allocates more than the bytes it
 * is given. Throws `snapshot_corrupt` on what is foreign, torn, of another version, or not exactly of the form.
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
