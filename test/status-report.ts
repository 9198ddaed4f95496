import { createHistory } from '../src/agent/admin/history.ts';
import { createLive } from '../src/agent/admin/live.ts';
import type { StatusSources } from '../src/agent/admin/routes.ts';
import type { ProbeStatus, StatusFacts, StatusReport } from '../src/agent/report.ts';
import { createJudge } from '../src/agent/verdict/verdict.ts';
import type { Clock } from '../src/core/ports.ts';
import { manualClock } from './clock.ts';

/** The facts of an agent that watches nothing; `facts` override them. */
export function statusFactsOf(facts: Partial<StatusFacts> = {}): StatusFacts {
  return {
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
    process: { rssBytes: 80 << 20, heapBytes: 20 << 20, cpuSeconds: 1.5 },
    logs: [],
    logFaults: [],
    entries: { services: [], loggers: [], loggerCount: 0, lastErrors: [], lastWords: [] },
    scrapes: [],
    statsd: [],
    probes: [],
    restarts: {},
    domains: [],
    replication: [],
    exceeded: [],
    telemetryTruth: {},
    counted: {},
    versions: {},
    backups: [],
    certificates: [],
    reporters: [],
    series: { total: 0, limit: 10_000, families: [] },
    refused: [],
    refusals: [],
    conflicts: [],
    drops: [],
    ...facts,
  };
}

type Entry = StatusFacts['entries']['lastWords'][number]['entries'][number];

/** What an agent has read of logs in which `history` wrote these entries last; each is fatal unless it says otherwise. */
export const lastWordsOf = (
  ...entries: readonly (Pick<Entry, 'at' | 'msg'> & Partial<Entry>)[]
): StatusFacts['entries'] => ({
  ...{ services: [], loggers: [], loggerCount: 0, lastErrors: [] },
  lastWords: [
    {
      service: 'history',
      entries: entries.map((entry) => ({ service: 'history', level: 'fatal', logger: '', ...entry })),
    },
  ],
});

/** The `/api/status` of an agent that watches nothing; `facts` override its facts. */
export function statusReportOf(facts: Partial<StatusFacts> = {}): StatusReport {
  const all = statusFactsOf(facts);
  return { ...createJudge().judge(all, Date.parse(all.now)), ...all };
}

/** A probe whose last run ended a second before the `now` of `statusReportOf`; with `reason` the run failed. */
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

/** The sources of the routes of the status page, for reports that a test creates; the history is not started. */
export function statusSourcesOf(
  report: () => StatusReport,
  clock: Clock = manualClock(),
  drops: string[] = [],
): StatusSources {
  const commit = async () => {};
  const history = createHistory({}, { report, commit, clock });
  const count = (_component: string, reason: string) => void drops.push(reason);
  const live = createLive({ report, history, commit, clock, drops: { count } });
  return { report, history, live };
}
