import { group } from './group.ts';

export const clusters = [
  ...group('clusters', ['remote_cluster'], {
    svc_cluster_up: ['gauge', 'none', 'Whether the frontend of the remote cluster answered: 1 or 0.'],
    svc_cluster_probe_duration_seconds: [
      'gauge',
      'seconds',
      'Duration of the last look at the remote cluster.',
    ],
  }),
  ...group('clusters', [], { svc_clusters: ['gauge', 'none', 'Enabled clusters of the cluster group.'] }),
];

export const domains = group('domains', ['domain'], {
  svc_domain_active_cluster: [
    'gauge',
    'none',
    'Always 1; the label is the active cluster.',
    ['active_cluster'],
  ],
  svc_domain_failovers_total: ['counter', 'none', 'Changes of the active cluster.'],
  svc_domain_last_failover_timestamp_seconds: ['gauge', 'timestamp', 'When the active cluster last changed.'],
  svc_domain_failover_version: ['gauge', 'none', 'Failover version of the domain.'],
  svc_domain_clusters: ['gauge', 'none', 'Clusters the domain spans.'],
  svc_domain_global: ['gauge', 'none', 'Whether the domain is replicated across clusters: 1 or 0.'],
  svc_domain_retention_seconds: ['gauge', 'seconds', 'Retention of closed workflows.'],
  svc_domain_archival_enabled: ['gauge', 'none', 'Whether the domain archives: 1 or 0.', ['archive']],
});

export const replication = group('replication', ['source_cluster', 'target_cluster'], {
  svc_replication_lag_seconds: [
    'gauge',
    'seconds',
    'Age of the oldest change not yet replicated; absent when unknown.',
  ],
  svc_replication_task_failures_total: ['counter', 'none', 'Replication tasks that failed.'],
  svc_replication_last_applied_timestamp_seconds: [
    'gauge',
    'timestamp',
    'When a replication task was last applied.',
  ],
});
