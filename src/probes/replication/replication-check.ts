import type { ClusterGroupOptions } from '../clusters/block.ts';
import type { ReplicationOptions } from '../domains/block.ts';
import type { Finding, Probe, ProbeDeps } from '../probe.ts';
import {
  finderIn,
  isPairOf,
  joinByPair,
  type OfPair,
  type PairReading,
  type Quantity,
  type QuantityReadings,
  quantitySamples,
} from './readings.ts';

/** The total of a counter at one check. */
export interface Total {
  /** Identifies the series; series that cannot be distinguished count as one. */
  series: string;
  value: number;
}

export interface Rise {
  by: number;
  /** The total fell: the counter was reset, and its new total is the increase. */
  anew: boolean;
}

export interface Rises {
  /**
   * The increase of each series since the last check. A series that is new, or was missing at the last check, has none:
   * what it counted meanwhile is not known.
   */
  since(totals: readonly Total[]): Map<string, Rise>;
}

interface Sum {
  value: number;
  parts: number;
}

/** Computes the increases of counters that another program keeps. */
function createRises(): Rises {
  let last = new Map<string, Sum>();
  return {
    since(totals) {
      const now = sumsOf(totals);
      const rises = new Map<string, Rise>();
      for (const [series, sum] of now) {
        const before = last.get(series);
        if (before?.parts === sum.parts) rises.set(series, riseOf(before, sum));
      }
      last = now;
      return rises;
    },
  };
}

function sumsOf(totals: readonly Total[]): Map<string, Sum> {
  const sums = new Map<string, Sum>();
  for (const { series, value } of totals) {
    const { value: sum, parts } = sums.get(series) ?? { value: 0, parts: 0 };
    sums.set(series, { value: sum + value, parts: parts + 1 });
  }
  return sums;
}

/** In a sum it is not known which part was reset, nor what it has counted since. */
function riseOf(before: Sum, { value, parts }: Sum): Rise {
  if (value >= before.value) return { by: value - before.value, anew: false };
  return { by: parts === 1 ? value : 0, anew: true };
}

export interface LastApplied {
  /** The known times, and those of the pairs that applied a task since the last check. */
  after(before: readonly OfPair[], applied: readonly PairReading[], nowMs: number): OfPair[];
}

/**
 * When tasks were last applied, ms since the epoch: the time of the check that found a higher total than the one
 * before. A counter that was reset does not count, because its tasks may be old.
 */
function createLastApplied(): LastApplied {
  const progress = createRises();
  return {
    after(before, applied, nowMs) {
      const rises = progress.since(applied);
      const risen = applied.filter(({ series }) => {
        const rise = rises.get(series);
        return rise !== undefined && !rise.anew && rise.by > 0;
      });
      const now = risen.map(({ pair }) => ({ pair, value: nowMs }));
      return joinByPair(
        [...before, ...now],
        ({ value }) => value,
        (_, later) => later,
      );
    },
  };
}

/** The times that an earlier check remembered. */
function lastAppliedIn(recalled: unknown): OfPair[] {
  if (!Array.isArray(recalled)) return [];
  return recalled.flatMap((entry) => {
    const [source, target, value] = Array.isArray(entry) ? entry : [];
    const isWhole = typeof source === 'string' && typeof target === 'string' && Number.isFinite(value);
    return isWhole ? [{ pair: { source, target }, value }] : [];
  });
}

/** What `lastAppliedIn` reads. */
function remembered(lastApplied: readonly OfPair[]): unknown {
  return lastApplied.map(({ pair: { source, target }, value }) => [source, target, value]);
}

export interface ReplicationProbeOptions {
  group: ClusterGroupOptions;
  replication?: ReplicationOptions;
}

/**
 * Replication between clusters by the service's own metrics. An unknown lag is no fault; it has no gauge. Failures
 * count from the second check that sees their counter: earlier ones, and those during a gap in the readings, are not
 * known.
 */
export function createReplicationProbe(
  { group, replication }: ReplicationProbeOptions,
  { readings, clock }: Pick<ProbeDeps, 'readings' | 'clock'>,
): Probe {
  const find = finderIn(group, replication, readings);
  const lastApplied = createLastApplied();
  const failing = createRises();
  return {
    async check(_, recalled) {
      const found = { lag: find('lag'), applied: find('applied'), failures: find('failures') };
      const before = lastAppliedIn(recalled).filter(({ pair }) => isPairOf(group, pair));
      const failed = failing.since(found.failures.paired);
      return findingOf(
        joinByPair(found.lag.paired, ({ value }) => value, Math.max),
        lastApplied.after(before, found.applied.paired, clock.nowMs()),
        failuresOf(found.failures.paired, failed),
        found,
      );
    },
  };
}

/** Failures per pair since the last check, 0 included; series that cannot be distinguished count once. */
function failuresOf(readings: readonly PairReading[], failed: ReturnType<Rises['since']>): OfPair[] {
  const once = [...new Map(readings.map((reading) => [reading.series, reading])).values()];
  return joinByPair(
    once,
    ({ series }) => failed.get(series)?.by ?? 0,
    (one, other) => one + other,
  );
}

function findingOf(
  lags: readonly OfPair[],
  lastApplied: readonly OfPair[],
  failed: readonly OfPair[],
  found: Readonly<Record<Quantity, QuantityReadings>>,
): Finding {
  const inSeconds = lastApplied.map(({ pair, value }) => ({ pair, value: value / 1000 }));
  return {
    msg: lags.length === 0 ? whyUnknown(found.lag) : lags.map(sentence).join(', '),
    gauges: [
      ...quantitySamples('svc_replication_lag_seconds', lags),
      ...quantitySamples('svc_replication_last_applied_timestamp_seconds', inSeconds),
    ],
    increases: quantitySamples('svc_replication_task_failures_total', failed),
    details: Object.fromEntries(
      Object.entries(found).map(([quantity, { metric, paired, untold }]) => [
        quantity,
        { metric, series: paired.length, untold },
      ]),
    ),
    remember: remembered(lastApplied),
  };
}

const sentence = ({ pair: { source, target }, value }: OfPair): string =>
  value === 0
    ? `${target} has all of ${source}`
    : `${target} is ${Number(value.toPrecision(3))} s behind ${source}`;

function whyUnknown({ metric, untold }: QuantityReadings): string {
  return untold === 0
    ? 'the lag is not known: no scraped metric has it'
    : `the lag is not known: the labels of ${untold} series of ${metric} name no two clusters of the group`;
}
