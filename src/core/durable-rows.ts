import { AgentError } from './errors.ts';
import { createPairs, identityOf } from './labels.ts';
import { type Kind, kinds, type Labels } from './model.ts';
import type { Entry } from './store.ts';

/**
 * The table of identities in a snapshot: UTF-8, one JSON array per line
 * (`[at, kind, family, startMs, overflow, texts, label, value, …]`), blank where a series was struck out.
 * The values' array is indexed by `at`.
 */

const [newline, comma] = [0x0a, 0x2c];

/** A series as its line in the table. */
export function lineOf(series: Omit<Entry, 'identity' | 'born'>): string {
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
  return (text: string, line: number, at: number): { entry: Entry; from: number } => {
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
  readonly entries: Entry[];
  /** First of its cells as the table has it. */
  readonly from: number[];
  /** Where its line goes on after the cell, and ends, in bytes. */
  readonly tails: number[];
  readonly ends: number[];
  /** The entries by family, then by identity. */
  readonly families: Map<string, Map<string, Entry>>;
  /** Cells of all together. */
  width: number;
}

function enter({ families }: Rows, entry: Entry): void {
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
