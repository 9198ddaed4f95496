import { flattened } from './deep.ts';
import {
  clearFields,
  escapedText,
  type Fields,
  numeral,
  other,
  plainText,
  setField,
  truth,
  viewOf,
} from './fields.ts';
import { createLayout, isStepAt, type Layout } from './layout.ts';
import {
  closeBrace,
  comma,
  invalid,
  literalEnd,
  newline,
  numberEnd,
  plainEnd,
  quote,
  spaceEnd,
  stringEnd,
  tooDeep,
  valueEnd,
} from './scan.ts';

/**
 * Reads lines that are JSON objects, taking the wanted fields only. A record that `readObject` works on: a
 * function over a record stays one function to the compiler however many readers there are.
 */
export interface JsonReader {
  readonly fields: Fields;
  readonly wanted: ReadonlyMap<string, number>;
  readonly layout: Layout;
}

/** `wanted` maps a key to its slot in `fields`. */
export function createJsonReader(fields: Fields, wanted: ReadonlyMap<string, number>): JsonReader {
  return { fields, wanted, layout: createLayout((key) => wanted.get(key) ?? -1) };
}

function lineEnd(bytes: Buffer, at: number): number {
  const end = spaceEnd(bytes, at);
  return bytes[end] === newline ? end + 1 : invalid;
}

/** The kind of a value that is no string, by its first byte. */
function kindOf(first: number): number {
  if (first === 0x2d || (first >= 0x30 && first <= 0x39)) return numeral;
  return first === 0x74 || first === 0x66 ? truth : other;
}

function readString(fields: Fields, from: number, slot: number): number {
  const { view } = fields;
  const bytes = fields.bytes;
  let kind = plainText;
  let to = plainEnd(bytes, view, from);
  if (bytes[to] !== quote) {
    to = stringEnd(bytes, view, to);
    if (to < 0) return invalid;
    kind = escapedText;
  }
  if (slot >= 0) setField(fields, slot, kind, from, to);
  return to + 1;
}

function readOther(fields: Fields, from: number, slot: number): number {
  const bytes = fields.bytes;
  const kind = kindOf(bytes[from]!);
  let to: number;
  if (kind === numeral) to = numberEnd(bytes, from);
  else if (kind === truth) to = literalEnd(bytes, from);
  else to = valueEnd(bytes, fields.view, from);
  if (slot >= 0 && to > 0) setField(fields, slot, kind, from, to);
  return to;
}

/** The index behind the line's newline, `invalid` or `tooDeep`. */
function readMembers({ fields, layout }: JsonReader, bytes: Buffer, view: DataView, at: number): number {
  let i = at;
  let before = layout.start;
  for (;;) {
    let step = before.next;
    if (step === undefined || !isStepAt(step, bytes, view, i)) {
      step = layout.find(before, bytes, view, i);
      if (step === undefined) return invalid;
    }
    i += step.pattern.length;
    i = step.opensString ? readString(fields, i, step.slot) : readOther(fields, i, step.slot);
    if (i < 0) return i;
    if (bytes[i] !== comma) {
      i = spaceEnd(bytes, i);
      if (bytes[i] === closeBrace) return lineEnd(bytes, i + 1);
      if (bytes[i] !== comma) return invalid;
    }
    before = step;
  }
}

function readDeep(reader: JsonReader, bytes: Buffer, at: number): number {
  const end = bytes.indexOf(newline, at);
  const line = flattened(bytes.toString('utf8', at, end), reader.wanted.keys());
  if (line === undefined) return invalid;
  const view = viewOf(line);
  clearFields(reader.fields, line, view);
  if (line[1] !== closeBrace) readMembers(reader, line, view, 0);
  return end + 1;
}

/**
 * Checks the object whose brace is at `at` and everything behind it up to the line's newline, which must be
 * there. Returns the index behind that newline, or `invalid`, and then the fields mean nothing. Accepts exactly
 * what `JSON.parse` of the line's UTF-8 text accepts; of duplicate keys the last wins.
 */
export function readObject(reader: JsonReader, bytes: Buffer, view: DataView, at: number): number {
  clearFields(reader.fields, bytes, view);
  const first = spaceEnd(bytes, at + 1);
  if (bytes[first] === closeBrace) return lineEnd(bytes, first + 1);
  const end = readMembers(reader, bytes, view, at);
  return end === tooDeep ? readDeep(reader, bytes, at) : end;
}
