/**
 * Validates JSON (RFC 8259) in place, without building values. Every function takes the index of the first byte
 * of an element and returns the index after its last byte, or one of the two negative results below. No
 * function takes an end: the caller guarantees that a newline follows, and no JSON element contains a raw newline.
 * Bytes above 0x7f are accepted as text. An invalid UTF-8 sequence decodes to U+FFFD and never consumes an
 * ASCII byte, so it cannot change the structure.
 */

/** The result for text on which `JSON.parse` would throw. */
export const invalid = -1;
/** The result for text that is nested deeper than `maxDepth`. The caller falls back to `JSON.parse`. */
export const tooDeep = -2;
const maxDepth = 64;

export const quote = 0x22;
export const newline = 0x0a;
export const openBrace = 0x7b;
export const closeBrace = 0x7d;
export const comma = 0x2c;
export const colon = 0x3a;
const backslash = 0x5c;
const openBracket = 0x5b;
const closeBracket = 0x5d;
const minus = 0x2d;

/** Bytes that may appear unescaped in a string. */
const plain = Uint8Array.from({ length: 256 }, (_, byte) =>
  byte >= 0x20 && byte !== quote && byte !== backslash ? 1 : 0,
);
const hexDigit = Uint8Array.from({ length: 256 }, (_, byte) =>
  /[0-9a-fA-F]/.test(String.fromCharCode(byte)) ? 1 : 0,
);
const shortEscape = Uint8Array.from({ length: 256 }, (_, byte) =>
  '"\\/bfnrt'.includes(String.fromCharCode(byte)) ? 1 : 0,
);
const literals = new Map(
  ['true', 'false', 'null'].map((text) => [text.charCodeAt(0), Buffer.from(text)] as const),
);

/** Skips spaces, tabs and carriage returns. */
export function spaceEnd(bytes: Uint8Array, at: number): number {
  let i = at;
  for (let byte = bytes[i]; byte === 0x20 || byte === 0x09 || byte === 0x0d; byte = bytes[i]) i++;
  return i;
}

/**
 * Sets the high bit of each byte that is a quote, a backslash or a control character. Bits above the first hit
 * (the lowest byte) may be wrong, because a borrow can cross bytes.
 */
function specials(word: number): number {
  const quotes = (word ^ 0x22222222) - 0x01010101;
  const slashes = (word ^ 0x5c5c5c5c) - 0x01010101;
  return ((word - 0x20202020) | quotes | slashes) & ~word & 0x80808080;
}

const firstOf = (hits: number) => (31 - Math.clz32(hits & -hits)) >> 3;

/** The index of the first quote, backslash or control character at or after `at`. Reads eight bytes per step. */
export function plainEnd(bytes: Uint8Array, view: DataView, at: number): number {
  let i = at;
  const lastPair = bytes.length - 8;
  while (i <= lastPair) {
    const low = specials(view.getInt32(i, true));
    const high = specials(view.getInt32(i + 4, true));
    if ((low | high) !== 0) return low !== 0 ? i + firstOf(low) : i + 4 + firstOf(high);
    i += 8;
  }
  while (plain[bytes[i]!] === 1) i++;
  return i;
}

/** Scans from the byte after a string's opening quote to its closing quote. */
export function stringEnd(bytes: Uint8Array, view: DataView, at: number): number {
  let i = plainEnd(bytes, view, at);
  while (bytes[i] === backslash) {
    const escaped = bytes[i + 1]!;
    if (shortEscape[escaped] === 1) i += 2;
    else if (escaped === 0x75 && isHex4(bytes, i + 2)) i += 6;
    else return invalid;
    if (plain[bytes[i]!] === 1) i = plainEnd(bytes, view, i);
  }
  return bytes[i] === quote ? i : invalid;
}

function isHex4(bytes: Uint8Array, at: number): boolean {
  for (let i = at; i < at + 4; i++) if (hexDigit[bytes[i]!] !== 1) return false;
  return true;
}

function digitsEnd(bytes: Uint8Array, at: number): number {
  let i = at;
  for (let byte = bytes[i]!; byte >= 0x30 && byte <= 0x39; byte = bytes[i]!) i++;
  return i;
}

export function numberEnd(bytes: Uint8Array, at: number): number {
  const first = bytes[at] === minus ? at + 1 : at;
  let i = digitsEnd(bytes, first);
  if (i === first || (bytes[first] === 0x30 && i > first + 1)) return invalid;
  if (bytes[i] === 0x2e) {
    const fraction = i + 1;
    i = digitsEnd(bytes, fraction);
    if (i === fraction) return invalid;
  }
  if (bytes[i] === 0x65 || bytes[i] === 0x45) {
    const sign = bytes[i + 1];
    const exponent = sign === 0x2b || sign === minus ? i + 2 : i + 1;
    i = digitsEnd(bytes, exponent);
    if (i === exponent) return invalid;
  }
  return i;
}

export function literalEnd(bytes: Uint8Array, at: number): number {
  const text = literals.get(bytes[at]!);
  if (text === undefined) return invalid;
  for (let i = 1; i < text.length; i++) if (bytes[at + i] !== text[i]) return invalid;
  return at + text.length;
}

/** Scans from the opening quote of a member's key to the first byte of its value. */
function memberEnd(bytes: Uint8Array, view: DataView, at: number): number {
  if (bytes[at] !== quote) return invalid;
  const close = stringEnd(bytes, view, at + 1);
  if (close < 0) return invalid;
  const i = spaceEnd(bytes, close + 1);
  return bytes[i] === colon ? spaceEnd(bytes, i + 1) : invalid;
}

/** Scans a string, a number, true, false or null. */
function scalarEnd(bytes: Uint8Array, view: DataView, at: number): number {
  const first = bytes[at]!;
  if (first === quote) {
    const close = stringEnd(bytes, view, at + 1);
    return close < 0 ? invalid : close + 1;
  }
  return first === minus || (first >= 0x30 && first <= 0x39) ? numberEnd(bytes, at) : literalEnd(bytes, at);
}

/** The closing byte of each open object or array. All calls share the array, because one line is read at a time. */
const closers = new Uint8Array(maxDepth);

/** Returns the end of a value of any type. */
export function valueEnd(bytes: Uint8Array, view: DataView, at: number): number {
  let depth = 0;
  let i = at;
  for (;;) {
    const first = bytes[i];
    if (first === openBrace || first === openBracket) {
      if (depth === maxDepth) return tooDeep;
      closers[depth++] = first === openBrace ? closeBrace : closeBracket;
      i = spaceEnd(bytes, i + 1);
      if (bytes[i] !== closers[depth - 1]) {
        if (first === openBrace) i = memberEnd(bytes, view, i);
        if (i < 0) return invalid;
        continue;
      }
    } else {
      i = scalarEnd(bytes, view, i);
      if (i < 0) return invalid;
      if (depth === 0) return i;
      i = spaceEnd(bytes, i);
    }
    while (bytes[i] === closers[depth - 1]) {
      if (--depth === 0) return i + 1;
      i = spaceEnd(bytes, i + 1);
    }
    if (bytes[i] !== comma) return invalid;
    i = spaceEnd(bytes, i + 1);
    if (closers[depth - 1] === closeBrace) i = memberEnd(bytes, view, i);
    if (i < 0) return invalid;
  }
}
