import { describe, expect, test } from 'vitest';
import type { StatusFacts } from '../../../../src/agent/report.ts';
import type { Begun, Found } from '../../../../src/agent/verdict/found.ts';
import { kindNames } from '../../../../src/agent/verdict/kinds.ts';
import { createSilence, isIndependent, isWhy, sourcesOf } from '../../../../src/agent/verdict/unread.ts';
import { probeStatusOf, statusFactsOf } from '../../../status-report.ts';

/** The sources of each problem, which of them cannot be read, and what is said about the problem meanwhile. */

type Given = Pick<Found, 'kind'> & Partial<Found>;
const foundOf = (given: Given): Found => ({ subject: '', about: {}, evidence: [], ...given });
const ofRole = (kind: Found['kind'], role = 'history'): Given => ({ kind, subject: role, about: { role } });
const ofProbe = (kind: Found['kind'], probe: string): Given => ({ kind, subject: probe, about: { probe } });

test.each<[Given, string[]]>([
  [{ kind: 'heap', from: ['page/history'] }, ['page/history']],
  [{ kind: 'state' }, []],
  [ofProbe('store_down', 'store/main'), ['result/store/main']],
  // A probe without results is a problem that shows itself.
  [ofProbe('stale', 'store/main'), []],
  [ofProbe('schema', 'store/main'), ['result/store/main', 'target/store/main']],
  [ofProbe('backup_late', 'backup/n'), ['result/backup/n', 'backup/backup/n']],
  [ofProbe('backup_failed', 'backup/n'), ['result/backup/n', 'evidence/backup/n']],
  [ofProbe('backup_gone', 'backup/n'), ['result/backup/n', 'backup/backup/n']],
  [ofProbe('backup_unread', 'backup/n'), ['result/backup/n']],
  [{ kind: 'wal_stalled', subject: 'main/p' }, ['target/store/main/p', 'check/store/main/p wal_backlog']],
  [{ kind: 'archival_stalled', about: { archive: 'a' } }, ['target/archive/a']],
  [{ kind: 'retention_unarchived', about: { archive: 'a' } }, ['target/archive/a', 'targets/domain']],
  [{ kind: 'replication_lag', subject: 'a to b' }, ['lag/a to b']],
  [
    ofProbe('disagreement', 'domain/orders'),
    ['result/domain/orders', 'target/domain/orders', 'clusters/domain/orders'],
  ],
  [
    ofProbe('failover', 'domain/orders'),
    ['result/domain/orders', 'target/domain/orders', 'readiness/domain/orders'],
  ],
  [{ kind: 'replication_failures', about: {} }, []],
  [
    { kind: 'replication_failures', about: { clusters: ['a', 'b'] } },
    ['target/replication/a', 'target/replication/b'],
  ],
])('%j is read from %j', (found, sources) => {
  expect(sourcesOf(foundOf(found))).toEqual(sources);
});

test.each([
  [
    'target',
    [
      ...['disk_full', 'locks', 'connections', 'read_only', 'schema', 'schema_unread', 'data_at_risk'],
      ...['disagreement', 'failover', 'recovery_weak', 'certificate'],
    ],
  ],
  [
    'backup',
    [
      ...['backup_missing', 'backup_gone', 'backup_late', 'backup_damaged', 'backup_offsite'],
      'backup_retention',
    ],
  ],
  ['evidence', ['backup_failed']],
])('what only a check tells that reaches the %s', (by, kinds) => {
  const from = (kind: Found['kind']) => sourcesOf(foundOf(ofProbe(kind, 'p/x')));
  expect(kindNames.filter((kind) => from(kind).includes(`${by}/p/x`))).toEqual(kinds);
});

test.each([
  ['page/history', true],
  ['log/history', true],
  ['result/store/main', true],
  ['target/store/log/p', false],
  ['check/store/main slots', false],
])('the problems that %s shows never silence it: %s', (source, never) => {
  expect(isIndependent(source)).toBe(never);
});

test.each<[string, Given, boolean]>([
  ['page/history', ofRole('role_down'), true],
  ['page/history', ofRole('role_down', 'worker'), false],
  ['page/history', ofRole('heap'), false],
  ['page/history', ofRole('log_gone'), false],
  ['log/history', ofRole('role_down'), true],
  ['log/history', ofRole('log_gone'), true],
  ['log/history', ofRole('log_silent'), true],
  ['log/history', ofRole('log_gone', 'worker'), false],
  ['log/history', ofRole('heap'), false],
  ['lag/a to b', { kind: 'replication' }, true],
  ['lag/a to b', { kind: 'cluster_down', about: { clusters: ['b'] } }, true],
  ['lag/a to b', { kind: 'cluster_down', about: { clusters: ['c'] } }, false],
  ['lag/a to b', { kind: 'domain', about: { clusters: ['a'] } }, false],
  ['check/store/main schema', ofProbe('schema_unread', 'store/main'), true],
  ['check/store/main schema', ofProbe('schema_unread', 'store/other'), false],
  ['check/store/main replica', ofProbe('schema_unread', 'store/main'), false],
  ['check/store/main schema', ofProbe('store_down', 'store/main'), false],
  ['result/store/main', ofProbe('stale', 'store/main'), true],
  ['result/store/main', ofProbe('stale', 'store/other'), false],
  ['result/store/main', ofProbe('store_down', 'store/main'), false],
  ['backup/backup/n', ofProbe('backup_failed', 'backup/n'), true],
  ['backup/backup/n', ofProbe('backup_unread', 'backup/n'), true],
  ['evidence/backup/n', ofProbe('backup_unread', 'backup/n'), true],
  ['evidence/backup/n', ofProbe('backup_failed', 'backup/n'), false],
  ['evidence/backup/n', ofProbe('backup_unread', 'backup/m'), false],
  ['backup/backup/n', ofProbe('backup_failed', 'backup/m'), false],
  ['backup/backup/n', ofProbe('backup_late', 'backup/n'), false],
  ['targets/domain', ofProbe('domain', 'domain/orders'), true],
  ['targets/domain', ofProbe('store_down', 'store/domain'), false],
  ['targets/domain', { kind: 'heap' }, false],
  ['target/store/main', ofProbe('store_down', 'store/main'), true],
  ['target/store/main', ofProbe('store_down', 'store/other'), false],
])('%s cannot be read because of %j: %s', (source, found, is) => {
  expect(isWhy(foundOf(found), source)).toBe(is);
});

const health = (reason?: 'refused' | 'persistence') =>
  probeStatusOf('health/history', reason ? { reason } : {});
const page = (service: string, up: boolean) => ({ service, up }) as StatusFacts['scrapes'][number];
const lag = [
  { source: 'a', target: 'b', lagSeconds: 1 },
  { source: 'c', target: 'd', lagSeconds: 1 },
];
const unchecked = (name: Parameters<typeof probeStatusOf>[0]) => ({
  ...probeStatusOf(name),
  last: undefined,
});

test.each<[string, string, Partial<StatusFacts>, Given[], boolean]>([
  ['a page', 'page/history', { scrapes: [page('worker', false), page('history', true)] }, [], true],
  [
    'a page that is down',
    'page/history',
    { scrapes: [page('worker', true), page('history', false)] },
    [],
    false,
  ],
  [
    'a page that is down of a role that is well',
    'page/history',
    { scrapes: [page('history', false)], probes: [health()] },
    [],
    false,
  ],
  ['datagrams of a role that nobody checks', 'page/history', {}, [], true],
  [
    'datagrams of a role that was not checked yet',
    'page/history',
    { probes: [unchecked('health/history')] },
    [],
    true,
  ],
  ['datagrams of a role that is well', 'page/history', { probes: [health()] }, [], true],
  ['datagrams of a role that runs', 'page/history', { probes: [health('persistence')] }, [], true],
  ['datagrams of a role that is down', 'page/history', { probes: [health('refused')] }, [], false],
  ['a log', 'log/history', {}, [ofRole('log_gone', 'worker'), ofRole('heap')], true],
  ['a log that is gone', 'log/history', {}, [ofRole('heap'), ofRole('log_gone')], false],
  ['a log of a role that is down', 'log/history', { probes: [health('refused')] }, [], false],
  [
    'a log of a role whose page is there',
    'log/history',
    { scrapes: [page('history', true)], probes: [health('refused')] },
    [],
    true,
  ],
  ['a log of a role without its page', 'log/history', { scrapes: [page('history', false)] }, [], false],
  ['a lag', 'lag/a to b', { replication: lag }, [{ kind: 'replication' }], true],
  [
    'another lag',
    'lag/b to a',
    { replication: lag, probes: [probeStatusOf('replication/a'), probeStatusOf('cluster/b')] },
    [],
    false,
  ],
  [
    'a lag of a cluster that nobody watches',
    'lag/a to b',
    { probes: [probeStatusOf('replication/a')] },
    [],
    true,
  ],
  ['results', 'result/store/main', {}, [ofProbe('stale', 'store/other')], true],
  ['no results', 'result/store/main', {}, [{ kind: 'heap' }, ofProbe('stale', 'store/main')], false],
  ['a backup', 'backup/backup/n', {}, [ofProbe('backup_failed', 'backup/m')], true],
  [
    'a backup that cannot be read',
    'backup/backup/n',
    {},
    [{ kind: 'heap' }, ofProbe('backup_failed', 'backup/n')],
    false,
  ],
  ['a target', 'target/store/main', { probes: [probeStatusOf('store/main')] }, [], true],
  ['a target that nobody checks', 'target/store/main', {}, [], true],
  ['a target that was not checked yet', 'target/store/main', { probes: [unchecked('store/main')] }, [], true],
  [
    'a target that fails',
    'target/store/main',
    { probes: [probeStatusOf('store/main', { reason: 'refused' })] },
    [],
    false,
  ],
  ['the readiness of a domain that nobody checks', 'readiness/domain/a', {}, [], true],
  [
    'the readiness of a domain that was not checked yet',
    'readiness/domain/a',
    { probes: [unchecked('domain/a')] },
    [],
    true,
  ],
  [
    'a check of a store, beside another for which the rights do not suffice',
    'check/store/main wal_backlog',
    {
      probes: [probeStatusOf('store/main', { details: { checks: [{ check: 'slots', holds: 'unknown' }] } })],
    },
    [],
    true,
  ],
  [
    'a check for which the rights do not suffice',
    'check/store/main slots',
    {
      probes: [probeStatusOf('store/main', { details: { checks: [{ check: 'slots', holds: 'unknown' }] } })],
    },
    [],
    false,
  ],
  ['a check of a store that nobody checks', 'check/store/main slots', {}, [], true],
  ['all domains', 'targets/domain', { probes: [probeStatusOf('domain/a'), unchecked('domain/a')] }, [], true],
  [
    'all domains, beside a store that is down',
    'targets/domain',
    { probes: [probeStatusOf('domain/a'), probeStatusOf('store/main', { reason: 'refused' })] },
    [],
    true,
  ],
  [
    'one domain of two',
    'targets/domain',
    { probes: [probeStatusOf('domain/a'), probeStatusOf('domain/b', { reason: 'refused' })] },
    [],
    false,
  ],
])('%s, %s', (_, source, facts, now, isRead) => {
  const silence = createSilence();
  const at = { facts: statusFactsOf(facts), nowMs: 0, monotonicMs: 0 };
  silence.of([], now.map(foundOf), [{ line: 'fatal/worker', from: [source] }], at);
  expect(silence.isUnread('fatal/worker')).toBe(!isRead);
});

describe('a problem whose source cannot be read', () => {
  const heap: Begun = { ...foundOf(ofRole('heap')), sinceMs: 5 };
  const restarted: Begun = { ...foundOf(ofRole('role_down')), line: 'probe/health/history', sinceMs: 5 };
  const open = { line: 'heap/history', from: ['page/history', 'page/worker'], cause: {} };
  const earlier = {
    ...{ line: open.line, from: open.from, sinceMs: 5 },
    cause: {
      ...({ id: open.line, severity: 'warning', kind: 'heap', subject: heap.subject } as const),
      ...{ what: 'its heap is full', about: heap.about },
    },
  };
  const facts = (...down: string[]) =>
    statusFactsOf({ scrapes: ['history', 'worker'].map((role) => page(role, !down.includes(role))) });
  const at = (ms: number, ...down: string[]) => ({ facts: facts(...down), nowMs: ms + 1e6, monotonicMs: ms });
  /**
   * The time that the condition on a heap needs after a start, according to its table: ten minutes of values, and one more
   * minute.
   */
  const settledMs = 11 * 60_000;

  test('stays with what it was, since when that is, and why; and settles once it can be read', () => {
    const silence = createSilence();
    const [first] = silence.of([heap], [], [open], at(0, 'history'));
    const unread = { sinceMs: 1e6, sources: ['page/history'], wasCause: true };
    expect(first).toMatchObject({ ...heap, unread });
    expect(silence.of([first!], [], [open], at(10, 'history', 'worker'))).toMatchObject([
      { ...heap, unread: { ...unread, sources: ['page/history', 'page/worker'] } },
    ]);
    const back = { ...heap, unread: { ...unread, sources: [] } };
    expect(silence.of([first!], [], [open], at(20))).toMatchObject([back]);
    expect(silence.of([back], [], [open], at(10 + settledMs - 1))).toMatchObject([back]);
    expect(silence.of([back], [], [open], at(10 + settledMs))).toEqual([]);
    expect(silence.isUnread(open.line)).toBe(false);
  });
  test('is seen again, by its line or by its name', () => {
    const silence = createSilence();
    expect(silence.of([heap], [heap], [open], at(0, 'history'))).toEqual([]);
    expect(silence.isUnread(open.line)).toBe(false);
    const line = { line: restarted.line!, from: ['page/history'] };
    const failing = { ...foundOf(ofRole('role_failing')), line: restarted.line! };
    expect(silence.of([restarted], [failing], [line], at(0, 'history'))).toEqual([]);
    const unlined = foundOf(ofRole('role_down'));
    expect(silence.of([restarted], [unlined], [line], at(0, 'history'))).toEqual([]);
  });
  test('is no incident of its own if another explained it, and ends if it is not in the book', () => {
    const silence = createSilence();
    const { cause: _, ...explained } = open;
    expect(silence.of([heap], [], [explained], at(0, 'history'))[0]?.unread?.wasCause).toBe(false);
    expect(silence.of([heap], [], [], at(0, 'history'))).toEqual([]);
    expect(silence.of([heap], [], [{ line: open.line }], at(0, 'history'))).toEqual([]);
  });
  test.each([
    ['its page counts', ['page/history'], ['page/history'], false],
    ['its page does not count', ['page/history'], [], true],
    ['another page counts', ['page/history'], ['page/worker'], true],
    ['one of two pages does not count', ['page/history', 'page/worker'], ['page/worker'], true],
    ['both pages count', ['page/history', 'page/worker'], ['page/worker', 'page/history'], false],
    ['its page counts, its log does not', ['page/history', 'log/history'], ['page/history'], false],
    ['its log counts, its page does not', ['page/history', 'log/history'], ['log/history'], true],
    ['its log, its only source, counts', ['log/history'], ['log/history'], false],
    ['its log, its only source, does not count', ['log/history'], [], true],
    ['a datagram of its role was counted', ['page/matching'], ['page/matching'], false],
    ['no datagram of its role was counted', ['page/matching'], [], true],
    ['its log is not watched any more', ['log/worker'], [], false],
    ['its page is not watched any more', ['page/frontend'], [], false],
    ['it was found by a check', ['result/store/main'], [], false],
  ])('is one of an earlier agent, and %s', (_, from, counting, isUnread) => {
    const silence = createSilence();
    silence.restore([earlier]);
    const all = statusFactsOf({
      startedAt: new Date(-3_600_000).toISOString(),
      counted: Object.fromEntries(counting.map((source) => [source, new Date(1e6).toISOString()])),
      scrapes: [page('history', true), page('worker', true)],
      statsd: [{ service: 'matching' }] as unknown as StatusFacts['statsd'],
      logs: [{ services: ['history'] }] as unknown as StatusFacts['logs'],
    });
    silence.of([], [], [{ line: open.line, from }], { ...at(0), facts: all });
    expect(silence.isUnread(open.line)).toBe(isUnread);
  });
  test.each([
    ['before its values could show it', settledMs - 1, true],
    ['when its values could show it', settledMs, false],
    ['longer ago than a page may be old', 3_600_000 - 75_001, false],
    ['just now', 3_600_000, false],
  ])('is one of an earlier agent, and its page counted %s', (_, countedMs, isUnread) => {
    const silence = createSilence();
    silence.restore([earlier]);
    const facts = statusFactsOf({
      startedAt: new Date(1e6).toISOString(),
      counted: { 'page/history': new Date(1e6 + countedMs).toISOString() },
      scrapes: [page('history', true)],
    });
    silence.of([], [], [{ line: open.line, from: ['page/history'] }], { ...at(3_600_000), facts });
    expect(silence.isUnread(open.line)).toBe(isUnread);
  });
  const deliveredAtMs = (ms: number) => ({
    reporters: [
      { block: 'metrics', kind: 'hostedmetrics', lastSuccess: new Date(ms).toISOString() },
    ] as const,
  });
  test.each([
    ['its reporter has not delivered yet', 'report/metrics.hostedmetrics', {}, true],
    ['its reporter delivered before it', 'report/metrics.hostedmetrics', deliveredAtMs(1e6 - 1), true],
    ['its reporter delivers', 'report/metrics.hostedmetrics', deliveredAtMs(1e6), false],
    ['another reporter delivers', 'report/metrics.pushmetrics', deliveredAtMs(1e6), true],
    ['its probe has a result', 'stale/store/main', { probes: [probeStatusOf('store/main')] }, false],
    [
      'its probe has a result, as another one has',
      'stale/store/main',
      { probes: [probeStatusOf('store/other'), probeStatusOf('store/main')] },
      false,
    ],
    ['a probe of its name has a result', 'heap/store/main', { probes: [probeStatusOf('store/main')] }, true],
    ['a reporter of its name delivers', 'heap/metrics.hostedmetrics', deliveredAtMs(1e6), true],
    ['its probe has no result yet', 'stale/store/main', { probes: [unchecked('store/main')] }, true],
    ['another probe has a result', 'stale/store/main', { probes: [probeStatusOf('store/other')] }, true],
  ])('is one of an earlier agent, and %s', (_, line, given, isUnread) => {
    const silence = createSilence();
    silence.restore([{ ...earlier, line }]);
    const own = statusFactsOf({ startedAt: new Date(1e6).toISOString(), ...(given as Partial<StatusFacts>) });
    silence.of([], [], [{ line }], { ...at(1), facts: own });
    expect(silence.isUnread(line)).toBe(isUnread);
  });
  test('is one of an earlier agent, whose page counted until shortly before its values could show it', () => {
    const facts = statusFactsOf({
      startedAt: new Date(1e6).toISOString(),
      counted: { 'page/history': new Date(1e6 + settledMs - 30_000).toISOString() },
      scrapes: [page('history', true)],
    });
    const isUnreadAt = (ms: number) => {
      const silence = createSilence();
      silence.restore([earlier]);
      silence.of([], [], [{ line: open.line, from: ['page/history'] }], { ...at(ms), facts });
      return silence.isUnread(open.line);
    };
    // It is silent 75 s after it last counted.
    expect([settledMs - 1, settledMs, settledMs + 45_000, settledMs + 45_001].map(isUnreadAt)).toEqual([
      ...[true, false],
      ...[false, true],
    ]);
  });
  test('is one of an earlier agent, whose values need minutes', () => {
    const started = (ms: number) => ({ ...facts(), startedAt: new Date(1e6 + ms).toISOString() });
    const counted = (ms: number) => {
      const now = new Date(1e6 + ms).toISOString();
      return { counted: { 'page/history': now, 'page/worker': now } };
    };
    const silence = createSilence();
    const restored = silence.restore([earlier]);
    const { about, subject } = heap;
    expect(restored).toMatchObject([
      { kind: 'heap', subject, about, sinceMs: 5, from: open.from, evidence: [] },
    ]);
    const later = (ms: number) => ({ ...at(ms), facts: { ...started(0), ...counted(ms) } });
    expect(silence.of(restored, [], [open], later(10))).toMatchObject([
      { ...restored[0], unread: { sinceMs: 1e6 + 10, sources: [], wasCause: true } },
    ]);
    expect(silence.of(restored, [], [open], later(settledMs - 1))).toHaveLength(1);
    expect(silence.of(restored, [], [open], later(settledMs))).toEqual([]);
  });
  test('is one of an earlier agent, and crashes again and again: the next restart may take six minutes', () => {
    const line = 'crash_loop/history';
    const isUnreadAt = (ms: number) => {
      const silence = createSilence();
      const restart = { line, lastMs: 1e6 };
      silence.restore([{ ...earlier, ...restart }]);
      const own = statusFactsOf({ startedAt: new Date(1e6).toISOString() });
      silence.of([], [], [restart], { ...at(ms), facts: own });
      return silence.isUnread(line);
    };
    expect([359_999, 360_000].map(isUnreadAt)).toEqual([true, false]);
  });
  const just = new Date(1e6 - 1e3).toISOString();
  test.each([
    ['whose state was written', 'state/', {}, false],
    ['whose configuration was loaded', 'reload/', {}, false],
    [
      'whose backup has no result yet',
      'probe/backup/a backup_late',
      { probes: [unchecked('backup/a')] },
      true,
    ],
    [
      'whose backup has a result',
      'probe/backup/a backup_late',
      { probes: [probeStatusOf('backup/a')] },
      false,
    ],
    [
      'whose backup has a longer name',
      'probe/backup/ab backup_late',
      { probes: [probeStatusOf('backup/a')] },
      true,
    ],
    ['whose page was not scraped yet', 'scrape_down/history', {}, true],
  ])('is one of an earlier agent, a second after the start of this one, %s', (_, line, more, isUnread) => {
    const silence = createSilence();
    silence.restore([{ ...earlier, line }]);
    const all = statusFactsOf({ startedAt: just, ...more });
    silence.of([], [], [{ line, from: [] }], { ...at(0), facts: all });
    expect(silence.isUnread(line)).toBe(isUnread);
  });
  test.each([
    ['of another version', {}, { kind: 'unheard_of' }],
    ['with another cause', { cause: undefined }, {}],
  ])('is none of an earlier agent that is shown: %s', (_, line, cause) => {
    const one = { ...earlier, cause: { ...earlier.cause, ...cause }, ...line };
    expect(createSilence().restore([one])).toEqual([]);
  });
  test('is one of an earlier agent until this one has seen it', () => {
    const silence = createSilence();
    silence.restore([earlier]);
    silence.of([], [heap], [open], at(0));
    silence.of([heap], [], [open], at(10));
    expect(silence.isUnread(open.line)).toBe(false);
  });
  test('is one of whose sources one counts nothing, by its subject', () => {
    const silent = {
      ...{
        kind: 'heap',
        about: { role: 'history' },
        value: '9',
        limit: '5',
        since: '2026-01-01T00:00:00.000Z',
      },
      silent: ['page/history'],
    };
    const silence = createSilence();
    const seen = (exceeded: StatusFacts['exceeded'], from = open.from) => {
      silence.of([], [], [{ ...open, from }], { ...at(0), facts: { ...facts(), exceeded } });
      return silence.isUnread(open.line);
    };
    expect(seen([{ ...silent, about: { role: 'worker' } }])).toBe(false);
    expect(seen([silent], ['page/worker'])).toBe(false);
    expect(seen([silent])).toBe(true);
  });
});
