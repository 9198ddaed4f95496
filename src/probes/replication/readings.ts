import type { AgentMetricName } from '../../core/agent-metrics.ts';
import type { Readings } from '../../core/ports.ts';
import { unitDivisors } from '../../core/vocabulary.ts';
import type { ClusterGroupOptions } from '../clusters/cluster-group.ts';
import type { Sample } from '../probe.ts';
import type { LagPlace, ReadingPlace, ReplicationOptions } from './replication.ts';

/**
 * Where real services have their numbers. The lag comes in seconds where a vocabulary translated it, and in
 * nanoseconds as the service sends it.
 */
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
export type Quantity = keyof typeof usual;

/** Families of scraped pages that the probe looks at. */
export function placesRead(options: Partial<ReplicationOptions> = {}): string[] {
  const quantities = Object.keys(usual) as Quantity[];
  return quantities.flatMap((quantity) => placesOf(quantity, options[quantity]).map(({ metric }) => metric));
}

/** Labels that name the clusters of a series, the first that is there. */
const usualLabels = { source: ['source_cluster', 'active_cluster'], target: ['target_cluster'] };

/** One value that was found, with the cluster names that its labels have. */
export interface Reading {
  /** The same for the same series. */
  series: string;
  source?: string;
  target?: string;
  /** A lag is in seconds. */
  value: number;
}

/** What the scraped metrics have of one quantity, from the first place that has anything; never a negative. */
export function readingsOf(
  readings: Readings,
  quantity: Quantity,
  options: Partial<ReplicationOptions> = {},
): { metric?: string; values: Reading[] } {
  for (const place of placesOf(quantity, options[quantity])) {
    const values = [...readings.look(place.metric)]
      .filter(({ value }) => Number.isFinite(value) && value >= 0)
      .map((series) => readingAt(place, series));
    if (values.length > 0) return { metric: place.metric, values };
  }
  return { values: [] };
}

type Place = ReadingPlace & Partial<LagPlace>;

/** A usual metric is found under its translated name too, whatever name the configuration has for it. */
function placesOf(quantity: Quantity, told: Place | undefined): readonly Place[] {
  const places: readonly Place[] = usual[quantity];
  if (!told) return places;
  const { sourceLabel, targetLabel } = told;
  const isSame = quantity === 'lag' && places.some(({ metric }) => metric === told.metric);
  if (!isSame) return [told];
  const others = places.filter(({ metric }) => metric !== told.metric);
  return [told, ...others.map((place) => ({ ...place, sourceLabel, targetLabel }))];
}

function readingAt(
  { unit = 'seconds', sourceLabel, targetLabel }: Place,
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

/** Two clusters, in the direction in which changes go. */
export interface Pair {
  source: string;
  target: string;
}

/**
 * How a series tells its pair: `labelled` by what its labels say, the own cluster being the other one where only
 * one is named; `incoming` towards the own cluster, as real services name the source by `target_cluster` then.
 */
export type Direction = 'labelled' | 'incoming';

/** Finds the pair of a reading; undefined for a cluster with itself, and where more than one would do. */
export function pairsOf(
  group: ClusterGroupOptions,
): (reading: Reading, direction: Direction) => Pair | undefined {
  const own = group.currentClusterName;
  const names = group.clusters.filter(({ enabled }) => enabled).map(({ name }) => name);
  const peers = names.filter((name) => name !== own);
  const onlyPeer = peers.length === 1 ? peers[0] : undefined;
  const pair = (source: string | undefined, target: string | undefined): Pair | undefined =>
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

/** Whether both clusters are of the group, and enabled. */
export function isPairOf({ clusters }: ClusterGroupOptions, { source, target }: Pair): boolean {
  const isEnabled = (wanted: string) => clusters.some(({ name, enabled }) => enabled && name === wanted);
  return isEnabled(source) && isEnabled(target);
}

/** Services may have sanitized the values of their labels: `dc-1` comes as `dc_1`. */
function clusterNamed(text: string, names: readonly string[]): string | undefined {
  return names.includes(text) ? text : names.find((name) => name.replace(/[^A-Za-z0-9_]/gu, '_') === text);
}

/** A reading that tells which clusters it is about. */
export interface Told extends Reading {
  pair: Pair;
}

/** What the scraped metrics have of one quantity. */
export interface Found {
  /** The family it was found in. */
  metric?: string;
  told: readonly Told[];
  /** Series whose labels do not tell which clusters they are about. */
  untold: number;
}

const directions: Readonly<Record<Quantity, Direction>> = {
  lag: 'labelled',
  applied: 'incoming',
  failures: 'incoming',
};

/** Finds a quantity among the scraped metrics, each reading with its pair of clusters. */
export function finderIn(
  group: ClusterGroupOptions,
  replication: ReplicationOptions | undefined,
  readings: Readings,
): (quantity: Quantity) => Found {
  const pairOf = pairsOf(group);
  return (quantity) => {
    const { metric, values } = readingsOf(readings, quantity, replication);
    const told = values.flatMap((reading) => {
      const pair = pairOf(reading, directions[quantity]);
      return pair ? [{ ...reading, pair }] : [];
    });
    return { metric, told, untold: values.length - told.length };
  };
}

export interface OfPair {
  pair: Pair;
  value: number;
}

/** One number for each pair: the values of its items, joined. */
export function joinByPair<T extends { pair: Pair }>(
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

export function samplesOf(name: AgentMetricName, values: readonly OfPair[]): Sample[] {
  return values.map(({ pair: { source, target }, value }) => ({
    name,
    labels: { source_cluster: source, target_cluster: target },
    value,
  }));
}
