import type { RuleGroup } from '../alert.ts';

/** Two agents that report the same cluster-wide series are one: nothing else is taken away. */
const once = (series: string) => `max without (instance, pod) (${series})`;

/** The 13 conditions of the spec's table to the letter (spec, Limits), in its order and without `for`. */
export const specAlerts: readonly RuleGroup[] = [
  {
    name: 'svc-spec',
    alerts: [
      {
        name: 'SvcServiceDown',
        severity: 'critical',
        expr: 'up{job="frontend"} == 0',
        summary: 'The frontend is down.',
        description: 'Frontend {{ $labels.instance }} does not answer its scrape: up is {{ $value }}.',
        dashboard: 'overview',
      },
      {
        name: 'SvcHighRestartRate',
        severity: 'warning',
        expr: 'rate(svc_restarts[5m]) > $threshold',
        threshold: 0.1,
        summary: 'A process restarts again and again.',
        description:
          '{{ $labels.svc_service }} on {{ $labels.instance }} restarts {{ $value | printf "%.2f" }} times/s, above $threshold/s.',
        dashboard: 'process',
      },
      {
        name: 'SvcPersistenceErrorRate',
        severity: 'critical',
        expr: 'rate(svc_persistence_errors[5m]) > $threshold',
        threshold: 10,
        summary: 'Calls to the store fail.',
        description:
          '{{ $labels.operation }} of {{ $labels.svc_service }} on {{ $labels.instance }}: {{ $value | humanize }} errors/s, above $threshold/s.',
        dashboard: 'persistence',
      },
      {
        name: 'SvcPersistenceLatency',
        severity: 'warning',
        expr: 'histogram_quantile(0.99, rate(svc_persistence_latency_bucket[5m])) > $threshold',
        threshold: 1,
        summary: 'Calls to the store are slow.',
        description:
          '{{ $labels.operation }} of {{ $labels.svc_service }} on {{ $labels.instance }}: the 99th percentile is {{ $value | humanizeDuration }}, above $threshold s.',
        dashboard: 'persistence',
      },
      {
        name: 'SvcTaskListBacklogGrowth',
        severity: 'warning',
        expr: 'rate(svc_matching_tasklist_backlog[5m]) > $threshold',
        threshold: 100,
        summary: 'The backlog of a task list grows.',
        description:
          'Task list {{ $labels.tasklist }} of {{ $labels.domain }} grows by {{ $value | humanize }} tasks/s, above $threshold/s.',
        dashboard: 'matching',
      },
      {
        name: 'SvcWorkflowTimeouts',
        severity: 'warning',
        expr: 'rate(svc_workflow_timeout[5m]) > $threshold',
        threshold: 5,
        summary: 'Workflows time out.',
        description:
          '{{ $labels.workflow_type }} of {{ $labels.domain }}: {{ $value | humanize }} timeouts/s, above $threshold/s.',
        dashboard: 'history',
      },
      {
        name: 'SvcHeapMemory',
        severity: 'warning',
        expr: 'svc_memory_heap > $threshold',
        threshold: 8e9,
        summary: 'A process has a large heap.',
        description:
          '{{ $labels.svc_service }} on {{ $labels.instance }} has a heap of {{ $value | humanize }}B, above $threshold bytes.',
        dashboard: 'process',
      },
      {
        name: 'SvcGCPause',
        severity: 'warning',
        expr: 'rate(svc_memory_gc_pause_ms[5m]) > $threshold',
        threshold: 100,
        summary: 'A process spends its time in garbage collection.',
        description:
          '{{ $labels.svc_service }} on {{ $labels.instance }} stands still for {{ $value | humanize }} ms/s, above $threshold ms/s.',
        dashboard: 'process',
      },
      {
        name: 'SvcFrontendLatency',
        severity: 'warning',
        expr: 'histogram_quantile(0.95, rate(svc_frontend_client_latency_bucket[5m])) > $threshold',
        threshold: 0.5,
        summary: 'Calls to the frontend are slow.',
        description:
          '{{ $labels.operation }} from {{ $labels.instance }}: the 95th percentile is {{ $value | humanizeDuration }}, above $threshold s.',
        dashboard: 'frontend',
      },
      {
        name: 'SvcBackupAge',
        severity: 'critical',
        expr: `time() - ${once('svc_backup_last_success_timestamp_seconds')} > $threshold`,
        threshold: 90_000,
        summary: 'The last good backup is too old.',
        description:
          'Backup {{ $labels.backup }} ({{ $labels.backup_type }}) of {{ $labels.store }}/{{ $labels.database }} last succeeded {{ $value | humanizeDuration }} ago, above $threshold s.',
        dashboard: 'backups',
      },
      {
        name: 'SvcBackupFailures',
        severity: 'warning',
        expr: `${once('rate(svc_backup_failures_total[1h])')} > $threshold`,
        threshold: 0,
        summary: 'A backup failed.',
        description:
          'Backup {{ $labels.backup }} ({{ $labels.backup_type }}) of {{ $labels.store }}/{{ $labels.database }}: {{ $value | printf "%.4f" }} failures/s over 1h.',
        dashboard: 'backups',
      },
      {
        name: 'SvcReplicationLag',
        severity: 'critical',
        expr: `${once('svc_replication_lag_seconds')} > $threshold`,
        threshold: 300,
        summary: 'A standby cluster is far behind.',
        description:
          '{{ $labels.target_cluster }} is {{ $value | humanizeDuration }} behind {{ $labels.source_cluster }}, above $threshold s.',
        dashboard: 'dr',
      },
      {
        name: 'SvcReplicationTaskFailures',
        severity: 'warning',
        expr: `${once('rate(svc_replication_task_failures_total[5m])')} > $threshold`,
        threshold: 10,
        summary: 'Replication tasks fail.',
        description:
          'From {{ $labels.source_cluster }} to {{ $labels.target_cluster }}: {{ $value | humanize }} failed tasks/s, above $threshold/s.',
        dashboard: 'dr',
      },
    ],
  },
];
