import { AgentError } from './errors.ts';
import { createPairs, identityOf } from './labels.ts';
import { type Kind, kinds, type Labels } from './model.ts';
import type { SeriesRecord } from './stores.ts';

/**
 * The table of identities in a snapshot: UTF-8, one JSON array per line
 * (`[at, kind, family, startMs, overflow, texts, label, value, …]`), blank where a series was struck out.
 * The values' array is indexed by `at`.
 */

const [blank, newline, bracket, comma, zero] = [0x20, 0x0a, 0x5b, 0x2c, 0x30];

/** A series as its line in the table. */
export function lineOf(series: Omit<SeriesRecord, 'identity' | 'born'>): string {
  const { at, kind, family, startMs, overflow, texts, labels } = series;
  return JSON.stringify([at, kind, family, startMs, overflow ? 1 : 0, texts, ...labels.flat()]);
}

/** How many numbers a series of this kind has. */
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

/** Series of lines, their cells from `at` on instead of where the line says, which is `from`. */
function createLineReader(valueCount: number) {
  const pair = createPairs();
  return (text: string, line: number, at: number): { entry: SeriesRecord; from: number } => {
    const row: unknown = parse(text, line);
    if (!Array.isArray(row)) throw corrupt(line, 'not an array', row);
    const [from, kind, family, startMs, overflow, texts] = row as unknown[];
    if (!isKind(kind)) throw corrupt(line, 'unknown kind', kind);
    if (!isTexts(texts)) throw corrupt(line, 'bounds are not texts', texts);
    if (typeof family !== 'string') throw corrupt(line, 'no family name', family);
    if (typeof startMs !== 'number') throw corrupt(line, 'no start time', startMs);
    if (!Number.isInteger(from) || Number(from) < 0 || Number(from) + widthOf(kind, texts) > valueCount) {
      throw corrupt(line, 'points outside the values', from);
    }
    const labels = readLabels(row, line, pair);
    const identity = identityOf(labels);
    const entry = { at, kind, family, startMs, overflow: overflow === 1, texts, labels, identity, born: 0 };
    return { entry, from: Number(from) };
  };
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

/** The series of a table with cells that lie side by side in the order of the lines, and where each one was. */
export interface Rows {
  readonly entries: SeriesRecord[];
  /** First of its cells as the table has it. */
  readonly from: number[];
  /** Where its line goes on after the cell, and ends, in bytes. */
  readonly tails: number[];
  readonly ends: number[];
  /** The entries by family, then by identity. */
  readonly families: Map<string, Map<string, SeriesRecord>>;
  /** Cells of all together. */
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
    throw corrupt(0, 'a series twice', [entry.family, entry.identity]);
}

/** Every series of a table. Throws `snapshot_corrupt`. */
export function readTable(table: Uint8Array, valueCount: number): Rows {
  const text = decode(table);
  const readLine = createLineReader(valueCount);
  const rows: Rows = { entries: [], from: [], tails: [], ends: [], families: new Map(), width: 0 };
  // Lines end at the same bytes as texts: no other character has that byte in it.
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

/** The table of identities (`durable-rows.ts`) that grows at its end, so that a new series costs its own line only. */
export interface Table {
  /** The line goes with the cell `at`; an older one of that cell is struck out first. */
  add(at: number, line: string): void;
  /** Adds the lines of another table with their series' new cells. */
  take(table: Uint8Array, rows: Rows): void;
  strike(at: number): void;
  /** The same array object until something changes. */
  bytes(): Uint8Array;
}

const encoder = new TextEncoder();
const smallestTidy = 4096;
/** Of a whole number below 2 ** 32. */
const maxDigits = 10;

/** Writes a whole number in decimal; returns where it ends. */
function writeNumber(bytes: Uint8Array, at: number, value: number): number {
  let end = at + 1;
  for (let rest = value; rest >= 10; rest = Math.floor(rest / 10)) end += 1;
  for (let [i, rest] = [end - 1, value]; i >= at; i--, rest = Math.floor(rest / 10))
    bytes[i] = zero + (rest % 10);
  return end;
}

/** Where the line of a cell stands, by cell; one object for each would be a third of the table's memory. */
function createPlaces() {
  let starts = new Int32Array(256);
  /** 0: no line. */
  let ends = new Int32Array(256);
  const grown = (places: Int32Array<ArrayBuffer>, least: number) => {
    const more = new Int32Array(Math.max(least, places.length * 2));
    more.set(places);
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
    /** Cells that have a line, in the order of the lines. */
    inOrder(): number[] {
      const cells: number[] = [];
      for (let at = 0; at < ends.length; at++) if (ends[at]! > 0) cells.push(at);
      return cells.sort((a, b) => starts[a]! - starts[b]!);
    },
  };
}

export function createTable(): Table {
  const places = createPlaces();
  let buffer = new Uint8Array(1024);
  let length = 0;
  let struck = 0;
  /** Handed out for the buffer as it is; lines may still be added behind it. */
  let shared: Uint8Array | undefined;

  const reserve = (more: number) => {
    if (length + more <= buffer.length) return;
    const grown = new Uint8Array(Math.max(length + more, buffer.length * 2));
    grown.set(buffer.subarray(0, length));
    buffer = grown;
  };

  /** Moves the lines that count together, into a buffer that nobody else has. */
  const tidy = () => {
    const tidied = new Uint8Array(buffer.length);
    length = 0;
    for (const at of places.inOrder()) {
      const line = buffer.subarray(places.start(at), places.end(at));
      tidied.set(line, length);
      places.set(at, length, length + line.length);
      length += line.length;
    }
    buffer = tidied;
    struck = 0;
  };

  const strike = (at: number) => {
    const [start, end] = [places.start(at), places.end(at)];
    if (end === 0) return;
    places.set(at, 0, 0);
    if (shared) buffer = buffer.slice();
    shared = undefined;
    buffer.fill(blank, start, end - 1);
    struck += end - start;
    if (struck > smallestTidy && struck * 2 > length) tidy();
  };

  return {
    strike,
    add(at, line) {
      strike(at);
      reserve(line.length * 3 + 1);
      const { written } = encoder.encodeInto(`${line}\n`, buffer.subarray(length));
      places.set(at, length, length + written);
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
        places.set(at, start, length);
      }
    },
    bytes() {
      if (shared?.length !== length) shared = buffer.subarray(0, length);
      return shared;
    },
  };
}
