import type { Metric, Unit } from './catalog.ts';
import type { Kind } from './model.ts';

/** The help text, then the metric's own tags. The name says the rest: by Prometheus' rules, a counter ends in `_total`. */
type MetricRow = readonly [help: string, ...ownTags: string[]];
interface NamedMetric<N extends string> extends Metric {
  name: N;
}

const unitEndings: readonly (readonly [RegExp, Unit])[] = [
  [/_timestamp_seconds$/, 'timestamp'],
  [/_seconds$/, 'seconds'],
  [/_bytes(?:_total)?$/, 'bytes'],
];
const unitOf = (name: string): Unit => unitEndings.find(([ending]) => ending.test(name))?.[1] ?? 'none';

/** The metrics of one group: the group's tags, then each metric's own. */
function group<const N extends string>(
  group: string,
  tags: readonly string[],
  rows: Readonly<Record<N, MetricRow>>,
): readonly NamedMetric<N>[] {
  return (Object.entries(rows) as [N, MetricRow][]).map(([name, [help, ...ownTags]]) => {
    const kind = name.endsWith('_total') ? 'counter' : 'gauge';
    return { name, kind, unit: unitOf(name), tags: [...tags, ...ownTags], group, help };
  });
}

const logs = group('logs', ['svc_service'], {
  svc_log_entries_total: ['Log entries by level and logger.', 'level', 'logger'],
  svc_log_persistence_errors_total: ['Log entries that report a persistence error.', 'operation'],
  svc_log_bytes_total: ['Bytes of complete log lines, newlines included.'],
  svc_log_lines_dropped_total: ['Log lines that could not be read as entries.', 'reason'],
  svc_log_skipped_bytes_total: ['Log bytes that were skipped, or were gone before they were read.', 'reason'],
  svc_log_lag_bytes: ['Log bytes written but not yet counted.'],
  svc_log_newest_entry_timestamp_seconds: ['Timestamp of the newest log entry.'],
});

const roleMetrics = group('roles', ['svc_service'], {
  svc_role_up: ['Whether the health check passed: 1 or 0.'],
  svc_role_health_check_duration_seconds: ['Duration of the last health check.'],
  svc_role_health_failures_total: ['Health checks that failed.', 'reason'],
  svc_role_health_transitions_total: ['Changes of health, by new state.', 'to'],
  svc_role_restarts_total: ['Restarts seen in health checks, scrapes or logs, each counted once.'],
  svc_role_scrape_up: ['Whether the last scrape of the role succeeded: 1 or 0.'],
});

const probes = group('probes', ['probe'], {
  svc_probe_last_run_timestamp_seconds: ['When the probe last had a result.'],
  svc_probe_failures_total: ['Runs of the probe that failed.', 'reason'],
  svc_probe_skipped_total: ['Runs of the probe that were skipped.', 'reason'],
  svc_probe_tls_not_after_timestamp_seconds: ['When the first certificate of the chain expires.'],
});

const stores = group('stores', ['store', 'kind', 'database'], {
  svc_store_up: ['Whether the store answered: 1 or 0.'],
  svc_store_probe_duration_seconds: ['Duration of the last probe of the store.'],
  svc_store_failures_total: ['Probes of the store that failed.', 'reason'],
  svc_store_schema_version_info: ['Always 1; the label is the schema version found.', 'version'],
  svc_store_schema_compatible: ['Whether the schema has the expected version: 1 or 0.'],
  svc_store_connections: ['Open connections of the store.', 'state'],
  svc_store_connections_max: ['Connections that the store allows.'],
  svc_store_read_only: ['Whether the store refuses writes: 1 or 0.'],
  svc_store_check_ok: ['Whether a check of the store passed: 1 or 0.', 'check'],
  svc_store_wal_oldest_unarchived_timestamp_seconds: [
    'When the oldest log segment not yet archived was closed.',
  ],
  svc_store_wal_archive_failures_total: ['Attempts to archive a log segment that failed.'],
});

const clusters = [
  ...group('clusters', ['remote_cluster'], {
    svc_cluster_up: ['Whether the frontend of the remote cluster answered: 1 or 0.'],
    svc_cluster_probe_duration_seconds: ['Duration of the last probe of the remote cluster.'],
  }),
  ...group('clusters', [], {
    svc_clusters: ['Enabled clusters of the cluster group.'],
    svc_cluster_group_info: [
      'Always 1; the label is the primary cluster, which names the group.',
      'primary_cluster',
    ],
  }),
];

const domains = group('domains', ['domain'], {
  svc_domain_active_cluster: ['Always 1; the label is the active cluster.', 'active_cluster'],
  svc_domain_failovers_total: ['Changes of the active cluster.'],
  svc_domain_last_failover_timestamp_seconds: ['When the active cluster last changed.'],
  svc_domain_failover_version: ['Failover version of the domain.'],
  svc_domain_clusters: ['Clusters that the domain spans.'],
  svc_domain_global: ['Whether the domain is replicated across clusters: 1 or 0.'],
  svc_domain_retention_seconds: ['Retention of closed workflows.'],
  svc_domain_archival_enabled: ['Whether the domain archives: 1 or 0.', 'archive'],
  svc_domain_failover_ready: [
    'Whether another cluster answers, agrees and has little lag: 1 or 0; absent while that is not known.',
  ],
});

const replication = group('replication', ['source_cluster', 'target_cluster'], {
  svc_replication_lag_seconds: ['Age of the oldest change not yet replicated; absent when unknown.'],
  svc_replication_task_failures_total: ['Replication tasks that failed.'],
  svc_replication_last_applied_timestamp_seconds: ['When a replication task was last applied.'],
});

const backups = group('backups', ['backup', 'store', 'database', 'backup_type'], {
  svc_backup_configured: ['Always 1 for each backup of the configuration.'],
  svc_backup_last_success_timestamp_seconds: ['End of the last backup that succeeded.'],
  svc_backup_last_failure_timestamp_seconds: ['End of the last backup that failed.'],
  svc_backup_recovery_point_timestamp_seconds: ['Newest moment that can be restored.'],
  svc_backup_runs_total: ['Backup runs by result.', 'result'],
  svc_backup_failures_total: ['Backup runs that failed.'],
  svc_backup_last_size_bytes: ['Size of the last backup that succeeded.'],
  svc_backup_last_duration_seconds: ['Duration of the last backup that succeeded.'],
  svc_backup_integrity_ok: ['Whether the last backup passed its integrity test: 1 or 0.', 'level'],
  svc_backup_offsite_last_success_timestamp_seconds: ['When a backup last reached off-site storage.'],
  svc_backup_retention_compliant: ['Whether backups are kept for the configured time and no longer: 1 or 0.'],
});

const recovery = group('recovery', ['store', 'database'], {
  svc_recovery_ready: ['Whether the evidence shows that the recovery objectives are met: 1 or 0.'],
  svc_rpo_objective_seconds: ['Recovery point objective.', 'backup_type'],
  svc_rto_objective_seconds: ['Recovery time objective.', 'backup_type'],
  svc_restore_drill_last_success_timestamp_seconds: ['When a restore drill last succeeded.', 'procedure'],
  svc_restore_drill_last_duration_seconds: ['Duration of the last restore drill.', 'procedure'],
  svc_recovery_proven: ['Whether a rehearsal restored the newest backup within the objectives: 1 or 0.'],
  svc_recovery_rehearsal_last_success_timestamp_seconds: ['When a rehearsal last restored a backup.'],
  svc_recovery_rehearsal_duration_seconds: ['Duration of each phase of the last rehearsal.', 'phase'],
});

const archives = group('archives', ['archive', 'scheme'], {
  svc_archival_up: ['Whether the archive answered: 1 or 0.'],
  svc_archival_newest_object_timestamp_seconds: ['When the newest archived object was written.'],
  svc_archival_unarchived_workflows: [
    'Closed workflows whose retention has elapsed while the newest object in the archive is older.',
  ],
  svc_archival_due_workflows: ['Closed workflows whose retention elapses within the next 24 hours.'],
  svc_archival_next_deletion_timestamp_seconds: ['When the retention of the next closed workflows elapses.'],
});

const verdict = group('verdict', [], {
  svc_incident: [
    'Always 1 for a problem that no other problem explains, as long as it lasts or may still last; the labels are its kind and its subject.',
    'cause',
    'subject',
  ],
  svc_telemetry_truth_ratio: [
    'Share of the persistence errors in the log of a role that its own metrics show; absent while it logs none, or until its page was read for longer than the window of five minutes.',
    'svc_service',
  ],
  svc_maintenance: [
    'Whether planned work is under way, by an announcement or by a window of the configuration: 1 or 0.',
  ],
});

const agent = group('agent', [], {
  svc_agent_build_info: [
    'Always 1; the labels are the versions of the agent and of Node.',
    'version',
    'node',
  ],
  svc_agent_config_last_reload_successful: ['Whether the last reload succeeded: 1 or 0.'],
  svc_agent_config_last_reload_success_timestamp_seconds: ['When a configuration was last loaded.'],
  svc_agent_event_loop_lag_seconds: ['Delay of the event loop.'],
  svc_agent_series: ['Series by family: the 20 largest, all others as other.', 'family'],
  svc_agent_series_refused_total: ['Refused series.', 'family', 'reason'],
  svc_agent_dropped_total: ['Drops of every kind, by component and reason.', 'component', 'reason'],
  svc_agent_state_degraded: ['Whether the state cannot be saved: 1 or 0.'],
  svc_agent_state_last_commit_timestamp_seconds: ['When the state was last saved.'],
  svc_agent_state_commit_failures_total: ['Attempts to save the state that failed.'],
  svc_agent_queue_bytes: ['Bytes waiting in the disk queue.'],
  svc_agent_queue_oldest_timestamp_seconds: ['When the oldest waiting batch was queued.'],
  svc_agent_report_last_success_timestamp_seconds: ['When a report was last delivered.'],
  svc_agent_report_failures_total: ['Reports that failed.', 'reason'],
  svc_agent_statsd_kernel_drops_total: ['Datagrams that the kernel dropped because its buffer was full.'],
  svc_agent_log_files_passed_over: [
    'Files that match a log pattern but are not read.',
    'svc_service',
    'reason',
  ],
});

/**
 * Every metric that the agent itself produces, in the order of docs/reference/metrics.md. The families `svc_agent_process_*` and
 * `svc_agent_nodejs_*` come from prom-client, with its help texts, and are not listed.
 */
export const agentMetrics = [
  ...logs,
  ...roleMetrics,
  ...probes,
  ...stores,
  ...clusters,
  ...domains,
  ...replication,
  ...backups,
  ...recovery,
  ...archives,
  ...verdict,
  ...agent,
] as const;
export type AgentMetricName = (typeof agentMetrics)[number]['name'];

const byName = new Map<string, Metric>(agentMetrics.map((metric) => [metric.name, metric]));

/** The agent's metric with this name; a name outside the table does not compile. */
export function agentMetric(name: AgentMetricName): Metric {
  return byName.get(name) as Metric;
}

const parts = ['_bucket', '_sum', '_count'];
const isDistribution = (kind: Kind) => kind === 'histogram' || kind === 'summary';

/** Names that a received family must not have, with the group of the metric that they would replace. */
const reserved = new Map<string, string>(
  agentMetrics.flatMap(({ name, group }: Metric) => [
    [name, group] as const,
    // OpenMetrics names a counter's family without `_total`.
    ...(name.endsWith('_total') ? [[name.slice(0, -'_total'.length), group] as const] : []),
  ]),
);

/**
 * Whether a sanitized family name is one of the agent's own, or would replace one by its suffixes. Sources refuse received series
 * with such a name. `own` is the group of metrics that the source itself makes, if any.
 */
export function isAgentName(family: string, kind: Kind, own?: string): boolean {
  const isTaken = (name: string) => reserved.has(name) && reserved.get(name) !== own;
  if (family.startsWith('svc_agent_') || isTaken(family)) return true;
  return isDistribution(kind) && parts.some((part) => isTaken(family + part));
}
