/** What a field of an entry holds. */
export const absent = 0;
/** A string; its bytes are its text. */
export const plainText = 1;
/** A string with backslashes, as it stands between the quotes. */
export const escapedText = 2;
export const numeral = 3;
export const truth = 4;
/** Null, an object or an array: nothing that a label or a value can be made of. */
export const other = 5;

/**
 * The wanted top-level fields of one entry, as ranges of the bytes it was read from. Valid until the next entry
 * is read into it; nothing is allocated per entry.
 */
export interface Fields {
  bytes: Buffer;
  /** Over the same bytes, with the same indexes. */
  view: DataView;
  /** The slots that are read. */
  readonly slots: Int32Array;
  /** By slot: one of the kinds above. */
  readonly kind: Uint8Array;
  /** First byte of the value, and the byte behind it; a string's quotes are outside. */
  readonly from: Int32Array;
  readonly to: Int32Array;
}

/** Numbers the names of all fields that anybody wants. */
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

/** A view over a buffer's own bytes, indexes the same. */
export function viewOf(bytes: Buffer): DataView {
  return new DataView(bytes.buffer, bytes.byteOffset, bytes.length);
}

const nothing = Buffer.alloc(0);

/** Room for the values of these slots. */
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

/** Makes the fields those of another line, none of them there yet. */
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
 * The text of a field as a label shows it: the string that `JSON.parse` yields, made well-formed; a number or
 * boolean as JavaScript prints it. Undefined for null, objects, arrays and what is not there.
 */
export function textOf(fields: Fields, slot: number): string | undefined {
  const { bytes, kind } = fields;
  const from = fields.from[slot]!;
  const to = fields.to[slot]!;
  switch (kind[slot]) {
    case plainText:
      return bytes.toString('utf8', from, to);
    case escapedText:
      return (JSON.parse(bytes.toString('utf8', from - 1, to + 1)) as string).replace(
        /\p{Surrogate}/gu,
        '\ufffd',
      );
    case numeral:
      return String(Number(bytes.toString('latin1', from, to)));
    case truth:
      return bytes.toString('latin1', from, to);
    default:
      return undefined;
  }
}
