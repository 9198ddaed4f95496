import { expect, test } from 'vitest';
import type { StatusFacts } from '../../../../src/agent/report.ts';
import { explained, isCauseAt } from '../../../../src/agent/verdict/causes.ts';
import { createJudge } from '../../../../src/agent/verdict/verdict.ts';
import { lastWordsOf, probeStatusOf, statusFactsOf, statusReportOf } from '../../../status-report.ts';

const now = '2026-01-01T12:00:00.000Z';
const last = { at: '2026-01-01T11:59:59.000Z' };
const refused = { ...last, reason: 'refused', msg: 'connection refused' } as const;
const down = (name: Parameters<typeof probeStatusOf>[0], since: string, reason: object = refused) =>
  probeStatusOf(name, { ...refused, ...reason }, { since: `2026-01-01T${since}.000Z` });
const up = (name: Parameters<typeof probeStatusOf>[0]) => probeStatusOf(name, last);
/** Each problem with the problem that explains it. */
const causesIn = (facts: Partial<StatusFacts>) =>
  statusReportOf({ now, ...facts }).verdict.problems.map(({ id, causedBy }) =>
    causedBy === undefined ? id : `${id} by ${causedBy}`,
  );
const exceeded = (kind: string, about: Record<string, string>, since = '11:30:00') => ({
  ...{ kind, about, value: '9', limit: '1', since: `2026-01-01T${since}.000Z` },
});

test.each([
  ['at the same time', '11:00:00', ['store_down/main', 'role_down/history by store_down/main']],
  // A check runs every 15 s and may take 5 s; it may begin 15 s late.
  [
    'as long before as a check may be late',
    '10:59:25',
    ['store_down/main', 'role_down/history by store_down/main'],
  ],
  ['earlier', '10:59:24', ['store_down/main', 'role_down/history']],
])('a role that went down %s', (_, since, causes) => {
  expect(causesIn({ probes: [down('store/main', '11:00:00'), down('health/history', since)] })).toEqual(
    causes,
  );
});

test('what is itself unknown is not why another problem is unknown', () => {
  const about = { store: 'main', probe: 'store/main' };
  const common = { subject: 'main', about, evidence: [], sinceMs: 0 };
  const unread = { sinceMs: 0, sources: ['target/store/main'], wasCause: true };
  const causesOf = (isDownKnown: boolean) => {
    const down = {
      ...common,
      kind: 'store_down',
      ...(!isDownKnown && { unread: { ...unread, sources: [] } }),
    } as const;
    const all = explained([down, { ...common, kind: 'schema', unread }], statusFactsOf({}));
    return all.map(({ found, causedBy }) => [found.kind, causedBy]);
  };
  expect(causesOf(true)).toEqual([
    ['store_down', undefined],
    ['schema', 'store_down/main'],
  ]);
  expect(causesOf(false)).toEqual([
    ['store_down', undefined],
    ['schema', undefined],
  ]);
});

test.each([0, 1, 2])('a circle of causes hides none of them, with %d other problems', (others) => {
  const about = { role: 'history' };
  const common = { subject: 'history', about, evidence: [], sinceMs: 0 };
  const unread = { sinceMs: 0, sources: ['page/history'], wasCause: true };
  const all = explained(
    [
      { ...common, kind: 'heap', unread },
      { ...common, kind: 'gc_pause' },
      { ...common, kind: 'role_down', reason: 'refused' },
      ...Array.from({ length: others }, (_, i) => ({
        ...({ kind: 'cluster_down', subject: `dc${i}`, about: {}, evidence: [], sinceMs: 0 } as const),
      })),
    ],
    statusFactsOf({}),
  );
  expect(all.slice(0, 3).map(({ found, causedBy }) => [found.kind, causedBy])).toEqual([
    ['gc_pause', undefined],
    ['heap', 'gc_pause/history'],
    ['role_down', 'gc_pause/history'],
  ]);
  expect(all).toHaveLength(3 + others);
});

test('a role of which one check failed had a cause of its own if it failed long before the store', () => {
  const failing = (since: string) =>
    probeStatusOf('health/history', refused, {
      ...{ state: 'up' as const, consecutiveFailures: 1, failingSince: `2026-01-01T${since}.000Z` },
    });
  const causes = (since: string) => causesIn({ probes: [down('store/main', '11:00:00'), failing(since)] });
  expect(causes('10:59:25')).toEqual(['store_down/main', 'role_failing/history by store_down/main']);
  expect(causes('10:59:24')).toEqual(['store_down/main', 'role_failing/history']);
});

test('a primary that has no result, or that nobody checks any more, is not known to be that of a standby', () => {
  const of = (kind: 'store_down' | 'recovery_weak', store: string) =>
    ({ kind, subject: store, about: { store, probe: `store/${store}` }, evidence: [], sinceMs: 0 }) as const;
  const weak = { ...of('recovery_weak', 'copy'), from: ['check/store/copy replica'] };
  const copy = probeStatusOf('store/copy', { details: { follows: ['7'] } as never });
  const causesOf = (standby: typeof weak | ReturnType<typeof of>, ...probes: ReturnType<typeof up>[]) =>
    explained([of('store_down', 'main'), standby], statusFactsOf({ probes: [copy, ...probes] })).map(
      ({ causedBy }) => causedBy,
    );
  const main = probeStatusOf('store/main', { ...refused, details: { identity: '7' } as never });
  expect(causesOf(weak, main)).toEqual([undefined, 'store_down/main']);
  expect(causesOf(weak, { ...main, last: undefined })).toEqual([undefined, undefined]);
  expect(causesOf(weak)).toEqual([undefined, undefined]);
  // What an earlier agent saw may come without its sources.
  expect(causesOf(of('recovery_weak', 'copy'), main)).toEqual([undefined, undefined]);
});

test('how late the check of a cause may be depends on its own interval, not on that of another probe', () => {
  const slow = { ...up('domain/orders'), intervalMs: 600_000 };
  const probes = [slow, down('store/main', '11:00:00'), down('health/history', '10:59:24')];
  expect(causesIn({ probes })).toEqual(['store_down/main', 'role_down/history']);
});

test('critical causes come first, also where their kind comes later', () => {
  const probes = [
    probeStatusOf('store/main', {
      ...last,
      details: { checks: [{ check: 'connections', holds: false, found: 'x', severity: 'advice' }] },
    }),
    down('recovery/other/db', '11:00:00', { reason: 'unverified', msg: 'x' }),
  ];
  expect(causesIn({ probes })).toEqual(['recovery/other/db', 'connections/main']);
});

test('a warning that takes down something critical is as severe as that', () => {
  const probes = [
    down('recovery/main/db', '11:00:00', { reason: 'no_backup', msg: 'x' }),
    down('backup/nightly', '11:00:00', { reason: 'backup_failed', msg: 'x', details: { store: 'main' } }),
    down('domain/d', '11:00:00', { reason: 'clusters_disagree', msg: 'x' }),
  ];
  expect(causesIn({ probes })).toEqual([
    'disagreement/d',
    'backup_failed/nightly',
    'recovery/main/db by backup_failed/nightly',
  ]);
});

test.each([
  ['alone beside three that live', 3, {}, ['role_down/history', 'store_down/main']],
  ['with as many as live', 1, {}, ['role_down/history by store_down/main', 'store_down/main']],
  [
    'that says why: persistence',
    3,
    { reason: 'persistence', msg: 'x' },
    ['role_down/history by store_down/main', 'store_down/main'],
  ],
  [
    'that has another certificate',
    0,
    { reason: 'tls_untrusted', msg: 'x' },
    ['role_down/history', 'store_down/main'],
  ],
])('a role that is gone %s, behind a store', (_, living, reason, causes) => {
  const alive = ['frontend', 'matching', 'worker'].slice(0, living).map((role) => up(`health/${role}`));
  const probes = [down('store/main', '11:00:00'), down('health/history', '11:00:00', reason), ...alive];
  expect(causesIn({ probes }).sort()).toEqual(causes);
});

test('entries that are not fatal, and the end that was announced, are no last words', () => {
  const alone = (entry: { level: string; msg: string } | undefined, exit?: string) => {
    const judge = createJudge();
    const at = '2026-01-01T11:00:01.000Z';
    if (exit) judge.announce({ at, kind: 'exit', role: 'history', what: exit });
    const facts = statusFactsOf({
      now,
      probes: [
        down('store/main', '11:00:00'),
        down('health/history', '11:00:00'),
        ...['frontend', 'matching', 'worker'].map((role) => up(`health/${role}` as 'health/x')),
      ],
      entries: lastWordsOf(...(entry ? [{ at, ...entry }] : [])),
    });
    const { problems } = judge.judge(facts, Date.parse(now)).verdict;
    return problems.find(({ id }) => id === 'role_down/history')?.causedBy;
  };
  const msg = 'sql: connection refused';
  expect(alone({ level: 'fatal', msg })).toBe('store_down/main');
  expect(alone({ level: 'error', msg })).toBeUndefined();
  expect(alone(undefined, `fatal: ${msg}`)).toBeUndefined();
});

test('an error that blames something else than the store is no word against it', () => {
  const probes = [
    down('store/main', '11:00:00'),
    down('health/history', '11:00:00', { reason: 'persistence', msg: 'x' }),
  ];
  const words = (level: string) =>
    lastWordsOf({ at: '2026-01-01T11:00:00.000Z', level, msg: 'ringpop: join' });
  const explainedBy = 'role_down/history by store_down/main';
  expect(causesIn({ probes, entries: words('error') })).toContain(explainedBy);
  expect(causesIn({ probes, entries: words('fatal') })).not.toContain(explainedBy);
});

test('a role that says that it misses something is explained by one that it calls, not the other way round', () => {
  const missing = { reason: 'not_ok', msg: 'x' };
  expect(
    causesIn({ probes: [down('health/frontend', '11:00:00', missing), down('health/history', '11:00:00')] }),
  ).toEqual(['role_down/history', 'role_down/frontend by role_down/history']);
  expect(
    causesIn({
      probes: [
        down('health/frontend', '11:00:00', { reason: 'too_slow', msg: 'x' }),
        down('health/history', '11:00:00'),
      ],
    }),
  ).toEqual(['role_down/frontend', 'role_down/history']);
  expect(
    causesIn({ probes: [down('health/history', '11:00:00', missing), down('health/frontend', '11:00:00')] }),
  ).toEqual(['role_down/history', 'role_down/frontend']);
});

test('causes are followed to the first: a full disk, its store, a role, its callers and their work', () => {
  const causes = causesIn({
    probes: [
      down('store/main', '11:20:00', {
        reason: 'query_failed',
        msg: 'could not extend file: No space left on device',
      }),
      down('health/history', '11:20:00', { reason: 'persistence', msg: 'x' }),
    ],
    exceeded: [
      exceeded('persistence_errors', { role: 'history' }),
      exceeded('request_errors', { role: 'frontend', callee: 'history' }),
      exceeded('list_stalled', { domain: 'd', tasklist: 't' }),
      exceeded('workflow_timeouts', { domain: 'd' }),
    ],
  });
  expect(causes[0]).toBe('disk_full/main');
  expect(causes.slice(1).every((text) => text.endsWith(' by disk_full/main'))).toBe(true);
  expect(causes).toHaveLength(7);
});

test.each([
  [
    'requests',
    exceeded('request_errors', { role: 'frontend', callee: 'matching' }),
    'role_down/matching',
    true,
  ],
  [
    'requests to another',
    exceeded('request_errors', { role: 'worker', callee: 'frontend' }),
    'role_down/worker',
    true,
  ],
  [
    'a list of another domain',
    exceeded('list_stalled', { domain: 'd', tasklist: 't' }),
    'role_down/worker',
    false,
  ],
  ['a list', exceeded('list_stalled', { domain: 'd', tasklist: 't' }), 'role_down/matching', true],
])('%s and a role', (_, problem, cause, isExplained) => {
  const role = cause.split('/')[1]!;
  const [, second] = causesIn({ probes: [down(`health/${role}`, '11:00:00')], exceeded: [problem] });
  expect(second?.endsWith(` by ${cause}`)).toBe(isExplained);
});

test('the first 200 problems are looked at as causes', () => {
  const clusters = Array.from({ length: 201 }, (_, i) =>
    down(`cluster/dc${i}`, `10:${`${Math.floor(i / 60)}`.padStart(2, '0')}:${`${i % 60}`.padStart(2, '0')}`),
  );
  const domain = (name: string, cluster: string) =>
    probeStatusOf(`domain/${name}`, {
      ...last,
      details: { global: true, clusters: ['dc', cluster], failover: { ready: false, why: 'it is down' } },
    });
  const causes = causesIn({ probes: [...clusters, domain('a', 'dc199'), domain('b', 'dc200')] });
  expect(causes.filter((text) => text.startsWith('failover'))).toEqual([
    'failover/a by cluster_down/dc199',
    'failover/b',
  ]);
});

test('5,000 domains behind one cluster are one cause, and found soon', () => {
  const domains = Array.from({ length: 5_000 }, (_, i) =>
    probeStatusOf(`domain/d${i}`, {
      ...last,
      details: { global: true, clusters: ['dc1', 'dc2'], failover: { ready: false, why: 'dc2 is down' } },
    }),
  );
  const { verdict } = statusReportOf({ now, probes: [down('cluster/dc2', '11:00:00'), ...domains] });
  expect(verdict.sentence).toBe(
    'Cluster dc2 refuses connections (since 11:00:00 UTC); 5000 domains suffer because of it.',
  );
});

test('a cause that cannot be read explains what began up to three minutes later', () => {
  const unread = { sinceMs: 600_000, sources: [], wasCause: true };
  const cause = { kind: 'store_down', subject: 'main', about: {}, evidence: [], sinceMs: 0, unread } as const;
  expect(isCauseAt(cause, 600_000 + 180_000)).toBe(true);
  expect(isCauseAt(cause, 600_000 + 180_001)).toBe(false);
});

test('a page that is refused explains what calls the role, unless the role passes its health check', () => {
  const page = {
    ...{ service: 'history', url: 'http://x', up: false, failures: {}, page: undefined },
    ...{ firstInvalid: undefined, vocabulary: 'svc', lastTakenMs: Date.parse('2026-01-01T11:00:00.000Z') },
    failingSinceMs: Date.parse('2026-01-01T11:00:05.000Z'),
    lastFailure: { reason: 'refused' as const, what: 'x', atMs: Date.parse('2026-01-01T11:00:05.000Z') },
  };
  const calls = exceeded('request_errors', { role: 'frontend', callee: 'history' }, '11:00:10');
  const causes = (...probes: ReturnType<typeof up>[]) =>
    causesIn({ probes, scrapes: [page], exceeded: [calls] }).sort();
  const explained = ['request_errors/frontend to history by scrape_down/history', 'scrape_down/history'];
  const history = up('health/history');
  expect(causes()).toEqual(explained);
  expect(causes(up('health/matching'))).toEqual(explained);
  expect(causes({ ...history, last: undefined })).toEqual(explained);
  expect(causes(history, up('health/matching'))).toEqual([
    'request_errors/frontend to history',
    'scrape_down/history',
  ]);
});

test.each<[string, Record<'lost' | 'tried', string> & { since?: string }, string?]>([
  // The check passes every 15 s, at 11:00:00 the last time; the page was tried every 10 s.
  ['in the pause after a check that passed', { lost: '11:00:05', tried: '11:00:05' }, 'crash_loop/history'],
  ['while the next check is late', { lost: '11:00:05', tried: '11:00:25' }, 'crash_loop/history'],
  ['and may be back since the check', { lost: '10:59:40', tried: '10:59:50' }, 'crash_loop/history'],
  [
    'while the check failed',
    { lost: '10:59:43', tried: '11:00:03', since: '10:59:44' },
    'crash_loop/history',
  ],
  ['before the check, and tried again after it', { lost: '10:59:43', tried: '11:00:03' }],
])(
  'the page of a role that crashes again and again is lost %s',
  (_, { lost, tried, since = '08:00:00' }, cause) => {
    const ms = (time: string) => Date.parse(`2026-01-01T${time}.000Z`);
    const page = {
      ...{ service: 'history', url: 'http://x', up: false, failures: {}, page: undefined },
      ...{ firstInvalid: undefined, vocabulary: 'svc', lastTakenMs: ms('10:59:00') },
      failingSinceMs: ms(lost),
      lastFailure: { reason: 'refused' as const, what: 'x', atMs: ms(tried) },
    };
    const check = { ...up('health/history'), since: `2026-01-01T${since}.000Z`, intervalMs: 15_000 };
    check.last = { ...check.last!, at: '2026-01-01T11:00:00.000Z' };
    const loop = exceeded('crash_loop', { role: 'history' }, '10:58:00');
    expect(causesIn({ probes: [check], scrapes: [page], exceeded: [loop] })).toContain(
      `scrape_down/history${cause ? ` by ${cause}` : ''}`,
    );
  },
);

test('a log that is deleted while it is written to is why no file of its name is there', () => {
  const fault = (kind: 'gone' | 'deleted', path: string) => ({
    ...{ kind, path, services: ['history'], since: '2026-01-01T11:00:00.000Z' },
  });
  const causes = (gone: string) =>
    causesIn({ logFaults: [fault('deleted', '/logs/history.log'), fault('gone', gone)] as never });
  expect(causes('/logs/history*.log')).toEqual([
    'log_deleted//logs/history.log',
    'log_gone//logs/history*.log by log_deleted//logs/history.log',
  ]);
  expect(causes('/other/history*.log')).toEqual([
    'log_deleted//logs/history.log',
    'log_gone//other/history*.log',
  ]);
});

test('a standby that is a store of its own follows from its primary, and no other store does', () => {
  const standby = (name: string, check: string, follows?: string[], since = '11:30:20') => {
    const failing = {
      check,
      holds: false,
      found: 'x',
      severity: 'recovery_weak',
      since: `2026-01-01T${since}.000Z`,
    };
    const details = { identity: '7', replica: true, follows, checks: [failing] };
    return probeStatusOf(`store/${name}`, { ...last, details: details as never });
  };
  const primary = (identity?: string) => down('store/main', '11:30:00', { details: { identity } });
  const weak = (primaryIdentity: string | undefined, check: string, follows?: string[]) =>
    causesIn({ probes: [primary(primaryIdentity), standby('copy', check, follows)] }).find((one) =>
      one.startsWith('recovery_weak'),
    );
  expect(weak('7', 'replica', ['7'])).toBe('recovery_weak/copy by store_down/main');
  expect(weak('7', 'replica', ['1', '7'])).toBe('recovery_weak/copy by store_down/main');
  expect(weak('8', 'replica', ['7'])).toBe('recovery_weak/copy');
  expect(weak('7', 'replica')).toBe('recovery_weak/copy');
  expect(weak(undefined, 'replica')).toBe('recovery_weak/copy');
  expect(weak('7', 'archiver', ['7'])).toBe('recovery_weak/copy');
  // A check of the primary may be 35 s late. One that lagged before had a cause of its own.
  const lagsSince = (since: string) =>
    causesIn({ probes: [primary('7'), standby('copy', 'replica', ['7'], since)] }).find((one) =>
      one.startsWith('recovery_weak'),
    );
  expect(lagsSince('11:29:25')).toBe('recovery_weak/copy by store_down/main');
  expect(lagsSince('11:29:24')).toBe('recovery_weak/copy');
  // MariaDB tells only the address of the primary. Two primaries that never answered have no identity, but they are not one.
  const at = (address: string | undefined, follows: string[]) =>
    causesIn({
      probes: [down('store/main', '11:30:00', { details: { address } }), standby('copy', 'replica', follows)],
    }).find((one) => one.startsWith('recovery_weak'));
  expect(at('DB-1.test:3306', ['db-1.test:3306'])).toBe('recovery_weak/copy by store_down/main');
  expect(at('db-1.test:3307', ['db-1.test:3306'])).toBe('recovery_weak/copy');
  expect(at(undefined, ['db-1.test:3306'])).toBe('recovery_weak/copy');
});
