import type { Recording, RuleGroup } from './alert.ts';
import { slowByDesign } from './alerts/requests.ts';

/** Rates by the labels that dashboards show and long ranges can afford. */
const rates = (level: string, labels: string, metrics: readonly string[]): Recording[] =>
  metrics.map((metric) => ({
    record: `${level}:${metric}:rate5m`,
    expr: `sum by (${labels}) (rate(${metric}[5m]))`,
  }));

const quantile = (level: string, labels: string, metric: string, percent: number): Recording => ({
  record: `${level}:${metric}:p${percent}_5m`,
  expr: `histogram_quantile(${percent / 100}, sum by (${labels}, le) (rate(${metric}_bucket[5m])))`,
});

const ratio = (level: string, labels: string, errors: string, requests: string): Recording => ({
  record: `${level}:${errors}:ratio_rate5m`,
  expr: `sum by (${labels}) (rate(${errors}[5m])) / sum by (${labels}) (rate(${requests}[5m]))`,
});

const callers = ['frontend', 'history', 'matching'];
const byRole = 'cluster, svc_service';
const byOperation = `${byRole}, operation`;
const outcomes = ['started', 'completed', 'failed', 'timeout', 'canceled', 'continued_as_new'];
const taskLatencies = ['decision', 'activity'].flatMap((task) =>
  ['schedule_to_start', 'execution'].map((span) => `svc_${task}_task_${span}_latency`),
);
const list = 'cluster, domain, tasklist';
const backup = 'cluster, backup, store, database, backup_type';
const pair = 'cluster, source_cluster, target_cluster';

/** Recorded series (raw ones are kept 15 to 30 days, these 90 to 365: spec, Limits). */
export const recordings: readonly RuleGroup[] = [
  {
    name: 'svc-recording-calls',
    records: [
      ...rates('cluster_service_operation', byOperation, [
        'svc_persistence_requests',
        'svc_persistence_errors',
        ...callers.flatMap((role) => [`svc_${role}_client_requests`, `svc_${role}_client_errors`]),
      ]),
      ratio('cluster_service', byRole, 'svc_persistence_errors', 'svc_persistence_requests'),
      ...callers.map((role) =>
        ratio('cluster_service', byRole, `svc_${role}_client_errors`, `svc_${role}_client_requests`),
      ),
      quantile('cluster_service_operation', byOperation, 'svc_persistence_latency', 99),
      ...callers.map((role) =>
        quantile('cluster_service_operation', byOperation, `svc_${role}_client_latency`, 95),
      ),
      {
        record: 'cluster:svc_frontend_client_latency:p95_5m',
        expr: `histogram_quantile(0.95, sum by (cluster, le) (rate(svc_frontend_client_latency_bucket{${slowByDesign}}[5m])))`,
      },
    ],
  },
  {
    name: 'svc-recording-work',
    records: [
      ...rates(
        'cluster_domain',
        'cluster, domain',
        outcomes.map((name) => `svc_workflow_${name}`),
      ),
      ...rates('cluster_domain_tasklist', list, [
        'svc_matching_tasks_added',
        'svc_matching_tasks_dispatched',
      ]),
      ...taskLatencies.map((metric) => quantile('cluster_domain_tasklist', list, metric, 95)),
      {
        record: 'cluster_domain_tasklist:svc_matching_tasklist_backlog:sum',
        expr: `sum by (${list}) (svc_matching_tasklist_backlog)`,
      },
      {
        record: 'cluster_domain_tasklist:svc_matching_tasklist_backlog:deriv10m',
        expr: `deriv(sum by (${list}) (svc_matching_tasklist_backlog)[10m:1m])`,
      },
      {
        record: 'cluster_service_level:svc_log_entries:rate5m',
        expr: 'sum by (cluster, svc_service, level) (rate(svc_log_entries_total[5m]))',
      },
    ],
  },
  {
    name: 'svc-recording-recovery',
    records: [
      {
        record: 'cluster_source_target:svc_replication_lag_seconds:max',
        expr: `max by (${pair}) (svc_replication_lag_seconds)`,
      },
      {
        record: 'cluster_backup_store_database_type:svc_backup_age_seconds:min',
        expr: `time() - max by (${backup}) (last_over_time(svc_backup_last_success_timestamp_seconds[3d]))`,
      },
      {
        record: 'cluster_service_instance:svc_memory_gc_pause_seconds:rate5m',
        expr:
          'max by (cluster, svc_service, instance)' +
          ' (rate(svc_memory_gc_pause_ms{quantile=""}[5m]) / 1000 or rate(svc_memory_gc_pause_ms_sum[5m]))',
      },
    ],
  },
];
