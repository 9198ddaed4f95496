import type { Recording, RuleGroup } from '../alert.ts';
import { site } from '../names.ts';
import { slowByDesign } from './requests.ts';

type MetricName = `svc_${string}`;

/** Rates by labels that dashboards show and that are affordable over long ranges. */
const rates = (level: string, labels: string, metrics: readonly MetricName[]): Recording[] =>
  metrics.map((metric) => ({
    record: `${level}:${metric}:rate5m`,
    expr: ({ m }) => `sum by (${labels}) (rate(${m(metric)}[5m]))`,
  }));

const quantile = (level: string, labels: string, metric: MetricName, percent: number): Recording => ({
  record: `${level}:${metric}:p${percent}_5m`,
  expr: ({ m }) =>
    `histogram_quantile(${percent / 100}, sum by (${labels}, le) (rate(${m(metric)}_bucket[5m])))`,
});

const ratio = (level: string, labels: string, errors: MetricName, requests: MetricName): Recording => ({
  record: `${level}:${errors}:ratio_rate5m`,
  expr: ({ m }) =>
    `sum by (${labels}) (rate(${m(errors)}[5m])) / sum by (${labels}) (rate(${m(requests)}[5m]))`,
});

const kinds = ['persistence', 'frontend_client', 'history_client', 'matching_client'] as const;
const clients = kinds.slice(1);
const byRole = `${site}, svc_service`;
const byOperation = `${byRole}, operation`;
const outcomes = ['started', 'completed', 'failed', 'timeout', 'canceled', 'continued_as_new'] as const;
const taskLatencies = (['decision', 'activity'] as const).flatMap((task) =>
  (['schedule_to_start', 'execution'] as const).map((span): MetricName => `svc_${task}_task_${span}_latency`),
);
const list = `${site}, domain, tasklist`;
const backup = `${site}, backup, store, database, backup_type`;
const pair = `${site}, source_cluster, target_cluster`;

/** Recorded series are stored for 90 to 365 days, raw series for 15 to 30 (spec, Limits). */
export const recordings: readonly RuleGroup[] = [
  {
    name: 'svc-recording-calls',
    records: [
      ...rates(
        'cluster_service_operation',
        byOperation,
        kinds.flatMap((kind): MetricName[] => [`svc_${kind}_requests`, `svc_${kind}_errors`]),
      ),
      ...kinds.map((kind) => ratio('cluster_service', byRole, `svc_${kind}_errors`, `svc_${kind}_requests`)),
      quantile('cluster_service_operation', byOperation, 'svc_persistence_latency', 99),
      ...clients.map((kind) => quantile('cluster_service_operation', byOperation, `svc_${kind}_latency`, 95)),
      {
        record: 'cluster:svc_frontend_client_latency:p95_5m',
        expr: ({ m }) =>
          `histogram_quantile(0.95, sum by (${site}, le) (rate(${m('svc_frontend_client_latency')}_bucket{${slowByDesign}}[5m])))`,
      },
    ],
  },
  {
    name: 'svc-recording-work',
    records: [
      ...rates(
        'cluster_domain',
        `${site}, domain`,
        outcomes.map((name): MetricName => `svc_workflow_${name}`),
      ),
      ...rates('cluster_domain_tasklist', list, [
        'svc_matching_tasks_added',
        'svc_matching_tasks_dispatched',
        'svc_matching_poll_success',
      ]),
      ...taskLatencies.map((metric) => quantile('cluster_domain_tasklist', list, metric, 95)),
      {
        record: 'cluster_domain_tasklist:svc_matching_tasklist_backlog:sum',
        expr: ({ m }) => `sum by (${list}) (${m('svc_matching_tasklist_backlog')})`,
      },
      {
        record: 'cluster_domain_tasklist:svc_matching_tasklist_backlog:deriv10m',
        expr: ({ m }) => `deriv(sum by (${list}) (${m('svc_matching_tasklist_backlog')})[10m:1m])`,
      },
      {
        record: 'cluster_service_level:svc_log_entries:rate5m',
        expr: ({ m }) => `sum by (${site}, svc_service, level) (rate(${m('svc_log_entries_total')}[5m]))`,
      },
    ],
  },
  {
    name: 'svc-recording-recovery',
    records: [
      {
        record: 'cluster_source_target:svc_replication_lag_seconds:max',
        expr: ({ m }) => `max by (${pair}) (${m('svc_replication_lag_seconds')})`,
      },
      {
        record: 'cluster_backup_store_database_type:svc_backup_age_seconds:min',
        expr: ({ m }) =>
          `time() - max by (${backup}) (last_over_time(${m('svc_backup_last_success_timestamp_seconds')}[3d]))`,
      },
      {
        record: 'cluster_service_instance:svc_memory_gc_pause_seconds:rate5m',
        expr: ({ m }) =>
          `max by (${site}, svc_service, instance) (rate(${m('svc_memory_gc_pause_ms')}{quantile=""}[5m]) / 1000` +
          ` or rate(${m('svc_memory_gc_pause_ms')}_sum[5m]))`,
      },
    ],
  },
];
