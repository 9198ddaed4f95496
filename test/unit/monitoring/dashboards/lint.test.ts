import { collectDefaultMetrics, Registry } from 'prom-client';
import { describe, expect, test } from 'vitest';
import type { DashboardJson } from '../../../../tools/grafana.ts';
import { dashboardLintNames, lintDashboards, uncataloged } from '../../../../tools/lint/dashboards.ts';
import { datasource, good, panel, target, variables, withPanel, withTarget, withVariable } from './good.ts';

const judged = (...dashboards: DashboardJson[]) => [
  ...new Set(lintDashboards(dashboards, ['cluster:recorded:rate5m']).map(({ lint }) => lint)),
];

const chosen = 'environment=~"$environment", cluster=~"$cluster"';
const of = `${chosen}, svc_service=~"$role", instance=~"$instance"`;
/** A query with one series per cluster, so that nothing else can be wrong with it. */
const query = (expr: string, unit = 'short') => withTarget({ expr, legendFormat: '{{cluster}}' }, unit);
const loki = (expr: string) =>
  withPanel({ targets: [{ ...target, expr, datasource: { ...datasource, type: 'loki' } }] });
const without = (name: string): DashboardJson => ({
  ...good,
  templating: { list: variables.filter((variable) => variable.name !== name) },
});

const bad: readonly (readonly [lint: string, dashboard: DashboardJson])[] = [
  ['template-job', without('role')],
  ['template-job', withVariable('role', { multi: false })],
  ['template-instance', without('instance')],
  ['template-instance', withVariable('instance', { allValue: '.+' })],
  ['template-label-promql', withVariable('role', { query: 'label_values(svc_num_goroutines, tasklist)' })],
  ['template-label-promql', withVariable('role', { query: 'metrics(svc_.*)' })],
  ['target-logql', loki('{job="x" |= "y"')],
  ['target-logql', loki('rate({} [$__auto])')],
  ['target-logql-auto', loki('rate({job="x"}[5m])')],
  ['target-rate-interval', query(`sum by (cluster) (rate(svc_persistence_errors{${of}}[5m]))`, 'cps')],
  ['target-rate-interval', query(`sum by (cluster) (rate(svc_persistence_errors{${of}}[$__range]))`, 'cps')],
  ['target-rate-interval', query(`max by (cluster) (last_over_time(svc_store_up{${chosen}}[1d]))`)],
  ['target-job', query(`max by (cluster) (svc_memory_heap{${chosen}, instance=~"$instance"})`, 'decbytes')],
  [
    'target-instance',
    query(`max by (cluster) (svc_memory_heap{${chosen}, svc_service=~"$role"})`, 'decbytes'),
  ],
  ['target-counter-agg', query(`sum by (cluster) (svc_persistence_errors{${of}})`)],
  ['grid', withPanel({ gridPos: { x: 20, y: 0, w: 8, h: 8 } })],
  ['grid', { ...good, panels: [panel, { ...panel, id: 2, gridPos: { x: 7, y: 7, w: 2, h: 2 } }] }],
  ['target-cluster', query('max by (cluster) (svc_store_up{environment=~"$environment"})')],
  ['target-environment', query('max by (cluster) (svc_store_up{cluster=~"$cluster"})')],
  ['target-cluster', query('max by (cluster) (svc_store_up{environment=~"$environment", cluster="dc1"})')],
  ['target-gauge', query(`max by (cluster) (increase(svc_memory_heap{${of}}[$__range]))`, 'decbytes')],
  ['target-known-metric', query(`max by (cluster) (svc_no_such_metric{${chosen}})`)],
  ['target-known-label', query(`max by (cluster) (svc_store_up{${chosen}, domain="orders"})`)],
  [
    'target-grouping',
    query(`max by (cluster) (svc_store_up{${chosen}}) * on () group_left () max(svc_clusters{${chosen}})`),
  ],
  [
    'target-quantile',
    query(
      `histogram_quantile(0.9, sum by (cluster) (rate(svc_persistence_latency_bucket{${of}}[$__rate_interval])))`,
      's',
    ),
  ],
  ['target-replicated', query(`sum by (cluster) (svc_replication_lag_seconds{${chosen}})`, 's')],
  [
    'target-bucket-bound',
    query(`sum by (cluster) (rate(svc_persistence_latency_bucket{${of}, le="1"}[$__rate_interval]))`, 'cps'),
  ],
  [
    'target-matching',
    query(`max by (cluster) (svc_clusters{${chosen}}) * max by (cluster, store) (svc_store_up{${chosen}})`),
  ],
  ['target-legend', withTarget({ legendFormat: '{{cluster}}' })],
  ['target-legend', withTarget({ legendFormat: '{{cluster}} {{svc_service}} {{operation}}' })],
  [
    'target-bounded',
    withTarget(
      {
        expr: `max by (cluster, domain) (svc_domain_global{${chosen}})`,
        legendFormat: '{{cluster}} {{domain}}',
      },
      'short',
    ),
  ],
  ['target-bounded', query(`topk(5, max by (cluster) (svc_clusters{${chosen}}))`)],
  [
    'target-per-cluster',
    withTarget({ expr: `max by (store) (svc_store_up{${chosen}})`, legendFormat: '{{store}}' }, 'short'),
  ],
  ['target-open-labels', query(`svc_memory_heap{${of}}`, 'decbytes')],
  ['target-unit', withPanel({ fieldConfig: { defaults: { unit: 's' }, overrides: [] } })],
  ['target-unit', query(`max by (cluster) (svc_memory_heap{${of}})`, 's')],
  [
    'target-unit',
    query(`max by (cluster) (svc_backup_last_success_timestamp_seconds{${chosen}})`, 'dateTimeFromNow'),
  ],
  [
    'target-unit',
    query(`time() - max by (cluster) (svc_domain_last_failover_timestamp_seconds{${chosen}})`, 'short'),
  ],
];

describe('a lint of dashboards', () => {
  test('has nothing against a good one', () => expect(judged(good)).toEqual([]));

  test.each(bad)('%s catches its bad example, alone', (name, dashboard) =>
    expect(judged(dashboard)).toEqual([name]),
  );

  test('none is without a bad example', () => {
    const shown = new Set(bad.map(([name]) => name));
    expect(dashboardLintNames.filter((name) => !shown.has(name))).toEqual([]);
  });

  test('what it takes as the agent’s runtime is what prom-client gives', async () => {
    const registry = new Registry();
    collectDefaultMetrics({ register: registry, prefix: 'svc_agent_' });
    const text = await registry.metrics();
    const missing = uncataloged.filter(
      (name) => name !== 'ALERTS_FOR_STATE' && !text.includes(`# TYPE ${name} `),
    );
    expect(missing).toEqual([]);
  });

  test.each([
    ['a recorded series', query(`max by (cluster) (cluster:recorded:rate5m{${chosen}})`)],
    [
      'a chosen role',
      query(
        `max by (cluster) (svc_memory_heap{${chosen}, instance=~"$instance", svc_service="worker"})`,
        'decbytes',
      ),
    ],
    [
      'the greatest of the whole range',
      withTarget(
        {
          expr: `max by (cluster, domain) (svc_domain_global{${chosen}}) and topk(9, max by (cluster, domain) (max_over_time(svc_domain_global{${chosen}}[$__range] @ end())))`,
          legendFormat: '{{cluster}} {{domain}}',
        },
        'short',
      ),
    ],
    ['well-formed LogQL', loki('sum by (cluster) (rate({job="x"} |= "}" [$__auto]))')],
  ])('has nothing against %s', (_, dashboard) => expect(judged(dashboard)).toEqual([]));
});
