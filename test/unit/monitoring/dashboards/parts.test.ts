import { describe, expect, test } from 'vitest';
import { timeseries } from '../../../../src/monitoring/dashboards/dashboard.ts';
import { legendOf, limitOf } from '../../../../src/monitoring/dashboards/panels.ts';
import {
  domain,
  instance,
  queriesFor,
  role,
  siteChoices,
  top,
} from '../../../../src/monitoring/dashboards/queries.ts';
import { laidOut } from '../../../../src/monitoring/dashboards/render.ts';
import { fill } from '../../../../tools/grafana.ts';

const plain = { prefix: '', jobs: {}, matchers: {} };
const choices = [...siteChoices, role, instance, domain('svc_workflow_started')];
const queries = queriesFor(plain, choices);

const [c, r, i, d] = [
  'environment=~"$environment", cluster=~"$cluster"',
  'svc_service=~"$role"',
  'instance=~"$instance"',
  'domain=~"$domain"',
];

describe('a series gets the matchers of the variables whose labels it has', () => {
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
    ['alerts', 'ALERTS{alertstate="firing"}', `ALERTS{${c}, alertstate="firing"}`],
  ])('%s', (_, series, wanted) => expect(queries.s(series)).toBe(wanted));

  test('prefix, matchers and jobs of the installation', () => {
    const own = queriesFor({ prefix: 'p', jobs: { frontend: 'fe' }, matchers: { env: 'a"b' } }, [
      ...siteChoices,
    ]);
    expect(own.s('svc_store_up')).toBe(`p_svc_store_up{env="a\\"b", ${c}}`);
    expect(own.s(`up{${own.job('frontend')}}`)).toBe(`up{env="a\\"b", ${c}, job="fe"}`);
    expect(own.s('ALERTS')).toBe(`ALERTS{${c}}`);
    expect(own.s('slo:svc_x:ratio_rate5m')).toBe(`slo:svc_x:ratio_rate5m{${c}}`);
  });

  test('what is no series', () => expect(() => queries.s('rate(x[5m])')).toThrow('neither name nor'));
});

test('fill gives what Grafana would send', () => {
  const filling = { rateInterval: '2m', range: '6h', interval: '30s', values: { cluster: 'dc1|dc2' } };
  const text =
    // biome-ignore lint/suspicious/noTemplateCurlyInString: Grafana's notation of a variable
    'rate(a{cluster=~"$cluster", x=~"${role:regex}"}[$__rate_interval]) + b[$__range] + c[$__interval]';
  expect(fill(text, filling)).toBe('rate(a{cluster=~"dc1|dc2", x=~".*"}[2m]) + b[6h] + c[30s]');
});

describe('limitOf is what the alert compares with', () => {
  test.each([
    [{ alert: 'SvcHeapMemory' }, 8e9],
    [{ alert: 'SvcRequestErrors' }, 0.05],
    [{ alert: 'SvcCertificateExpiring' }, 1_209_600],
    [{ alert: 'SvcFrontendAvailabilityBurn', window: '6h' }, 0.006],
  ])('%j', (ref, value) => expect(limitOf(ref)).toBe(value));
  test('with another threshold', () =>
    expect(limitOf({ alert: 'SvcHeapMemory' }, { SvcHeapMemory: 4e9 })).toBe(4e9));
  test('of no alert', () => expect(() => limitOf({ alert: 'SvcNone' })).toThrow('there is no alert SvcNone'));
  test('of a state', () => expect(() => limitOf({ alert: 'SvcStoreDown' })).toThrow('has no threshold'));
});

describe('top chooses by the whole range', () => {
  const bare = queriesFor(plain, []);
  test.each([
    [
      'rates',
      top(5, bare.rate('a', 'x')),
      'sum by (cluster, x) (rate(a[$__rate_interval])) and topk(5, sum by (cluster, x) (rate(a[$__range] @ end())))',
    ],
    [
      'what is given',
      top(5, 'b', bare.peak('b')),
      'b and topk(5, sum by (cluster) (max_over_time(b[$__range] @ end())))',
    ],
  ])('%s', (_, expr, wanted) => expect(expr).toBe(wanted));
});

describe('legendOf', () => {
  test.each([
    ['sum by (cluster, store) (svc_store_up)', undefined, '{{cluster}} {{store}}'],
    ['histogram_quantile(0.9, sum by (cluster, le) (x))', 'p95', 'p95 {{cluster}}'],
  ])('%s', (expr, name, wanted) => expect(legendOf({ expr, name })).toBe(wanted));
  test('of labels that nobody knows', () =>
    expect(() => legendOf({ expr: 'svc_store_up' })).toThrow('aggregate'));
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
