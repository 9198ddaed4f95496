import { hashByte, hashSeed } from '../../../core/hashes.ts';
import type { StatsdLine } from './line-format.ts';
import { isAllowed, type SeriesRecorder, type SharedForm, type StatsdSeries } from './statsd-series.ts';

/**
 * The forms of refused lines. A form is all bytes of a line but the values of its tags. A sender that puts ever new values into a
 * tag sends one form. Once it is known, a further line costs one pass over its bytes: no string and no object.
 *
 * Only plain values of DogStatsD tags are free; a line with any other value is parsed in full.
 */
interface LineForms {
  /** The series that counts for this line, and the line's first number, if its form is known and its series is over a limit. */
  find(
    bytes: Buffer,
    from: number,
    colon: number,
    bar: number,
    end: number,
    value: number,
  ): StatsdSeries | undefined;
  /** Remembers the line of the last call of `find`, once its series is known to be over a limit. */
  learn(line: StatsdLine, bytes: Buffer): void;
  clear(): void;
}

interface Form {
  readonly low: number;
  readonly high: number;
  /** The number of refused lines of the form. */
  refused: number;
  shared: SharedForm | undefined;
}

/** The maximum number of forms, a power of two. A further form replaces another form. */
const slots = 64;
/** Number of lines of a form that are parsed in full first, so that the newest refusals that are listed are real refusals. */
const learnedAfter = 128;
/** One in this number of further lines is parsed in full. */
const example = 1024;
const maxTags = 16;

const space = 0x20;
const lastAscii = 0x7e;
const hashSign = 0x23;
const comma = 0x2c;
const dash = 0x2d;
const underscore = 0x5f;
const colonSign = 0x3a;
const barSign = 0x7c;

const highSeed = (Math.random() * 2 ** 32) | 0;

/** A value of at least this length may have a part that `cleanValue` replaces: a time in digits, a date-time, a UUID. */
const timeDigits = 10;
const dateTimeLength = 19;
const uuidLength = 36;
const uuidDashes = 4;

export function createLineForms(recorder: Pick<SeriesRecorder, 'sharedForForm'>): LineForms {
  const forms: (Form | undefined)[] = new Array(slots).fill(undefined);
  const scanner = createFormScanner();
  const { scanned } = scanner;
  let learned = 0;
  let isFit = false;

  const formAt = (slot: number): Form => {
    const { low, high } = scanned;
    const known = forms[slot];
    if (known?.low === low && known.high === high) return known;
    if (known?.shared !== undefined) learned -= 1;
    const form: Form = { low, high, refused: 0, shared: undefined };
    forms[slot] = form;
    return form;
  };

  return {
    find(bytes, from, colon, bar, end, value) {
      isFit = scanner.scan(bytes, from, colon, bar, end);
      if (!isFit || learned === 0) return undefined;
      const form = forms[scanned.low & (slots - 1)];
      if (form?.shared === undefined || form.low !== scanned.low || form.high !== scanned.high)
        return undefined;
      const { series, takes } = form.shared;
      if (!isAllowed(series.type, value)) return undefined;
      form.refused += 1;
      if (form.refused % example === 0) return undefined;
      return takes(scanned.valueHashes) ? series : undefined;
    },
    learn(line, bytes) {
      if (!isFit) return;
      const form = formAt(scanned.low & (slots - 1));
      form.refused += 1;
      if (form.refused !== learnedAfter) return;
      const keys = scanner.tagKeys(bytes);
      // If a line has tags of another form, or a tag twice, its meaning depends on more than these values.
      const isWhole = new Set(keys).size === keys.length && Object.keys(line.tags).length === keys.length;
      if (!isWhole || !keys.every((key) => Object.hasOwn(line.tags, key))) return;
      form.shared = recorder.sharedForForm(line, keys);
      if (form.shared !== undefined) learned += 1;
    },
    clear() {
      forms.fill(undefined);
      learned = 0;
    },
  };
}

/** The result of the last scan: the two hashes of the form, and one hash for each tag's value. */
interface ScannedForm {
  low: number;
  high: number;
  readonly valueHashes: Int32Array;
}

interface FormScanner {
  readonly scanned: Readonly<ScannedForm>;
  /** Reads a line; false if it has no tags, or a value that is not plain. */
  scan(bytes: Buffer, from: number, colon: number, bar: number, end: number): boolean;
  /** The keys of the tags of the line that was scanned last. */
  tagKeys(bytes: Buffer): string[];
}

function createFormScanner(): FormScanner {
  const scanned: ScannedForm = { low: 0, high: 0, valueHashes: new Int32Array(maxTags) };
  const keyFrom = new Int32Array(maxTags);
  const keyTo = new Int32Array(maxTags);
  let tags = 0;
  let low = 0;
  let high = 0;

  const mix = (byte: number): void => {
    low = hashByte(low, byte);
    high = Math.imul(high ^ byte, 0x297a2d39) ^ (high >>> 13);
  };

  /** Reads tags up to a bar or the end. Returns where they end, or -1. */
  const scanTags = (bytes: Buffer, from: number, end: number): number => {
    for (let at = from; ; at++) {
      if (tags === maxTags) return -1;
      keyFrom[tags] = at;
      for (; at < end; at++) {
        const byte = bytes[at]!;
        if (byte === colonSign || byte === comma || byte === barSign) break;
        mix(byte);
      }
      if (at >= end || bytes[at] !== colonSign) return -1;
      keyTo[tags] = at;
      mix(colonSign);
      at = scanValue(bytes, at + 1, end);
      if (at === -1) return -1;
      scanned.valueHashes[tags] = valueHash;
      tags += 1;
      if (at >= end || bytes[at] === barSign) return at;
      mix(comma);
    }
  };

  return {
    scanned,
    scan(bytes, from, colon, bar, end) {
      low = hashSeed;
      high = highSeed;
      tags = 0;
      for (let at = from; at < colon; at++) mix(bytes[at]!);
      for (let at = bar; at < end; ) {
        const byte = bytes[at]!;
        mix(byte);
        at += 1;
        if (byte !== barSign || at >= end || bytes[at] !== hashSign) continue;
        mix(hashSign);
        at = scanTags(bytes, at + 1, end);
        if (at === -1) return false;
      }
      scanned.low = low;
      scanned.high = high;
      return tags > 0;
    },
    tagKeys: (bytes) => Array.from({ length: tags }, (_, i) => bytes.toString('utf8', keyFrom[i], keyTo[i])),
  };
}

/** The hash of the value that `scanValue` read last. */
let valueHash = 0;

/** Reads the value at `from`, which ends before a comma, a bar or the end. Returns its end, or -1 if it is not plain. */
function scanValue(bytes: Buffer, from: number, end: number): number {
  let hash = hashSeed;
  let [digits, mostDigits, dashes, colons] = [0, 0, 0, 0];
  let at = from;
  for (; at < end; at++) {
    const byte = bytes[at]!;
    if (byte === comma || byte === barSign) break;
    if (byte < space || byte > lastAscii) return -1;
    if (byte >= 0x30 && byte <= 0x39) {
      digits += 1;
      if (digits > mostDigits) mostDigits = digits;
    } else {
      digits = 0;
      if (byte === dash || byte === underscore) dashes += 1;
      else if (byte === colonSign) colons += 1;
    }
    hash = hashByte(hash, byte);
  }
  const length = at - from;
  const isPlain =
    length > 0 &&
    mostDigits < timeDigits &&
    (length < dateTimeLength || colons < 2) &&
    (length < uuidLength || dashes < uuidDashes);
  valueHash = hash;
  return isPlain ? at : -1;
}
