import { describe, expect, test } from 'vitest';
import {
  packs,
  type RenderedAlert,
  type RenderedRule,
  renderPack,
  shippedOptions,
} from '../../../src/monitoring/packs.ts';
import { lintNames, lintRules } from '../../../tools/lint/rules.ts';

const good: RenderedAlert = {
  alert: 'SvcThing',
  expr: 'max by (environment, cluster, store) (svc_store_up) == 0',
  for: '1m',
  labels: { severity: 'warning', pack: 'recommended', svc_service: 'history' },
  annotations: {
    summary: 'Store {{ $labels.store }} is down.',
    description: '{{ $labels.store }} has {{ $value }}.',
  },
};
/** An alert with this expression, in which `SITE` stands for the labels of the environment and the cluster. */
const over = (expr: string): RenderedAlert => ({
  ...good,
  expr: expr.replaceAll('SITE', 'environment, cluster'),
  annotations: { summary: '{{ $labels.svc_service }} is down.', description: '{{ $value }}.' },
});
const saying = (annotations: Record<string, string>): RenderedAlert => ({
  ...good,
  annotations: { ...good.annotations, ...annotations },
});
const judged = (...rules: RenderedRule[]) =>
  lintRules('recommended', { groups: [{ name: 'g', rules }] }).map(({ lint }) => lint);

const bad: readonly (readonly [lint: string, rule: RenderedRule])[] = [
  ['counter', over('max by (SITE) (svc_persistence_errors) > 10')],
  ['counter', over('max by (SITE) (up) == 0 and max by (SITE) (svc_persistence_errors) > 5')],
  ['gauge', over('max by (SITE) (rate(svc_memory_heap[5m])) > 10')],
  ['counter', over('max by (SITE) (deriv(svc_persistence_errors[5m])) > 10')],
  ['known-metric', over('max by (SITE) (svc_no_such_metric) > 1')],
  ['known-label', over('max by (SITE) (svc_store_up{domain="orders"}) == 0')],
  ['grouping', over('max by (SITE) (up) == 0 unless on () max(up)')],
  ['grouping', over('max by (SITE, tasklist) (svc_store_up) == 0')],
  ['quantile', over('histogram_quantile(0.9, sum by (SITE) (rate(svc_persistence_latency_bucket[5m]))) > 1')],
  ['quantile', over('histogram_quantile(0.9, rate(svc_persistence_latency_count[5m])) > 1')],
  ['range', over('sum by (SITE) (rate(svc_persistence_errors[1m])) > 1')],
  ['replicated', over('sum by (SITE) (svc_replication_lag_seconds) > 300')],
  ['replicated', over('svc_replication_lag_seconds > 300')],
  [
    'division',
    over('sum by (SITE) (rate(svc_persistence_errors[5m]) / rate(svc_persistence_requests[5m])) > 1'),
  ],
  ['bucket-bound', over('sum by (SITE) (rate(svc_persistence_latency_bucket{le="1"}[5m])) > 1')],
  ['fragile', over('topk(3, svc_memory_heap) > 1')],
  ['matching', over('max by (SITE, job) (up) == 0 and max by (SITE) (up) == 0')],
  ['summary', saying({ summary: 'A store is down.' })],
  ['description', saying({ description: 'It is down.' })],
  ['template-label', saying({ description: '{{ $labels.database }} {{ $value }}' })],
  ['absent', { ...over('absent(up{job="frontend"})'), for: undefined }],
  ['cluster', over('max by (environment, job) (up) == 0')],
  ['environment', over('max by (cluster) (up) == 0')],
  ['record-name', { record: 'svc_errors_5m', expr: 'max by (environment, cluster) (up)' }],
  ['record-name', { record: 'cluster_job:up:max', expr: 'max by (environment, cluster) (up)' }],
];

describe('a lint', () => {
  test('has nothing against a good rule', () => expect(judged(good)).toEqual([]));
  test.each(bad)('%s catches its bad example, alone', (name, rule) => expect(judged(rule)).toEqual([name]));
  test('none is without a bad example', () => {
    const shown = new Set(bad.map(([name]) => name));
    expect(lintNames.filter((name) => !shown.has(name))).toEqual([]);
  });
});

describe('the shipped rules', () => {
  const recorded = packs.flatMap(({ groups }) =>
    groups.flatMap(({ records = [] }) => records.map((r) => r.record)),
  );
  /** The faults of the spec's literal conditions; each must still be a fault, or it is no exception any more. */
  const literal = [{ lint: 'gauge', rule: 'SvcTaskListBacklogGrowth' }];

  test.each(packs.map((pack) => [pack.name, pack] as const))('%s', (name, pack) => {
    const findings = lintRules(name, renderPack(pack, shippedOptions), recorded);
    const brief = findings.map(({ lint, rule }) => ({ lint, rule }));
    expect(brief, JSON.stringify(findings, null, 1)).toEqual(name === 'spec' ? literal : []);
  });

  test('every alert has its own name in a pack, and 13 of them are in both', () => {
    const names = (index: number) =>
      new Set(packs[index]!.groups.flatMap(({ alerts = [] }) => alerts.map((a) => a.name)));
    expect(names(0).size).toBe(13);
    expect([...names(0)].filter((name) => !names(1).has(name))).toEqual([]);
  });
});
