import { isUtf8 } from 'node:buffer';
import type { Kind } from '../../../core/model.ts';

/**
 * The syntax of the lines of a page: sample lines and comments.
 *
 * The key of a sample line is everything before its value (`name{label="value",…} `). Names are accepted as they
 * come, because the registry sanitizes them. A name is invalid only if it would make the line ambiguous (blanks,
 * quotes, braces, `,`, `=`) or starts with `-`, `.` or the like. Text 1.0.0 quotes other names and moves the metric's name into
 * the braces: `{"metric.name","label.name"="value"} `.
 */
const maxLabels = 256;
/** The spans of the last scan as pairs of indexes: the name, then name and value of each label. Each scan overwrites them. */
const spans = new Int32Array(2 + 4 * maxLabels);
let labelCount = 0;

export const brokenKey = -1;
export const longKey = -2;

const startsName = 1;
const continuesName = 2;
const nameClass = new Uint8Array(256);
for (let byte = 0x21; byte < 256; byte++) {
  if ('"{},=#'.includes(String.fromCharCode(byte)) || byte === 0x7f) continue;
  const starts = /[A-Za-z0-9_:]/.test(String.fromCharCode(byte)) || byte >= 0x80;
  nameClass[byte] = starts ? startsName | continuesName : continuesName;
}

function blanks(bytes: Uint8Array, at: number): number {
  let i = at;
  while (bytes[i] === 0x20 || bytes[i] === 0x09) i++;
  return i;
}

/** The index after the name at `at`; `at` itself if no name is there. */
function nameEnd(bytes: Uint8Array, at: number): number {
  if ((nameClass[bytes[at]!]! & startsName) === 0) return at;
  let i = at + 1;
  while (nameClass[bytes[i]!] !== 0) i++;
  return i;
}

/** The index of the quote that closes the quoted text which begins at `at`, or -1. */
function quotedEnd(bytes: Uint8Array, at: number, end: number): number {
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

/**
 * Scans the labels from the byte after the opening brace. Returns the index after the closing brace, `brokenKey`
 * or `longKey`. A quoted name without a value is the metric's name, if that is still missing (`spans[1]` is -1).
 */
function scanLabels(bytes: Uint8Array, at: number, end: number, labelBytes: number): number {
  let i = blanks(bytes, at);
  while (bytes[i] !== 0x7d) {
    const isQuoted = bytes[i] === 0x22;
    const from = isQuoted ? i + 1 : i;
    const to = isQuoted ? quotedEnd(bytes, from, end) : nameEnd(bytes, i);
    if (to <= from) return brokenKey;
    i = blanks(bytes, isQuoted ? to + 1 : to);
    if (isQuoted && spans[1] === -1 && bytes[i] !== 0x3d) {
      if (to - from > labelBytes) return longKey;
      spans[0] = from;
      spans[1] = to;
      if (bytes[i] === 0x2c) i = blanks(bytes, i + 1);
      else if (bytes[i] !== 0x7d) return brokenKey;
      continue;
    }
    if (bytes[i] !== 0x3d) return brokenKey;
    i = blanks(bytes, i + 1);
    if (bytes[i] !== 0x22) return brokenKey;
    const close = quotedEnd(bytes, i + 1, end);
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
 * Validates the key of the line in `bytes[start, end)`, where `bytes[end]` is a newline. Returns the index of the
 * first byte of its value, `brokenKey` for an invalid key, or `longKey` if a name or a label's value has more than
 * `labelBytes`.
 */
export function scanKey(bytes: Buffer, start: number, end: number, labelBytes: number): number {
  labelCount = 0;
  const from = blanks(bytes, start);
  const to = nameEnd(bytes, from);
  if (to === from && bytes[from] !== 0x7b) return brokenKey;
  if (to - from > labelBytes) return longKey;
  spans[0] = from;
  spans[1] = to === from ? -1 : to;
  let i = blanks(bytes, to);
  if (bytes[i] === 0x7b) {
    const after = scanLabels(bytes, i + 1, end, labelBytes);
    if (after < 0) return after;
    if (spans[1] === -1) return brokenKey;
    i = blanks(bytes, after);
  } else if (i === to) return brokenKey;
  return isUtf8(bytes.subarray(start, i)) ? i : brokenKey;
}

/**
 * Validates the labels of an exemplar from the byte after the opening brace. Returns the index after the closing brace, or
 * `brokenKey`.
 */
export function scanBraces(bytes: Uint8Array, at: number, end: number): number {
  labelCount = 0;
  spans[1] = 0;
  return scanLabels(bytes, at, end, Number.POSITIVE_INFINITY);
}

/** A parsed key; the labels are in the order of the line. */
export interface SampleKey {
  name: string;
  labels: [name: string, value: string][];
}

/** Parses a key that `scanKey` accepts; `bytes` must hold a byte after it. */
export function readKey(bytes: Buffer, start: number, end: number): SampleKey {
  scanKey(bytes, start, end, Number.POSITIVE_INFINITY);
  const labels: [string, string][] = [];
  for (let label = 0; label < labelCount; label++) {
    const at = 2 + 4 * label;
    labels.push([
      nameText(bytes, spans[at]!, spans[at + 1]!),
      unescapeText(bytes.toString('utf8', spans[at + 2], spans[at + 3])),
    ]);
  }
  return { name: nameText(bytes, spans[0]!, spans[1]!), labels };
}

function nameText(bytes: Buffer, from: number, to: number): string {
  const text = bytes.toString('utf8', from, to);
  return bytes[from - 1] === 0x22 ? unescapeText(text) : text;
}

const escapes: Readonly<Record<string, string>> = { '\\\\': '\\', '\\"': '"', '\\n': '\n' };

/** Unescapes what both formats escape; other escapes stay as they are, as in Prometheus. */
function unescapeText(text: string): string {
  return text.includes('\\') ? text.replace(/\\[\\"n]/g, (pair) => escapes[pair]!) : text;
}

/** The types of both text formats. */
const exposedTypes = [
  'counter',
  'gauge',
  'histogram',
  'summary',
  'untyped',
  'unknown',
  'gaugehistogram',
  'info',
  'stateset',
] as const;
export type ExposedType = (typeof exposedTypes)[number];

/** The kind in the agent's registry by exposed type. Parts of a gauge histogram can fall, so they are untyped numbers. */
export const kindOf: Readonly<Record<ExposedType, Kind>> = {
  counter: 'counter',
  gauge: 'gauge',
  histogram: 'histogram',
  summary: 'summary',
  untyped: 'untyped',
  unknown: 'untyped',
  gaugehistogram: 'untyped',
  info: 'gauge',
  stateset: 'gauge',
};

type Comment =
  | { about: 'type'; name: string; type: ExposedType }
  | { about: 'help'; name: string; help: string }
  | { about: 'end' };

const typeLine = /^#[ \t]+TYPE[ \t]+("(?:[^"\\]|\\.)*"|[^ \t]+)[ \t]+([a-z]+)[ \t]*$/;
const helpLine = /^#[ \t]+HELP[ \t]+("(?:[^"\\]|\\.)*"|[^ \t]+)(?:[ \t](.*))?$/s;
const isType = (text: string): text is ExposedType => (exposedTypes as readonly string[]).includes(text);

/**
 * Reads the comment line in `bytes[start, end)`. Undefined for a comment that is not used (UNIT included: names contain their
 * unit). `invalid` for an unknown TYPE and for text that is not UTF-8.
 */
export function readComment(bytes: Buffer, start: number, end: number): Comment | 'invalid' | undefined {
  if (!isUtf8(bytes.subarray(start, end))) return 'invalid';
  const line = bytes.toString('utf8', start, end);
  if (line === '# EOF') return { about: 'end' };
  const type = typeLine.exec(line);
  if (type !== null) {
    const [, name, text] = type;
    return isType(text!) ? { about: 'type', name: unquoted(name!), type: text } : 'invalid';
  }
  if (/^#[ \t]+TYPE[ \t]/.test(line)) return 'invalid';
  const help = helpLine.exec(line);
  return help === null
    ? undefined
    : { about: 'help', name: unquoted(help[1]!), help: unescapeText(help[2] ?? '') };
}

/** A name without its quotes: text 1.0.0 quotes names that are not identifiers. */
function unquoted(name: string): string {
  return name.startsWith('"') ? unescapeText(name.slice(1, -1)) : name;
}
