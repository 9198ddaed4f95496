import type { ClusterGroupOptions, ClusterOptions } from './cluster-group.ts';

/** What decides which cluster a failover version belongs to. */
export type VersionRules = Pick<ClusterGroupOptions, 'failoverVersionIncrement' | 'clusters'>;

const initialVersions = ({ initialFailoverVersion, newInitialFailoverVersion }: ClusterOptions): number[] => [
  initialFailoverVersion,
  ...(newInitialFailoverVersion === undefined ? [] : [newInitialFailoverVersion]),
];

/**
 * The cluster that a failover version belongs to: the one whose initial version, or new initial version, it is modulo
 * the increment. Undefined for a version of no cluster, and for a negative one, which means none.
 */
export function clusterOfVersion(
  version: number,
  { failoverVersionIncrement, clusters }: VersionRules,
): ClusterOptions | undefined {
  if (version < 0) return undefined;
  const initial = version % failoverVersionIncrement;
  return clusters.find((cluster) => initialVersions(cluster).includes(initial));
}

/** More failovers than this between two polls is another numbering, not failovers. */
const mostFailovers = 100;

/**
 * The least number of failovers that lead from one failover version to another. A failover to a cluster takes the next
 * version that belongs to it, so that the version rises by less than the increment each time: back to the same cluster
 * takes two. With two clusters the number is exact. 1 for versions that failovers of this group do not produce.
 */
export function failoversBetween(
  from: number,
  to: number,
  { failoverVersionIncrement, clusters }: VersionRules,
): number {
  const initials = new Set(clusters.flatMap(initialVersions));
  const isOfGroup = (version: number) => version >= 0 && initials.has(version % failoverVersionIncrement);
  if (to <= from) return 0;
  if (!isOfGroup(from) || !isOfGroup(to) || to - from > mostFailovers * failoverVersionIncrement) return 1;
  let failovers = 0;
  for (let version = from; version < to; failovers++) {
    // One failover reaches at most the last version of the group before the increment is full.
    const most = Math.min(to, version + failoverVersionIncrement - 1);
    const next = Math.max(...[...initials].map((initial) => lastVersionUpTo(most, initial)));
    if (next <= version) return 1;
    version = next;
  }
  return failovers;

  function lastVersionUpTo(most: number, initial: number): number {
    return (
      most -
      ((((most - initial) % failoverVersionIncrement) + failoverVersionIncrement) % failoverVersionIncrement)
    );
  }
}
