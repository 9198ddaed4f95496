import { describe, expect, test } from 'vitest';
import type { Exceeded, LogFaultReport, ProbeStatus, StatusFacts } from '../../../../src/agent/report.ts';
import { type KindOfProblem, kindNames, kinds, unjudged } from '../../../../src/agent/verdict/kinds.ts';
import { createJudge } from '../../../../src/agent/verdict/verdict.ts';
import { alertsOf, pack } from '../../../../src/monitoring/packs.ts';
import { probeStatusOf, statusFactsOf } from '../../../status-report.ts';

const beganAt = '2026-01-01T01:00:00.000Z';
const refused = { reason: 'refused', msg: 'connection refused' } as const;
type Facts = Partial<StatusFacts>;

/** A failing probe that is the same in each report. */
const failing =
  (
    name: Parameters<typeof probeStatusOf>[0],
    last: NonNullable<Parameters<typeof probeStatusOf>[1]>,
    more = {},
  ) =>
  (at: string): Facts => ({ probes: [probeStatusOf(name, { ...last, at }, { since: beganAt, ...more })] });

const check = (name: string, severity: string) =>
  ({
    details: { checks: [{ check: name, holds: false, found: 'bad', severity, set: 'good' }], schema: '1' },
  }) as never;

const exceeding = (kind: KindOfProblem, about: Exceeded['about']) => (): Facts => ({
  exceeded: [{ kind, about, value: '9 of them', usual: '1', limit: '5', since: beganAt }],
});

const logFault =
  (kind: LogFaultReport['kind'], more: Partial<LogFaultReport> = {}) =>
  (): Facts => ({ logFaults: [{ kind, path: '/a.log', services: ['history'], since: beganAt, ...more }] });

const domain = (details: object) => failing('domain/orders', { details: details as never });

/** How each kind appears: facts at a time of day, and the text of the problem. */
const appearances: Readonly<Record<KindOfProblem, readonly [(at: string) => Facts, what: string]>> = {
  disk_full: [
    failing('store/main/p', check('free_space', 'data_at_risk')),
    'the disk of store main/p is almost full: free_space: bad',
  ],
  locks: [
    failing('store/main/p', check('lock_waits', 'advice')),
    'store main/p keeps sessions waiting: lock_waits: bad',
  ],
  connections: [
    failing('store/main/p', check('connections', 'advice')),
    'store main/p is short of connections: connections: bad',
  ],
  store_down: [failing('store/main/p', refused), 'store main/p refuses connections: connection refused'],
  read_only: [
    failing('store/main/p', { details: { readOnly: true } } as never),
    'store main/p refuses writes: it is set to read only',
  ],
  schema: [
    failing('store/main/p', check('schema', 'data_at_risk')),
    'database main/p has the wrong schema: schema: bad',
  ],
  data_at_risk: [
    failing('store/main/p', check('durable_settings', 'data_at_risk')),
    'store main/p can lose commits: durable_settings: bad',
  ],
  schema_unread: [
    failing('store/main/p', {
      details: {
        checks: [{ check: 'schema', holds: 'unknown', found: 'permission denied', severity: 'data_at_risk' }],
      },
    } as never),
    'the schema of database main/p is not known: permission denied',
  ],
  persistence_latency: [
    exceeding('persistence_latency', { role: 'history', operation: 'Get' }),
    'store calls of role history are slow: 9 of them',
  ],
  crash_loop: [
    exceeding('crash_loop', { role: 'history' }),
    'role history crashes again and again: 9 of them',
  ],
  heap: [exceeding('heap', { role: 'history' }), 'role history has a large heap: 9 of them'],
  gc_pause: [
    exceeding('gc_pause', { role: 'history' }),
    'role history pauses for garbage collection: 9 of them',
  ],
  role_down: [failing('health/history', refused), 'role history is down: connection refused'],
  fatal: [exceeding('fatal', { role: 'history' }), 'role history logged fatal errors: 9 of them'],
  role_failing: [
    failing('health/history', refused, { state: 'up', consecutiveFailures: 1 }),
    'role history failed a health check: connection refused',
  ],
  scrape_down: [
    () => ({
      scrapes: [
        {
          ...{ service: 'history', url: 'http://h/metrics', up: false, lastTakenMs: Date.parse(beganAt) },
          ...{ lastFailure: { reason: 'refused', what: 'no', atMs: Date.parse(beganAt) }, failures: {} },
          failingSinceMs: Date.parse(beganAt),
          ...{ page: undefined, firstInvalid: undefined, vocabulary: undefined },
        },
      ],
    }),
    'role history cannot be scraped: refused: no',
  ],
  persistence_errors: [
    exceeding('persistence_errors', { role: 'history' }),
    'role history has persistence errors: 9 of them',
  ],
  request_errors: [
    exceeding('request_errors', { role: 'frontend', callee: 'history' }),
    'requests from frontend to history fail: 9 of them',
  ],
  frontend_latency: [exceeding('frontend_latency', {}), 'the frontend answers slowly: 9 of them'],
  shard_movement: [
    exceeding('shard_movement', { role: 'history' }),
    'shards of role history keep moving: 9 of them',
  ],
  task_latency: [
    exceeding('task_latency', { role: 'history', queue: 'timer' }),
    'the task queue timer of history is late: 9 of them',
  ],
  cluster_down: [
    failing('cluster/dc2', { reason: 'unreachable', msg: 'no route' }),
    'cluster dc2 is unreachable: no route',
  ],
  replication_failures: [
    exceeding('replication_failures', { source: 'a', target: 'b' }),
    'replication a to b has failing tasks: 9 of them',
  ],
  replication_lag: [
    () => ({ replication: [{ source: 'a', target: 'b', lagSeconds: 301 }] }),
    'replication a to b lags behind: 301 s behind',
  ],
  replication: [
    failing('replication/dc1', { reason: 'failed', msg: 'no page' }),
    'replication dc1 cannot be read: failed: no page',
  ],
  disagreement: [
    failing('domain/orders', { reason: 'clusters_disagree', msg: 'a, b' }),
    'domain orders differs between clusters: clusters disagree: a, b',
  ],
  domain: [
    failing('domain/orders', { reason: 'command_failed', msg: 'exit 1' }),
    'domain orders cannot be read: command failed: exit 1',
  ],
  failover: [
    domain({ global: true, clusters: ['a', 'b'], failover: { ready: false, why: 'b is down' } }),
    'domain orders cannot fail over: b is down',
  ],
  list_unpolled: [
    exceeding('list_unpolled', { domain: 'd', tasklist: 't' }),
    'task list d/t has tasks but no poller: 9 of them',
  ],
  list_stalled: [
    exceeding('list_stalled', { domain: 'd', tasklist: 't' }),
    'task list d/t is stalled: 9 of them',
  ],
  backlog_growth: [
    exceeding('backlog_growth', { domain: 'd', tasklist: 't' }),
    'the backlog of task list d/t grows fast: 9 of them',
  ],
  workflow_timeouts: [
    exceeding('workflow_timeouts', { domain: 'd' }),
    'workflows of domain d time out: 9 of them',
  ],
  workflow_failures: [
    exceeding('workflow_failures', { domain: 'd' }),
    'workflows of domain d fail: 9 of them',
  ],
  canary: [
    exceeding('canary', { domain: 'canary' }),
    'the canary in domain canary completes no workflow: 9 of them',
  ],
  retention_unarchived: [
    exceeding('retention_unarchived', { archive: 'history', scheme: 's3' }),
    'archive history has received nothing for longer than the retention: 9 of them',
  ],
  refused: [
    exceeding('refused', { family: 'calls', reason: 'limit_total' }),
    'series of family calls are refused: 9 of them',
  ],
  wal_stalled: [
    exceeding('wal_stalled', { store: 'main', database: 'p' }),
    'store main/p does not archive its log: 9 of them',
  ],
  archive_down: [
    failing('archive/history', { reason: 'denied', msg: '403' }),
    'archive history cannot be used: denied: 403',
  ],
  archival_stalled: [
    exceeding('archival_stalled', { archive: 'history', scheme: 's3' }),
    'archive history receives nothing: 9 of them',
  ],
  backup_failed: [
    failing('backup/n', { reason: 'backup_failed', msg: 'exit 1' }),
    'backup n failed: backup failed: exit 1',
  ],
  backup_missing: [
    failing('backup/n', { reason: 'no_backup', msg: 'none' }),
    'backup n has never succeeded: no backup: none',
  ],
  backup_gone: [
    failing('backup/n', { reason: 'directory_gone', msg: '/b does not exist' }),
    'the directory of backup n is gone: directory gone: /b does not exist',
  ],
  backup_unread: [
    failing('backup/n', { reason: 'evidence_unreadable', msg: 'EACCES' }),
    'backup n cannot be read: evidence unreadable: EACCES',
  ],
  backup_late: [
    failing('backup/n', { reason: 'late', msg: 'no backup has succeeded for 2d' }),
    'backup n is late: no backup has succeeded for 2d',
  ],
  backup_damaged: [
    failing('backup/n', { reason: 'corrupt', msg: 'a sum' }),
    'backup n is damaged: corrupt: a sum',
  ],
  backup_skew: [exceeding('backup_skew', { backup: 'n' }), 'backup n ended in the future: 9 of them'],
  backup_offsite: [
    failing('backup/n', { reason: 'offsite_missing', msg: 'x' }),
    'backup n has no off-site copy: offsite missing: x',
  ],
  backup_retention: [
    failing('backup/n', { reason: 'retention', msg: 'too many' }),
    'backup n breaks its retention: too many',
  ],
  recovery_weak: [
    failing('store/main/p', check('replication_factor', 'recovery_weak')),
    'store main/p lacks what recovery needs: replication_factor: bad',
  ],
  recovery: [
    failing('recovery/main/p', { reason: 'unverified', msg: 'x' }),
    'database main/p cannot be recovered within its objectives: unverified: x',
  ],
  not_proven: [
    failing('rehearsal/main/p', { reason: 'failed', msg: 'x' }),
    'database main/p is not proven to be recoverable: failed: x',
  ],
  certificate: [
    () => ({ certificates: [{ probe: 'health/f', notAfter: '2026-01-10T00:00:00.000Z' }] }),
    'the certificate of health/f expires soon: on 2026-01-10T00:00:00.000Z',
  ],
  flapping: [failing('health/f', {}, { flapping: true }), 'target health/f is flapping'],
  stale: [
    () => ({ probes: [probeStatusOf('health/f', { at: beganAt }, { intervalMs: 1_000, timeoutMs: 1_000 })] }),
    `probe health/f has no new result: the newest is from ${beganAt}`,
  ],
  log_unread: [
    () => ({
      logs: [{ path: '/a.log', services: ['a'], offset: 0, lagBytes: 0, state: 'permission denied' }],
    }),
    'log file /a.log is not read: permission denied',
  ],
  log_deleted: [
    logFault('deleted', { writer: { pid: 4711, command: 'svc' } }),
    'log file /a.log is deleted, but still written to: process 4711 (svc) still writes to the deleted file',
  ],
  log_disk_full: [
    logFault('disk_full'),
    'log file /a.log cannot be written: its file system has no free space, and it does not grow',
  ],
  log_gone: [logFault('gone'), 'log file /a.log is gone: no file of this name exists any more'],
  log_silent: [
    exceeding('log_silent', { role: 'history' }),
    'the log of role history does not grow: 9 of them',
  ],
  log_lag: [
    () => ({
      logs: [{ path: '/a.log', services: ['a'], offset: 0, lagBytes: 65 << 20, state: 'following' }],
    }),
    'log file /a.log is read late: 65 MiB behind',
  ],
  log_lost: [exceeding('log_lost', { role: 'history' }), 'log lines of role history were lost: 9 of them'],
  dropping: [
    exceeding('dropping', { component: 'statsd', reason: 'buffer_full' }),
    'data of statsd is dropped by the agent: 9 of them',
  ],
  state: [
    () => ({
      state: {
        directory: '/s',
        sequence: 1,
        commitFailures: 1,
        degraded: 'write',
        error: 'no space left on device (ENOSPC)',
        lastCommitAt: beganAt,
      },
    }),
    'the state cannot be written: write fails in /s: no space left on device (ENOSPC)',
  ],
  reload: [
    () => ({ config: { files: [], lastReloadSuccessful: false, lastReloadError: 'line 3' } }),
    'the new configuration was refused: line 3',
  ],
  report: [
    () => ({
      reporters: [
        {
          ...{ block: 'metrics', kind: 'hostedmetrics', target: 'https://m', failures: 1 },
          ...{
            lastFailure: { reason: 'refused', what: 'connect ECONNREFUSED 10.0.0.1:443', at: beganAt },
            failingSince: beganAt,
          },
        },
      ],
    }),
    'reporter metrics.hostedmetrics cannot deliver: connection refused by 10.0.0.1:443',
  ],
};

const msAt = (minute: number) => Date.parse(beganAt) + minute * 60_000;
const timeAt = (minute: number) => new Date(msAt(minute)).toISOString();
/** What a healthy agent sees of everything that may fail. */
const well = (at: string, from: Facts): Facts => ({
  probes: (from.probes ?? []).map(
    ({ name }) => probeStatusOf(name as `health/${string}`, { at }) as ProbeStatus,
  ),
});

describe.each(kindNames)('%s', (kind) => {
  const [factsAt, what] = appearances[kind];
  const look = (judge: ReturnType<typeof createJudge>, minute: number, facts: Facts) =>
    judge.judge(statusFactsOf({ startedAt: timeAt(-600), now: timeAt(minute), ...facts }), msAt(minute));

  test('appears with its text, its severity and its runbook, and keeps its start until it ends', () => {
    const judge = createJudge();
    const facts = factsAt(timeAt(1));
    expect(look(judge, 0, well(timeAt(0), facts)).verdict.problems).toEqual([]);
    const first = look(judge, 1, facts).verdict;
    expect(first.problems.map((problem) => problem.what)).toEqual([what]);
    const [{ since, severity, runbook, id }] = first.problems as [(typeof first.problems)[0]];
    expect(since >= beganAt && since <= timeAt(1)).toBe(true);
    expect(severity).toBe(kinds[kind].severity);
    expect(runbook).toBe(kinds[kind].alerts[0]);
    expect(first).toMatchObject({ ok: false, level: severity, cause: { id, kind } });
    expect(first.sentence).toMatch(/ \(since [\d:]+ UTC\)\.$/);

    for (const minute of [2, 3]) {
      const later = look(judge, minute, factsAt(timeAt(minute))).verdict;
      expect(later.problems[0]).toMatchObject({ id, since });
    }
    const over = look(judge, 4, well(timeAt(4), facts));
    expect(over.verdict.problems).toEqual([]);
    const lasted = (msAt(4) - Date.parse(since)) / 1e3;
    const { incidents } = look(judge, 6, well(timeAt(6), facts));
    expect(incidents).toEqual([
      expect.objectContaining({
        id,
        cause: kind,
        severity,
        what,
        start: since,
        end: timeAt(4),
        durationSeconds: Math.round(lasted),
      }),
    ]);
    expect(over.incidents).toEqual(incidents);
  });
});

test('each recommended alert has a kind of problem, or a reason why not', () => {
  const names = [...new Set(alertsOf(pack('recommended')).map(({ name }) => name))].sort();
  const judged = new Set(Object.values(kinds).flatMap(({ alerts }) => [...alerts]));
  expect([...judged, ...Object.keys(unjudged)].sort()).toEqual(
    [...new Set([...judged, ...Object.keys(unjudged)])].sort(),
  );
  expect([...judged, ...(Object.keys(unjudged) as never[])].sort()).toEqual(names);
  expect(Object.values(unjudged).every((why) => why.length > 20)).toBe(true);
});

test('a kind is not less severe than its alert, except where one row stands for two', () => {
  const alerts = new Map<string, string>(
    alertsOf(pack('recommended')).map(({ name, severity }) => [name, severity]),
  );
  const differing = Object.entries(kinds).flatMap(
    ([
      kind,
      {
        severity,
        alerts: [name],
      },
    ]) => (alerts.get(name!) === severity ? [] : [`${kind}: ${severity}, ${name}: ${alerts.get(name!)}`]),
  );
  expect(differing).toEqual([
    // A domain that cannot fail over is more severe than a domain with few clusters.
    'failover: warning, SvcDomainTooFewClusters: info',
  ]);
});
