import { describe, expect, test } from 'vitest';
import {
  type Change,
  changeKinds,
  type ProbeStatus,
  type StatusFacts,
} from '../../../../src/agent/report.ts';
import { createJudge, type Judge } from '../../../../src/agent/verdict/verdict.ts';
import { probeStatusOf, statusFactsOf } from '../../../status-report.ts';

const startMs = Date.parse('2026-01-01T00:00:00.000Z');
const atOf = (seconds: number) => new Date(startMs + seconds * 1e3).toISOString();
const look = (judge: Judge, seconds: number, facts: Partial<StatusFacts>) =>
  judge.judge(
    statusFactsOf({ startedAt: atOf(-3600), now: atOf(seconds), ...facts }),
    startMs + seconds * 1e3,
  );
const down = (name: Parameters<typeof probeStatusOf>[0], seconds: number, at = seconds): ProbeStatus =>
  probeStatusOf(name, { at: atOf(at), reason: 'too_slow', msg: 'late' }, { since: atOf(seconds) });
const exceeded = (kind: string, seconds: number) => ({
  ...{ kind, about: { role: 'history' }, value: '9', limit: '5', since: atOf(seconds) },
});

describe('the exit of a process', () => {
  const exitsOf = (facts: Partial<StatusFacts>, ...changes: Partial<Change>[]) => {
    const judge = createJudge();
    for (const change of changes)
      judge.announce({ at: atOf(0), kind: 'exit', role: 'history', what: 'killed', ...change });
    const { problems } = look(judge, 700, facts).verdict;
    return problems.flatMap(({ evidence }) => evidence).filter(({ source }) => source === 'exit');
  };
  test('belongs to the end of its role, up to ten minutes before', () => {
    const ended = (seconds: number) => ({ probes: [down('health/history', seconds, 700)] });
    expect(exitsOf(ended(600), {})).toEqual([{ source: 'exit', text: 'killed', at: atOf(0) }]);
    expect(exitsOf(ended(601), {})).toEqual([]);
    expect(exitsOf(ended(10), { kind: 'note' })).toEqual([]);
    expect(exitsOf(ended(10), { role: 'matching' })).toEqual([]);
    const failing = { ...down('health/history', 10, 700), state: 'up' as const, failingSince: atOf(10) };
    expect(exitsOf({ probes: [failing] }, {})).toHaveLength(1);
    const lastFailure = { reason: 'refused', what: 'no', atMs: Date.parse(atOf(690)) };
    const page = { service: 'history', up: false, lastFailure } as unknown as StatusFacts['scrapes'][number];
    expect(exitsOf({ scrapes: [{ ...page, failingSinceMs: Date.parse(atOf(10)) }] }, {})).toHaveLength(1);
    for (const kind of ['crash_loop', 'fatal'])
      expect(exitsOf({ exceeded: [exceeded(kind, 10)] }, {})).toHaveLength(1);
  });
  test('says nothing of a problem that is no end', () => {
    expect(exitsOf({ exceeded: [exceeded('heap', 10)] }, {})).toEqual([]);
  });
});

describe('what changed before a problem', () => {
  const changesOf = (sinceS: number, ...changes: Partial<Change>[]) => {
    const judge = createJudge();
    for (const change of changes) judge.announce({ at: atOf(0), kind: 'note', what: 'x', ...change });
    return look(judge, sinceS + 10, { probes: [down('store/main', sinceS)] }).verdict.problems[0]?.changes;
  };
  test('is of the half hour before it, its moment included', () => {
    expect(changesOf(0, {})).toHaveLength(1);
    expect(changesOf(1_800, {})).toHaveLength(1);
    expect(changesOf(1_801, {})).toBeUndefined();
    expect(changesOf(5, { at: atOf(6) })).toBeUndefined();
  });
  test('is told once for equal ones, the newest five', () => {
    const times = (what: string, ...seconds: number[]) => seconds.map((one) => ({ what, at: atOf(one) }));
    expect(changesOf(100, ...times('x', 1, 2, 3))).toEqual([{ kind: 'note', what: 'x', at: atOf(3) }]);
    const many = [1, 2, 3, 4, 5, 6].flatMap((one) => times(`${one}`, one));
    expect(changesOf(100, ...many)?.map(({ what }) => what)).toEqual(['6', '5', '4', '3', '2']);
  });
  test('is in the sentence, unless it is as often the effect of a problem', () => {
    const isTold = (kind: Change['kind']) => {
      const judge = createJudge();
      judge.announce({ at: atOf(0), kind, what: 'x' });
      return look(judge, 20, { probes: [down('store/main', 10)] }).verdict.sentence.includes(
        'Shortly before',
      );
    };
    expect(changeKinds.filter((kind) => !isTold(kind))).toEqual(['restart', 'maintenance', 'exit']);
  });
  test('stands beside causes, and not beside what they explain', () => {
    const judge = createJudge();
    judge.announce({ at: atOf(0), kind: 'deploy', what: 'x' });
    const { problems } = look(judge, 60, {
      probes: [down('store/main', 30)],
      exceeded: [exceeded('persistence_errors', 40)],
    }).verdict;
    expect(problems.map(({ changes }) => changes?.length)).toEqual([1, undefined]);
    expect(problems[1]).not.toHaveProperty('changes');
    expect(problems[0]).not.toHaveProperty('causedBy');
    expect(problems[0]).not.toHaveProperty('fix');
    expect(problems[1]?.causedBy).toBe('store_down/main');
  });
});

test('a cause that is found after its effect begins with it, and then keeps this start', () => {
  const judge = createJudge();
  const role = (at: number): ProbeStatus =>
    probeStatusOf(
      'health/history',
      { at: atOf(at), reason: 'persistence', msg: 'no store' },
      { since: atOf(60) },
    );
  look(judge, 60, { probes: [role(60)] });
  for (const seconds of [62, 70]) {
    const { verdict } = look(judge, seconds, { probes: [role(60), down('store/main', 61, 61)] });
    expect(verdict.problems.map(({ id, since }) => [id.split('/')[0], since])).toEqual([
      ['store_down', atOf(60)],
      [expect.stringMatching(/^role_(?:down|failing)$/), atOf(60)],
    ]);
    expect(verdict.cause?.since).toBe(atOf(60));
  }
});

test('a verdict is as severe as its worst problem', () => {
  const level = (...kinds: string[]) =>
    look(createJudge(), 60, { exceeded: kinds.map((kind) => exceeded(kind, 10)) }).verdict.level;
  expect([level('heap'), level('heap', 'log_lost'), level('log_lost', 'fatal')]).toEqual([
    'warning',
    'warning',
    'critical',
  ]);
});

test('several consequences of one cause are all its own', () => {
  const { problems } = look(createJudge(), 60, {
    probes: [down('store/main', 10), down('cluster/dc2', 10)],
    exceeded: ['persistence_errors', 'shard_movement'].map((kind) => exceeded(kind, 20)),
    replication: [{ source: 'dc1', target: 'dc2', lagSeconds: 900 }],
  }).verdict;
  expect(problems.map(({ id, consequences }) => `${id} ${consequences.length}`)).toEqual(
    expect.arrayContaining(['persistence_errors/history 0', 'shard_movement/history 0']),
  );
  expect(problems[0]?.consequences.length).toBeGreaterThan(1);
  for (const { id, consequences } of problems)
    expect(problems.filter(({ causedBy }) => causedBy === id).map((one) => one.id)).toEqual(consequences);
});

describe('after a restart of the agent', () => {
  /** The incidents at a moment after a restart at 100 s, from problems that lasted before and are not seen now. */
  const endedAt = (facts: Partial<StatusFacts>, seconds: number, now: Partial<StatusFacts> = {}) => {
    const first = createJudge();
    look(first, 50, facts);
    const second = createJudge();
    second.durable.restore(first.durable.freeze());
    return look(second, seconds, { startedAt: atOf(100), ...now }).incidents.length;
  };
  test('what its check has not seen yet lasts, however long that takes, and ends with its check', () => {
    const was = { probes: [down('store/main', 10)] };
    const unchecked = { probes: [{ ...down('store/main', 10), last: undefined }] };
    const well = { probes: [probeStatusOf('store/main', { at: atOf(101) })] };
    expect([endedAt(was, 101, unchecked), endedAt(was, 900, unchecked), endedAt(was, 101, well)]).toEqual([
      0, 0, 1,
    ]);
    // A backup has a separate line for each of its problems.
    const backup = {
      probes: [probeStatusOf('backup/full', { at: atOf(10), reason: 'late', msg: '' } as never)],
    };
    const unread = { probes: [{ ...probeStatusOf('backup/full'), last: undefined }] };
    expect([
      endedAt(backup, 900, unread),
      endedAt(backup, 900, { probes: [probeStatusOf('backup/full', { at: atOf(899) })] }),
    ]).toEqual([0, 1]);
  });
  test('a value lasts until it can be judged again', () => {
    const was = { exceeded: [exceeded('persistence_errors', 10)] };
    // These are the two minutes of rates, and one more until the alert would see them.
    expect([endedAt(was, 100 + 179), endedAt(was, 100 + 180)]).toEqual([0, 1]);
  });
  test('what is neither lasts for a minute, and what the agent knows of itself not at all', () => {
    const fault = { logFaults: [{ kind: 'gone' as const, path: '/a', services: [], since: atOf(0) }] };
    expect([endedAt(fault, 100 + 59), endedAt(fault, 100 + 60)]).toEqual([0, 1]);
    const state = { state: { directory: '/s', sequence: 1, commitFailures: 1, degraded: 'write' } };
    expect(endedAt(state, 101)).toBe(1);
  });
});

describe('a check of a store that becomes unknown', () => {
  const store = (seconds: number, check: string, holds: boolean | 'unknown', found: string) =>
    probeStatusOf('store/main/p', {
      at: atOf(seconds),
      details: {
        checks: [
          { check, holds, found, severity: 'recovery_weak', ...(holds === false && { since: atOf(5) }) },
        ],
      },
    });
  const sentenceOf = (judge: Judge, seconds: number, ...check: [string, boolean | 'unknown', string]) =>
    look(judge, seconds, { probes: [store(seconds, ...check)] }).verdict.sentence;

  test('does not end its problem, which ends once the check passes', () => {
    const judge = createJudge();
    sentenceOf(judge, 10, 'replica', false, 'replay is paused');
    expect(sentenceOf(judge, 40, 'replica', 'unknown', 'hidden')).toBe(
      'It is no longer known whether store main does not keep up as a replica.',
    );
    expect(look(judge, 50, { probes: [store(50, 'replica', 'unknown', 'hidden')] }).incidents).toEqual([]);
    expect(sentenceOf(judge, 60, 'replica', false, 'replay is paused')).toBe(
      'Store main does not keep up as a replica (since 00:00:05 UTC).',
    );
    const { verdict, incidents } = look(judge, 90, { probes: [store(90, 'replica', true, '0 s behind')] });
    expect(verdict.problems).toEqual([]);
    expect(incidents).toMatchObject([{ start: atOf(5), end: atOf(90) }]);
  });

  test('says that nothing is known of a schema of which a version is expected', () => {
    const judge = createJudge();
    const problems = () => look(judge, 40, { probes: [store(40, 'schema', 'unknown', 'denied')] }).verdict;
    expect(problems()).toMatchObject({
      ok: false,
      level: 'warning',
      sentence: 'The schema of database main/p is not known (since 00:00:40 UTC).',
      problems: [{ blocks: ['upgrade', 'failback'] }],
    });
  });

  test('explains with an unknown schema that a wrong one may last', () => {
    const judge = createJudge();
    sentenceOf(judge, 10, 'schema', false, 'version 0.7, expected 0.8');
    expect(sentenceOf(judge, 40, 'schema', 'unknown', 'denied')).toBe(
      'The schema of database main/p is not known (since 00:00:40 UTC); it is no longer known whether database main/p has the wrong schema.',
    );
  });
});

test('a failure begins with its own check, although another problem of the same probe outlives an older failure', () => {
  const judge = createJudge();
  const details = {
    checks: [{ check: 'slots', holds: false, found: 'x', severity: 'recovery_weak', since: atOf(5) }],
  };
  const failed = (seconds: number, reason: 'refused' | 'database_missing') =>
    probeStatusOf('store/main/p', { at: atOf(seconds), reason, msg: reason }, { since: atOf(seconds) });
  const passed = (seconds: number) => probeStatusOf('store/main/p', { at: atOf(seconds), details });
  look(judge, 5, { probes: [passed(5)] });
  look(judge, 20, { probes: [failed(16, 'refused')] });
  look(judge, 40, { probes: [passed(40)] });
  const { cause } = look(judge, 60, { probes: [failed(47, 'database_missing')] }).verdict;
  expect(cause).toMatchObject({ kind: 'store_down', since: atOf(47) });
});

test('another fault of a backup began when it was found, and not when the first one was', () => {
  const judge = createJudge();
  const backup = (seconds: number, reason: 'late' | 'corrupt') =>
    probeStatusOf(
      'backup/n',
      { at: atOf(seconds), reason, msg: 'x' },
      { since: atOf(0), failingSince: atOf(0) },
    );
  const startOf = (seconds: number, reason: 'late' | 'corrupt') =>
    look(judge, seconds, { probes: [backup(seconds, reason)] }).verdict.problems.map(({ kind, since }) => [
      kind,
      since,
    ]);
  expect(startOf(10, 'late')).toEqual([['backup_late', atOf(0)]]);
  expect(startOf(400, 'corrupt')).toEqual([['backup_damaged', atOf(400)]]);
});

test('a store that refuses the credentials, is well for a moment and refuses them again has one problem', () => {
  const judge = createJudge();
  const store = (seconds: number, isWell: boolean) =>
    probeStatusOf(
      'store/main',
      { at: atOf(seconds), ...(!isWell && { reason: 'credentials' as const, msg: 'x' }) },
      { since: atOf(seconds), ...(!isWell && { failingSince: atOf(seconds) }) },
    );
  const startOf = (seconds: number, isWell: boolean) =>
    look(judge, seconds, { probes: [store(seconds, isWell)] }).verdict.problems[0]?.since;
  expect([startOf(10, false), startOf(25, true), startOf(40, false)]).toEqual([
    ...[atOf(10), undefined],
    atOf(10),
  ]);
});

describe('a problem of a domain', () => {
  const ofDomain = (seconds: number, last: Partial<NonNullable<ProbeStatus['last']>>) =>
    probeStatusOf('domain/orders', { at: atOf(seconds), ...last });
  const sentencesOf = (...results: Partial<NonNullable<ProbeStatus['last']>>[]) => {
    const judge = createJudge();
    return results.map((last, i) => {
      const peers = (['cluster/dc2', 'cluster/dc3'] as const).map((name) =>
        probeStatusOf(name, { at: atOf(60 * i) }),
      );
      const probes = [ofDomain(60 * i, last), ...peers];
      return look(judge, 60 * i + 1, { probes }).verdict.sentence;
    });
  };
  const well = 'All is well: 1 domain and 2 clusters.';

  test('goes on to be possible while one of the clusters that differed does not answer', () => {
    const differs = { reason: 'clusters_disagree', msg: 'dc2 says dc2' } as const;
    const answers = (...notAnswered: string[]) => ({ details: { notAnswered, failover: { ready: true } } });
    expect(sentencesOf(differs, answers('dc2'), differs, answers())).toEqual([
      'Domain orders differs between clusters (since 00:00:00 UTC).',
      'It is no longer known whether domain orders differs between clusters.',
      'Domain orders differs between clusters (since 00:00:00 UTC).',
      well,
    ]);
  });

  test('that cannot fail over goes on to be possible while its readiness is not known', () => {
    const readiness = (ready: boolean | undefined, why: string) => ({
      details: { global: true, failover: { ready, why } },
    });
    expect(
      sentencesOf(
        readiness(false, 'dc2 is 400 s behind dc1'),
        readiness(undefined, 'the lag of dc2 behind dc1 is not known'),
        readiness(true, 'dc2 is up to date'),
      ),
    ).toEqual([
      'Domain orders cannot fail over (since 00:00:00 UTC).',
      'It is no longer known whether domain orders cannot fail over.',
      well,
    ]);
  });

  test('that became local has no standby, and nothing is unknown', () => {
    const details = { global: true, failover: { ready: false, why: 'x' } };
    expect(sentencesOf({ details }, { details: { global: false } })[1]).toBe(well);
  });
});

test('a lag that nothing shows any more has not caught up, unless its clusters are no longer watched', () => {
  const sentence = (judge: Judge, seconds: number, lagSeconds?: number, peers = true) => {
    const names = ['replication/dc1', ...(peers ? ['cluster/dc2'] : [])] as `cluster/${string}`[];
    const probes = names.map((name) => probeStatusOf(name, { at: atOf(seconds) }));
    const replication = lagSeconds === undefined ? [] : [{ source: 'dc1', target: 'dc2', lagSeconds }];
    return look(judge, seconds, { probes, replication }).verdict.sentence;
  };
  const judge = createJudge();
  sentence(judge, 10, 400);
  expect(sentence(judge, 30)).toBe('It is no longer known whether replication dc1 to dc2 lags behind.');
  expect(sentence(judge, 50, 2)).toBe('All is well: 1 cluster.');
  sentence(judge, 200, 400);
  expect(sentence(judge, 220, undefined, false)).not.toContain('replication');
});

test('of two lags of which one follows from the other neither is sure while nothing shows them', () => {
  const judge = createJudge();
  const at = (seconds: number, ...lags: number[]) =>
    look(judge, seconds, {
      probes: (['replication/dc1', 'cluster/dc2', 'cluster/dc3'] as const).map((name) =>
        probeStatusOf(name, { at: atOf(seconds) }),
      ),
      replication: lags.map((lagSeconds, i) => ({ source: 'dc1', target: `dc${i + 2}`, lagSeconds })),
    }).verdict;
  at(10, 400, 400);
  expect(at(30)).toMatchObject({
    level: 'unknown',
    sentence: 'It is no longer known whether replication dc1 to dc2 and dc1 to dc3 lag behind.',
  });
  expect(at(40, 400)).toMatchObject({ level: 'critical' });
});

test.each([
  ['drill_missing', false],
  ['recovery_point_unknown', true],
] as const)('a recovery that fails for %s follows from a store that is down: %s', (reason, follows) => {
  const recovery = probeStatusOf(
    'recovery/main/p',
    { at: atOf(60), reason, msg: 'x', details: { store: 'main' } },
    { since: atOf(60), state: 'down' },
  );
  const { problems } = look(createJudge(), 61, { probes: [down('store/main/p', 50, 60), recovery] }).verdict;
  const causes = problems.filter(({ causedBy }) => causedBy === undefined).map(({ kind }) => kind);
  expect(causes).toEqual(follows ? ['store_down'] : ['store_down', 'recovery']);
});
