import {
  type BytePattern,
  clearFields,
  createPattern,
  escapedText,
  type Fields,
  isPatternAt,
  numeral,
  other,
  plainText,
  setField,
  truth,
  viewOf,
} from './fields.ts';
import {
  closeBrace,
  colon,
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
} from './json-scan.ts';

/**
 * Reads log lines that are JSON objects and keeps the requested top-level fields. It validates the whole line,
 * so that it accepts exactly what `JSON.parse` accepts.
 *
 * Lines of one program repeat their keys in the same order. The reader therefore keeps the bytes between
 * two values (a `KeyStep`, for example `,"msg":"`) and which step followed it. While a line repeats the known
 * bytes, a key costs one comparison of a few words. Any other key takes the slow path, which validates it and
 * keeps it.
 *
 * This is a record and not a closure: V8 compiles one `readObject` for all readers.
 */
export interface JsonReader {
  readonly fields: Fields;
  /** Maps a key to its slot in `fields`. */
  readonly wanted: ReadonlyMap<string, number>;
  /** The step before the first key of each line. */
  readonly start: KeyStep;
  /** All known steps by their bytes as latin1 text. */
  readonly steps: Map<string, KeyStep>;
}

/** The validated bytes between two values: a comma, a key, a colon and perhaps the opening quote of a string. */
interface KeyStep {
  readonly pattern: BytePattern;
  /** The slot of the key, or -1 if no metric reads it. */
  readonly slot: number;
  /** Whether the bytes end with the opening quote of a string. */
  readonly opensString: boolean;
  /** The step that followed last time. */
  next: KeyStep | undefined;
  /** The steps that followed, at most the last `maxFollowers` of them. */
  readonly followers: KeyStep[];
}

/** Bounds on the memory of a reader whose lines have ever new keys. */
const maxSteps = 1024;
const maxFollowers = 8;
const maxStepBytes = 256;

export function createJsonReader(fields: Fields, wanted: ReadonlyMap<string, number>): JsonReader {
  return { fields, wanted, start: createStep(Buffer.alloc(0), 0, 0, -1), steps: new Map() };
}

function createStep(bytes: Buffer, from: number, to: number, slot: number): KeyStep {
  const pattern = createPattern(bytes, from, to);
  return { pattern, slot, opensString: bytes[to - 1] === quote, next: undefined, followers: [] };
}

/**
 * Whether the bytes at `at` are this step. The bytes of a step without an opening quote are also a prefix of the
 * same key before a string or before white space, so the byte after them decides.
 */
function isStepAt(step: KeyStep, bytes: Buffer, view: DataView, at: number): boolean {
  if (!isPatternAt(step.pattern, bytes, view, at)) return false;
  if (step.opensString) return true;
  const first = bytes[at + step.pattern.length]!;
  return first > 0x20 && first !== quote;
}

function learnStep(reader: JsonReader, bytes: Buffer, from: number, to: number, slot: number): KeyStep {
  const { steps, start } = reader;
  const text = bytes.toString('latin1', from, to);
  const known = steps.get(text);
  if (known) return known;
  if (steps.size === maxSteps) {
    steps.clear();
    start.next = undefined;
    start.followers.length = 0;
  }
  const step = createStep(bytes, from, to, slot);
  steps.set(text, step);
  return step;
}

/** The step at `at`, an opening brace or a comma, after `before`; undefined if no valid member follows. */
function findStep(
  reader: JsonReader,
  before: KeyStep,
  bytes: Buffer,
  view: DataView,
  at: number,
): KeyStep | undefined {
  for (const step of before.followers) {
    if (isStepAt(step, bytes, view, at)) {
      before.next = step;
      return step;
    }
  }
  const key = spaceEnd(bytes, at + 1);
  if (bytes[key] !== quote) return undefined;
  const close = stringEnd(bytes, view, key + 1);
  if (close === invalid) return undefined;
  const separator = spaceEnd(bytes, close + 1);
  if (bytes[separator] !== colon) return undefined;
  const value = spaceEnd(bytes, separator + 1);
  const to = bytes[value] === quote ? value + 1 : value;
  const slot = reader.wanted.get(JSON.parse(bytes.toString('utf8', key, close + 1)) as string) ?? -1;
  if (to - at > maxStepBytes) return createStep(bytes, at, to, slot);
  const step = learnStep(reader, bytes, at, to, slot);
  before.next = step;
  if (!before.followers.includes(step)) {
    if (before.followers.length === maxFollowers) before.followers.shift();
    before.followers.push(step);
  }
  return step;
}

function lineEnd(bytes: Buffer, at: number): number {
  const end = spaceEnd(bytes, at);
  return bytes[end] === newline ? end + 1 : invalid;
}

/** The kind of a value other than a string, by its first byte. */
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

/** Returns the index after the line's newline, `invalid` or `tooDeep`. */
function readMembers(reader: JsonReader, bytes: Buffer, view: DataView, at: number): number {
  const { fields } = reader;
  let i = at;
  let before = reader.start;
  for (;;) {
    let step = before.next;
    if (step === undefined || !isStepAt(step, bytes, view, i)) {
      step = findStep(reader, before, bytes, view, i);
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

/** Reads a line that is nested deeper than the scanner goes, through `JSON.parse`. */
function readDeep(reader: JsonReader, bytes: Buffer, at: number): number {
  const end = bytes.indexOf(newline, at);
  const line = flattened(bytes.toString('utf8', at, end), reader.wanted.keys());
  if (line === undefined) return invalid;
  const view = viewOf(line);
  clearFields(reader.fields, line, view);
  if (line[1] !== closeBrace) readMembers(reader, line, view, 0);
  return end + 1;
}

/** The line as a flat object with the wanted fields alone; undefined if `JSON.parse` throws. */
function flattened(line: string, wanted: Iterable<string>): Buffer | undefined {
  let parsed: Record<string, unknown>;
  try {
    parsed = JSON.parse(line);
  } catch {
    return undefined;
  }
  const members: string[] = [];
  for (const name of wanted) {
    if (Object.hasOwn(parsed, name)) members.push(`${JSON.stringify(name)}:${literalOf(parsed[name])}`);
  }
  return Buffer.from(`{${members.join(',')}}\n`);
}

function literalOf(value: unknown): string {
  if (typeof value === 'object') return 'null';
  if (value === Number.POSITIVE_INFINITY) return '1e999';
  if (value === Number.NEGATIVE_INFINITY) return '-1e999';
  return JSON.stringify(value);
}

/**
 * Reads the object whose opening brace is at `at` and the rest of its line, which must end with a newline. Returns the index
 * after that newline, or `invalid`; in the latter case the fields are undefined. If a key occurs twice, the last value wins.
 */
export function readObject(reader: JsonReader, bytes: Buffer, view: DataView, at: number): number {
  clearFields(reader.fields, bytes, view);
  const first = spaceEnd(bytes, at + 1);
  if (bytes[first] === closeBrace) return lineEnd(bytes, first + 1);
  const end = readMembers(reader, bytes, view, at);
  return end === tooDeep ? readDeep(reader, bytes, at) : end;
}
