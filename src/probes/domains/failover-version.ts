import type { ClusterGroupOptions, ClusterOptions } from '../clusters/options.ts';

/**
 * The cluster that a failover version belongs to: the one whose initial version it is, modulo the increment.
 * Undefined for a version of no cluster, and for a negative one, which stands for none.
 */
export function clusterOfVersion(
  version: number,
  { failoverVersionIncrement, clusters }: Pick<ClusterGroupOptions, 'failoverVersionIncrement' | 'clusters'>,
): ClusterOptions | undefined {
  if (version < 0) return undefined;
  const initial = version % failoverVersionIncrement;
  return clusters.find(({ initialFailoverVersion }) => initialFailoverVersion === initial);
}
