import { isUtf8 } from 'node:buffer';
import { createRefusedKeys } from '../../../core/refused-keys.ts';
import { lineHash } from '../../../core/refused-lines.ts';
import { createKnownLines, hashByte, hashSeed } from './known.ts';
import { type LineRules, readLine, type StatsdDrop } from './line.ts';
import { isAllowed, isShared, type Sending, type Sent } from './sent.ts';

export interface LineBookDeps {
  rules: LineRules;
  sending: Sending;
  /** Bytes of head and tail at most. */
  lineBytes: number;
  /** Hears each name that comes with a line not known before. */
  onName(name: string): void;
  /** Whether the vocabulary of all names so far is decided. Until then no refused line is reduced to a hash. */
  isSettled(): boolean;
}

/**
 * Every known line with its series. A line is its head (`from` to `colon`) and its tail (`bar` to `end`); the
 * numbers stand between them.
 */
export interface LineBook {
  /**
   * The series, opened if need be for a first `value` that its type allows, or why there is none. One that is not
   * `isKnown` must be closed after use.
   */
  find(
    bytes: Buffer,
    from: number,
    colon: number,
    bar: number,
    end: number,
    value: number,
    hash?: number,
  ): Sent | StatsdDrop;
  /** Whether the line's tags stand in its name. */
  isUntangled(bytes: Buffer, from: number, colon: number, bar: number, end: number): boolean;
  /** Round of the sweep that runs; lines count as heard of in it. */
  round: number;
  readonly size: number;
  /** Ids of known lines run below this. */
  readonly end: number;
  sentOf(id: number): Sent | undefined;
  /** Refused lines that are kept as a hash. */
  readonly refusedLines: number;
  /** Forgets all refused lines: they are opened anew when they come again. */
  forgetRefused(): void;
  /** Closes a line's series; it is unknown again. */
  forget(id: number): void;
}

/** Refused lines that are remembered, at 10 bytes each. */
const maxRefused = 262_144;
/** Lines beyond which one whose series others hold too is not remembered: it is read anew each time. */
const maxShared = 16_384;
const timeSection = /\|T\d+(?=\||$)/;

function hashOf(bytes: Buffer, from: number, to: number, seed: number): number {
  let hash = seed;
  for (let i = from; i < to; i++) hash = hashByte(hash, bytes[i]!);
  return hash;
}

function hashOfKey(bytes: Buffer, from: number, colon: number, bar: number, end: number): number {
  return hashOf(bytes, bar, end, hashOf(bytes, from, colon, hashSeed));
}

export function createLineBook({ rules, sending, lineBytes, onName, isSettled }: LineBookDeps): LineBook {
  const refused = createRefusedKeys<Sent>(maxRefused);
  const scratch = Buffer.allocUnsafeSlow(lineBytes);
  const scratchView = new DataView(scratch.buffer);
  const known = createKnownLines();
  const sents: (Sent | undefined)[] = [];
  let round = 0;

  /** The wide hash of a line's head and tail. */
  const refusedHash = (bytes: Buffer, from: number, colon: number, bar: number, end: number): number => {
    const headEnd = bytes.copy(scratch, 0, from, colon);
    return lineHash(scratchView, 0, headEnd + bytes.copy(scratch, headEnd, bar, end));
  };

  const meet = (
    bytes: Buffer,
    from: number,
    colon: number,
    bar: number,
    end: number,
    value: number,
    hash: number,
  ): Sent | StatsdDrop => {
    if (colon - from + end - bar > lineBytes) return 'line_too_long';
    const wideHash = refusedHash(bytes, from, colon, bar, end);
    const counted = refused.find(wideHash);
    if (counted !== undefined) return counted;
    if (!isUtf8(bytes.subarray(from, colon)) || !isUtf8(bytes.subarray(bar, end))) return 'invalid_line';
    const tail = bytes.toString('utf8', bar, end);
    if (timeSection.test(tail)) {
      const key = Buffer.concat([bytes.subarray(from, colon), Buffer.from(tail.replace(timeSection, ''))]);
      return find(key, 0, colon - from, colon - from, key.length, value);
    }
    const line = readLine(bytes.toString('utf8', from, colon), tail, rules);
    if (typeof line === 'string') return line;
    if (!isAllowed(line.type, value)) return 'invalid_value';
    onName(line.name);
    const over = isSettled() ? sending.sharedFor(line) : undefined;
    if (over !== undefined) {
      refused.add(wideHash, over);
      return over;
    }
    const sent = sending.open(line, round);
    const shared = isSettled() ? sending.share(sent) : undefined;
    if (shared !== undefined) {
      refused.add(wideHash, shared);
      return shared;
    }
    sent.isKnown = known.size < maxShared || !isShared(sent);
    if (sent.isKnown) sents[known.add(bytes, from, colon, bar, end, hash)] = sent;
    return sent;
  };

  const find = (
    bytes: Buffer,
    from: number,
    colon: number,
    bar: number,
    end: number,
    value: number,
    hash = hashOfKey(bytes, from, colon, bar, end),
  ): Sent | StatsdDrop => {
    const id = known.find(bytes, from, colon, bar, end, hash);
    if (id === -1) return meet(bytes, from, colon, bar, end, value, hash);
    const sent = sents[id]!;
    sent.round = round;
    return sent;
  };

  return {
    find,
    isUntangled(bytes, from, colon, bar, end) {
      const id = known.find(bytes, from, colon, bar, end, hashOfKey(bytes, from, colon, bar, end));
      if (id !== -1) return sents[id]!.line.untangled;
      const line = readLine(bytes.toString('utf8', from, colon), bytes.toString('utf8', bar, end), rules);
      return typeof line !== 'string' && line.untangled;
    },
    get round() {
      return round;
    },
    set round(next) {
      round = next;
    },
    get size() {
      return known.size;
    },
    get end() {
      return known.end;
    },
    sentOf: (id) => sents[id],
    get refusedLines() {
      return refused.size;
    },
    forgetRefused() {
      refused.clear();
      sending.closeShared();
    },
    forget(id) {
      const sent = sents[id];
      if (sent === undefined) return;
      sents[id] = undefined;
      known.forget(id);
      sending.close(sent);
    },
  };
}
