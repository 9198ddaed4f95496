import type { ClusterGroupOptions } from '../clusters/options.ts';
import type { Finding, Probe, ProbeDeps } from '../probe.ts';
import { joinByPair, type OfPair, samplesOf } from './by-pair.ts';
import { type Found, finderIn, type Told } from './found.ts';
import { createLastApplied, lastAppliedIn, remembered } from './last-applied.ts';
import type { ReplicationOptions } from './options.ts';
import { isPairOf } from './pairs.ts';
import type { Quantity } from './places.ts';
import { createRises, type Rises } from './rises.ts';

export interface ReplicationProbeOptions {
  group: ClusterGroupOptions;
  replication?: ReplicationOptions;
}

/**
 * How far clusters are behind each other, by the service's own metrics. What is not known is no failure: nothing is
 * shown of it. Failures count from the look after the one
 * that first saw their counter: those of before, and of a gap in the readings, are not among them.
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
      const failed = failing.since(found.failures.told);
      return findingOf(
        joinByPair(found.lag.told, ({ value }) => value, Math.max),
        lastApplied.after(before, found.applied.told, clock.nowMs()),
        failuresOf(found.failures.told, failed),
        found,
      );
    },
  };
}

/** Failures of each pair since the look before, 0 included; series that are one have one rise. */
function failuresOf(told: readonly Told[], failed: ReturnType<Rises['since']>): OfPair[] {
  const once = [...new Map(told.map((reading) => [reading.series, reading])).values()];
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
  found: Readonly<Record<Quantity, Found>>,
): Finding {
  const inSeconds = lastApplied.map(({ pair, value }) => ({ pair, value: value / 1000 }));
  return {
    msg: lags.length === 0 ? whyUnknown(found.lag) : lags.map(sentence).join(', '),
    gauges: [
      ...samplesOf('svc_replication_lag_seconds', lags),
      ...samplesOf('svc_replication_last_applied_timestamp_seconds', inSeconds),
    ],
    increases: samplesOf('svc_replication_task_failures_total', failed),
    details: Object.fromEntries(
      Object.entries(found).map(([quantity, { metric, told, untold }]) => [
        quantity,
        { metric, series: told.length, untold },
      ]),
    ),
    remember: remembered(lastApplied),
  };
}

const sentence = ({ pair: { source, target }, value }: OfPair): string =>
  value === 0
    ? `${target} has all of ${source}`
    : `${target} is ${Number(value.toPrecision(3))} s behind ${source}`;

function whyUnknown({ metric, untold }: Found): string {
  return untold === 0
    ? 'the lag is not known: no scraped metric has it'
    : `the lag is not known: the labels of ${untold} series of ${metric} name no two clusters of the group`;
}
