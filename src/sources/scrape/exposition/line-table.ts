import {
  addKey,
  type ByteTable,
  createByteTable,
  findKey,
  grownColumn,
  isKeyAt,
  packColumn,
  packTable,
  removeKey,
  trimTable,
  writeKey,
} from '../../../core/byte-table.ts';
import { hashRange, hashSeed } from '../../../core/hashes.ts';

/**
 * The lines of a target's pages by their keys: all bytes before a sample's value, or a whole comment. Each known line has an id,
 * which indexes the columns. The table stores no string per line, so that 100,000 series cost little more than their text. Lines
 * that the registry refused are in `RefusedLines` instead.
 */
export interface LineTable {
  readonly keys: ByteTable;
  /** The number of the last page that had the line. */
  seen: Int32Array;
  /** The line's position on that page, counted in known lines. */
  position: Int32Array;
  /** 1 for a comment, which has no value; 0 for a sample. */
  comment: Uint8Array;
  /** The values of the page that is being read. */
  incoming: Float64Array;
  /** The values of the last accepted page. The array ends before lines that were on no accepted page. */
  taken: Float64Array;
}

/** A page that was read completely. None of its values is shown yet. */
export interface Page {
  /** The number of the page, as in `seen` of the table. */
  round: number;
  /** The ids of the page's lines in order, in the first `count` elements. Refused lines have no id. */
  order: Int32Array;
  count: number;
  samples: number;
  bytes: number;
  /** The number of skipped lines: invalid lines, and lines that repeat another line of the same page. */
  invalidLines: number;
  /** The first skipped line, for the log. */
  firstInvalid: { line: number; text: string } | undefined;
  /** Whether lines appeared, disappeared or moved since the last accepted page. */
  changed: boolean;
}

const firstCapacity = 64;

export function createLineTable(): LineTable {
  return {
    keys: createByteTable(),
    seen: new Int32Array(firstCapacity),
    position: new Int32Array(firstCapacity),
    comment: new Uint8Array(firstCapacity),
    incoming: new Float64Array(firstCapacity),
    taken: new Float64Array(0),
  };
}

/** The bytes per line of the table's columns and of the columns elsewhere that its ids index. */
const columnBytes = 44;
/** The bytes per line of the columns that only lines of an accepted page have. */
const takenBytes = 16;

/** The number of bytes that the lines take outside the heap. */
export const tableBytes = ({ keys, taken }: LineTable): number =>
  keys.arena.length + columnBytes * keys.keyAt.length + takenBytes * taken.length;

/** Whether the bytes at `at` are the key of line `id`. The bytes of `view` end at `end`. */
export function hasKey({ keys }: LineTable, id: number, view: DataView, at: number, end: number): boolean {
  const length = keys.keyLength[id]!;
  // A freed line has the length -1.
  return length >= 0 && at + length <= end && isKeyAt(keys, id, 0, view, at, at + length);
}

/** The id of the line with this key, or -1. */
export function findLine({ keys }: LineTable, view: DataView, start: number, end: number): number {
  return findKey(keys, view, start, end, hashRange(hashSeed, view, start, end));
}

/** Adds a line that `findLine` did not find; returns its id. */
export function addLine(
  table: LineTable,
  view: DataView,
  bytes: Uint8Array,
  start: number,
  end: number,
  comment: boolean,
): number {
  const { keys } = table;
  const id = addKey(keys, hashRange(hashSeed, view, start, end), end - start);
  writeKey(keys, id, 0, bytes, start, end);
  if (keys.keyAt.length > table.seen.length) resizeColumns(table, keys.keyAt.length);
  table.seen[id] = 0;
  table.position[id] = -1;
  table.comment[id] = comment ? 1 : 0;
  if (id < table.taken.length) table.taken[id] = Number.NaN;
  return id;
}

/** Forgets a line, if it is still there. Its id may be used again. */
export function freeLine(table: LineTable, id: number): void {
  if (table.keys.keyLength[id] !== -1) removeKey(table.keys, id);
}

/** Releases memory after many lines were freed. The other lines keep their ids. */
export function trimLines(table: LineTable): void {
  if (trimTable(table.keys)) resizeColumns(table, table.keys.keyAt.length);
}

/** Releases memory after many lines were freed. Returns the new ids if the lines got new ids (`packTable`). */
export function packLines(table: LineTable): Int32Array | undefined {
  const newIds = packTable(table.keys);
  if (newIds === undefined) trimLines(table);
  else {
    const { seen, position, comment, incoming, taken } = table;
    for (const column of [seen, position, comment, incoming, taken]) packColumn(column, newIds);
    resizeColumns(table, table.keys.keyAt.length);
  }
  return newIds;
}

/** Makes the values of the page that was read the values of the last accepted page. */
export function takeValues(table: LineTable): void {
  const { incoming, taken } = table;
  table.taken = incoming;
  // Most lines of a page that exceeds a limit are gone by now, so only the lines that stay get a second value.
  table.incoming = taken.length < incoming.length ? grownColumn(taken, incoming.length) : taken;
}

function resizeColumns(table: LineTable, capacity: number): void {
  table.seen = grownColumn(table.seen, capacity);
  table.position = grownColumn(table.position, capacity);
  table.comment = grownColumn(table.comment, capacity);
  table.incoming = grownColumn(table.incoming, capacity);
  if (capacity < table.taken.length) table.taken = grownColumn(table.taken, capacity);
}
