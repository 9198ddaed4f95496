import { spawnSync } from 'node:child_process';
import { expect, it } from 'vitest';
import { exposition } from '../../../examples/service/exposition.ts';
import { createMetrics } from '../../../examples/service/metrics.ts';
import { createRoleProcess } from '../../../examples/service/process.ts';
import { createRandom } from '../../../examples/service/random.ts';
import { roles } from '../../../src/core/catalog.ts';
import { isInstalled } from '../../installed.ts';

it('writes help, type and samples as the format asks for', () => {
  const metrics = createMetrics('matching');
  metrics.add('svc_matching_tasks_added', { domain: 'a"b\\c\nd', tasklist: 't' }, 2);
  metrics.observe('svc_persistence_latency', { operation: 'x' }, 0.05);
  metrics.observe('svc_persistence_latency', { operation: 'x' }, 20);
  const le = (bound: string, count: number) =>
    `svc_persistence_latency_bucket{svc_service="matching",operation="x",le="${bound}"} ${count}`;
  expect(exposition(metrics.families()).split('\n')).toEqual([
    '# HELP svc_persistence_latency Time from request to answer of persistence calls.',
    '# TYPE svc_persistence_latency histogram',
    ...['0.001', '0.005', '0.01'].map((bound) => le(bound, 0)),
    ...['0.05', '0.1', '0.5', '1', '5', '10'].map((bound) => le(bound, 1)),
    le('+Inf', 2),
    'svc_persistence_latency_sum{svc_service="matching",operation="x"} 20.05',
    'svc_persistence_latency_count{svc_service="matching",operation="x"} 2',
    '# HELP svc_matching_tasks_added Tasks added to a task list.',
    '# TYPE svc_matching_tasks_added counter',
    'svc_matching_tasks_added{svc_service="matching",domain="a\\"b\\\\c\\nd",tasklist="t"} 2',
    '',
  ]);
});

it('refuses a metric that the catalog does not give the role', () => {
  expect(() => createMetrics('worker').add('svc_workflow_started', {})).toThrow(
    'worker has no metric svc_workflow_started',
  );
});

const hasPromtool = isInstalled('promtool');

// promtool's linter demands `_total` and base units, which the specification's names do not have; exit status 3 is only lint, 1 a
// page that does not parse.
it.skipIf(!hasPromtool).each(roles)('promtool reads the page of %s', (role) => {
  const process = createRoleProcess({ role, ratePerSecond: 10, startMs: 0 }, createRandom(3));
  process.advance(60_000, {});
  const { status, stderr } = spawnSync('promtool', ['check', 'metrics'], {
    input: exposition(process.families()),
    encoding: 'utf8',
  });
  const complaints = stderr.split('\n').filter((line) => line !== '');
  expect(complaints.filter((line) => !/"_total" suffix|abbreviated units|use base unit/.test(line))).toEqual(
    [],
  );
  expect(status).toBe(3);
});
