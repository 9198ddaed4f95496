import { describe, expect, test } from 'vitest';
import { explained } from '../../../../src/agent/verdict/causes.ts';
import { type Begun, idOf } from '../../../../src/agent/verdict/found.ts';
import { probeStatusOf, statusFactsOf } from '../../../status-report.ts';

type Given = Partial<Begun> & Pick<Begun, 'kind'>;
const problem = ({ about = {}, ...more }: Given): Begun => ({
  ...{ subject: about.role ?? about.domain ?? about.store ?? about.archive ?? '', evidence: [], sinceMs: 0 },
  ...more,
  about,
});
const said = (text: string) => ({ evidence: [{ source: 'log' as const, text }] });
/** Health checks with these reasons; undefined means well. At least one role is alive. */
const facts = (...reasons: (string | undefined)[]) =>
  statusFactsOf({
    probes: (reasons.length > 0 ? reasons : [undefined]).map((reason, i) =>
      probeStatusOf(`health/r${i}`, reason ? ({ reason, msg: 'x' } as never) : {}),
    ),
  });
const explains = (cause: Given, effect: Given, ...reasons: (string | undefined)[]): boolean => {
  const all = explained([problem(effect), problem(cause)], facts(...reasons));
  return all.some(({ found, causedBy }) => found.kind === effect.kind && causedBy === idOf(problem(cause)));
};

const store: Given = { kind: 'store_down', about: { store: 'main' } };
const frontend: Given = { kind: 'role_down', about: { role: 'frontend' } };
const history: Given = { kind: 'role_down', about: { role: 'history' } };
const worker: Given = { kind: 'role_down', about: { role: 'worker' } };
const errorsOf = (role: string): Given => ({ kind: 'persistence_errors', about: { role } });
const caller = (role: string, more: Partial<Begun> = {}): Given => ({
  ...{ kind: 'role_failing', reason: 'not_ok', about: { role } },
  ...more,
});
const requests = (role: string, callee: string): Given => ({
  kind: 'request_errors',
  about: { role, callee },
});
const lag: Given = { kind: 'replication_lag', about: { clusters: ['a', 'b'] } };
const cluster = (...clusters: string[]): Given => ({
  kind: 'cluster_down',
  subject: 'x',
  about: { clusters },
});

describe('what explains what', () => {
  test.each<[string, Given, Given]>([
    [
      'a crash loop, a health check that flaps',
      { kind: 'crash_loop', about: { role: 'history' } },
      { kind: 'flapping', about: { role: 'history', probe: 'health/history' } },
    ],
    ['a full disk, its store', { kind: 'disk_full', about: { store: 'main' } }, store],
    [
      'few connections, a store that has none left',
      { kind: 'connections', about: { store: 'main' } },
      { ...store, reason: 'too_many_connections' },
    ],
    [
      'locks, a store that has no connection left',
      { kind: 'locks', about: { store: 'main' } },
      { ...store, reason: 'too_many_connections' },
    ],
    [
      'locks, few connections',
      { kind: 'locks', about: { store: 'main' } },
      { kind: 'connections', about: { store: 'main' } },
    ],
    [
      'locks, slow answers',
      { kind: 'locks', about: { store: 'main' } },
      { kind: 'frontend_latency', about: { callee: 'frontend' } },
    ],
    ['locks, errors of any role', { kind: 'locks', about: { store: 'main' } }, errorsOf('any')],
    [
      'locks, a role that lacks its store',
      { kind: 'locks', about: { store: 'main' } },
      { ...history, reason: 'persistence' },
    ],
    [
      'a recovery that is not possible, one that nobody ever tried',
      { kind: 'recovery', about: { store: 'main' } },
      { kind: 'not_proven', reason: 'drill_missing', about: { store: 'main' } },
    ],
    ['a store, errors of any role', store, errorsOf('any')],
    ['a store, the wrong backups of its own', store, { kind: 'backup_failed', about: { store: 'main' } }],
    [
      'a store, an end whose last words blame it',
      store,
      { ...history, reason: 'refused', ...said('fatal: sql: gone') },
    ],
    [
      'a store, an end among whose last words one blames it',
      store,
      {
        ...history,
        reason: 'refused',
        evidence: [...said('fatal: panic').evidence, ...said('fatal: sql: gone').evidence],
      },
    ],
    ['a store, a check that fails', store, { ...history, reason: 'too_slow' }],
    [
      'a store of a wrong schema, a role that says so',
      { kind: 'schema', about: { store: 'main' } },
      { ...history, reason: 'persistence' },
    ],
    [
      'a store of a wrong schema, a role that says so as it ends',
      { kind: 'schema', about: { store: 'main' } },
      { ...history, reason: 'too_slow', ...said('fatal: schema version mismatch') },
    ],
    ['a role, one that calls it', history, caller('frontend')],
    ['a role, requests to it', history, requests('any', 'history')],
    ['a role, requests of it', history, requests('history', 'other')],
    ['a role, requests to one that calls it', history, requests('any', 'frontend')],
    [
      'a role, latency of what calls it',
      frontend,
      { kind: 'frontend_latency', about: { callee: 'frontend' } },
    ],
    ['history, replication', history, lag],
    ['the worker, replication', worker, lag],
    ['the frontend, a domain that cannot be read', frontend, { kind: 'domain', about: { domain: 'd' } }],
    [
      'the worker, an archive',
      { ...worker, reason: 'refused' },
      { kind: 'archival_stalled', about: { archive: 'a' } },
    ],
    ['a role, the work', history, { kind: 'canary', about: { domain: 'd' } }],
    ['a cluster, a lag of it', cluster('b', 'c'), lag],
    [
      'a domain that differs, its failover',
      { kind: 'disagreement', about: { domain: 'd' } },
      { kind: 'failover', about: { domain: 'd' } },
    ],
    [
      'a list, the work of its domain',
      { kind: 'list_unpolled', about: { domain: 'd', tasklist: 't' } },
      { kind: 'workflow_timeouts', about: { domain: 'd' } },
    ],
    [
      'a list, its own backlog',
      { kind: 'list_unpolled', about: { domain: 'd', tasklist: 't' } },
      { kind: 'backlog_growth', about: { domain: 'd', tasklist: 't' } },
    ],
    [
      'an archive, what is in it',
      { kind: 'archive_down', about: { archive: 'a' } },
      { kind: 'archival_stalled', about: { archive: 'a' } },
    ],
    [
      'a check whose certificate expired, the certificate',
      { kind: 'cluster_down', reason: 'tls_expired', about: { probe: 'p' } },
      { kind: 'certificate', about: { probe: 'p' } },
    ],
    ...['refused', 'unreachable', 'reset', 'too_slow'].map((reason): [string, Given, Given] => [
      `a page that nothing serves (${reason}), the work`,
      { kind: 'scrape_down', reason, about: { role: 'frontend' } },
      { kind: 'list_unpolled', about: { domain: 'd', tasklist: 't' } },
    ]),
    [
      'a heap, a role that does not answer',
      { kind: 'heap', about: { role: 'history' } },
      { ...history, reason: 'first_byte_timeout' },
    ],
  ])('%s', (_, cause, effect) => {
    expect(explains(cause, effect)).toBe(true);
  });
});

describe('what does not', () => {
  test.each<[string, Given, Given]>([
    [
      'a full disk, a store that refuses the password',
      { kind: 'disk_full', about: { store: 'main' } },
      { ...store, reason: 'credentials' },
    ],
    [
      'a heap, a certificate that expired',
      { kind: 'heap', about: { role: 'history' } },
      { ...history, reason: 'tls_expired' },
    ],
    [
      'a page that answers with an error, the work',
      { kind: 'scrape_down', reason: 'status', about: { role: 'frontend' } },
      { kind: 'list_unpolled', about: { domain: 'd', tasklist: 't' } },
    ],
    [
      'a page that answers with an error, requests',
      { kind: 'scrape_down', reason: 'status', about: { role: 'frontend' } },
      requests('frontend', 'history'),
    ],
    ['requests that fail, a list', requests('any', 'matching'), { kind: 'list_unpolled', about: {} }],
    ['persistence errors, a list', errorsOf('history'), { kind: 'list_unpolled', about: {} }],
    ['a store, a backup that is damaged', store, { kind: 'backup_damaged', about: { store: 'main' } }],
    [
      'a cluster, a domain for which the client is missing',
      cluster('b'),
      { kind: 'domain', reason: 'command_missing', about: { clusters: ['b'] } },
    ],
    ['a full disk, another store', { kind: 'disk_full', about: { store: 'other' } }, store],
    [
      'few connections, a store that refuses',
      { kind: 'connections', about: { store: 'main' } },
      { ...store, reason: 'refused' },
    ],
    [
      'few connections, another store',
      { kind: 'connections', about: { store: 'other' } },
      { ...store, reason: 'too_many_connections' },
    ],
    [
      'locks, few connections of another store',
      { kind: 'locks', about: { store: 'other' } },
      { kind: 'connections', about: { store: 'main' } },
    ],
    [
      'locks, a store that refuses',
      { kind: 'locks', about: { store: 'main' } },
      { ...store, reason: 'refused' },
    ],
    [
      'locks, a role that is gone',
      { kind: 'locks', about: { store: 'main' } },
      { ...history, reason: 'refused' },
    ],
    ['a store, backups of another', store, { kind: 'backup_failed', about: { store: 'other' } }],
    [
      'a store, an end whose last words blame something else',
      store,
      { ...history, reason: 'refused', ...said('fatal: panic: index out of range') },
    ],
    ['a store, an end without last words while others live', store, { ...history, reason: 'refused' }],
    ['a store, a role that nobody can find', store, { ...history, reason: 'resolve' }],
    [
      'a store, an error that was logged before an end',
      store,
      { ...history, reason: 'refused', ...said('error: sql: gone') },
    ],
    [
      'a store, metrics of a role that is well',
      store,
      { kind: 'scrape_down', reason: 'status', about: { role: 'history' } },
    ],
    [
      'a store of a wrong schema, a role that does not answer',
      { kind: 'schema', about: { store: 'main' } },
      { ...history, reason: 'too_slow' },
    ],
    [
      'a store of a wrong schema, a role of which no reason is known',
      { kind: 'schema', about: { store: 'main' } },
      { ...caller('history'), reason: undefined },
    ],
    [
      'a store of a wrong schema, a role that ends of something else',
      { kind: 'schema', about: { store: 'main' } },
      { ...history, reason: 'persistence', ...said('fatal: panic') },
    ],
    ['a role, one that does not call it', worker, caller('frontend')],
    ['a role that nobody knows, another', { kind: 'role_down', about: { role: 'x' } }, caller('y')],
    ['a role, a caller that is gone itself', history, caller('frontend', { reason: 'refused' })],
    ['a role, a caller that ends of something else', history, caller('frontend', said('fatal: panic'))],
    ['a role, a caller that misses its store', history, caller('frontend', { reason: 'persistence' })],
    ['a role, requests between others', worker, requests('frontend', 'matching')],
    ['the worker, latency of the frontend', worker, { kind: 'frontend_latency', about: {} }],
    ['matching, replication', { kind: 'role_down', about: { role: 'matching' } }, lag],
    ['history, a domain that cannot be read', history, { kind: 'domain', about: { domain: 'd' } }],
    ['history, an archive', history, { kind: 'archival_stalled', about: { archive: 'a' } }],
    [
      'the worker that nobody can find, an archive',
      { ...worker, reason: 'resolve' },
      { kind: 'archival_stalled', about: { archive: 'a' } },
    ],
    ['the worker, the work of others', worker, { kind: 'canary', about: { domain: 'd' } }],
    [
      'a cluster, a lag between others',
      cluster('c'),
      { kind: 'replication_failures', about: { clusters: ['a', 'b'] } },
    ],
    ['a cluster that nobody names, a lag', { kind: 'cluster_down', subject: 'x', about: {} }, lag],
    ['a cluster, a lag of which nobody knows', cluster('c'), { kind: 'replication_lag', about: {} }],
    [
      'a domain that differs, the failover of another',
      { kind: 'disagreement', about: { domain: 'd' } },
      { kind: 'failover', about: { domain: 'e' } },
    ],
    [
      'a list, the work of another domain',
      { kind: 'list_unpolled', about: { domain: 'd', tasklist: 't' } },
      { kind: 'workflow_timeouts', about: { domain: 'e' } },
    ],
    [
      'a list, the backlog of another',
      { kind: 'list_unpolled', about: { domain: 'd', tasklist: 't' } },
      { kind: 'backlog_growth', about: { domain: 'd', tasklist: 'u' } },
    ],
    [
      'an archive, another',
      { kind: 'archive_down', about: { archive: 'a' } },
      { kind: 'archival_stalled', about: { archive: 'b' } },
    ],
    [
      'a check that fails, a certificate',
      { kind: 'cluster_down', reason: 'refused', about: { probe: 'p' } },
      { kind: 'certificate', about: { probe: 'p' } },
    ],
    [
      'an expired certificate, that of another',
      { kind: 'cluster_down', reason: 'tls_expired', about: { probe: 'p' } },
      { kind: 'certificate', about: { probe: 'q' } },
    ],
    ['a consequence, its cause', errorsOf('history'), store],
  ])('%s', (_, cause, effect) => {
    expect(explains(cause, effect)).toBe(false);
  });
});

test('a store explains processes that are gone if at least half of the roles are', () => {
  const gone: Given = { ...history, reason: 'refused' };
  expect(explains(store, gone, 'refused', 'refused', undefined, undefined)).toBe(true);
  expect(explains(store, gone, 'refused', 'too_slow', undefined)).toBe(false);
  expect(explains(store, { ...gone, ...said('fatal: panic') }, 'refused')).toBe(false);
  // A role that has not been checked yet counts as neither; other probes are no roles.
  const unchecked = { ...probeStatusOf('health/x'), last: undefined };
  const others = [probeStatusOf('cluster/a'), probeStatusOf('cluster/b')];
  const probes = [probeStatusOf('health/history', { reason: 'refused', msg: '' }), unchecked, ...others];
  const [, effect] = explained([problem(gone), problem(store)], statusFactsOf({ probes }));
  expect(effect?.causedBy).toBe('store_down/main');
  const schema: Given = { kind: 'schema', about: { store: 'main' } };
  expect(explains(schema, { ...gone, reason: 'too_slow' }, 'refused')).toBe(false);
  // Each role refuses to start with the wrong schema.
  expect(explains(schema, gone, 'refused', 'refused', undefined)).toBe(true);
  expect(explains(schema, gone, 'refused', undefined, undefined)).toBe(false);
});

test('a cause may be seen three minutes after what it causes, and no later', () => {
  expect(explains({ ...store, sinceMs: 180_000 }, errorsOf('history'))).toBe(true);
  expect(explains({ ...store, sinceMs: 180_001 }, errorsOf('history'))).toBe(false);
});

test('of two problems of one kind the callee explains its caller; of the same role, the first by name', () => {
  const both = (one: Given, other: Given) =>
    explained([problem(one), problem(other)], facts()).map(
      ({ found, causedBy }) => `${found.subject} ${causedBy}`,
    );
  const down = (role: string): Given => ({ kind: 'role_down', reason: 'not_ok', about: { role } });
  // Matching calls history, and history calls matching.
  expect(both(down('matching'), down('history'))).toEqual([
    'history undefined',
    'matching role_down/history',
  ]);
  expect(both(down('history'), down('matching'))).toEqual([
    'history undefined',
    'matching role_down/history',
  ]);
  const slow = (subject: string): Given => ({ kind: 'persistence_latency', subject });
  expect(both(slow('b'), slow('a'))).toEqual(['a undefined', 'b persistence_latency/a']);
  expect(both(slow('a'), slow('b'))).toEqual(['a undefined', 'b persistence_latency/a']);
});

test('causes are in the order of the worst that they explain, then of kinds, then of their starts', () => {
  const order = (...all: Given[]) => explained(all.map(problem), facts()).map(({ found }) => found.subject);
  const warning: Given = { kind: 'certificate', subject: 'certificate' };
  const heap: Given = { kind: 'heap', subject: 'history', about: { role: 'history' } };
  expect(order(warning, history)).toEqual(['history', 'certificate']);
  // A warning that explains something critical comes before a problem that is critical by itself.
  expect(order({ kind: 'backup_late', subject: 'backup' }, heap, history)).toEqual([
    'history',
    'history',
    'backup',
  ]);
  const late = (subject: string, sinceMs: number): Given => ({ kind: 'log_lag', subject, sinceMs });
  expect(order(late('new', 2), late('old', 1))).toEqual(['old', 'new']);
  expect(order(late('old', 1), late('new', 2))).toEqual(['old', 'new']);
});

test('a chain of causes leads to the first one', () => {
  const all = [
    problem({ kind: 'canary', about: { domain: 'd' } }),
    problem({ kind: 'request_errors', subject: 'r', about: { role: 'frontend', callee: 'history' } }),
    problem({ kind: 'heap', about: { role: 'history' } }),
    problem({ kind: 'role_failing', reason: 'too_slow', about: { role: 'history' } }),
  ];
  expect(explained(all, facts()).map(({ causedBy }) => causedBy)).toEqual([
    undefined,
    ...['heap/history', 'heap/history', 'heap/history'],
  ]);
});

test.each([
  ['a role that hangs long before its store is down', { reason: 'first_byte_timeout' }, 100, false],
  ['a role that hangs at the last check that the store passed', { reason: 'first_byte_timeout' }, 49, true],
  ['a role that says that it lacks something', { reason: 'persistence' }, 100, true],
  [
    'a role that ended with words on its store',
    { reason: 'first_byte_timeout', ...said('fatal: sql: gone') },
    100,
    true,
  ],
])('%s', (_, more, seconds, isExplained) => {
  const check = { intervalMs: 30_000, timeoutMs: 4_000 };
  const all = explained(
    [
      problem({ ...history, ...more }),
      problem({ ...store, about: { store: 'main', probe: 'store/main' }, sinceMs: 1000 * seconds }),
    ],
    statusFactsOf({ probes: [probeStatusOf('store/main', {}, check), probeStatusOf('health/worker')] }),
  );
  expect(all.find(({ found }) => found.kind === 'role_down')?.causedBy).toBe(
    isExplained ? 'store_down/main' : undefined,
  );
});

test.each([
  ['persistence: no host', true],
  ['cannot open the database', true],
  ['sql: no rows', true],
  ['gocql: Cassandra has no hosts', true],
  ['the store is gone', true],
  ['cannot acquire shard 7', true],
  ['connection reset by peer', true],
  ['dial tcp 10.0.0.7:3306: i/o', true],
  ['request timed out', true],
  ['request timeout', true],
  ['context: time out', true],
  ['service Unavailable', true],
  ['wrong Schema version', true],
  ['cannot restore the checkpoint', false],
  ['panic: index out of range', false],
])('the last words "%s" blame the store: %s', (words, isBlamed) => {
  expect(explains(store, { ...history, reason: 'refused', ...said(`fatal: ${words}`) })).toBe(isBlamed);
});

test.each([
  ['frontend', ['worker']],
  ['history', ['frontend', 'matching', 'worker']],
  ['matching', ['frontend', 'history', 'worker']],
  ['worker', []],
])('without %s, the roles that call it lack something: %j', (callee, callers) => {
  const roles = ['frontend', 'history', 'matching', 'worker'].filter((role) => role !== callee);
  const gone = { ...history, about: { role: callee } };
  expect(roles.filter((role) => explains(gone, caller(role)))).toEqual(callers);
});

test.each([
  ...(['refused', 'unreachable', 'reset', 'too_slow'] as const).map((reason) => [reason, true] as const),
  ...(['resolve', 'tls', 'credentials', 'status', 'too_large'] as const).map(
    (reason) => [reason, false] as const,
  ),
])('a page that cannot be read for %s shows that the role may be gone: %s', (reason, isExplained) => {
  const page: Given = { kind: 'scrape_down', reason, about: { role: 'history' } };
  expect(explains(page, requests('frontend', 'history'))).toBe(isExplained);
});

test('a page that nothing serves explains nothing if the role passes its health check', () => {
  const page = problem({ kind: 'scrape_down', reason: 'refused', about: { role: 'frontend' } });
  const list = problem({ kind: 'list_unpolled', about: { domain: 'd', tasklist: 't' } });
  const causeOf = (probes: Parameters<typeof statusFactsOf>[0]) =>
    explained([page, list], statusFactsOf(probes)).find(({ found }) => found === list)?.causedBy;
  expect(causeOf({ probes: [probeStatusOf('health/frontend')] })).toBeUndefined();
  expect(causeOf({ probes: [probeStatusOf('health/frontend', { reason: 'refused' })] })).toBe(idOf(page));
});
