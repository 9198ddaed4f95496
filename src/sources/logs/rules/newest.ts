import { agentMetric } from '../../../core/agent-metrics.ts';
import type { Gauge, Intake } from '../../../core/model.ts';
import type { Fields } from '../lines/fields.ts';
import { createTimestampReader, type TimestampReader, timestampMs } from './timestamp.ts';

/**
 * Keeps `svc_log_newest_entry_timestamp_seconds` of one service; no series until an entry had a time. Its
 * times are in an array, where a number of an entry is stored without being allocated.
 */
export interface Newest {
  readonly ts: number;
  readonly reader: TimestampReader;
  /** The newest of all entries and the one that shows, in ms since the epoch. */
  readonly timesMs: Float64Array;
  readonly intake: Intake;
  gauge: Gauge | undefined;
}

export const newestFamily = agentMetric('svc_log_newest_entry_timestamp_seconds');

const newest = 0;
const shown = 1;

export function createNewest(intake: Intake, ts: number): Newest {
  const timesMs = new Float64Array(2).fill(Number.NEGATIVE_INFINITY);
  return { ts, reader: createTimestampReader(), timesMs, intake, gauge: undefined };
}

export function takeTime({ reader, ts, timesMs }: Newest, fields: Fields): void {
  const ms = timestampMs(reader, fields, ts);
  if (ms > timesMs[newest]!) timesMs[newest] = ms;
}

export function showNewest(of: Newest): void {
  const { timesMs, intake } = of;
  const ms = timesMs[newest]!;
  if (ms === timesMs[shown]) return;
  of.gauge ??= intake.gauge(newestFamily.name, {}, { help: newestFamily.help });
  of.gauge.set(ms / 1000);
  timesMs[shown] = ms;
}
