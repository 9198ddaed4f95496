import type { Rows } from './durable-rows.ts';

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
const [blank, newline, bracket, zero] = [0x20, 0x0a, 0x5b, 0x30];
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
