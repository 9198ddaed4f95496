import type { ClustersPlanOptions } from '../clusters/plan.ts';
import type { DomainsOptions } from '../domains/block.ts';
import type { ProbeRow } from '../probe.ts';

interface ReplicationPlanOptions extends ClustersPlanOptions {
  domains?: DomainsOptions;
}

const replicationIntervalMs = 15_000;

/** One row for replication between clusters, if the group has two or more enabled clusters. */
export function planReplication({
  clusterGroupMetadata: group,
  domains,
}: ReplicationPlanOptions): ProbeRow[] {
  if (!group || group.clusters.filter(({ enabled }) => enabled).length < 2) return [];
  const replication = domains?.replication;
  const intervalMs = replication?.intervalMs ?? replicationIntervalMs;
  return [
    {
      name: `replication/${group.currentClusterName}`,
      kind: 'replication',
      target: 'scraped metrics',
      service: '',
      schedule: { intervalMs, timeoutMs: intervalMs },
      shows: {},
      reasons: ['failed', 'too_slow'],
      key: JSON.stringify([group, replication]),
      async open(deps) {
        const { createReplicationProbe } = await import('./replication-check.ts');
        return createReplicationProbe({ group, replication }, deps);
      },
    },
  ];
}
