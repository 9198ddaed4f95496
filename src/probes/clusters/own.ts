import type { Probe, Sample } from '../probe.ts';
import type { ClusterGroupOptions } from './options.ts';

/** The group as the own cluster's configuration has it; needs no network. */
export function createGroupProbe({
  clusters,
  currentClusterName,
  primaryClusterName,
}: ClusterGroupOptions): Probe {
  const enabled = clusters.filter((cluster) => cluster.enabled).map(({ name }) => name);
  const gauges: readonly Sample[] = [
    { name: 'svc_clusters', labels: {}, value: enabled.length },
    { name: 'svc_cluster_group_info', labels: { primary_cluster: primaryClusterName }, value: 1 },
  ];
  return {
    async check() {
      return {
        msg: `the own cluster; enabled in its group: ${enabled.join(', ') || 'none'}`,
        gauges,
        details: { current: currentClusterName, primary: primaryClusterName, enabled },
      };
    },
  };
}
