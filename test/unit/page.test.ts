import { expect, test } from 'vitest';
import { statusPage } from '../../src/agent/admin/page.ts';
import type { StatusReport } from '../../src/agent/admin/status.ts';
import { statusReportOf } from '../status-report.ts';

const nasty = `<script>alert("x&y'")</script>`;

const report: StatusReport = statusReportOf({
  version: '1.2.3',
  node: '20.20.2',
  instance: nasty,
  roles: ['frontend'],
  health: { ok: true, msg: 'OK' },
  ready: true,
  startedAt: '2026-11-20T00:00:00.000Z',
  config: { files: [nasty], lastReloadSuccessful: false, lastReloadError: nasty },
  state: { directory: nasty, sequence: 7, commitFailures: 0, degraded: 'write' },
  listeners: [{ listener: 'admin', address: '127.0.0.1:9465', tls: false }],
  logs: [{ path: nasty, services: [nasty], offset: 10, lagBytes: 2, state: 'following' }],
  scrapes: [],
  statsd: [],
  probes: [
    {
      name: 'health/frontend',
      kind: 'health',
      target: nasty,
      state: 'down',
      since: '2026-01-01T00:00:00.000Z',
      flapping: true,
      intervalMs: 15_000,
      timeoutMs: 5000,
      nextRun: '2026-01-01T00:01:00.000Z',
      isRunning: false,
      consecutiveFailures: 4,
      skipped: { overlap: 0, backlog: 0 },
      last: {
        at: '2026-01-01T00:00:45.000Z',
        ok: false,
        reason: 'not_ok',
        msg: nasty,
        durationMs: 12,
      },
    },
  ],
  series: { total: 1, families: [{ family: nasty, series: 1 }] },
  refused: [{ family: nasty, reason: 'limit_metric', count: 3 }],
  conflicts: [nasty],
  drops: [{ component: 'logs', reason: 'too_long', count: 4 }],
});

test('nothing that comes from outside becomes markup', () => {
  const page = statusPage(report);
  expect(page).not.toContain('<script');
  expect(page.split('&lt;script&gt;alert(&quot;x&amp;y&#39;&quot;)').length - 1).toBeGreaterThanOrEqual(11);
});

test('what is wrong stands out', () => {
  const page = statusPage(report);
  expect(page).toMatch(/class="bad">cannot be written \(write\)/);
  expect(page).toMatch(/class="bad">not as on disk/);
  expect(page).toMatch(/class="good">OK/);
});
