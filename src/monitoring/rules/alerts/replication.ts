import type { RuleGroup } from '../alert.ts';

const pair = 'cluster, source_cluster, target_cluster';
const active = (by: string) => `max by (${by}) (svc_domain_active_cluster)`;

/** Clusters, the domains that span them and what flows between them. */
export const replication: RuleGroup = {
  name: 'svc-replication',
  alerts: [
    {
      name: 'SvcReplicationLag',
      severity: 'critical',
      expr: `max by (${pair}) (svc_replication_lag_seconds) > $threshold`,
      threshold: 300,
      for: '5m',
      summary: 'A standby cluster is far behind.',
      description:
        '{{ $labels.target_cluster }} is {{ $value | humanizeDuration }} behind {{ $labels.source_cluster }}, above $threshold s.',
      dashboard: 'dr',
    },
    {
      name: 'SvcReplicationTaskFailures',
      severity: 'warning',
      expr: `max by (${pair}) (rate(svc_replication_task_failures_total[5m])) > $threshold`,
      threshold: 10,
      for: '5m',
      summary: 'Replication tasks fail.',
      description:
        'From {{ $labels.source_cluster }} to {{ $labels.target_cluster }}: {{ $value | humanize }} failed tasks/s, above $threshold/s.',
      dashboard: 'dr',
    },
    {
      name: 'SvcReplicationLagUnknown',
      severity: 'warning',
      expr: 'max by (cluster) (svc_clusters) > $threshold unless max by (cluster) (svc_replication_lag_seconds)',
      threshold: 1,
      for: '30m',
      summary: 'Nobody knows how far the standby clusters are behind.',
      description: 'The cluster group has {{ $value }} enabled clusters, and no replication lag is known.',
      dashboard: 'dr',
    },
    {
      name: 'SvcClusterUnreachable',
      severity: 'critical',
      expr: 'max by (cluster, remote_cluster) (svc_cluster_up) == 0',
      for: '5m',
      summary: 'The frontend of another cluster does not answer.',
      description: 'Cluster {{ $labels.remote_cluster }} cannot be reached: svc_cluster_up is {{ $value }}.',
      dashboard: 'dr',
    },
    {
      name: 'SvcDomainDisagreement',
      severity: 'critical',
      expr:
        `${active('cluster, domain, active_cluster')} * on (domain) group_left ()` +
        ` count by (domain) (${active('domain, active_cluster')}) > $threshold`,
      threshold: 1,
      for: '5m',
      summary: 'Clusters disagree on where a domain is active.',
      description:
        'Here {{ $labels.domain }} is active in {{ $labels.active_cluster }}; the clusters name {{ $value }} different ones.',
      dashboard: 'dr',
    },
    {
      name: 'SvcDomainTooFewClusters',
      severity: 'info',
      expr:
        'max by (cluster, domain) (svc_domain_clusters) < $threshold' +
        ' and max by (cluster, domain) (svc_domain_global) == 1',
      threshold: 3,
      for: '1h',
      summary: 'A global domain spans too few clusters.',
      description:
        'The global domain {{ $labels.domain }} spans {{ $value }} clusters; $threshold or more are suggested.',
      dashboard: 'dr',
    },
  ],
};
