import { describe, expect, test } from 'vitest';
import { adapted } from '../../../../src/monitoring/dashboards/adapt.ts';
import { domain, instance, role } from '../../../../src/monitoring/dashboards/choices.ts';
import { peak, rate, top } from '../../../../src/monitoring/dashboards/expr.ts';
import { fill, parseable, withSpans } from '../../../../src/monitoring/dashboards/fill.ts';
import { laidOut } from '../../../../src/monitoring/dashboards/layout.ts';
import { legendOf } from '../../../../src/monitoring/dashboards/legend.ts';
import { limitOf } from '../../../../src/monitoring/dashboards/limits.ts';
import { timeseries } from '../../../../src/monitoring/dashboards/panels.ts';
import { clusterChoice, scoped } from '../../../../src/monitoring/dashboards/scope.ts';
import { parse } from '../../../../src/monitoring/promql/parse.ts';
import { selectorsOf } from '../../../../src/monitoring/promql/walk.ts';
import { good, panel } from './good.ts';

const choices = [clusterChoice, role, instance, domain('svc_workflow_started')];
const plain = { prefix: '', jobs: {}, thresholds: {}, runbookUrl: 'runbooks', matchers: {} };

describe('scoped puts the choices where their labels are', () => {
  const [c, r, i, d] = [
    'cluster=~"$cluster"',
    'svc_service=~"$role"',
    'instance=~"$instance"',
    'domain=~"$domain"',
  ];
  test.each([
    ['of all roles', 'svc_memory_heap', `svc_memory_heap{${c}, ${r}, ${i}}`],
    ['of one role: not its name', 'svc_workflow_started', `svc_workflow_started{${c}, ${i}, ${d}}`],
    ['reported by several agents: not by whom', 'svc_domain_global', `svc_domain_global{${c}, ${d}}`],
    ['beside matchers', 'up{job="x"}', `up{${c}, ${i}, job="x"}`],
    [
      'a role that is fixed',
      'svc_role_up{svc_service="worker"}',
      `svc_role_up{${c}, ${i}, svc_service="worker"}`,
    ],
    ['recorded', 'slo:svc_x:ratio_rate5m', `slo:svc_x:ratio_rate5m{${c}}`],
    [
      'every selector, spans kept',
      'rate(svc_clusters[$__rate_interval]) / rate(ALERTS[$__range])',
      `rate(svc_clusters{${c}}[$__rate_interval]) / rate(ALERTS{${c}}[$__range])`,
    ],
  ])('%s', (_, expr, wanted) => expect(scoped(expr, choices)).toBe(wanted));
});

describe('fill', () => {
  const filling = { rateInterval: '2m', range: '6h', interval: '30s', values: { cluster: 'dc1|dc2' } };
  test('gives what Grafana would send', () => {
    const text =
      // biome-ignore lint/suspicious/noTemplateCurlyInString: Grafana's notation of a variable
      'rate(a{cluster=~"$cluster", x=~"${role:regex}"}[$__rate_interval]) + b[$__range] + c[$__interval]';
    expect(fill(text, filling)).toBe('rate(a{cluster=~"dc1|dc2", x=~".*"}[2m]) + b[6h] + c[30s]');
  });
  test('what is made parseable keeps its length and can be undone', () => {
    const text = 'rate(a[$__rate_interval]) + b[$__range] + c[$__interval]';
    expect(parseable(text)).toMatch(/^rate\(a\[0+1m\]\) \+ b\[0+1m\] \+ c\[0+1m\]$/);
    expect([parseable(text).length, withSpans(parseable(text))]).toEqual([text.length, text]);
  });
});

describe('limitOf reads the alert’s own condition', () => {
  test.each([
    [{ alert: 'SvcHeapMemory' }, '>', 8e9, 'warning'],
    [{ alert: 'SvcRequestErrors' }, '>', 0.05, 'warning'],
    [{ alert: 'SvcCertificateExpiring' }, '<', 1_209_600, 'warning'],
    [{ alert: 'SvcFrontendAvailabilityBurn', window: '6h' }, '>', 0.006, 'critical'],
  ])('%j', (ref, op, value, severity) => expect(limitOf(ref)).toEqual({ op, value, severity }));
  test('with another threshold', () => expect(limitOf({ alert: 'SvcHeapMemory' }, 4e9).value).toBe(4e9));
  test('of no alert', () => expect(() => limitOf({ alert: 'SvcNone' })).toThrow('there is no alert SvcNone'));
});

describe('top chooses by the whole range', () => {
  test.each([
    [
      'rates',
      top(5, rate('a', 'x')),
      'sum by (cluster, x) (rate(a[$__rate_interval])) and topk(5, sum by (cluster, x) (rate(a[$__range] @ end())))',
    ],
    [
      'what is given',
      top(5, 'b', peak('b')),
      'b and topk(5, sum by (cluster) (max_over_time(b[$__range] @ end())))',
    ],
  ])('%s', (_, expr, wanted) => {
    expect(expr).toBe(wanted);
    expect(
      selectorsOf(parse(parseable(expr))).map(({ start, end }) => parseable(expr).slice(start, end)),
    ).toHaveLength(2);
  });
  test.each(['a @ 5', 'a @ end', 'a @ now()'])('%s is no PromQL here', (text) =>
    expect(() => parse(text)).toThrow(),
  );
});

describe('legendOf', () => {
  test.each([
    ['sum by (cluster, store) (svc_store_up)', undefined, '{{cluster}} {{store}}'],
    ['topk(5, sum by (cluster) (svc_store_up))', 'p95', 'p95 {{cluster}}'],
  ])('%s', (expr, name, wanted) => expect(legendOf(expr, name)).toBe(wanted));
  test('of labels that nobody knows', () => expect(() => legendOf('svc_store_up')).toThrow('aggregate'));
});

test('panels stand side by side, and the next line begins below the highest', () => {
  const of = (width: number, height: number) => timeseries('t', 'd', 'count', 'x', { width, height });
  const { places, below } = laidOut([of(12, 4), of(8, 9), of(8, 5), of(24, 2)], 1);
  expect(places).toEqual([
    { x: 0, y: 1, w: 12, h: 4 },
    { x: 12, y: 1, w: 8, h: 9 },
    { x: 0, y: 10, w: 8, h: 5 },
    { x: 0, y: 15, w: 24, h: 2 },
  ]);
  expect(below).toBe(17);
});

describe('adapted', () => {
  test('without options changes nothing but fills in what Grafana shows of a variable', () => {
    const once = adapted(good, plain);
    expect(adapted(once, plain)).toEqual(once);
    expect(once.panels).toEqual([{ ...panel, links: [] }]);
    expect(once.annotations).toEqual(good.annotations);
  });
  test('prefix, matchers and jobs reach every query', () => {
    const { panels, templating } = adapted(good, { ...plain, prefix: 'p', matchers: { env: 'a"b' } });
    expect(panels![0]!.targets![0]!.expr).toBe(
      'sum by (cluster, svc_service) (rate(p_svc_persistence_errors{env="a\\"b", cluster=~"$cluster", svc_service=~"$role", instance=~"$instance"}[$__rate_interval]))',
    );
    expect(templating!.list.map(({ query }) => query)).toEqual([
      'prometheus',
      'label_values(p_svc_agent_build_info{env="a\\"b"}, cluster)',
      'label_values(p_svc_num_goroutines{env="a\\"b", cluster=~"$cluster"}, svc_service)',
      'label_values(p_svc_agent_build_info{env="a\\"b", cluster=~"$cluster"}, instance)',
    ]);
  });
});
