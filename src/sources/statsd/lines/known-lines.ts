import { isUtf8 } from 'node:buffer';
import {
  addKey,
  createByteTable,
  firstKey,
  grownColumn,
  isKeyAt,
  nextKey,
  removeKey,
  writeKey,
} from '../../../core/byte-table.ts';
import { hashBytes, hashSeed, wideHash } from '../../../core/hashes.ts';
import type { Clock } from '../../../core/ports.ts';
import { createRefusedKeys } from '../../../core/registry/refused-series.ts';
import type { SliceQueue } from '../../../core/slices.ts';
import { type LineRules, readLine, type StatsdDrop } from './line-format.ts';
import { createLineForms } from './line-forms.ts';
import { isAllowed, isOverLimit, isShared, type SeriesRecorder, type StatsdSeries } from './statsd-series.ts';

interface KnownLinesDeps {
  rules: LineRules;
  recorder: SeriesRecorder;
  /** The maximum number of bytes of head and tail together. */
  lineBytes: number;
  /** Called with the name of each line that was not known. */
  onName(name: string): void;
  /** Whether the vocabulary is decided for all names so far. Until then no refused line is reduced to a hash. */
  isSettled(): boolean;
}

/**
 * All known lines with their series, so that a known line costs no string and no object. A line is its head
 * (`from` to `colon`) and its tail (`bar` to `end`), with the numbers between them.
 */
export interface KnownLines {
  /**
   * The series of a line, or the reason why the line is refused. The series of a new line is opened if the line's type allows the
   * first `value`. A series that is not `isKnown` must be closed after use.
   */
  find(
    bytes: Buffer,
    from: number,
    colon: number,
    bar: number,
    end: number,
    value: number,
    hash?: number,
  ): StatsdSeries | StatsdDrop;
  /** Whether the line has its tags in its name. */
  hasSuffixTags(bytes: Buffer, from: number, colon: number, bar: number, end: number): boolean;
  /** The current round of the expiry. A line that arrives is marked with it. */
  round: number;
  readonly size: number;
  /** All ids of known lines are below this number. */
  readonly end: number;
  seriesOf(id: number): StatsdSeries | undefined;
  /** The number of refused lines that are remembered as a hash. */
  readonly refusedLines: number;
  /** Forgets all refused lines: they are opened again when they arrive again. */
  forgetRefused(): void;
  /** Closes a line's series; the line is unknown again. */
  forget(id: number): void;
}

/** How many refused lines are remembered: a hundred times the usual limit, and as many as a table of 2.5 MiB holds. */
const maxRefused = 220_000;
/**
 * Once this many lines are known, a line whose series has other owners, too, is not remembered: it is parsed each time it
 * arrives.
 */
const maxShared = 16_384;
/** The same limit for refused lines while the vocabulary is not decided: each line takes 1 KiB until it expires. */
const maxUndecided = 2048;
const timeSection = /\|T\d+(?=\||$)/;

function hashOfKey(bytes: Buffer, from: number, colon: number, bar: number, end: number): number {
  return hashBytes(hashBytes(hashSeed, bytes, from, colon), bytes, bar, end);
}

/**
 * Whether bytes that were decoded as `text` are not UTF-8. The text contains U+FFFD only if the bytes are not UTF-8, or if the
 * sender sent this character.
 */
const isInvalidUtf8 = (text: string, bytes: Buffer, from: number, to: number): boolean =>
  text.includes('\uFFFD') && !isUtf8(bytes.subarray(from, to));

/** Interns lines by their head and tail. */
interface LineKeys {
  readonly size: number;
  /** All ids are below this number. */
  readonly end: number;
  /** A view of these bytes, which is created once per datagram. */
  viewOf(bytes: Buffer): DataView;
  /** The id of a line, or -1. */
  find(bytes: Buffer, from: number, colon: number, bar: number, end: number, hash: number): number;
  add(bytes: Buffer, from: number, colon: number, bar: number, end: number, hash: number): number;
  remove(id: number): void;
}

function createLineKeys(): LineKeys {
  /** The table's keys are head and tail end to end; `headBytes` says where the tail begins. */
  const keys = createByteTable();
  let headBytes = new Int32Array(64);
  let viewed: Buffer = Buffer.alloc(0);
  let view = new DataView(viewed.buffer, viewed.byteOffset, 0);

  const viewOf = (bytes: Buffer): DataView => {
    if (bytes !== viewed) {
      viewed = bytes;
      view = new DataView(bytes.buffer, bytes.byteOffset, bytes.length);
    }
    return view;
  };

  return {
    get size() {
      return keys.size;
    },
    get end() {
      return keys.end;
    },
    viewOf,
    find(bytes, from, colon, bar, end, hash) {
      const over = viewOf(bytes);
      const head = colon - from;
      const length = head + end - bar;
      let id = firstKey(keys, hash);
      for (; id !== -1; id = nextKey(keys, id, hash)) {
        if (headBytes[id] !== head || keys.keyLength[id] !== length) continue;
        if (!isKeyAt(keys, id, 0, over, from, colon)) continue;
        if (isKeyAt(keys, id, head, over, bar, end)) return id;
      }
      return -1;
    },
    add(bytes, from, colon, bar, end, hash) {
      const head = colon - from;
      const id = addKey(keys, hash, head + end - bar);
      writeKey(keys, id, 0, bytes, from, colon);
      writeKey(keys, id, head, bytes, bar, end);
      if (keys.keyAt.length > headBytes.length) headBytes = grownColumn(headBytes, keys.keyAt.length);
      headBytes[id] = head;
      return id;
    },
    remove: (id) => removeKey(keys, id),
  };
}

export function createKnownLines({
  rules,
  recorder,
  lineBytes,
  onName,
  isSettled,
}: KnownLinesDeps): KnownLines {
  const refused = createRefusedKeys<StatsdSeries>(maxRefused);
  const forms = createLineForms(recorder);
  const keys = createLineKeys();
  const seriesById: (StatsdSeries | undefined)[] = [];
  let round = 0;

  const openLine = (
    bytes: Buffer,
    from: number,
    colon: number,
    bar: number,
    end: number,
    value: number,
    hash: number,
  ): StatsdSeries | StatsdDrop => {
    if (colon - from + end - bar > lineBytes) return 'line_too_long';
    const keyHash = wideHash(keys.viewOf(bytes), from, colon, bar, end);
    const counted = refused.find(keyHash);
    if (counted !== undefined) return counted;
    const alike = forms.find(bytes, from, colon, bar, end, value);
    if (alike !== undefined) {
      refused.add(keyHash, alike);
      return alike;
    }
    const head = bytes.toString('utf8', from, colon);
    const tail = bytes.toString('utf8', bar, end);
    if (isInvalidUtf8(head, bytes, from, colon) || isInvalidUtf8(tail, bytes, bar, end))
      return 'invalid_line';
    if (tail.includes('|T') && timeSection.test(tail)) {
      const key = Buffer.concat([bytes.subarray(from, colon), Buffer.from(tail.replace(timeSection, ''))]);
      return find(key, 0, colon - from, colon - from, key.length, value);
    }
    const line = readLine(head, tail, rules);
    if (typeof line === 'string') return line;
    if (!isAllowed(line.type, value)) return 'invalid_value';
    onName(line.name);
    const over = isSettled() ? recorder.sharedFor(line) : undefined;
    if (over !== undefined) {
      refused.add(keyHash, over);
      forms.learn(line, bytes);
      return over;
    }
    const series = recorder.open(line, round);
    const shared = isSettled() ? recorder.share(series) : undefined;
    if (shared !== undefined) {
      refused.add(keyHash, shared);
      return shared;
    }
    const most = isOverLimit(series) ? maxUndecided : maxShared;
    series.isKnown = keys.size < most || !isShared(series);
    if (series.isKnown) seriesById[keys.add(bytes, from, colon, bar, end, hash)] = series;
    return series;
  };

  const find = (
    bytes: Buffer,
    from: number,
    colon: number,
    bar: number,
    end: number,
    value: number,
    hash = hashOfKey(bytes, from, colon, bar, end),
  ): StatsdSeries | StatsdDrop => {
    const id = keys.find(bytes, from, colon, bar, end, hash);
    if (id === -1) return openLine(bytes, from, colon, bar, end, value, hash);
    const series = seriesById[id]!;
    series.round = round;
    return series;
  };

  return {
    find,
    hasSuffixTags(bytes, from, colon, bar, end) {
      const id = keys.find(bytes, from, colon, bar, end, hashOfKey(bytes, from, colon, bar, end));
      if (id !== -1) return seriesById[id]!.line.hasSuffixTags;
      const line = readLine(bytes.toString('utf8', from, colon), bytes.toString('utf8', bar, end), rules);
      return typeof line !== 'string' && line.hasSuffixTags;
    },
    get round() {
      return round;
    },
    set round(next) {
      round = next;
    },
    get size() {
      return keys.size;
    },
    get end() {
      return keys.end;
    },
    seriesOf: (id) => seriesById[id],
    get refusedLines() {
      return refused.size;
    },
    forgetRefused() {
      refused.clear();
      forms.clear();
      recorder.closeShared();
    },
    forget(id) {
      const series = seriesById[id];
      if (series === undefined) return;
      seriesById[id] = undefined;
      keys.remove(id);
      recorder.close(series);
    },
  };
}

/** How many times the age of a line is checked until it expires, so that it lives up to a quarter longer than configured. */
const rounds = 4;

/** Forgets lines that did not arrive for `expireMs`. Returns the stop. */
export function startExpiry(
  knownLines: KnownLines,
  expireMs: number,
  { clock, slices }: { clock: Clock; slices: SliceQueue },
): () => void {
  let cancel = (): void => {};
  const sweep = () => {
    let id = 0;
    slices.whenIdle(() => {
      for (const stop = id + 64; id < stop && id < knownLines.end; id++) {
        const series = knownLines.seriesOf(id);
        if (series !== undefined && knownLines.round - series.round > rounds) knownLines.forget(id);
      }
      return id >= knownLines.end;
    });
  };
  const wait = () => {
    cancel = clock.after(expireMs / rounds, () => {
      knownLines.round += 1;
      sweep();
      wait();
    });
  };
  wait();
  return () => cancel();
}
