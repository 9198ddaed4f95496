import { cursor, fastValue, parseValue } from '../../../core/decimal.ts';

/** Kinds of a field's value. */
export const absent = 0;
/** A string without escapes: its bytes are its text. */
export const plainText = 1;
/** A string with escapes; the range holds the escaped form. */
export const escapedText = 2;
export const numeral = 3;
export const truth = 4;
/** Null, an object or an array, which cannot become a label or a value. */
export const other = 5;

/**
 * The requested top-level fields of one log entry, as ranges of the bytes it was read from. Valid until the next
 * entry is read into it. Reading an entry allocates nothing.
 */
export interface Fields {
  bytes: Buffer;
  /** A view of the same bytes with the same indexes. */
  view: DataView;
  /** The slots that a reader may fill. */
  readonly slots: Int32Array;
  /** By slot: one of the kinds above. */
  readonly kind: Uint8Array;
  /** By slot: the first byte of the value, and the byte after its last byte. A string's quotes are excluded. */
  readonly from: Int32Array;
  readonly to: Int32Array;
}

/** Assigns a slot number to each field name that any metric reads. */
export interface Slots {
  of(name: string): number;
  readonly names: readonly string[];
}

export function createSlots(): Slots {
  const names: string[] = [];
  return {
    names,
    of(name) {
      const known = names.indexOf(name);
      return known < 0 ? names.push(name) - 1 : known;
    },
  };
}

/** A view of the buffer's bytes with the same indexes. */
export function viewOf(bytes: Buffer): DataView {
  return new DataView(bytes.buffer, bytes.byteOffset, bytes.length);
}

const nothing = Buffer.alloc(0);

export function createFields(slots: readonly number[]): Fields {
  const count = Math.max(-1, ...slots) + 1;
  return {
    slots: Int32Array.from(slots),
    bytes: nothing,
    view: viewOf(nothing),
    kind: new Uint8Array(count),
    from: new Int32Array(count),
    to: new Int32Array(count),
  };
}

/** Points the fields at another line and marks all of them absent. */
export function clearFields(fields: Fields, bytes: Buffer, view: DataView): void {
  const { kind, slots } = fields;
  fields.bytes = bytes;
  fields.view = view;
  for (let n = 0; n < slots.length; n++) kind[slots[n]!] = absent;
}

export function setField(fields: Fields, slot: number, kind: number, from: number, to: number): void {
  fields.kind[slot] = kind;
  fields.from[slot] = from;
  fields.to[slot] = to;
}

/**
 * The text of a field as a label value: the string that `JSON.parse` returns, made well-formed, or a number or
 * boolean as JavaScript prints it. Undefined for null, objects, arrays and absent fields.
 */
export function textOf(fields: Fields, slot: number): string | undefined {
  const { bytes, kind } = fields;
  const from = fields.from[slot]!;
  const to = fields.to[slot]!;
  switch (kind[slot]) {
    case plainText:
      return bytes.toString('utf8', from, to);
    case escapedText:
      return (JSON.parse(bytes.toString('utf8', from - 1, to + 1)) as string).toWellFormed();
    case numeral:
      return String(Number(bytes.toString('latin1', from, to)));
    case truth:
      return bytes.toString('latin1', from, to);
    default:
      return undefined;
  }
}

/** The number in a slot: a JSON number, or a string that spells one. Undefined if it is not a finite number. */
export function numberOf(fields: Fields, slot: number): number | undefined {
  const kind = fields.kind[slot]!;
  if (kind !== numeral && kind !== plainText && kind !== escapedText) return undefined;
  const fast = fastValue(fields.bytes, fields.from[slot]!);
  if (cursor.at === fields.to[slot]) return fast;
  const value = parseValue((textOf(fields, slot) as string).trim());
  return Number.isFinite(value) ? value : undefined;
}

/** A byte string prepared for comparison four bytes at a time, several times faster than `Buffer.compare` on short text. */
export interface BytePattern {
  readonly length: number;
  readonly words: Int32Array;
  /** The last four bytes, which may overlap `words`. A pattern under four bytes has all its bytes here, the first lowest. */
  readonly lastWord: number;
}

const emptyPattern: BytePattern = { length: 0, words: new Int32Array(0), lastWord: 0 };

/** Copies `bytes[from, to)`. */
export function createPattern(bytes: Buffer, from = 0, to = bytes.length): BytePattern {
  const length = to - from;
  if (length === 0) return emptyPattern;
  return {
    length,
    words: Int32Array.from({ length: length >> 2 }, (_, i) => bytes.readInt32LE(from + 4 * i)),
    lastWord: length < 4 ? bytes.readUIntLE(from, length) : bytes.readInt32LE(to - 4),
  };
}

/** Whether the bytes at `at` equal the pattern; `view` is a view of the same bytes. */
export function isPatternAt(pattern: BytePattern, bytes: Buffer, view: DataView, at: number): boolean {
  const { words, length } = pattern;
  // V8 inlines `length` of the buffer, but calls a function for the length of the view.
  if (at + length > bytes.length) return false;
  if (length < 4) return isShortAt(pattern, view, at);
  for (let i = 0; i < words.length; i++) if (view.getInt32(at + 4 * i, true) !== words[i]) return false;
  return view.getInt32(at + length - 4, true) === pattern.lastWord;
}

function isShortAt({ length, lastWord }: BytePattern, view: DataView, at: number): boolean {
  let rest = lastWord;
  for (let i = 0; i < length; i++) {
    if (view.getUint8(at + i) !== (rest & 0xff)) return false;
    rest >>= 8;
  }
  return true;
}
