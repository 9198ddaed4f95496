import type { AgentMetricName } from '../../core/agent-metrics.ts';
import type { Readings } from '../../core/ports.ts';
import { unitDivisors } from '../../core/vocabulary.ts';
import type { ClusterGroupOptions } from '../clusters/block.ts';
import type { LagPlace, ReadingPlace, ReplicationOptions } from '../domains/block.ts';
import type { Finding, Probe, ProbeDeps, Sample } from '../probe.ts';

/** The metrics of real services. A vocabulary translates the lag to seconds; the service sends nanoseconds. */
const usual = {
  lag: [
    { metric: 'svc_replication_latency', unit: 'seconds' },
    { metric: 'replication_latency', unit: 'nanoseconds' },
  ] satisfies LagPlace[],
  applied: [
    { metric: 'svc_history_replication_tasks_applied' },
    { metric: 'replication_tasks_applied' },
  ] satisfies ReadingPlace[],
  failures: [
    { metric: 'svc_history_replication_tasks_failed' },
    { metric: 'replication_tasks_failed' },
    { metric: 'replication_dlq_enqueue_failed' },
  ] satisfies ReadingPlace[],
};
type Quantity = keyof typeof usual;

/** Scraped families that the probe reads. */
export function placesRead(options: Partial<ReplicationOptions> = {}): string[] {
  const quantities = Object.keys(usual) as Quantity[];
  return quantities.flatMap((quantity) => placesOf(quantity, options[quantity]).map(({ metric }) => metric));
}

/** The labels that name the clusters of a series; the first one that is present is used. */
const usualLabels = { source: ['source_cluster', 'active_cluster'], target: ['target_cluster'] };

/** One value, with the cluster names in its labels. */
interface Reading {
  /** Identifies the series. */
  series: string;
  source?: string;
  target?: string;
  /** The value; a lag is in seconds. */
  value: number;
}

/** The values of one quantity, from the first metric that has any. Negative values are left out. */
function readingsOf(
  readings: Readings,
  quantity: Quantity,
  options: Partial<ReplicationOptions> = {},
): { metric?: string; values: Reading[] } {
  for (const place of placesOf(quantity, options[quantity])) {
    const values = [...readings.values(place.metric)]
      .filter(({ value }) => Number.isFinite(value) && value >= 0)
      .map((series) => readingAt(place, series));
    if (values.length > 0) return { metric: place.metric, values };
  }
  return { values: [] };
}

type QuantityPlace = ReadingPlace & Partial<LagPlace>;

/**
 * The names of a quantity's metrics. A metric that a vocabulary translates is found under both names, whichever is configured.
 */
function placesOf(quantity: Quantity, configured: QuantityPlace | undefined): readonly QuantityPlace[] {
  const places: readonly QuantityPlace[] = usual[quantity];
  if (!configured) return places;
  const { sourceLabel, targetLabel } = configured;
  const isSame = quantity === 'lag' && places.some(({ metric }) => metric === configured.metric);
  if (!isSame) return [configured];
  const others = places.filter(({ metric }) => metric !== configured.metric);
  return [configured, ...others.map((place) => ({ ...place, sourceLabel, targetLabel }))];
}

function readingAt(
  { unit = 'seconds', sourceLabel, targetLabel }: QuantityPlace,
  { labels, value }: { labels: Readonly<Record<string, string>>; value: number },
): Reading {
  const named = (label: string | undefined, otherwise: readonly string[]) =>
    (label === undefined ? otherwise : [label]).map((name) => labels[name]).find((text) => text);
  return {
    series: JSON.stringify(Object.entries(labels).sort()),
    source: named(sourceLabel, usualLabels.source),
    target: named(targetLabel, usualLabels.target),
    value: value / unitDivisors[unit],
  };
}

/** Two clusters, in the direction of replication. */
interface ClusterPair {
  source: string;
  target: string;
}

/**
 * How the pair of a series is determined. `labelled`: by its labels; if they name only one cluster, this cluster is the other.
 * `incoming`: towards this cluster, because there real services name the source in `target_cluster`.
 */
export type Direction = 'labelled' | 'incoming';

/** The possible pairs of a reading; undefined for a cluster with itself, and if several pairs would fit. */
export function pairsOf(
  group: ClusterGroupOptions,
): (reading: Reading, direction: Direction) => ClusterPair | undefined {
  const own = group.currentClusterName;
  const names = group.clusters.filter(({ enabled }) => enabled).map(({ name }) => name);
  const peers = names.filter((name) => name !== own);
  const onlyPeer = peers.length === 1 ? peers[0] : undefined;
  const pair = (source: string | undefined, target: string | undefined): ClusterPair | undefined =>
    source === undefined || target === undefined || source === target ? undefined : { source, target };
  const opposite = (name: string) => (name === own ? onlyPeer : own);
  return (reading, direction) => {
    const [source, target] = [reading.source, reading.target].map(
      (text) => text && clusterNamed(text, names),
    );
    if ((reading.source && !source) || (reading.target && !target)) return undefined;
    if (source && target && source !== target) return { source, target };
    if (direction === 'incoming')
      return pair([source, target].find((name) => name && name !== own) ?? onlyPeer, own);
    if (source && target) return undefined;
    if (source) return pair(source, opposite(source));
    if (target) return pair(opposite(target), target);
    return pair(own, onlyPeer);
  };
}

/** Whether both clusters are enabled clusters of the group. */
function isPairOf({ clusters }: ClusterGroupOptions, { source, target }: ClusterPair): boolean {
  const isEnabled = (wanted: string) => clusters.some(({ name, enabled }) => enabled && name === wanted);
  return isEnabled(source) && isEnabled(target);
}

/** The cluster with this name in a label. Services may sanitize label values: `dc-1` becomes `dc_1`. */
function clusterNamed(text: string, names: readonly string[]): string | undefined {
  return names.includes(text) ? text : names.find((name) => name.replace(/[^A-Za-z0-9_]/gu, '_') === text);
}

interface PairReading extends Reading {
  pair: ClusterPair;
}

interface QuantityReadings {
  /** The family that the readings are from. */
  metric?: string;
  paired: readonly PairReading[];
  /** Number of series whose labels name no pair of clusters. */
  unmatched: number;
}

const directions: Readonly<Record<Quantity, Direction>> = {
  lag: 'labelled',
  applied: 'incoming',
  failures: 'incoming',
};

/** Reads a quantity from the scraped metrics, each value with its pair of clusters. */
function finderIn(
  group: ClusterGroupOptions,
  replication: ReplicationOptions | undefined,
  readings: Readings,
): (quantity: Quantity) => QuantityReadings {
  const pairOf = pairsOf(group);
  return (quantity) => {
    const { metric, values } = readingsOf(readings, quantity, replication);
    const paired = values.flatMap((reading) => {
      const pair = pairOf(reading, directions[quantity]);
      return pair ? [{ ...reading, pair }] : [];
    });
    return { metric, paired, unmatched: values.length - paired.length };
  };
}

interface OfPair {
  pair: ClusterPair;
  value: number;
}

/** One number per pair, computed from the values of its items. */
function joinByPair<T extends { pair: ClusterPair }>(
  items: readonly T[],
  numberOf: (item: T) => number,
  join: (one: number, other: number) => number,
): OfPair[] {
  const joined = new Map<string, OfPair>();
  for (const item of items) {
    const { source, target } = item.pair;
    const key = JSON.stringify([source, target]);
    const value = numberOf(item);
    const known = joined.get(key);
    joined.set(key, { pair: item.pair, value: known ? join(known.value, value) : value });
  }
  return [...joined.values()];
}

function quantitySamples(name: AgentMetricName, values: readonly OfPair[]): Sample[] {
  return values.map(({ pair: { source, target }, value }) => ({
    name,
    labels: { source_cluster: source, target_cluster: target },
    value,
  }));
}

/** The total of a counter at one check. */
interface Total {
  /** Identifies the series; series that cannot be distinguished count as one. */
  series: string;
  value: number;
}

interface Increase {
  by: number;
  /** Whether the total fell: the counter was reset, and its new total is the increase. */
  wasReset: boolean;
}

interface Increases {
  /**
   * The increase of each series since the last check. A series that is new, or was missing at the last check, has no increase:
   * what it counted meanwhile is not known.
   */
  since(totals: readonly Total[]): Map<string, Increase>;
}

interface Sum {
  value: number;
  parts: number;
}

/** Computes the increases of counters that another program maintains. */
function createIncreases(): Increases {
  let last = new Map<string, Sum>();
  return {
    since(totals) {
      const now = sumsOf(totals);
      const increases = new Map<string, Increase>();
      for (const [series, sum] of now) {
        const before = last.get(series);
        if (before?.parts === sum.parts) increases.set(series, increaseOf(before, sum));
      }
      last = now;
      return increases;
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

/** The increase of a sum. If it fell, it is not known which part was reset, nor what that part has counted since. */
function increaseOf(before: Sum, { value, parts }: Sum): Increase {
  if (value >= before.value) return { by: value - before.value, wasReset: false };
  return { by: parts === 1 ? value : 0, wasReset: true };
}

interface LastApplied {
  /** The known times, updated for the pairs that applied a task since the last check. */
  after(before: readonly OfPair[], applied: readonly PairReading[], nowMs: number): OfPair[];
}

/**
 * When tasks were last applied, ms since the epoch: the time of the check that found a higher total than the one before. A
 * counter that was reset is ignored, because its tasks may be old.
 */
function createLastApplied(): LastApplied {
  const progress = createIncreases();
  return {
    after(before, applied, nowMs) {
      const increases = progress.since(applied);
      const risen = applied.filter(({ series }) => {
        const increase = increases.get(series);
        return increase !== undefined && !increase.wasReset && increase.by > 0;
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

/** The times in the form that `lastAppliedIn` reads. */
function remembered(lastApplied: readonly OfPair[]): unknown {
  return lastApplied.map(({ pair: { source, target }, value }) => [source, target, value]);
}

interface ReplicationProbeOptions {
  group: ClusterGroupOptions;
  replication?: ReplicationOptions;
}

/**
 * Checks replication between clusters by the service's own metrics. An unknown lag is not a fault; it has no gauge. Failures
 * count from the second check that sees their counter: earlier failures, and those during a gap in the readings, are not known.
 */
export function createReplicationProbe(
  { group, replication }: ReplicationProbeOptions,
  { readings, clock }: Pick<ProbeDeps, 'readings' | 'clock'>,
): Probe {
  const find = finderIn(group, replication, readings);
  const lastApplied = createLastApplied();
  const failing = createIncreases();
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

/** The number of failures per pair since the last check, including 0; series that cannot be distinguished count once. */
function failuresOf(readings: readonly PairReading[], failed: ReturnType<Increases['since']>): OfPair[] {
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
      Object.entries(found).map(([quantity, { metric, paired, unmatched }]) => [
        quantity,
        { metric, series: paired.length, unmatched },
      ]),
    ),
    remember: remembered(lastApplied),
  };
}

const sentence = ({ pair: { source, target }, value }: OfPair): string =>
  value === 0
    ? `${target} has all of ${source}`
    : `${target} is ${Number(value.toPrecision(3))} s behind ${source}`;

function whyUnknown({ metric, unmatched }: QuantityReadings): string {
  return unmatched === 0
    ? 'the lag is not known: no scraped metric shows it'
    : `the lag is not known: the labels of ${unmatched} series of ${metric} name no two clusters of the group`;
}
