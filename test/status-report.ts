import type { ProbeStatus, StatusReport } from '../src/agent/admin/status.ts';
import { type Facts, verdictOf } from '../src/agent/verdict.ts';

/** What `/api/status` serves of an agent that watches nothing, with `facts` in place of its own. */
export function statusReportOf(facts: Partial<Facts> = {}): StatusReport {
  const all: Facts = {
    now: '2026-01-01T00:01:00.000Z',
    version: '1.2.3',
    node: '20.20.2',
    instance: 'host-1',
    roles: [],
    health: { ok: true, msg: 'OK' },
    ready: true,
    startedAt: '2026-01-01T00:00:00.000Z',
    config: { files: ['/etc/svc-agent/agent.yaml'], lastReloadSuccessful: true },
    state: { directory: '/var/lib/svc-agent', sequence: 1, commitFailures: 0 },
    listeners: [],
    logs: [],
    scrapes: [],
    statsd: [],
    probes: [],
    replication: [],
    certificates: [],
    reporters: [],
    series: { total: 0, families: [] },
    refused: [],
    conflicts: [],
    drops: [],
    ...facts,
  };
  return { verdict: verdictOf(all, Date.parse(all.now)), ...all };
}

/** A probe whose last run ended a second before `statusReportOf`'s now; `reason` makes it one that failed. */
export function probeStatusOf(
  name: `${ProbeStatus['kind']}/${string}`,
  last: Partial<NonNullable<ProbeStatus['last']>> = {},
  probe: Partial<ProbeStatus> = {},
): ProbeStatus {
  const ok = last.reason === undefined;
  return {
    name,
    kind: name.slice(0, name.indexOf('/')) as ProbeStatus['kind'],
    target: '127.0.0.1:7233',
    state: ok ? 'up' : 'down',
    since: '2026-01-01T00:00:30.000Z',
    flapping: false,
    intervalMs: 15_000,
    timeoutMs: 5_000,
    nextRun: '2026-01-01T00:01:14.000Z',
    isRunning: false,
    consecutiveFailures: ok ? 0 : 3,
    skipped: { overlap: 0, backlog: 0 },
    last: { at: '2026-01-01T00:00:59.000Z', ok, msg: 'ok', durationMs: 5, ...last },
    ...probe,
  };
}
