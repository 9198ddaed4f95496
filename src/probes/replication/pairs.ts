import type { ClusterGroupOptions } from '../clusters/options.ts';
import type { Reading } from './places.ts';

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
