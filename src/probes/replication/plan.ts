import type { ProbesOptions } from '../options.ts';
import type { ProbeRow } from '../probe.ts';

const usualIntervalMs = 15_000;

/** One row for what flows between the clusters, if the group has more than one that is enabled. */
export function planReplication({ clusterGroupMetadata: group, domains }: ProbesOptions): ProbeRow[] {
  if (!group || group.clusters.filter(({ enabled }) => enabled).length < 2) return [];
  const replication = domains?.replication;
  const intervalMs = replication?.intervalMs ?? usualIntervalMs;
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
        const { createReplicationProbe } = await import('./probe.ts');
        return createReplicationProbe({ group, replication }, deps);
      },
    },
  ];
}
