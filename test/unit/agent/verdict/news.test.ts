import { expect, test } from 'vitest';
import type { StatusFacts } from '../../../../src/agent/report.ts';
import { createNews } from '../../../../src/agent/verdict/news.ts';
import { probeStatusOf, statusFactsOf } from '../../../status-report.ts';

const scrape: StatusFacts['scrapes'][number] = {
  service: 'worker',
  url: 'http://127.0.0.1:8003/metrics',
  up: true,
  lastTakenMs: 1,
  lastFailure: undefined,
  failures: {},
  page: undefined,
  firstInvalid: undefined,
  vocabulary: undefined,
};
const reporter = { block: 'metrics', kind: 'pushmetrics', target: '127.0.0.1:8125', failures: 0 } as const;
const log = { path: '/var/log/worker.log', services: ['worker'], offset: 9, lagBytes: 0, state: 'following' };
const calm: Partial<StatusFacts> = {
  probes: [probeStatusOf('health/worker'), probeStatusOf('store/main')],
  scrapes: [scrape],
  reporters: [reporter],
  logs: [log],
  restarts: { worker: 1 },
};

/** Whether facts are news after these. */
function isNewsAfter(before: Partial<StatusFacts>, now: Partial<StatusFacts>): boolean {
  const isNews = createNews();
  isNews(statusFactsOf({ ...calm, ...before }));
  return isNews(statusFactsOf({ ...calm, ...now }));
}

const failed = { reason: 'refused', msg: 'connection refused' } as const;
const atMs = 2;

test.each<[string, Partial<StatusFacts>]>([
  ['a check that fails', { probes: [probeStatusOf('health/worker', failed), calm.probes![1]!] }],
  [
    'a role that is down after a check that failed before',
    { probes: [probeStatusOf('health/worker', {}, { state: 'down' }), calm.probes![1]!] },
  ],
  ['a check that flaps', { probes: [calm.probes![0]!, probeStatusOf('store/main', {}, { flapping: true })] }],
  [
    'a check of a store that answers',
    { probes: [calm.probes![0]!, probeStatusOf('store/main', { failedChecks: ['data_checksums'] })] },
  ],
  ['a page that cannot be read', { scrapes: [{ ...scrape, up: false }] }],
  ['a page that fails', { scrapes: [{ ...scrape, lastFailure: { reason: 'refused', what: '', atMs } }] }],
  ['a report that fails', { reporters: [{ ...reporter, failingSince: '2026-01-01T00:00:00.000Z' }] }],
  ['a log that cannot be read', { logs: [{ ...log, state: 'permission denied' }] }],
  [
    'a log that is gone',
    {
      logFaults: [{ kind: 'gone', path: log.path, services: ['worker'], since: '2026-01-01T00:00:00.000Z' }],
    },
  ],
  ['a restart', { restarts: { worker: 2 } }],
  [
    'a state that cannot be written',
    { state: { directory: '/var/lib/svc-agent', degraded: 'rename', sequence: 1, commitFailures: 1 } },
  ],
  [
    'a configuration that is refused',
    { config: { files: [], lastReloadSuccessful: false, lastReloadError: 'agent.yaml:1:1' } },
  ],
])('%s is news, and so is its end', (_, facts) => {
  expect(isNewsAfter({}, facts)).toBe(true);
  expect(isNewsAfter(facts, {})).toBe(true);
});

test('numbers and times that change all the time are no news', () => {
  const later: Partial<StatusFacts> = {
    now: '2026-01-01T00:01:05.000Z',
    process: { rssBytes: 90 << 20, heapBytes: 21 << 20, cpuSeconds: 1.6 },
    probes: calm.probes!.map(({ last, ...probe }) => ({
      ...probe,
      nextRun: '2026-01-01T00:01:29.000Z',
      last: { ...last!, at: '2026-01-01T00:01:14.000Z', durationMs: 6, details: { connections: 3 } },
    })),
    scrapes: [{ ...scrape, lastTakenMs: 15_001 }],
    logs: [{ ...log, offset: 10, lagBytes: 1 }],
    series: { total: 7, limit: 10_000, families: [] },
    drops: [{ component: 'scrape', reason: 'failed', count: 1 }],
  };
  expect(isNewsAfter({}, later)).toBe(false);
});

test('the first facts are news', () => {
  expect(createNews()(statusFactsOf())).toBe(true);
});
