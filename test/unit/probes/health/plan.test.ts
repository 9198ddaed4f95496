import { expect, test } from 'vitest';
import { healthFailureReasons } from '../../../../src/core/reasons.ts';
import { planHealth } from '../../../../src/probes/health/plan.ts';

const health = (url: string) => ({
  url,
  intervalMs: 15_000,
  timeoutMs: 5000,
  failureThreshold: 3,
  successThreshold: 2,
});
const plan = (url: string) =>
  planHealth({ services: [{ name: 'history', selected: true, health: health(url) }] });

test('a row for each selected service with an endpoint', () => {
  const services = [
    { name: 'frontend', selected: true, health: health('http://127.0.0.1:1/health') },
    { name: 'history', selected: true },
    { name: 'matching', selected: false, health: health('http://127.0.0.1:2/health') },
    { name: 'worker', selected: true, health: health('tcp://127.0.0.1:3') },
  ];
  expect(planHealth({ services }).map(({ name }) => name)).toEqual(['health/frontend', 'health/worker']);
});

test('what a row shows and when it runs', () => {
  expect(plan('grpc://127.0.0.1:7834')[0]).toMatchObject({
    name: 'health/history',
    kind: 'health',
    service: 'history',
    target: 'grpc://127.0.0.1:7834',
    schedule: { intervalMs: 15_000, timeoutMs: 5000, failureThreshold: 3, successThreshold: 2 },
    shows: {
      up: { name: 'svc_role_up' },
      duration: { name: 'svc_role_health_check_duration_seconds' },
      failures: { name: 'svc_role_health_failures_total' },
      transitions: { name: 'svc_role_health_transitions_total' },
    },
    reasons: healthFailureReasons,
  });
});

test.each([
  ['http://user:secret@127.0.0.1:1/health', 'http://127.0.0.1:1/health'],
  ['http://[::1]:1/health?token=secret', 'http://[::1]:1/health'],
  ['grpcs://user:secret@host:1/pkg.Service', 'grpcs://host:1/pkg.Service'],
])('the target of %s holds no secret', (url, target) => expect(plan(url)[0]!.target).toBe(target));

test('another option is another key, the same options are the same', () => {
  const key = (url: string) => plan(url)[0]!.key;
  expect(key('tcp://127.0.0.1:1')).toBe(key('tcp://127.0.0.1:1'));
  expect(key('tcp://127.0.0.1:1')).not.toBe(key('tcp://127.0.0.1:2'));
});
