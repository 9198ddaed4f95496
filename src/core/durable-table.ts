import { AgentError } from './errors.ts';
import { type Kind, kinds } from './model.ts';
import type { Entry } from './store.ts';

/**
 * The table of identities in a snapshot: UTF-8, one JSON array per line
 * (`[at, kind, family, startMs, overflow, texts, label, value, …]`), blank where a series was struck out.
 * The values' array is indexed by `at`.
 */

/** A table that grows at its end, so that a new series costs its own line only. */
export interface Table {
  /** The line goes with the cell `at`; an older one of that cell is struck out first. */
  add(at: number, line: string): void;
  strike(at: number): void;
  /** The same array object until something changes. */
  bytes(): Uint8Array;
}

interface Place {
  start: number;
  end: number;
}

const encoder = new TextEncoder();
const blank = 0x20;
const smallestTidy = 4096;

export function createTable(): Table {
  const places = new Map<number, Place>();
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
    for (const place of places.values()) {
      tidied.set(buffer.subarray(place.start, place.end), length);
      const end = length + place.end - place.start;
      place.start = length;
      place.end = end;
      length = end;
    }
    buffer = tidied;
    struck = 0;
  };

  const strike = (at: number) => {
    const place = places.get(at);
    if (!place) return;
    places.delete(at);
    if (shared) buffer = buffer.slice();
    shared = undefined;
    buffer.fill(blank, place.start, place.end - 1);
    struck += place.end - place.start;
    if (struck > smallestTidy && struck * 2 > length) tidy();
  };

  return {
    strike,
    add(at, line) {
      strike(at);
      reserve(line.length * 3 + 1);
      const { written } = encoder.encodeInto(`${line}\n`, buffer.subarray(length));
      places.set(at, { start: length, end: length + written });
      length += written;
    },
    bytes() {
      if (shared?.length !== length) shared = buffer.subarray(0, length);
      return shared;
    },
  };
}

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

function readLine(text: string, line: number, valueCount: number): Entry {
  const row: unknown = parse(text, line);
  if (!Array.isArray(row)) throw corrupt(line, 'not an array', row);
  const [at, kind, family, startMs, overflow, texts, ...flat] = row as unknown[];
  if (!isKind(kind)) throw corrupt(line, 'unknown kind', kind);
  if (!isTexts(texts)) throw corrupt(line, 'bounds are not texts', texts);
  if (typeof family !== 'string') throw corrupt(line, 'no family name', family);
  if (typeof startMs !== 'number') throw corrupt(line, 'no start time', startMs);
  if (!Number.isInteger(at) || Number(at) < 0 || Number(at) + widthOf(kind, texts) > valueCount) {
    throw corrupt(line, 'points outside the values', at);
  }
  if (!isTexts(flat) || flat.length % 2 === 1) throw corrupt(line, 'labels are not pairs of texts', flat);
  const labels: [string, string][] = [];
  for (let i = 0; i < flat.length; i += 2) labels.push([flat[i]!, flat[i + 1]!]);
  return {
    at: Number(at),
    kind,
    family,
    startMs,
    overflow: overflow === 1,
    texts,
    labels,
    identity: JSON.stringify(labels),
    born: 0,
  };
}

function parse(text: string, line: number): unknown {
  try {
    return JSON.parse(text);
  } catch (thrown) {
    throw corrupt(line, 'not JSON', undefined, thrown);
  }
}

/** A series of a table with its line. */
export interface Row {
  readonly line: string;
  readonly parked: Entry;
}

/** The same line for a series whose cells were moved; much cheaper than making it again. */
export function moveLine(line: string, at: number): string {
  return `[${at}${line.slice(line.indexOf(','))}`;
}

/** Every series of a table. Throws `snapshot_corrupt`. */
export function readTable(table: Uint8Array, valueCount: number): Row[] {
  let text: string;
  try {
    text = new TextDecoder('utf-8', { fatal: true }).decode(table);
  } catch (thrown) {
    throw corrupt(0, 'not UTF-8', undefined, thrown);
  }
  const rows: Row[] = [];
  for (const [i, line] of text.split('\n').entries()) {
    if (line.trim() !== '') rows.push({ line, parked: readLine(line, i + 1, valueCount) });
  }
  const families = new Map<string, Set<string>>();
  for (const { family, identity } of rows.map((row) => row.parked)) {
    const seen = families.get(family) ?? new Set();
    if (seen.has(identity)) throw corrupt(0, 'a series twice', [family, identity]);
    families.set(family, seen.add(identity));
  }
  return rows;
}
