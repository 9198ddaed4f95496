import type { Readings } from '../../core/ports.ts';
import { unitDivisors } from '../../core/vocabulary.ts';
import type { LagPlace, ReadingPlace, ReplicationOptions } from './options.ts';

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
