import { AgentError } from '../errors.ts';
import { type Kind, kinds, type Labels } from '../model.ts';
import { createPairs, identityOf } from './labels.ts';
import type { SeriesRecord } from './value-stores.ts';

/**
 * The series table of a snapshot: UTF-8, one JSON array per line (`[at, kind, family, startMs, marks, texts, label, value, …]`).
 * The line of a removed series is blank. `at` is the index of the series' first value. `marks` is 1 for an overflow series, else
 * 0. For a series of a rule it is a text: this number, a space and the names of the rule's tags.
 */

const [blank, newline, bracket, comma, zero] = [0x20, 0x0a, 0x5b, 0x2c, 0x30];

/** The table's line for a series. */
export function lineOf(series: Omit<SeriesRecord, 'identity' | 'openedStep'>): string {
  const { at, kind, family, startMs, overflow, texts, labels, tagNames } = series;
  const marks = tagNames === undefined ? Number(overflow) : `${Number(overflow)} ${tagNames}`;
  return JSON.stringify([at, kind, family, startMs, marks, texts, ...labels.flat()]);
}

/** The number of values of a series of this kind. */
export function widthOf(kind: Kind, texts: readonly string[]): number {
  if (kind === 'histogram') return texts.length + 3;
  return kind === 'summary' ? texts.length + 2 : 1;
}

const isKind = (value: unknown): value is Kind => kinds.some((kind) => kind === value);
const isTexts = (value: unknown): value is string[] =>
  Array.isArray(value) && value.every((text) => typeof text === 'string');

function corrupt(line: number, what: string, got: unknown, cause?: unknown): AgentError {
  return new AgentError('snapshot_corrupt', { where: `state: series table, line ${line}`, what, got }, cause);
}

/** Parses lines. A series gets new cells from `at` on; `from` is the position of its cells according to the line. */
function createRowReader(valueCount: number) {
  const pair = createPairs();
  return (text: string, line: number, at: number): { entry: SeriesRecord; from: number } => {
    const row: unknown = parse(text, line);
    if (!Array.isArray(row)) throw corrupt(line, 'not an array', row);
    const [from, kind, family, startMs, marks, texts] = row as unknown[];
    if (!isKind(kind)) throw corrupt(line, 'unknown kind', kind);
    if (!isTexts(texts)) throw corrupt(line, 'bounds are not texts', texts);
    if (typeof family !== 'string') throw corrupt(line, 'no family name', family);
    if (typeof startMs !== 'number') throw corrupt(line, 'no start time', startMs);
    if (!Number.isInteger(from) || Number(from) < 0 || Number(from) + widthOf(kind, texts) > valueCount) {
      throw corrupt(line, 'points outside the values', from);
    }
    const labels = readLabels(row, line, pair);
    const identity = identityOf(labels);
    const entry = {
      at,
      kind,
      family,
      startMs,
      ...readMarks(marks),
      texts,
      labels,
      identity,
      openedStep: 0,
    };
    return { entry, from: Number(from) };
  };
}

function readMarks(marks: unknown): Pick<SeriesRecord, 'overflow' | 'tagNames'> {
  if (typeof marks !== 'string') return { overflow: marks === 1, tagNames: undefined };
  return { overflow: marks[0] === '1', tagNames: marks.slice(2) };
}

const firstLabel = 6;
type Pairs = ReturnType<typeof createPairs>;

function readLabels(row: readonly unknown[], line: number, pair: Pairs): Labels {
  const labels: Labels[number][] = [];
  for (let i = firstLabel; i < row.length; i += 2) {
    const [name, value] = [row[i], row[i + 1]];
    if (typeof name !== 'string' || typeof value !== 'string')
      throw corrupt(line, 'labels are not pairs of texts', row.slice(firstLabel));
    labels.push(pair(name, value));
  }
  return labels;
}

function parse(text: string, line: number): unknown {
  try {
    return JSON.parse(text);
  } catch (thrown) {
    throw corrupt(line, 'not JSON', undefined, thrown);
  }
}

function decode(table: Uint8Array): string {
  try {
    return new TextDecoder('utf-8', { fatal: true }).decode(table);
  } catch (thrown) {
    throw corrupt(0, 'not UTF-8', undefined, thrown);
  }
}

/** The series of a table, with new cells in the order of the lines, and their old positions. */
interface Rows {
  readonly entries: SeriesRecord[];
  /** The first cell according to the table. */
  readonly from: number[];
  /** Byte offsets in the line: after the cell, and of the line's end. */
  readonly tails: number[];
  readonly ends: number[];
  /** The records by family, then by identity. */
  readonly families: Map<string, Map<string, SeriesRecord>>;
  /** The number of cells of all series. */
  width: number;
}

function enter({ families }: Rows, entry: SeriesRecord): void {
  let members = families.get(entry.family);
  if (!members) {
    members = new Map();
    families.set(entry.family, members);
  }
  const count = members.size;
  if (members.set(entry.identity, entry).size === count)
    throw corrupt(0, 'duplicate series', [entry.family, entry.identity]);
}

/** Reads every series of a table. Throws `snapshot_corrupt`. */
export function readTable(table: Uint8Array, valueCount: number): Rows {
  const text = decode(table);
  const readLine = createRowReader(valueCount);
  const rows: Rows = { entries: [], from: [], tails: [], ends: [], families: new Map(), width: 0 };
  // In UTF-8 the byte of a newline is never part of another character, so lines of bytes and of text match.
  let [textAt, byteAt] = [0, 0];
  for (let line = 1; textAt < text.length; line++) {
    const textEnd = endOf(text.indexOf('\n', textAt), text.length);
    const byteEnd = endOf(table.indexOf(newline, byteAt), table.length);
    const own = text.slice(textAt, textEnd);
    if (own.trim() !== '') {
      const { entry, from } = readLine(own, line, rows.width);
      enter(rows, entry);
      rows.entries.push(entry);
      rows.from.push(from);
      rows.tails.push(table.indexOf(comma, byteAt));
      rows.ends.push(byteEnd);
      rows.width += widthOf(entry.kind, entry.texts);
    }
    textAt = textEnd + 1;
    byteAt = byteEnd + 1;
  }
  return rows;
}

const endOf = (found: number, length: number) => (found < 0 ? length : found);

/** The series table as bytes. It grows at its end, so that a new series costs one line. */
interface Table {
  /** Adds the line of the series at cell `at`; blanks the former line of that cell. */
  add(at: number, line: string): void;
  /** Adds the lines of another table, with the new cells of their series. */
  take(table: Uint8Array, rows: Rows): void;
  remove(at: number): void;
  /** The table; the same array object until something changes. */
  bytes(): Uint8Array;
}

const encoder = new TextEncoder();
const leastRemoved = 4096;
/** The maximum number of digits of an integer below 2 ** 32. */
const maxDigits = 10;

/** Writes an integer in decimal; returns the offset behind it. */
function writeNumber(bytes: Uint8Array, at: number, value: number): number {
  let end = at + 1;
  for (let rest = value; rest >= 10; rest = Math.floor(rest / 10)) end += 1;
  for (let [i, rest] = [end - 1, value]; i >= at; i--, rest = Math.floor(rest / 10))
    bytes[i] = zero + (rest % 10);
  return end;
}

/** Byte ranges of the lines, by cell. Objects instead of typed arrays would take a third of the table's memory. */
function createRanges() {
  let starts = new Int32Array(256);
  /** The ends of the ranges; 0 means no line. */
  let ends = new Int32Array(256);
  const grown = (ranges: Int32Array<ArrayBuffer>, least: number) => {
    const more = new Int32Array(Math.max(least, ranges.length * 2));
    more.set(ranges);
    return more;
  };
  return {
    start: (at: number) => starts[at] ?? 0,
    end: (at: number) => ends[at] ?? 0,
    set(at: number, start: number, end: number) {
      if (at >= ends.length) [starts, ends] = [grown(starts, at + 1), grown(ends, at + 1)];
      starts[at] = start;
      ends[at] = end;
    },
    /** The cells with a line, in the order of the lines. */
    inOrder(): number[] {
      const cells: number[] = [];
      for (let at = 0; at < ends.length; at++) if (ends[at]! > 0) cells.push(at);
      return cells.sort((a, b) => starts[a]! - starts[b]!);
    },
  };
}

export function createTable(): Table {
  const ranges = createRanges();
  let buffer = new Uint8Array(1024);
  let length = 0;
  let removed = 0;
  /** The part of the buffer that a caller may hold. Lines may be added after it; a change within it copies the buffer. */
  let shared: Uint8Array | undefined;

  const reserve = (more: number) => {
    if (length + more <= buffer.length) return;
    const grown = new Uint8Array(Math.max(length + more, buffer.length * 2));
    grown.set(buffer.subarray(0, length));
    buffer = grown;
  };

  /** Copies the remaining lines into a new buffer. */
  const compact = () => {
    const compacted = new Uint8Array(buffer.length);
    length = 0;
    for (const at of ranges.inOrder()) {
      const line = buffer.subarray(ranges.start(at), ranges.end(at));
      compacted.set(line, length);
      ranges.set(at, length, length + line.length);
      length += line.length;
    }
    buffer = compacted;
    removed = 0;
  };

  const remove = (at: number) => {
    const [start, end] = [ranges.start(at), ranges.end(at)];
    if (end === 0) return;
    ranges.set(at, 0, 0);
    if (shared) buffer = buffer.slice();
    shared = undefined;
    buffer.fill(blank, start, end - 1);
    removed += end - start;
    if (removed > leastRemoved && removed * 2 > length) compact();
  };
  return {
    remove,
    add(at, line) {
      remove(at);
      reserve(line.length * 3 + 1);
      const { written } = encoder.encodeInto(`${line}\n`, buffer.subarray(length));
      ranges.set(at, length, length + written);
      length += written;
    },
    take(table, { entries, tails, ends }) {
      const bytes = ends.reduce((sum, end, i) => sum + end - tails[i]! + maxDigits + 2, 0);
      reserve(bytes);
      for (const [i, { at }] of entries.entries()) {
        const start = length;
        buffer[start] = bracket;
        const tailAt = writeNumber(buffer, start + 1, at);
        const tail = table.subarray(tails[i], ends[i]);
        buffer.set(tail, tailAt);
        length = tailAt + tail.length + 1;
        buffer[length - 1] = newline;
        ranges.set(at, start, length);
      }
    },
    bytes() {
      if (shared?.length !== length) shared = buffer.subarray(0, length);
      return shared;
    },
  };
}
