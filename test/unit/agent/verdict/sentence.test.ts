import { expect, test } from 'vitest';
import type { StatusFacts } from '../../../../src/agent/report.ts';
import { type StoreCheck, storeCheckSeverity, storeChecks } from '../../../../src/core/check-severity.ts';
import { probeStatusOf, statusReportOf } from '../../../status-report.ts';

const refused = { reason: 'refused', msg: 'connection refused' } as const;
const healthy = ['frontend', 'history', 'matching', 'worker'].map((role) => probeStatusOf(`health/${role}`));
const check = (check: string, severity: string, more = {}) => ({
  check,
  holds: false,
  found: `${check} = off`,
  severity,
  set: `${check} = on`,
  ...more,
});
const store = (details: Record<string, unknown>) => probeStatusOf('store/main/persistence', { details });
const logBackup = (of: string) => probeStatusOf('backup/log', { details: { store: of, type: 'log' } });
const scrape = (service: string, up: boolean) => ({
  service,
  url: 'http://127.0.0.1:9090/metrics',
  up,
  lastTakenMs: undefined,
  lastFailure: up
    ? undefined
    : { reason: 'refused' as const, what: 'connection refused', atMs: 1_767_225_640_000 },
  failingSinceMs: up ? undefined : 1_767_225_640_000,
  failures: {},
  page: undefined,
  firstInvalid: undefined,
  vocabulary: undefined,
});

const cases: Record<string, [facts: Partial<StatusFacts>, level: string, sentence: string]> = {
  'nothing is configured': [
    {},
    'unknown',
    'Nothing is watched: the configuration names no role, store or log.',
  ],
  'the log of the only role was not found': [
    { roles: ['frontend'] },
    'unknown',
    'No log file of role frontend has been found yet, and nothing else is watched.',
  ],
  'the logs of two roles were not found': [
    { roles: ['frontend', 'history'] },
    'unknown',
    'No log file of roles frontend and history has been found yet, and nothing else is watched.',
  ],
  'the agent is starting': [{ ready: false, probes: healthy }, 'unknown', 'The agent is starting.'],
  'everything answers': [
    { probes: [...healthy, store({}), probeStatusOf('store/main/visibility')] },
    'ok',
    'All is well: 4 roles and 1 store.',
  ],
  'two domains that differ behind a stroke': [
    { probes: [probeStatusOf('domain/pay/eu'), probeStatusOf('domain/pay/us')] },
    'ok',
    'All is well: 2 domains.',
  ],
  'a value of nothing that has a name': [
    {
      exceeded: [
        {
          ...{ kind: 'replication_failures', about: {}, value: '900 a minute', limit: '600' },
          since: '2025-12-31T23:59:10.000Z',
        },
      ],
    },
    'warning',
    'Replication has failing tasks (since 2025-12-31 23:59:10 UTC).',
  ],
  'a probe has not run yet': [
    { probes: [...healthy, { ...store({}), state: undefined, last: undefined }] },
    'unknown',
    'Nothing is wrong so far; 1 of 5 checks has no result yet.',
  ],
  'a store and four roles are down': [
    {
      probes: [
        ...healthy.map(({ name }) => probeStatusOf(name as 'health/x', refused)),
        probeStatusOf('store/main/persistence', refused, { since: '2025-12-31T23:59:10.000Z' }),
        probeStatusOf('store/main/visibility', refused),
      ],
      scrapes: [scrape('frontend', false)],
    },
    'critical',
    'Store main refuses connections (since 2025-12-31 23:59:10 UTC); 4 roles are down because of it.',
  ],
  'a health check failed once': [
    {
      probes: [
        probeStatusOf('health/worker', refused, { state: 'up', failingSince: '2026-01-01T00:00:29.000Z' }),
        store({}),
      ],
    },
    'warning',
    'Role worker failed a health check (since 00:00:29 UTC).',
  ],
  'a role cannot be scraped': [
    { probes: healthy, scrapes: [scrape('worker', false), scrape('history', true)] },
    'warning',
    'Role worker cannot be scraped (since 00:00:40 UTC).',
  ],
  'checks of a store fail, advice and accepted ones apart': [
    {
      probes: [
        store({
          checks: [
            check('archive_mode', 'recovery_weak'),
            check('data_checksums', 'advice'),
            check('fsync', 'data_at_risk', { accepted: 'a test system' }),
          ],
        }),
        logBackup('main'),
      ],
    },
    'warning',
    'Store main does not archive a log (since 00:00:59 UTC).',
  ],
  'more than three kinds of problems': [
    {
      probes: [
        ...healthy.map(({ name }) => probeStatusOf(name as 'health/x', refused)),
        probeStatusOf('health/fifth', refused),
        probeStatusOf('store/main', refused),
        probeStatusOf('cluster/dc2', refused),
        probeStatusOf('recovery/main', { reason: 'recovery_point_too_old' }),
        probeStatusOf('backup/nightly', { reason: 'late' }),
      ],
    },
    'critical',
    'Store main refuses connections (since 00:00:30 UTC), cluster dc2 refuses connections (since 00:00:30 UTC) and backup nightly is late (since 00:00:30 UTC); 5 roles are down and 1 objective suffers because of them.',
  ],
  'the state cannot be written': [
    { probes: healthy, state: { directory: '/x', sequence: 1, commitFailures: 2, degraded: 'ENOSPC' } },
    'warning',
    'The state cannot be written (since 00:01:00 UTC).',
  ],
  'a reporter cannot deliver': [
    {
      probes: healthy,
      reporters: [
        {
          block: 'metrics',
          kind: 'hostedmetrics',
          target: 'https://metrics.example.com',
          failures: 3,
          lastFailure: { reason: 'throttled', what: 'status 429', at: '2026-01-01T00:00:50.000Z' },
          failingSince: '2026-01-01T00:00:20.000Z',
        },
      ],
    },
    'warning',
    'Reporter metrics.hostedmetrics cannot deliver (since 00:00:20 UTC).',
  ],
  'replication is behind by more than the objective': [
    {
      probes: healthy,
      replication: [
        { source: 'dc1', target: 'dc2', lagSeconds: 301 },
        { source: 'dc2', target: 'dc1', lagSeconds: 300 },
      ],
    },
    'critical',
    'Replication dc1 to dc2 lags behind (since 00:01:00 UTC).',
  ],
  'a result is too old': [
    {
      probes: [
        probeStatusOf(
          'health/worker',
          { at: '2026-01-01T00:00:55.000Z' },
          { intervalMs: 1000, timeoutMs: 1000 },
        ),
      ],
    },
    'warning',
    'Probe health/worker has no new result (since 00:00:55 UTC).',
  ],
};

test.each(Object.entries(cases))('%s', (_, [facts, level, sentence]) => {
  const { verdict } = statusReportOf(facts);
  expect(verdict).toMatchObject({ ok: level === 'ok', level, sentence });
});

test.each([
  ['no backups', []],
  ['backups of another store', [logBackup('other')]],
  ['full backups only', [probeStatusOf('backup/full', { details: { store: 'main', type: 'full' } })]],
])(
  'a store with %s has no use for the archive of its log: no problem, as there is no alert',
  (_, backups) => {
    const checks = [check('archive_mode', 'recovery_weak'), check('log_bin', 'recovery_weak')];
    const { verdict } = statusReportOf({ probes: [store({ checks }), ...backups] });
    expect(verdict).toMatchObject({ ok: true, problems: [] });
  },
);

const well = 'All is well: 1 store and 2 backups';
/** What is said while one check of a store fails. The others are advice, which is no problem. */
const whileFails: Partial<Record<StoreCheck, string>> = {
  schema: 'Database main/persistence has the wrong schema',
  connections: 'Store main is short of connections',
  lock_waits: 'Store main keeps sessions waiting',
  free_space: 'The disk of store main is almost full',
  identity: 'Store main was replaced by another server',
  checksum_failures: 'Store main has damaged pages',
  durable_settings: 'Store main can lose commits',
  wraparound: 'Store main is running out of transaction ids',
  flush_log_at_commit: 'Store main can lose commits',
  durable_writes: 'Store main can lose writes',
  storage_engine: 'Store main has tables without transactions',
  archive_mode: 'Store main does not archive a log',
  archive_timeout: 'Store main archives too rarely',
  archiver: 'Store main cannot archive the log',
  wal_backlog: 'Store main archives the log too late',
  wal_archive: 'Store main has a gap in the archived log',
  wal_level: 'Store main lacks what recovery needs',
  slots: 'Store main keeps too much log for a slot',
  timeline: 'Store main was promoted or restored',
  replica: 'Store main does not keep up as a replica',
  standbys: 'Store main has a standby that lags or is missing',
  open_transactions: 'Store main has a transaction that stays open',
  log_bin: 'Store main writes no binary log',
  sync_binlog: 'Store main can lose the end of the binary log',
  binlog_retention: 'Store main purges the binary log too early',
  incremental_backups: 'Store main writes no incremental backups',
  replication_factor: 'Store main lacks what recovery needs',
  replication_strategy: 'Store main lacks what recovery needs',
  schema_agreement: 'Store main has nodes with different schemas',
  nodes: 'Store main has nodes that are down',
};
test.each(storeChecks)('what is said while the check %s of a store fails', (name) => {
  const incremental = probeStatusOf('backup/inc', { details: { store: 'main', type: 'incremental' } });
  const probes = [store({ checks: [check(name, storeCheckSeverity[name])] }), logBackup('main'), incremental];
  expect(statusReportOf({ probes }).verdict.headline).toBe(whileFails[name] ?? well);
});

/** What is said of a store or a cluster that fails its check for a reason. */
test.each([
  ['store/main', 'refused', 'Store main refuses connections'],
  ['store/main', 'unreachable', 'Store main is unreachable'],
  ['store/main', 'resolve', 'Store main has no address'],
  ['store/main', 'connect_timeout', 'Store main does not answer'],
  ['store/main', 'too_slow', 'Store main does not answer'],
  ['store/main', 'credentials', 'Store main refuses the credentials'],
  ['store/main', 'denied', 'Store main denies access to the agent'],
  ['store/main', 'tls_expired', 'Store main has an expired certificate'],
  ['store/main', 'too_many_connections', 'Store main has no connection left'],
  ['store/main', 'database_missing', 'Store main lacks a database'],
  ['store/main', 'starting', 'Store main is starting'],
  ['store/main', 'shutting_down', 'Store main is shutting down'],
  ['store/main', 'query_failed', 'Store main is down'],
  ['cluster/dc2', 'not_ok', 'Cluster dc2 is unhealthy'],
  ['cluster/dc2', 'not_in_ring', 'Cluster dc2 is unhealthy'],
  ['cluster/dc2', 'persistence', 'Cluster dc2 cannot use its store'],
  ['cluster/dc2', 'warming_up', 'Cluster dc2 is starting'],
  ['cluster/dc2', 'protocol', 'Cluster dc2 is unreachable'],
] as const)('what is said of %s that fails for %s', (name, reason, headline) => {
  const probes = [probeStatusOf(name, { reason: reason as never, msg: 'x' })];
  expect(statusReportOf({ probes }).verdict.headline).toBe(headline);
});

test('different failing checks of one store are told apart, each with its own start', () => {
  const at = (seconds: number) => `2026-01-01T00:00:${seconds}.000Z`;
  const checks = [
    check('timeline', 'recovery_weak', { since: at(10) }),
    check('archiver', 'recovery_weak', { since: at(40) }),
  ];
  const { sentence } = statusReportOf({ probes: [store({ checks })] }).verdict;
  expect(sentence).toBe(
    'Store main was promoted or restored (since 00:00:10 UTC) and store main cannot archive the log (since 00:00:40 UTC).',
  );
});

test('each problem says what it is, since when, and what to do', () => {
  const { verdict } = statusReportOf({
    probes: [
      store({
        checks: [
          check('archive_mode', 'recovery_weak', { since: '2026-01-01T00:00:10.000Z' }),
          check('schema', 'data_at_risk', { set: undefined }),
        ],
      }),
      probeStatusOf('health/worker', refused),
      logBackup('main'),
    ],
  });
  expect(verdict.problems.map(({ evidence: _, blocks: __, firstSteps: ___, ...rest }) => rest)).toEqual([
    {
      id: 'schema/main/persistence',
      kind: 'schema',
      subject: 'main/persistence',
      severity: 'critical',
      what: 'database main/persistence has the wrong schema: schema: schema = off',
      since: '2026-01-01T00:00:59.000Z',
      consequences: ['role_down/worker'],
      runbook: 'SvcSchemaMismatch',
    },
    {
      id: 'role_down/worker',
      kind: 'role_down',
      subject: 'worker',
      severity: 'critical',
      what: 'role worker is down: connection refused',
      since: '2026-01-01T00:00:30.000Z',
      causedBy: 'schema/main/persistence',
      consequences: [],
      runbook: 'SvcRoleUnhealthy',
    },
    {
      id: 'recovery_weak/main/persistence',
      kind: 'recovery_weak',
      subject: 'main/persistence',
      severity: 'warning',
      what: 'store main/persistence does not archive a log: archive_mode: archive_mode = off',
      fix: 'archive_mode = on',
      since: '2026-01-01T00:00:10.000Z',
      consequences: [],
      runbook: 'SvcStoreRecoveryWeak',
    },
  ]);
  // What to do first comes from the alert.
  expect(verdict.problems[1]?.firstSteps).toMatch(/^Read the message of the health endpoint\. /);
});
