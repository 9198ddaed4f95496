/**
 * The key of a sample line: everything in front of its value (`name{label="value",…} `). Names are taken as
 * they come, since sanitizing is the registry's: only what would make the line ambiguous (blanks, quotes,
 * braces, `,`, `=`) or a leading digit makes one invalid.
 */
import { isUtf8 } from 'node:buffer';

const maxLabels = 256;
/** Name, then name and value of each label, as pairs of indexes. Overwritten by each scan. */
const spans = new Int32Array(2 + 4 * maxLabels);
let labelCount = 0;

export const brokenKey = -1;
export const longKey = -2;

const startsName = 1;
const continuesName = 2;
const nameClass = new Uint8Array(256);
for (let byte = 0x21; byte < 256; byte++) {
  if ('"{},=#'.includes(String.fromCharCode(byte)) || byte === 0x7f) continue;
  const starts = /[A-Za-z_:]/.test(String.fromCharCode(byte)) || byte >= 0x80;
  nameClass[byte] = starts ? startsName | continuesName : continuesName;
}

function blanks(bytes: Uint8Array, at: number): number {
  let i = at;
  while (bytes[i] === 0x20 || bytes[i] === 0x09) i++;
  return i;
}

/** Index behind the name that begins at `at`; `at` itself if none does. */
function nameEnd(bytes: Uint8Array, at: number): number {
  if ((nameClass[bytes[at]!]! & startsName) === 0) return at;
  let i = at + 1;
  while (nameClass[bytes[i]!] !== 0) i++;
  return i;
}

/** Index of the quote that closes the value which begins at `at`, or -1. */
function valueEnd(bytes: Uint8Array, at: number, end: number): number {
  for (let i = at; i < end; i++) {
    const byte = bytes[i];
    if (byte === 0x22) return i;
    if (byte === 0x5c) i++;
  }
  return -1;
}

function isRepeated(bytes: Uint8Array, from: number, to: number): boolean {
  for (let label = 0; label < labelCount; label++) {
    const at = spans[2 + 4 * label]!;
    if (spans[3 + 4 * label]! - at !== to - from) continue;
    let i = 0;
    while (i < to - from && bytes[at + i] === bytes[from + i]) i++;
    if (i === to - from) return true;
  }
  return false;
}

/** Scans `{…}` from behind the brace; returns the index behind the closing one, `brokenKey` or `longKey`. */
function scanLabels(bytes: Uint8Array, at: number, end: number, labelBytes: number): number {
  let i = blanks(bytes, at);
  while (bytes[i] !== 0x7d) {
    const from = i;
    const to = nameEnd(bytes, i);
    i = blanks(bytes, to);
    if (to === from || bytes[i] !== 0x3d) return brokenKey;
    i = blanks(bytes, i + 1);
    if (bytes[i] !== 0x22) return brokenKey;
    const close = valueEnd(bytes, i + 1, end);
    if (close === -1 || labelCount === maxLabels || isRepeated(bytes, from, to)) return brokenKey;
    if (to - from > labelBytes || close - i - 1 > labelBytes) return longKey;
    spans.set([from, to, i + 1, close], 2 + 4 * labelCount++);
    i = blanks(bytes, close + 1);
    if (bytes[i] === 0x2c) i = blanks(bytes, i + 1);
    else if (bytes[i] !== 0x7d) return brokenKey;
  }
  return i + 1;
}

/**
 * Checks the key of the line in `bytes[start, end)`, where `bytes[end]` is a newline, and returns the index of
 * its value's first byte; `brokenKey` if it is none, `longKey` if a name or a label's value has more than
 * `labelBytes`.
 */
export function scanKey(bytes: Buffer, start: number, end: number, labelBytes: number): number {
  labelCount = 0;
  const from = blanks(bytes, start);
  const to = nameEnd(bytes, from);
  if (to === from) return brokenKey;
  if (to - from > labelBytes) return longKey;
  spans[0] = from;
  spans[1] = to;
  let i = blanks(bytes, to);
  if (bytes[i] === 0x7b) {
    const behind = scanLabels(bytes, i + 1, end, labelBytes);
    if (behind < 0) return behind;
    i = blanks(bytes, behind);
  } else if (i === to) return brokenKey;
  return isUtf8(bytes.subarray(start, i)) ? i : brokenKey;
}

/** Checks the labels of an exemplar from behind its brace; the index behind the closing one, or `brokenKey`. */
export function scanBraces(bytes: Uint8Array, at: number, end: number): number {
  labelCount = 0;
  return scanLabels(bytes, at, end, Number.POSITIVE_INFINITY);
}

/** A key taken apart; label order is the line's. */
export interface Key {
  name: string;
  labels: [name: string, value: string][];
}

/** Takes a key apart that `scanKey` has found right; `bytes` must hold a byte behind it. */
export function readKey(bytes: Buffer, start: number, end: number): Key {
  scanKey(bytes, start, end, Number.POSITIVE_INFINITY);
  const labels: [string, string][] = [];
  for (let label = 0; label < labelCount; label++) {
    const at = 2 + 4 * label;
    labels.push([
      bytes.toString('utf8', spans[at], spans[at + 1]),
      unescapeValue(bytes.toString('utf8', spans[at + 2], spans[at + 3])),
    ]);
  }
  return { name: bytes.toString('utf8', spans[0], spans[1]), labels };
}

const escapes: Readonly<Record<string, string>> = { '\\\\': '\\', '\\"': '"', '\\n': '\n' };

/** Escapes other than the three of the format stay as they are, as Prometheus keeps them. */
function unescapeValue(text: string): string {
  return text.includes('\\') ? text.replace(/\\[\\"n]/g, (pair) => escapes[pair]!) : text;
}
