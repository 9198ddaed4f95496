import type { Series } from './case.ts';

/** The value that a recorded series must have for the samples below, computed by hand. */
interface Expected {
  record: string;
  labels: string;
  value: number;
}

const here = ['a', 'b'].map((instance) => `cluster="dc1", instance="${instance}"`);
const role = 'svc_service="history"';
const operation = `${role}, operation="X"`;
const list = 'domain="orders", tasklist="pay"';
const backup = 'backup="nightly", store="main", database="persistence", backup_type="full"';
const pair = 'source_cluster="dc1", target_cluster="dc2"';
const latencies = (metric: string, labels: string): Series => ({
  [`${metric}_bucket{${labels}, le="1"}`]: '0+60x20',
  [`${metric}_bucket{${labels}, le="+Inf"}`]: '0+60x20',
});

const callees = ['frontend_client', 'history_client', 'matching_client'];
const kinds = ['persistence', ...callees];
const outcomes = ['started', 'completed', 'failed', 'timeout', 'canceled', 'continued_as_new'];
const tasks = ['decision', 'activity'].flatMap((task) =>
  ['schedule_to_start', 'execution'].map((span) => `svc_${task}_task_${span}_latency`),
);
const each = <T>(items: readonly T[], series: (item: T) => Series): Series =>
  Object.assign({}, ...items.map(series));

/** Two instances of one cluster, each with one event a second, a tenth of them bad. */
const recordedSeries: Series = each(here, (at) => ({
  ...each(kinds, (kind) => ({
    [`svc_${kind}_requests{${at}, ${operation}}`]: '0+60x20',
    [`svc_${kind}_errors{${at}, ${operation}}`]: '0+6x20',
    ...latencies(`svc_${kind}_latency`, `${at}, ${operation}`),
  })),
  ...each(outcomes, (name) => ({
    [`svc_workflow_${name}{${at}, ${role}, domain="orders", workflow_type="Pay"}`]: '0+60x20',
  })),
  ...each(tasks, (metric) => latencies(metric, `${at}, ${role}, ${list}`)),
  [`svc_matching_tasks_added{${at}, ${list}}`]: '0+60x20',
  [`svc_matching_tasks_dispatched{${at}, ${list}}`]: '0+60x20',
  [`svc_matching_tasklist_backlog{${at}, ${list}}`]: '0+60x20',
  [`svc_log_entries_total{${at}, ${role}, level="info", logger="shard"}`]: '0+60x20',
  [`svc_replication_lag_seconds{${at}, ${pair}}`]: '7x20',
  [`svc_backup_last_success_timestamp_seconds{${at}, ${backup}}`]: '300x20',
  [`svc_memory_gc_pause_ms{${at}, ${role}}`]: '0+6000x20',
}));

const byOperation = `cluster="dc1", ${operation}`;
const byRole = `cluster="dc1", ${role}`;
const byList = `cluster="dc1", ${list}`;
const listed = (metric: string, operationName: string, value: number): Expected => ({
  record: `cluster_domain_tasklist:${metric}:${operationName}`,
  labels: byList,
  value,
});

/** The recorded series after twelve minutes, 720 s. */
const recorded: readonly Expected[] = [
  ...kinds.flatMap((kind) => [
    { record: `cluster_service_operation:svc_${kind}_requests:rate5m`, labels: byOperation, value: 2 },
    { record: `cluster_service_operation:svc_${kind}_errors:rate5m`, labels: byOperation, value: 0.2 },
    { record: `cluster_service:svc_${kind}_errors:ratio_rate5m`, labels: byRole, value: 0.1 },
  ]),
  { record: 'cluster_service_operation:svc_persistence_latency:p99_5m', labels: byOperation, value: 0.99 },
  ...callees.map((kind) => ({
    record: `cluster_service_operation:svc_${kind}_latency:p95_5m`,
    labels: byOperation,
    value: 0.95,
  })),
  { record: 'cluster:svc_frontend_client_latency:p95_5m', labels: 'cluster="dc1"', value: 0.95 },
  ...outcomes.map((name) => ({
    record: `cluster_domain:svc_workflow_${name}:rate5m`,
    labels: 'cluster="dc1", domain="orders"',
    value: 2,
  })),
  listed('svc_matching_tasks_added', 'rate5m', 2),
  listed('svc_matching_tasks_dispatched', 'rate5m', 2),
  ...tasks.map((metric) => listed(metric, 'p95_5m', 0.95)),
  listed('svc_matching_tasklist_backlog', 'sum', 1440),
  listed('svc_matching_tasklist_backlog', 'deriv10m', 2),
  {
    record: 'cluster_service_level:svc_log_entries:rate5m',
    labels: `${byRole}, level="info"`,
    value: 2,
  },
  {
    record: 'cluster_source_target:svc_replication_lag_seconds:max',
    labels: `cluster="dc1", ${pair}`,
    value: 7,
  },
  {
    record: 'cluster_backup_store_database_type:svc_backup_age_seconds:min',
    labels: `cluster="dc1", ${backup}`,
    value: 420,
  },
  ...['a', 'b'].map((instance) => ({
    record: 'cluster_service_instance:svc_memory_gc_pause_seconds:rate5m',
    labels: `${byRole}, instance="${instance}"`,
    value: 0.1,
  })),
];

/** The file of `promtool test rules` that compares every recorded series with its value. */
export function recordingTests(ruleFile: string): object {
  const names = [...new Set(recorded.map(({ record }) => record))];
  return {
    rule_files: [ruleFile],
    evaluation_interval: '1m',
    tests: [
      {
        name: 'recorded series',
        interval: '1m',
        input_series: Object.entries(recordedSeries).map(([series, values]) => ({ series, values })),
        promql_expr_test: names.map((name) => ({
          expr: name,
          eval_time: '12m',
          exp_samples: recorded
            .filter(({ record }) => record === name)
            .map(({ record, labels, value }) => ({ labels: `${record}{${labels}}`, value })),
        })),
      },
    ],
  };
}
