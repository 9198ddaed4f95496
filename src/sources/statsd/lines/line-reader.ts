import { cursor, fastValue, parseValue } from '../../../core/decimal.ts';
import { hashByte, hashSeed } from '../../../core/hashes.ts';
import type { KnownLines } from './known-lines.ts';
import type { StatsdDrop } from './line-format.ts';
import type { SeriesRecorder, StatsdSeries } from './statsd-series.ts';

interface LineReaderDeps {
  knownLines: KnownLines;
  recorder: SeriesRecorder;
  /** The maximum length of a line. An invalid line that is longer is refused because of its length. */
  lineBytes: number;
  /** Counts a refused line. `bytes` holds the line and is valid during the call. */
  refuse(reason: StatsdDrop, bytes: Buffer, from: number, to: number): void;
}

/** Counts the numbers of lines. Nothing is allocated for a known line with one plain number. */
export interface LineReader {
  /**
   * Reads up to `most` lines from `from`; returns where the next line begins. A line ends with a newline, with or without a
   * carriage return before it, or at `end`. An empty line is refused.
   */
  read(bytes: Buffer, from: number, end: number, most: number): number;
  /** Number of lines read so far, including refused lines. */
  readonly lines: number;
}

const newline = 0x0a;
const carriageReturn = 0x0d;
const firstPrintable = 0x20;
const plus = 0x2b;
const minus = 0x2d;
const colonSign = 0x3a;
const atSign = 0x40;
const barSign = 0x7c;
const serviceCheck = Buffer.from('_sc|');

const isSigned = (byte: number | undefined): boolean => byte === plus || byte === minus;

/** Index of the bar after the numbers that begin at `from`, or -1. */
function findBar(bytes: Buffer, from: number, end: number): number {
  for (let i = from; i < end && bytes[i]! >= firstPrintable; i++) if (bytes[i] === barSign) return i;
  return -1;
}

/** Whether the line that has been read up to `at` ends there. */
function endsAt(bytes: Buffer, at: number, end: number): boolean {
  if (at >= end || bytes[at] === newline) return true;
  return bytes[at] === carriageReturn && (at + 1 === end || bytes[at + 1] === newline);
}

/** Index after the line's end. */
function afterLine(bytes: Buffer, at: number, end: number): number {
  if (at < end && bytes[at] === newline) return at + 1;
  const found = bytes.indexOf(newline, at);
  return found === -1 || found >= end ? end : found + 1;
}

/** Index of the colon that ends the number which begins at `from`, or of the bar. */
function colonBefore(bytes: Buffer, from: number, bar: number): number {
  const colon = bytes.indexOf(colonSign, from);
  return colon === -1 || colon > bar ? bar : colon;
}

/** Reads a number in any decimal spelling; NaN for anything else. */
function numberAt(bytes: Buffer, from: number, to: number): number {
  return parseValue(bytes.toString('latin1', from, to)) ?? Number.NaN;
}

export function createLineReader({ knownLines, recorder, lineBytes, refuse }: LineReaderDeps): LineReader {
  let lines = 0;

  const refused = (reason: StatsdDrop, bytes: Buffer, from: number, at: number, end: number): number => {
    const next = afterLine(bytes, at, end);
    const isCheck = bytes.compare(serviceCheck, 0, 4, from, Math.min(from + 4, end)) === 0;
    let shown = reason;
    if (reason === 'invalid_line' && isCheck) shown = 'unsupported_type';
    else if (reason === 'invalid_line' && next - from > lineBytes) shown = 'line_too_long';
    refuse(shown, bytes, from, next);
    return next;
  };

  /** Counts numbers with colons between them; returns whether all of them are allowed. */
  const takeAll = (series: StatsdSeries, bytes: Buffer, from: number, bar: number): boolean => {
    let isGood = true;
    for (let start = from, stop = bar; start <= bar; start = stop + 1) {
      stop = colonBefore(bytes, start, bar);
      const value = numberAt(bytes, start, stop);
      isGood = recorder.take(series, value, isSigned(bytes[start])) && isGood;
    }
    return isGood;
  };

  /**
   * Reads numbers in another form than a plain decimal: several numbers, or an unusual spelling. If the tags are in the name, all
   * colons but the last belong to a tag's value, because senders of that form never pack numbers.
   */
  const takeUnusual = (
    bytes: Buffer,
    from: number,
    head: number,
    at: number,
    bar: number,
    end: number,
  ): StatsdDrop | undefined => {
    const last = bytes.lastIndexOf(colonSign, bar);
    const isPart = last >= at && at === head + 1 && knownLines.hasSuffixTags(bytes, from, head, bar, end);
    const start = isPart ? last + 1 : at;
    const first = numberAt(bytes, start, colonBefore(bytes, start, bar));
    const series = knownLines.find(bytes, from, isPart ? last : head, bar, end, first);
    if (typeof series === 'string') return series;
    const isGood = takeAll(series, bytes, start, bar);
    if (!series.isKnown) recorder.close(series);
    return isGood ? undefined : 'invalid_value';
  };

  /** Whether another `numbers|type` of the same line follows. */
  let follows = false;

  /**
   * Reads one `numbers|type|…` of a line whose head ends at `head`. Returns where the next line begins, or where the next numbers
   * of this line begin if there are more (statsd's own way to pack: `name:1|c:2|ms`).
   */
  const readNumbers = (
    bytes: Buffer,
    from: number,
    head: number,
    headHash: number,
    at: number,
    end: number,
  ): number => {
    const hasPlus = bytes[at] === plus && bytes[at + 1] !== minus;
    const value = fastValue(bytes, hasPlus ? at + 1 : at);
    const isPlain = cursor.at !== -1 && bytes[cursor.at] === barSign && cursor.at < end;
    const bar = isPlain ? cursor.at : findBar(bytes, at, end);
    follows = false;
    if (bar === -1) return refused('invalid_line', bytes, from, at, end);
    let hash = headHash;
    let mayPack = true;
    let stop = bar;
    for (; stop < end; stop++) {
      const byte = bytes[stop]!;
      if (byte < firstPrintable || (byte === colonSign && mayPack)) break;
      if (byte === barSign && stop > bar && bytes[stop + 1] !== atSign) mayPack = false;
      hash = hashByte(hash, byte);
    }
    const isPacked = stop < end && bytes[stop] === colonSign;
    if (!isPacked && !endsAt(bytes, stop, end)) return refused('invalid_line', bytes, from, stop, end);
    let fault: StatsdDrop | undefined;
    if (isPlain) {
      const series = knownLines.find(bytes, from, head, bar, stop, value, hash);
      if (typeof series === 'string') fault = series;
      else {
        if (!recorder.take(series, value, isSigned(bytes[at]))) fault = 'invalid_value';
        if (!series.isKnown) recorder.close(series);
      }
    } else fault = takeUnusual(bytes, from, head, at, bar, stop);
    if (fault !== undefined) return refused(fault, bytes, from, stop, end);
    follows = isPacked;
    return isPacked ? stop + 1 : afterLine(bytes, stop, end);
  };

  const readOne = (bytes: Buffer, from: number, end: number): number => {
    let hash = hashSeed;
    let at = from;
    for (; at < end; at++) {
      const byte = bytes[at]!;
      if (byte === colonSign || byte < firstPrintable) break;
      hash = hashByte(hash, byte);
    }
    if (at >= end || bytes[at] !== colonSign) return refused('invalid_line', bytes, from, at, end);
    const head = at;
    do at = readNumbers(bytes, from, head, hash, at + (at === head ? 1 : 0), end);
    while (follows);
    return at;
  };

  return {
    read(bytes, from, end, most) {
      let at = from;
      let left = most;
      for (; left > 0 && at < end; left--) at = readOne(bytes, at, end);
      lines += most - left;
      return at;
    },
    get lines() {
      return lines;
    },
  };
}
