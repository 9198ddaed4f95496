import { agentMetric } from '../../../core/agent-metrics.ts';
import type { Gauge, Intake } from '../../../core/model.ts';
import type { Clock, Drops } from '../../../core/ports.ts';
import { type Fields, plainText } from '../lines/fields.ts';

export const newestFamily = agentMetric('svc_log_newest_entry_timestamp_seconds');

/**
 * Maintains `svc_log_newest_entry_timestamp_seconds` of one service. The series appears with the first entry that has a time. A
 * time more than an hour ahead of the clock is ignored and counted: one wrong entry would otherwise hide the log's delay until a
 * restart. For the same reason, times that were accepted before the clock was set back are forgotten. Times are kept in an array,
 * because storing a number there allocates nothing.
 */
interface NewestEntry {
  /** Slot of the field `ts`. */
  readonly ts: number;
  readonly reader: TimestampReader;
  /** In ms since the epoch: the newest time that was read, the time that is exposed, and the latest time that is accepted. */
  readonly timesMs: Float64Array;
  readonly intake: Intake;
  readonly clock: Clock;
  readonly drops: Drops;
  gauge: Gauge | undefined;
}

interface NewestEntryDeps {
  intake: Intake;
  clock: Clock;
  drops: Drops;
}

/** The indexes of `timesMs`. */
const newest = 0;
const shown = 1;
const latest = 2;
/** How far an entry's time may be ahead of the clock. */
const maxAheadMs = 3_600_000;

export function createNewestEntry(ts: number, { intake, clock, drops }: NewestEntryDeps): NewestEntry {
  const timesMs = new Float64Array(3).fill(Number.NEGATIVE_INFINITY);
  return { ts, reader: createTimestampReader(), timesMs, intake, clock, drops, gauge: undefined };
}

export function readEntryTime(entry: NewestEntry, fields: Fields): void {
  const { timesMs } = entry;
  const ms = timestampMs(entry.reader, fields, entry.ts);
  if (!(ms > timesMs[newest]!)) return;
  // The clock is read only if the time is later than all times that were accepted before.
  if (ms > timesMs[latest]!) {
    timesMs[latest] = entry.clock.nowMs() + maxAheadMs;
    if (ms > timesMs[latest]) {
      entry.drops.count('logs', 'future_timestamp');
      return;
    }
  }
  timesMs[newest] = ms;
}

export function exposeNewestEntry(entry: NewestEntry): void {
  const { timesMs, intake, clock } = entry;
  const ms = timesMs[newest]!;
  if (ms > clock.nowMs() + maxAheadMs) {
    timesMs.fill(Number.NEGATIVE_INFINITY);
    return;
  }
  if (ms === timesMs[shown]) return;
  entry.gauge ??= intake.gauge(newestFamily.name, {}, { help: newestFamily.help });
  entry.gauge.set(ms / 1000);
  timesMs[shown] = ms;
}

/**
 * Parses the times of log entries. It caches the last second, because consecutive entries often share it. It is a record and not
 * a closure, so that V8 compiles one `timestampMs` for all services.
 */
interface TimestampReader {
  /** The bytes of the cached `2006-01-02T15:04:05`, four per element. The last element overlaps the element before it. */
  readonly second: Int32Array;
  /** The cached second in ms since the epoch, read as UTC; NaN if none is cached. */
  secondMs: number;
}

export function createTimestampReader(): TimestampReader {
  return { second: new Int32Array(5), secondMs: Number.NaN };
}

/** Length of `2006-01-02T15:04:05`. */
const secondLength = 19;
const daysOfMonth = [31, 29, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31];

/** The number that the two digits at `at` form, or -1. */
function twoDigits(bytes: Buffer, at: number): number {
  const tens = bytes[at]! - 0x30;
  const ones = bytes[at + 1]! - 0x30;
  return tens >= 0 && tens <= 9 && ones >= 0 && ones <= 9 ? tens * 10 + ones : -1;
}

function parseDate(bytes: Buffer, at: number): number {
  const century = twoDigits(bytes, at);
  const year = twoDigits(bytes, at + 2);
  const month = twoDigits(bytes, at + 5);
  const day = twoDigits(bytes, at + 8);
  if (century < 0 || year < 0 || bytes[at + 4] !== 0x2d || bytes[at + 7] !== 0x2d) return Number.NaN;
  if (month < 1 || month > 12 || day < 1 || day > daysOfMonth[month - 1]!) return Number.NaN;
  const ms = new Date(0).setUTCFullYear(century * 100 + year, month - 1, day);
  return new Date(ms).getUTCDate() === day ? ms : Number.NaN;
}

/** `HH:MM:SS` at `at` in ms, or -1. */
function clockMs(bytes: Buffer, at: number): number {
  const hour = twoDigits(bytes, at);
  const minute = twoDigits(bytes, at + 3);
  const second = twoDigits(bytes, at + 6);
  if (hour < 0 || hour > 23 || minute < 0 || minute > 59 || second < 0 || second > 59) return -1;
  if (bytes[at + 2] !== 0x3a || bytes[at + 5] !== 0x3a) return -1;
  return ((hour * 60 + minute) * 60 + second) * 1000;
}

function parseSecond(bytes: Buffer, at: number): number {
  const ms = clockMs(bytes, at + 11);
  return ms < 0 || bytes[at + 10] !== 0x54 ? Number.NaN : parseDate(bytes, at) + ms;
}

function isSameSecond(second: Int32Array, view: DataView, at: number): boolean {
  for (let n = 0; n < 4; n++) if (view.getInt32(at + 4 * n, true) !== second[n]) return false;
  return view.getInt32(at + secondLength - 4, true) === second[4];
}

function secondMsAt(reader: TimestampReader, { bytes, view }: Fields, at: number): number {
  const { second } = reader;
  if (isSameSecond(second, view, at)) return reader.secondMs;
  for (let n = 0; n < 4; n++) second[n] = view.getInt32(at + 4 * n, true);
  second[4] = view.getInt32(at + secondLength - 4, true);
  reader.secondMs = parseSecond(bytes, at);
  return reader.secondMs;
}

/** The offset from UTC in `bytes[at, to)` in ms, or NaN. */
function zoneMs(bytes: Buffer, at: number, to: number): number {
  const sign = bytes[at];
  if (sign === 0x5a && to === at + 1) return 0;
  if (sign !== 0x2b && sign !== 0x2d) return Number.NaN;
  const hasColon = bytes[at + 3] === 0x3a;
  if (to !== at + (hasColon ? 6 : 5)) return Number.NaN;
  const hour = twoDigits(bytes, at + 1);
  const minute = twoDigits(bytes, hasColon ? at + 4 : at + 3);
  if (hour < 0 || hour > 23 || minute < 0 || minute > 59) return Number.NaN;
  const ms = (hour * 60 + minute) * 60_000;
  return sign === 0x2b ? ms : -ms;
}

/** The digits of `bytes[at, to)` as a fraction of a second, in ms. */
function fractionMs(bytes: Buffer, at: number, to: number): number {
  let value = 0;
  for (let i = at; i < to; i++) value = value * 10 + bytes[i]! - 0x30;
  return to - at === 3 ? value : value / 10 ** (to - at - 3);
}

function digitsEnd(bytes: Buffer, at: number): number {
  let i = at;
  while (bytes[i]! >= 0x30 && bytes[i]! <= 0x39) i++;
  return i;
}

/**
 * The time in a slot in ms since the epoch: ISO 8601 with seconds, an optional fraction, and `Z`, `+hh:mm` or
 * `+hhmm`. NaN for anything else, also for a string with escapes.
 */
export function timestampMs(reader: TimestampReader, fields: Fields, slot: number): number {
  if (fields.kind[slot] !== plainText) return Number.NaN;
  const { bytes } = fields;
  const at = fields.from[slot]!;
  const to = fields.to[slot]!;
  if (to - at <= secondLength || to - at > 40) return Number.NaN;
  let zoneAt = at + secondLength;
  let extraMs = 0;
  if (bytes[zoneAt] === 0x2e) {
    const fraction = zoneAt + 1;
    zoneAt = digitsEnd(bytes, fraction);
    if (zoneAt === fraction) return Number.NaN;
    extraMs = fractionMs(bytes, fraction, zoneAt);
  }
  return secondMsAt(reader, fields, at) + extraMs - zoneMs(bytes, zoneAt, to);
}
