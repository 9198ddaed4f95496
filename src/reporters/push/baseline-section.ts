import { AgentError, errorText } from '../../core/errors.ts';

/**
 * A push baseline as bytes (u32 little-endian; numbers in the machine's byte order, as the snapshot around it):
 *
 *     version · length of facts · count of entries · facts (JSON)
 *     entries: key (8 bytes) · at · count of totals, highest bit: carried
 *     numbers (f64 each)
 */
export interface Section {
  readonly facts: Facts;
  readonly entries: Uint8Array;
  readonly numbers: Float64Array;
}

export interface Facts {
  /** Wall clock, ms: of unknown totals that began earlier only the increases are pushed. */
  readonly sinceMs: number;
  /** Entries of external totals were discarded, so an unknown total is not necessarily new. */
  readonly forgot: boolean;
  /** Services whose external totals have been seen. */
  readonly services: readonly string[];
}

/** The stored entry of one series: see `createBaseline`. */
export interface EntryRow {
  readonly key: bigint;
  /** Index of its first number. */
  readonly at: number;
  readonly count: number;
  readonly carried: boolean;
}

const version = 1;
const headBytes = 12;
const rowBytes = 16;
const carriedBit = 0x8000_0000;

/** Numbers of an entry: its start time, each total as last seen, and what of each is owed. */
export const widthOf = (count: number): number => 1 + 2 * count;

export function encodeRows(rows: Iterable<EntryRow>, size: number): Uint8Array {
  const bytes = Buffer.allocUnsafe(size * rowBytes);
  let offset = 0;
  for (const { key, at, count, carried } of rows) {
    bytes.writeBigUInt64LE(key, offset);
    bytes.writeUInt32LE(at, offset + 8);
    bytes.writeUInt32LE((count | (carried ? carriedBit : 0)) >>> 0, offset + 12);
    offset += rowBytes;
  }
  return bytes;
}

export function encodeSection({ facts, entries, numbers }: Section): Uint8Array {
  const text = Buffer.from(JSON.stringify(facts));
  const head = Buffer.alloc(headBytes);
  head.writeUInt32LE(version, 0);
  head.writeUInt32LE(text.length, 4);
  head.writeUInt32LE(entries.length / rowBytes, 8);
  const raw = new Uint8Array(numbers.buffer, numbers.byteOffset, numbers.byteLength);
  return Buffer.concat([head, text, entries, raw]);
}

function corrupt(what: string, got?: unknown, cause?: unknown): AgentError {
  return new AgentError('snapshot_corrupt', { where: 'state: push baseline', what, got }, cause);
}

function readFacts(text: string): Facts {
  let facts: Partial<Facts>;
  try {
    facts = JSON.parse(text) as Partial<Facts>;
  } catch (thrown) {
    throw corrupt(`facts are not JSON: ${errorText(thrown)}`, undefined, thrown);
  }
  const { sinceMs, forgot, services } = facts ?? {};
  const known = Array.isArray(services) && services.every((service) => typeof service === 'string');
  if (typeof sinceMs !== 'number' || typeof forgot !== 'boolean' || !known) {
    throw corrupt('facts are incomplete', text);
  }
  return { sinceMs, forgot, services };
}

export interface DecodedSection {
  readonly facts: Facts;
  readonly rows: readonly EntryRow[];
  readonly numbers: Float64Array;
}

/** Decodes a section; throws `snapshot_corrupt` for bytes that `encodeSection` does not write. */
export function decodeSection(section: Uint8Array): DecodedSection {
  const bytes = Buffer.from(section.buffer, section.byteOffset, section.byteLength);
  if (bytes.length < headBytes) throw corrupt('too short', bytes.length);
  if (bytes.readUInt32LE(0) !== version) throw corrupt('of an unknown version', bytes.readUInt32LE(0));
  const rowsAt = headBytes + bytes.readUInt32LE(4);
  const size = bytes.readUInt32LE(8);
  const numbersAt = rowsAt + size * rowBytes;
  if (numbersAt > bytes.length || (bytes.length - numbersAt) % 8 !== 0) {
    throw corrupt('of another length than its head says', bytes.length);
  }
  const numbers = new Float64Array((bytes.length - numbersAt) / 8);
  new Uint8Array(numbers.buffer).set(bytes.subarray(numbersAt));
  const rows = Array.from({ length: size }, (_, i): EntryRow => {
    const offset = rowsAt + i * rowBytes;
    const at = bytes.readUInt32LE(offset + 8);
    const counted = bytes.readUInt32LE(offset + 12);
    const count = counted % carriedBit;
    if (count === 0 || at + widthOf(count) > numbers.length) throw corrupt('points outside the numbers', at);
    return { key: bytes.readBigUInt64LE(offset), at, count, carried: counted >= carriedBit };
  });
  if (new Set(rows.map(({ key }) => key)).size !== size) throw corrupt('has an entry twice');
  return { facts: readFacts(bytes.toString('utf8', headBytes, rowsAt)), rows, numbers };
}
