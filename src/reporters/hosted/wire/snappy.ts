/**
 * Implements Snappy's block format (github.com/google/snappy, format_description.txt), the only compression of remote write.
 * Input is packed in fragments of 64 KiB, so that each copy's distance fits into two bytes.
 */

const fragmentBytes = 65_536;
const hashBits = 14;
/** The last bytes of a fragment are never hashed, so that four can always be compared. */
const marginBytes = 15;

const table = new Uint16Array(1 << hashBits);

/** The maximum size of the packed form of an input. */
function mostBytes(length: number): number {
  return 32 + length + Math.ceil(length / 6);
}

function putVarint(out: Buffer, from: number, value: number): number {
  let at = from;
  let rest = value;
  for (; rest > 127; rest >>>= 7) out[at++] = (rest & 127) | 128;
  out[at++] = rest;
  return at;
}

function putLiteral(input: Buffer, from: number, to: number, out: Buffer, place: number): number {
  const last = to - from - 1;
  let at = place;
  if (last < 60) out[at++] = last << 2;
  else if (last < 256) {
    out[at++] = 60 << 2;
    out[at++] = last;
  } else {
    out[at++] = 61 << 2;
    out[at++] = last & 255;
    out[at++] = last >> 8;
  }
  input.copy(out, at, from, to);
  return at + to - from;
}

/** A copy with a two-byte distance holds at most 64 bytes. */
function putCopy(out: Buffer, place: number, distance: number, length: number): number {
  let at = place;
  let rest = length;
  while (rest > 0) {
    const take = Math.min(rest, 64);
    if (take >= 4 && take < 12 && distance < 2048) {
      out[at++] = 1 | ((take - 4) << 2) | ((distance >> 8) << 5);
      out[at++] = distance & 255;
    } else {
      out[at++] = 2 | ((take - 1) << 2);
      out[at++] = distance & 255;
      out[at++] = distance >> 8;
    }
    rest -= take;
  }
  return at;
}

const word = (input: Buffer, at: number): number =>
  input[at]! | (input[at + 1]! << 8) | (input[at + 2]! << 16) | (input[at + 3]! << 24);

/** The number of bytes from `at` on that equal the bytes from `before` on. */
function matchLength(input: Buffer, before: number, at: number, end: number): number {
  let length = 4;
  while (at + length < end && input[before + length] === input[at + length]) length++;
  return length;
}

function packFragment(input: Buffer, from: number, end: number, out: Buffer, place: number): number {
  let at = place;
  let literalFrom = from;
  table.fill(0);
  const limit = end - marginBytes;
  let next = from + 1;
  let misses = 32;
  while (next < limit) {
    const current = word(input, next);
    const slot = Math.imul(current, 0x1e35_a7bd) >>> (32 - hashBits);
    const before = from + table[slot]!;
    table[slot] = next - from;
    if (before >= next || word(input, before) !== current) {
      // The steps grow where nothing repeats, because such bytes are not worth the search.
      next += misses++ >> 5;
      continue;
    }
    if (literalFrom < next) at = putLiteral(input, literalFrom, next, out, at);
    const length = matchLength(input, before, next, end);
    at = putCopy(out, at, next - before, length);
    next += length;
    literalFrom = next;
    misses = 32;
  }
  return literalFrom < end ? putLiteral(input, literalFrom, end, out, at) : at;
}

export function packSnappy(input: Buffer): Buffer {
  const out = Buffer.allocUnsafe(mostBytes(input.length));
  let at = putVarint(out, 0, input.length);
  for (let from = 0; from < input.length; from += fragmentBytes) {
    at = packFragment(input, from, Math.min(from + fragmentBytes, input.length), out, at);
  }
  return Buffer.from(out.subarray(0, at));
}

function readLength(input: Buffer): { length: number; at: number } {
  let length = 0;
  for (let at = 0; at < 5; at++) {
    const byte = input[at];
    if (byte === undefined) break;
    length += (byte & 127) * 2 ** (7 * at);
    if (byte < 128) return { length, at: at + 1 };
  }
  throw new RangeError('not a snappy block: it has no length');
}

/** Unpacks a block of `packSnappy`. Throws `RangeError` for anything else. */
export function unpackSnappy(input: Buffer): Buffer {
  const { length, at: start } = readLength(input);
  // The densest element encodes 64 bytes in three.
  if (length > input.length * 32) throw new RangeError('not a snappy block: its length cannot be');
  const out = Buffer.allocUnsafe(length);
  let at = start;
  let to = 0;
  while (at < input.length) {
    const element = unpackElement(input, at, out, to);
    at = element.at;
    to = element.to;
  }
  if (to !== length) throw new RangeError('not a snappy block: it ends too early');
  return out;
}

function unpackElement(input: Buffer, place: number, out: Buffer, to: number): { at: number; to: number } {
  const tag = input[place]!;
  const kind = tag & 3;
  let at = place + 1;
  let length = (tag >> 2) + 1;
  if (kind === 0) {
    const extra = Math.max(0, length - 60);
    if (extra > 0) length = input.readUIntLE(at, extra) + 1;
    at += extra;
    if (at + length > input.length || to + length > out.length) throw new RangeError('snappy: past the end');
    input.copy(out, to, at, at + length);
    return { at: at + length, to: to + length };
  }
  let distance: number;
  if (kind === 1) {
    length = ((tag >> 2) & 7) + 4;
    distance = ((tag >> 5) << 8) | input.readUInt8(at);
    at += 1;
  } else {
    const width = kind === 2 ? 2 : 4;
    distance = input.readUIntLE(at, width);
    at += width;
  }
  if (distance === 0 || distance > to || to + length > out.length)
    throw new RangeError('snappy: past the end');
  for (let i = 0; i < length; i++) out[to + i] = out[to + i - distance]!;
  return { at, to: to + length };
}
