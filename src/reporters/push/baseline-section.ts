import { AgentError, errorText } from '../../core/errors.ts';

/**
 * A push baseline as bytes (u32 little-endian; numbers in the machine's byte order, as the snapshot around it):
 *
 *     version · length of facts · count of entries · facts (JSON)
 *     entries: key (8 bytes) · at · count of totals, highest bit: isExternal
 *     numbers (f64 each)
 */
interface Section {
  readonly facts: BaselineFacts;
  readonly entries: Uint8Array;
  readonly numbers: Float64Array;
}

interface BaselineFacts {
  /** Wall clock, ms. For unknown totals that began before this time only the increases are pushed. */
  readonly sinceMs: number;
  /** Whether entries of external totals were discarded, so that an unknown total is not necessarily new. */
  readonly forgot: boolean;
  /** Services whose external totals have been seen. */
  readonly services: readonly string[];
}

/** The stored entry of one series: see `createBaseline`. */
export interface EntryRow {
  readonly key: bigint;
  /** The index of the entry's first number. */
  readonly at: number;
  readonly count: number;
  readonly isExternal: boolean;
}

const version = 1;
const headBytes = 12;
const rowBytes = 16;
const externalBit = 0x8000_0000;

/**
 * The number of values of an entry: its start time, the last seen value of each total, and the part of each that has not been
 * sent.
 */
export const widthOf = (count: number): number => 1 + 2 * count;

export function encodeRows(rows: Iterable<EntryRow>, size: number): Uint8Array {
  const bytes = Buffer.allocUnsafe(size * rowBytes);
  let offset = 0;
  for (const { key, at, count, isExternal } of rows) {
    bytes.writeBigUInt64LE(key, offset);
    bytes.writeUInt32LE(at, offset + 8);
    bytes.writeUInt32LE((count | (isExternal ? externalBit : 0)) >>> 0, offset + 12);
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

function readFacts(text: string): BaselineFacts {
  let facts: Partial<BaselineFacts>;
  try {
    facts = JSON.parse(text) as Partial<BaselineFacts>;
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

interface DecodedSection {
  readonly facts: BaselineFacts;
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
    throw corrupt('its length is not the one in its head', bytes.length);
  }
  const numbers = new Float64Array((bytes.length - numbersAt) / 8);
  new Uint8Array(numbers.buffer).set(bytes.subarray(numbersAt));
  const rows = Array.from({ length: size }, (_, i): EntryRow => {
    const offset = rowsAt + i * rowBytes;
    const at = bytes.readUInt32LE(offset + 8);
    const counted = bytes.readUInt32LE(offset + 12);
    const count = counted % externalBit;
    if (count === 0 || at + widthOf(count) > numbers.length) throw corrupt('points outside the numbers', at);
    return { key: bytes.readBigUInt64LE(offset), at, count, isExternal: counted >= externalBit };
  });
  if (new Set(rows.map(({ key }) => key)).size !== size) throw corrupt('has a duplicate entry');
  return { facts: readFacts(bytes.toString('utf8', headBytes, rowsAt)), rows, numbers };
}
