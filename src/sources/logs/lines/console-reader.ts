import { absent, clearFields, type Fields, plainText, setField, viewOf } from './fields.ts';
import { type JsonReader, readObject } from './json-reader.ts';
import { openBrace } from './json-scan.ts';

/** Slots of the columns of a console line, which have no keys. */
interface ConsoleSlots {
  ts: number;
  /** The slots of the level. There are several if services with different level keys share a file. */
  levels: readonly number[];
  logger: number;
  msg: number;
}

/**
 * Reads console entries: `ts`, `level`, an optional `logger`, an optional caller, `msg` and an optional JSON
 * object, separated by tabs.
 */
export interface ConsoleReader {
  /**
   * Whether the line `bytes[at, end)`, whose newline is at `end`, is an entry: its second column is a level. If
   * not, the fields are undefined. A key of the JSON object overrides the column of that name, as the later of
   * two keys does in a JSON line.
   */
  read(bytes: Buffer, view: DataView, at: number, end: number): boolean;
}

const tab = 0x09;
const escapeByte = 0x1b;
/** The levels of zap, of which the spec knows five. */
const levels = new Set(['debug', 'info', 'warn', 'error', 'dpanic', 'panic', 'fatal']);
const longestColouredLevel = 32;
const caller = /\.go:\d+$/;

/** The next tab before `end`, or `end`. */
function columnEnd(bytes: Buffer, at: number, end: number): number {
  let i = at;
  while (i < end && bytes[i] !== tab) i++;
  return i;
}

/** Skips terminal colours such as `ESC [ 3 4 m`. */
function coloursEnd(bytes: Buffer, at: number, end: number): number {
  let i = at;
  while (bytes[i] === escapeByte && i < end) {
    while (i < end && bytes[i] !== 0x6d) i++;
    i++;
  }
  return i;
}

export function createConsoleReader(fields: Fields, slots: ConsoleSlots, json: JsonReader): ConsoleReader {
  const fill = (slot: number, from: number, to: number) => {
    if (fields.kind[slot] === absent) setField(fields, slot, plainText, from, to);
  };
  const isCaller = (bytes: Buffer, from: number, to: number) =>
    caller.test(bytes.toString('latin1', Math.max(from, to - 64), to));

  /** Reads the JSON object in the last column, if there is one. Returns the end of the columns before it. */
  const readContext = (bytes: Buffer, view: DataView, from: number, end: number): number => {
    const last = bytes.lastIndexOf(tab, end - 1);
    if (last >= from && bytes[last + 1] === openBrace && readObject(json, bytes, view, last + 1) > 0)
      return last;
    clearFields(fields, bytes, view);
    return bytes[end - 1] === 0x0d ? end - 1 : end;
  };
  const fillMiddle = (bytes: Buffer, from: number, end: number) => {
    let at = from;
    let columnTo = columnEnd(bytes, at, end);
    if (columnTo < end && !isCaller(bytes, at, columnTo)) {
      fill(slots.logger, at, columnTo);
      at = columnTo + 1;
      columnTo = columnEnd(bytes, at, end);
    }
    if (columnTo < end && isCaller(bytes, at, columnTo)) at = columnTo + 1;
    fill(slots.msg, at, end);
  };
  const read = (bytes: Buffer, view: DataView, at: number, end: number): boolean => {
    const tsTo = columnEnd(bytes, at, end);
    const levelTo = columnEnd(bytes, tsTo + 1, end);
    if (tsTo === at || tsTo === end || levelTo - tsTo > longestColouredLevel) return false;
    const levelFrom = coloursEnd(bytes, tsTo + 1, levelTo);
    let levelEnd = levelFrom;
    while (levelEnd < levelTo && bytes[levelEnd] !== escapeByte && bytes[levelEnd] !== 0x0d) levelEnd++;
    if (!levels.has(bytes.toString('latin1', levelFrom, levelEnd).toLowerCase())) return false;
    const middleTo = readContext(bytes, view, levelTo, end);
    if (fields.bytes !== bytes) {
      const flat = Buffer.concat([bytes.subarray(at, middleTo + 1), fields.bytes]);
      return read(flat, viewOf(flat), 0, flat.length - 1);
    }
    fill(slots.ts, at, tsTo);
    for (const slot of slots.levels) fill(slot, levelFrom, levelEnd);
    if (middleTo > levelTo) fillMiddle(bytes, levelTo + 1, middleTo);
    return true;
  };
  return { read };
}
