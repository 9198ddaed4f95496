import type { AgentMetricName } from '../../core/agent-metrics.ts';
import type { Sample } from '../probe.ts';
import type { Pair } from './pairs.ts';

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
