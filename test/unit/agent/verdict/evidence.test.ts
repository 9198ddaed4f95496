import { describe, expect, test } from 'vitest';
import type { ProbeStatus, StatusFacts } from '../../../../src/agent/report.ts';
import { isPageDown, problemsIn } from '../../../../src/agent/verdict/evidence.ts';
import { probeStatusOf, statusFactsOf } from '../../../status-report.ts';

const now = '2026-01-01T12:00:00.000Z';
const nowMs = Date.parse(now);
const atOf = (seconds: number) => new Date(nowMs + seconds * 1e3).toISOString();
const found = (facts: Partial<StatusFacts>) => problemsIn(statusFactsOf({ now, ...facts }), nowMs);
const kindsOf = (facts: Partial<StatusFacts>) => found(facts).map(({ kind }) => kind);
type Last = NonNullable<Parameters<typeof probeStatusOf>[1]>;
const refused = { reason: 'refused', msg: 'connection refused' } as const;
const probe = (name: Parameters<typeof probeStatusOf>[0], last: Last = {}, more: Partial<ProbeStatus> = {}) =>
  probeStatusOf(name, { at: atOf(-1), ...last }, { since: atOf(-60), ...more });

describe('a failing probe', () => {
  test('shows its phase and how long it took', () => {
    const phasesMs = { resolve: 1, first_byte: 9 };
    const [one] = found({
      probes: [probe('store/main/p', { ...refused, phasesMs, durationMs: 10.4 } as never)],
    });
    expect(one?.evidence).toEqual([
      {
        source: 'probe',
        text: 'store/main/p: connection refused, in phase first byte after 10 ms',
        at: atOf(-1),
      },
    ]);
    // If a check is well, there is no phase in which it failed.
    const [flapping] = found({
      probes: [probe('health/history', { phasesMs } as never, { flapping: true })],
    });
    expect(flapping?.evidence[0]?.text).toBe('health/history: ok');
  });
  test('is as old as its state, or as its first failure in a row', () => {
    const sinceOf = (more: Partial<ProbeStatus>) =>
      (found({ probes: [probe('health/history', refused, more)] })[0]!.sinceMs! - nowMs) / 1e3;
    const row = { failingSince: atOf(-31) };
    expect(sinceOf({ state: 'down', ...row })).toBe(-60);
    expect(sinceOf({ state: 'down', since: undefined, ...row })).toBe(-31);
    expect(sinceOf({ state: 'up', ...row })).toBe(-31);
    expect(sinceOf({ state: 'up' })).toBe(-1);
    // The clock was set back after the first failure.
    expect(sinceOf({ state: 'up', failingSince: atOf(3_000) })).toBe(-1);
    // A state that is younger than the check is as old as the check.
    expect(sinceOf({ state: 'down', since: atOf(30), ...row })).toBe(-1);
  });
  test.each<[Parameters<typeof probeStatusOf>[0], Last, object]>([
    ['health/history', refused, { role: 'history' }],
    ['store/main/p', refused, { store: 'main' }],
    ['recovery/main/p', refused, { store: 'main' }],
    ['rehearsal/main/p', refused, { store: 'main' }],
    ['backup/full', { ...refused, details: { store: 'main' } }, { store: 'main' }],
    ['backup/full', { ...refused, details: { store: 7 } }, {}],
    ['backup/full', refused, {}],
    ['cluster/dc2', refused, { clusters: ['dc2'] }],
    [
      'domain/orders',
      { ...refused, details: { clusters: ['a', 'b'] } },
      { domain: 'orders', clusters: ['a', 'b'] },
    ],
    ['domain/orders', refused, { domain: 'orders', clusters: [] }],
    ['archive/history', refused, { archive: 'history' }],
    ['replication/dc2', refused, {}],
  ])('%s is about its target', (name, last, about) => {
    expect(found({ probes: [probe(name, last)] })[0]?.about).toEqual({ probe: name, ...about });
  });
  test('of a store and of a cluster says in its predicate what it does', () => {
    const predicateOf = (name: Parameters<typeof probeStatusOf>[0], reason: string) =>
      found({ probes: [probe(name, { reason, msg: 'x' } as never)] })[0]?.predicate;
    expect(predicateOf('store/main/p', 'too_slow')).toBe('does|do not answer');
    expect(predicateOf('cluster/dc2', 'resolve')).toBe('has|have no address');
    expect(predicateOf('cluster/dc2', 'not_ok')).toBe('is|are unhealthy');
    expect(predicateOf('cluster/dc2', 'persistence')).toBe('cannot use its|their store');
    expect(predicateOf('health/history', 'too_slow')).toBeUndefined();
    expect(predicateOf('health/history', 'tls_expired')).toBe('has|have an expired certificate');
    expect(predicateOf('health/history', 'persistence')).toBe('cannot use its|their store');
    const notYetDown = probe('health/history', { reason: 'persistence', msg: 'x' } as never, { state: 'up' });
    expect(found({ probes: [notYetDown] })).toMatchObject([{ kind: 'role_failing' }]);
    expect(found({ probes: [notYetDown] })[0]?.predicate).toBeUndefined();
    expect(predicateOf('domain/orders', 'persistence')).toBeUndefined();
    expect(predicateOf('store/main/p', 'other')).toBeUndefined();
  });
  test('of a store is an outage in whatever state it was', () => {
    expect(kindsOf({ probes: [probe('store/main/p', refused, { state: 'up' })] })).toEqual(['store_down']);
  });
  test('that has no result yet shows nothing', () => {
    for (const name of ['health/history', 'store/main/p', 'domain/orders'] as const)
      expect(kindsOf({ probes: [{ ...probe(name), last: undefined }] })).toEqual([]);
  });
  test('of a store on a full disk has that as its cause, whatever the message says', () => {
    const found = 'data: 0.0 of 9.0 GiB free';
    const checks = [{ check: 'free_space', holds: false, found, severity: 'data_at_risk' }];
    const down = (msg: string) => ({ reason: 'refused', msg, details: { checks } }) as never;
    for (const msg of ['refused', 'No space left on device'])
      expect(kindsOf({ probes: [probe('store/main/p', down(msg))] })).toEqual(['store_down', 'disk_full']);
  });
  test('of a store whose message says so has a full disk, too', () => {
    const full = { reason: 'failed', msg: 'could not extend file: No space left on device' } as never;
    expect(kindsOf({ probes: [probe('store/main/p', full)] })).toEqual(['disk_full', 'store_down']);
    for (const msg of ['Disk full (/tmp)', 'database or disk is full', 'ENOSPC: write'])
      expect(kindsOf({ probes: [probe('store/main/p', { ...(full as object), msg } as never)] })).toEqual([
        'disk_full',
        'store_down',
      ]);
    expect(kindsOf({ probes: [probe('health/history', full)] })).toEqual(['role_down']);
    // A check of something else does not measure the disk.
    const checks = [{ check: 'slots', holds: false, found: 'x', severity: 'recovery_weak' }];
    const beside = { ...(full as object), details: { checks } } as never;
    expect(kindsOf({ probes: [probe('store/main/p', beside)] })).toEqual([
      'disk_full',
      'store_down',
      'recovery_weak',
    ]);
    expect(kindsOf({ probes: [probe('store/main/p', refused)] })).toEqual(['store_down']);
  });
  test.each([
    ['no_backup', 'backup_missing'],
    ['late', 'backup_late'],
    ['corrupt', 'backup_damaged'],
    ['incomplete', 'backup_damaged'],
    ['shrunken', 'backup_damaged'],
    ['log_gap', 'backup_damaged'],
    ['chain_broken', 'backup_damaged'],
    ['offsite_missing', 'backup_offsite'],
    ['retention', 'backup_retention'],
    ['snapshot_not_cleared', 'backup_retention'],
    ['directory_gone', 'backup_gone'],
    ['evidence_unreadable', 'backup_unread'],
    ['too_slow', 'backup_unread'],
    ['failed', 'backup_unread'],
    ['backup_failed', 'backup_failed'],
  ])('of a backup: %s is %s', (reason, kind) => {
    const [one] = found({ probes: [probe('backup/full', { reason, msg: 'x' } as never)] });
    expect([one?.kind, one?.line]).toEqual([kind, `probe/backup/full ${kind}`]);
    const isUnread = kind === 'backup_unread' || kind === 'backup_gone';
    expect(one?.firstSteps !== undefined).toBe(isUnread);
  });
  test('of a domain is one of its clusters where they differ', () => {
    const kindOf = (name: Parameters<typeof probeStatusOf>[0], reason: string) =>
      kindsOf({ probes: [probe(name, { reason, msg: 'x' } as never)] })[0];
    expect(kindOf('domain/orders', 'clusters_disagree')).toBe('disagreement');
    // Each has a start of its own.
    const lines = ['clusters_disagree', 'failed'].map((reason) => {
      const [one] = found({ probes: [probe('domain/orders', { reason, msg: 'x' } as never)] });
      return one?.line;
    });
    expect(lines).toEqual(['probe/domain/orders disagreement', 'probe/domain/orders domain']);
    expect(kindOf('domain/orders', 'version_mismatch')).toBe('disagreement');
    expect(kindOf('domain/orders', 'failed')).toBe('domain');
    expect(kindOf('cluster/dc2', 'version_mismatch')).toBe('cluster_down');
  });
});

test('a result is stale after three intervals and a timeout', () => {
  const stale = (ageMs: number) =>
    kindsOf({
      probes: [
        probe(
          'health/history',
          { at: new Date(nowMs - ageMs).toISOString() },
          { intervalMs: 10_000, timeoutMs: 5_000 },
        ),
      ],
    });
  // The wall clock was set: the time that has passed counts.
  const jumped = (ageMs: number) => ({ intervalMs: 10_000, timeoutMs: 5_000, ageMs });
  const of = (ageMs: number) =>
    kindsOf({ probes: [probe('health/history', { at: atOf(-86_400) }, jumped(ageMs))] });
  expect([of(35_000), of(35_001)]).toEqual([[], ['stale']]);
  expect(stale(35_000)).toEqual([]);
  expect(stale(35_001)).toEqual(['stale']);
});

describe('the checks of a store', () => {
  const check = (name: string, severity: string, more = {}) => ({
    check: name,
    holds: false,
    found: 'bad',
    severity,
    ...more,
  });
  const store = (checks: object[], more = {}) => probe('store/main/p', { details: { checks, ...more } });
  const backup = (details?: Record<string, unknown>) => probe('backup/log', details ? { details } : {});
  test.each<[string, object, string[]]>([
    ['holds', check('fsync', 'data_at_risk', { holds: true }), []],
    ['is not known', check('fsync', 'data_at_risk', { holds: 'unknown' }), []],
    ['is accepted', check('fsync', 'data_at_risk', { accepted: 'why' }), []],
    ['fails', check('fsync', 'data_at_risk'), ['data_at_risk']],
    ['weakens recovery', check('x', 'recovery_weak'), ['recovery_weak']],
    ['is advice', check('x', 'advice'), []],
    ['is advice on connections', check('connections', 'advice'), ['connections']],
    ['is advice on locks', check('lock_waits', 'advice'), ['locks']],
  ])('one that %s', (_, one, kinds) => {
    expect(kindsOf({ probes: [store([one])] })).toEqual(kinds);
  });
  test('are the owner’s decision without backups that need them', () => {
    const weak = store([check('archive_mode', 'recovery_weak')]);
    expect(kindsOf({ probes: [weak] })).toEqual([]);
    expect(kindsOf({ probes: [weak, backup({ store: 'main', type: 'log' })] })).toEqual(['recovery_weak']);
    expect(kindsOf({ probes: [weak, backup({ store: 'other', type: 'log' })] })).toEqual([]);
    expect(kindsOf({ probes: [weak, backup({ store: 'main', type: 'full' })] })).toEqual([]);
    expect(kindsOf({ probes: [weak, backup(), { ...backup(), last: undefined }] })).toEqual([]);
    // The probe of a store does not count as a backup.
    const other = probe('store/main/q', { details: { store: 'main', type: 'log' } });
    expect(kindsOf({ probes: [weak, other] })).toEqual([]);
  });
  test('a server that is read only is a problem unless it is a replica', () => {
    expect(kindsOf({ probes: [store([], { readOnly: true })] })).toEqual(['read_only']);
    expect(kindsOf({ probes: [store([], { readOnly: true, replica: true })] })).toEqual([]);
    expect(kindsOf({ probes: [store([], { readOnly: false })] })).toEqual([]);
    // They say nothing about another kind of probe.
    expect(kindsOf({ probes: [probe('health/history', { details: { readOnly: true } })] })).toEqual([]);
  });
});

test.each<[string, object, number, string[]]>([
  [
    'not ready, of two clusters',
    { failover: { ready: false, why: 'x' }, clusters: ['a', 'b'] },
    0,
    ['failover'],
  ],
  ['not ready, beside another cluster', { failover: { ready: false }, clusters: ['a'] }, 2, ['failover']],
  ['not ready, of one cluster', { failover: { ready: false }, clusters: ['a'] }, 1, []],
  ['not ready, of clusters that are not known', { failover: { ready: false } }, 0, []],
  ['local', { failover: { ready: false }, global: false, clusters: ['a', 'b'] }, 0, []],
  ['ready', { failover: { ready: true }, clusters: ['a', 'b'] }, 0, []],
  ['not judged', { clusters: ['a', 'b'] }, 2, []],
])('a domain that is %s', (_, details, clusters, kinds) => {
  const others = Array.from({ length: clusters }, (_unused, i) => probe(`cluster/${i}`));
  const domain = probe('domain/orders', { details: details as Record<string, unknown> });
  expect(kindsOf({ probes: [domain, ...others] })).toEqual(kinds);
  expect(kindsOf({ probes: [{ ...domain, name: 'health/x', kind: 'health' }, ...others] })).toEqual([]);
});

test('a domain of several clusters lacks a standby that is ready; a domain of one cluster lacks the standby', () => {
  const stepsOf = (...clusters: string[]) => {
    const domain = probe('domain/orders', { details: { failover: { ready: false }, clusters } });
    return found({ probes: [domain, probe('cluster/a'), probe('cluster/b')] })[0]?.firstSteps;
  };
  expect(stepsOf('a', 'b')).toMatch(/^Check that a standby answers/);
  // Those of the alert.
  expect(stepsOf('a')).toBeUndefined();
});

test('what to do about a target that flaps is said where the alert on roles does not say it', () => {
  const stepsOf = (name: Parameters<typeof probeStatusOf>[0]) =>
    found({ probes: [probe(name, {}, { flapping: true })] })[0]?.firstSteps;
  expect(stepsOf('store/main/p')).toMatch(/^Read the last failures of the probe/);
  expect(stepsOf('health/history')).toBeUndefined();
});

test('the reason is not repeated where the predicate says it', () => {
  const detailOf = (name: Parameters<typeof probeStatusOf>[0], reason: string) =>
    found({ probes: [probe(name, { reason, msg: 'it is 26 h old' } as never)] })[0]?.detail;
  expect(detailOf('backup/full', 'late')).toBe('it is 26 h old');
  expect(detailOf('backup/full', 'shrunken')).toBe('shrunken: it is 26 h old');
  expect(detailOf('store/main/p', 'denied')).toBe('it is 26 h old');
  expect(detailOf('store/main/p', 'protocol')).toBe('protocol: it is 26 h old');
});

test('a role that cannot be scraped is told unless its health check fails', () => {
  const scrape = (more: object) => ({
    ...{ service: 'history', url: 'http://h/metrics', up: false, lastTakenMs: nowMs - 14_000, failures: {} },
    failingSinceMs: nowMs - 9_000,
    ...{ lastFailure: { reason: 'status' as const, what: '500', atMs: nowMs - 1_000 } },
    ...{ page: undefined, firstInvalid: undefined, vocabulary: undefined },
    ...more,
  });
  const told = (more: object, ...probes: ProbeStatus[]) => found({ scrapes: [scrape(more)], probes });
  expect(told({})).toMatchObject([
    {
      kind: 'scrape_down',
      sinceMs: nowMs - 9_000,
      evidence: [{ text: 'scrape of history: status: 500', at: atOf(-1) }],
    },
  ]);
  expect(told({ lastTakenMs: undefined })).toMatchObject([{ sinceMs: nowMs - 9_000 }]);
  expect(told({ up: true })).toEqual([]);
  expect(told({ lastFailure: undefined })).toEqual([]);
  expect(told({}, probe('health/history', refused)).map(({ kind }) => kind)).toEqual(['role_down']);
  expect(told({}, probe('health/matching', refused)).map(({ kind }) => kind)).toEqual([
    'role_down',
    'scrape_down',
  ]);
  expect(told({}, probe('health/history')).map(({ kind }) => kind)).toEqual(['scrape_down']);
  expect(told({}, { ...probe('health/history'), last: undefined })).toHaveLength(1);
  // A check that failed since then is no recovery, and one of a role that is well is no outage of its page.
  const failing = probe('health/history', refused, {
    state: 'up',
    failingSince: atOf(-0.5),
    since: atOf(-0.5),
  });
  expect(told({ failingSinceMs: nowMs - 500_000 }, failing).map(({ kind }) => kind)).toEqual([
    'role_failing',
    'scrape_down',
  ]);
  // Of a page that never was there, nobody knows when it was lost.
  const never = { lastTakenMs: undefined, failingSinceMs: nowMs - 500_000 };
  expect(told(never, failing).map(({ kind }) => kind)).toEqual(['role_failing']);
  expect(told({}, probe('health/history', { at: atOf(-9_000) })).map(({ kind }) => kind)).toEqual([
    'stale',
    'scrape_down',
  ]);
  // The check that passes since the moment of the failed scrape says nothing of the time after it.
  const since = (seconds: number) => probe('health/history', {}, { since: atOf(seconds) });
  expect(told({}, since(-1)).map(({ kind }) => kind)).toEqual(['scrape_down']);
  expect(told({}, since(-0.5))).toEqual([]);
  expect(told({}, probe('health/matching', {}, { since: atOf(-0.5) }))).toHaveLength(1);
  // Other problems of the role do not hide its page.
  const flapping = probe('health/history', {}, { flapping: true });
  expect(told({}, flapping).map(({ kind }) => kind)).toEqual(['flapping', 'scrape_down']);
});

test.each([
  ['tls_hostname', 'Use a name of the certificate as the address, or set tls.serverName.'],
  ['tls_expired', 'Renew the certificate on the server, and check that the server loaded it.'],
  ['tls', /^Check the keys tls of the configuration/],
  ['credentials', /^Set auth of this target in the configuration/],
  ['persistence', undefined],
  ['refused', undefined],
])('the first steps for the reason %s are the same for a check and a page', (reason, steps) => {
  const wanted = steps instanceof RegExp ? expect.stringMatching(steps) : steps;
  const last = { reason: reason as never, msg: 'no' };
  expect(found({ probes: [probe('health/history', last)] })[0]?.firstSteps).toEqual(wanted);
  const scrape = { service: 'history', up: false, lastFailure: { reason, what: 'no', atMs: nowMs } };
  const isUp = probe('health/history', {}, { since: atOf(-60) });
  const ofPage = found({ probes: [isUp], scrapes: [scrape as never] });
  expect(ofPage.map(({ kind, firstSteps }) => [kind, firstSteps])).toEqual([['scrape_down', wanted]]);
});

test.each([
  ['credentials', 'cannot be checked'],
  ['tls_untrusted', 'cannot be checked'],
  ['tls_hostname', 'cannot be checked'],
  ['tls_expired', 'has|have an expired certificate'],
  ['persistence', 'cannot use its|their store'],
  ['refused', undefined],
])('a role whose health check fails for %s: %s', (reason, predicate) => {
  const [one] = found({ probes: [probe('health/history', { reason: reason as never, msg: 'no' })] });
  expect(one).toMatchObject({ kind: 'role_down', predicate });
});

test('a cluster that is down has the domains that are active in it as evidence, and what is known of their failover', () => {
  const down = probe('cluster/dc1', refused);
  const domain = (name: string, activeCluster: string, failover?: object) =>
    probe(`domain/${name}`, { details: { activeCluster, failover, clusters: ['dc1', 'dc2'] } as never });
  const said = (...domains: ProbeStatus[]) =>
    found({ probes: [down, ...domains] })
      .find(({ kind }) => kind === 'cluster_down')!
      .evidence.slice(1)
      .map(({ text }) => text);
  const unknown = { why: 'where the domain is active is not known through dc1' };
  expect(said()).toEqual([]);
  expect(said(domain('orders', 'dc2', unknown))).toEqual([]);
  expect(said(domain('orders', 'dc1', unknown))).toEqual([
    'domain orders is active in dc1; it is not known whether it can fail over: where the domain is active is not known through dc1',
  ]);
  const late = { ready: false, why: 'dc2 is 900 s behind dc1' };
  expect(said(domain('orders', 'dc1', late), domain('payments', 'dc1', unknown))).toEqual([
    '2 domains are active in dc1; orders cannot fail over: dc2 is 900 s behind dc1',
  ]);
  expect(said(domain('orders', 'dc1', { ready: true, why: 'dc2 answers' }))).toEqual([
    'domain orders is active in dc1; it can fail over: dc2 answers',
  ]);
  expect(said(domain('orders', 'dc1'))).toEqual([
    'domain orders is active in dc1; it cannot fail over: it is a local domain',
  ]);
  // Of a domain that was not checked yet, or whose check fails, nothing is known.
  expect(said({ ...probe('domain/orders'), last: undefined }, probe('domain/payments', refused))).toEqual([]);
  // A store is no cluster, whatever its name is.
  const ofStore = found({ probes: [probe('store/dc1', refused), domain('orders', 'dc1', late)] });
  expect(ofStore.find(({ kind }) => kind === 'store_down')?.evidence).toHaveLength(1);
});

test('a page that cannot be read shows that the role may be gone, unless the role passes its health check', () => {
  const scrape = {
    service: 'history',
    up: false,
    lastFailure: { reason: 'refused', what: 'no', atMs: nowMs },
  };
  const stepsWith = (...probes: ProbeStatus[]) =>
    found({ probes, scrapes: [scrape as never] }).find(({ kind }) => kind === 'scrape_down')?.firstSteps;
  const ofProcess = /^Check whether the process runs/;
  expect(stepsWith()).toMatch(ofProcess);
  expect(stepsWith(probe('health/matching'))).toMatch(ofProcess);
  expect(stepsWith({ ...probe('health/history'), last: undefined })).toMatch(ofProcess);
  expect(stepsWith(probe('health/history', {}, { since: atOf(-60) }))).toBeUndefined();
});

test('a log file is about its role if it has one', () => {
  const log = (state: string, lagBytes = 0, services = ['history']) =>
    found({ logs: [{ path: '/a', services, offset: 0, lagBytes, state }] });
  expect(log('unreadable')).toMatchObject([
    { kind: 'log_unread', about: { role: 'history' }, detail: 'unreadable' },
  ]);
  expect(log('unreadable', 0, ['a', 'b'])[0]?.about).toEqual({});
  for (const state of ['following', 'missing', 'not read: another role has it'])
    expect(log(state)).toEqual([]);
  expect(log('it is not read: ')).toHaveLength(1);
  // The limit of the alert is 64 MiB.
  expect(log('following', 64 * 2 ** 20)).toEqual([]);
  expect(log('following', 64 * 2 ** 20 + 1)).toMatchObject([{ kind: 'log_lag', detail: '64 MiB behind' }]);
  const fault = (services: string[]) =>
    found({ logFaults: [{ kind: 'gone', path: '/a', services, since: atOf(-9) }] })[0];
  expect([fault(['history'])?.about, fault(['a', 'b'])?.about]).toEqual([{ role: 'history' }, {}]);
  expect(fault(['history'])?.sinceMs).toBe(nowMs - 9_000);
});

test('what the agent says of itself', () => {
  const state = { directory: '/s', sequence: 1, commitFailures: 0 };
  expect(kindsOf({ state })).toEqual([]);
  const full = { degraded: 'write', error: 'no space left on device (ENOSPC)', lastCommitAt: atOf(-9) };
  expect(found({ state: { ...state, ...full } })).toMatchObject([
    {
      kind: 'state',
      subject: '',
      detail: 'write fails in /s: no space left on device (ENOSPC)',
      sinceMs: nowMs - 9_000,
    },
  ]);
  const denied = { degraded: 'no_directory', error: 'permission denied (EACCES)' };
  expect(found({ state: { ...state, ...denied } })[0]?.detail).toBe(
    'the agent cannot use /s: permission denied (EACCES)',
  );
  expect(found({ config: { files: [], lastReloadSuccessful: false, lastReloadError: 'bad' } })).toMatchObject(
    [{ kind: 'reload', detail: 'bad' }],
  );
  const lastFailure = { reason: 'credentials', what: 'status 401: no such token', at: atOf(-1) };
  const reporter = { block: 'metrics', kind: 'hostedmetrics', failingSince: atOf(-9), lastFailure } as never;
  const detail = 'credentials: status 401: no such token';
  expect(found({ reporters: [reporter] })).toMatchObject([
    {
      ...{ kind: 'report', subject: 'metrics.hostedmetrics', sinceMs: nowMs - 9_000, detail },
      ...{ evidence: [{ text: `report of metrics.hostedmetrics: ${detail}`, at: atOf(-1) }] },
      firstSteps:
        'Set auth of this target in the configuration to what the server asks for, and check that its secret can be read.',
    },
  ]);
  expect(found({ reporters: [{ block: 'metrics', kind: 'pushmetrics' } as never] })).toEqual([]);
  // It delivers again, or nothing is known of its failure.
  for (const gone of [{ failingSince: undefined }, { lastFailure: undefined }])
    expect(found({ reporters: [{ ...(reporter as object), ...gone } as never] })).toEqual([]);
});

test('a certificate of the agent that cannot be replaced, and one that has ended, which is worse', () => {
  const day = 86_400;
  const of = (notAfter: number, refused?: string) =>
    found({ listeners: [{ listener: 'pull', certificate: { notAfter: atOf(notAfter), refused } } as never] });
  expect(found({ listeners: [{ listener: 'pull' } as never] })).toEqual([]);
  expect(of(15 * day)).toEqual([]);
  expect(of(13 * day)).toMatchObject([
    { kind: 'certificate', subject: 'listener pull', detail: `on ${atOf(13 * day)}` },
  ]);
  for (const left of [13, 15])
    expect(of(left * day, 'no key')).toMatchObject([
      { predicate: 'is|are not replaced by the new files, which cannot be used', detail: 'no key' },
    ]);
  expect(of(-1, 'no key')).toMatchObject([{ predicate: 'has|have expired', detail: `on ${atOf(-1)}` }]);
});

test('a lag of replication above its limit', () => {
  const lag = (lagSeconds: number) => found({ replication: [{ source: 'a', target: 'b', lagSeconds }] });
  // The limit of the alert is five minutes.
  expect(lag(300)).toEqual([]);
  expect(lag(300.5)).toMatchObject([
    { kind: 'replication_lag', subject: 'a to b', about: { clusters: ['a', 'b'] } },
  ]);
});

test('a certificate that ends within 14 days, and one that has ended', () => {
  const day = 86_400;
  const certificate = (seconds: number) =>
    found({ certificates: [{ probe: 'health/history', notAfter: atOf(seconds) }] })[0];
  expect(certificate(14 * day)).toBeUndefined();
  expect(certificate(14 * day - 1)).toMatchObject({
    kind: 'certificate',
    about: { probe: 'health/history' },
  });
  expect(certificate(1)).not.toHaveProperty('predicate');
  expect(certificate(0)?.predicate).toBe('has|have expired');
});

const lastFailure = { reason: 'status', what: '500', atMs: 0 };
test.each([
  ['down', 'scrape_down/history', { up: false, lastFailure }, true],
  ['of another role', 'scrape_down/matching', { up: false, lastFailure }, false],
  ['up again', 'scrape_down/history', { up: true, lastFailure }, false],
  ['not scraped yet', 'scrape_down/history', { up: false }, false],
])('the page of a line is %s', (_, line, page, isDown) => {
  const scrapes = [{ service: 'history', ...page }] as unknown as StatusFacts['scrapes'];
  expect(isPageDown(line, statusFactsOf({ scrapes }))).toBe(isDown);
});
