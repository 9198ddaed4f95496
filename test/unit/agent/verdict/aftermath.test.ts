import { describe, expect, test } from 'vitest';
import type { ProbeStatus } from '../../../../src/agent/report.ts';
import { createServiceReadings } from '../../../../src/agent/verdict/readings.ts';
import { createJudge, type Judge } from '../../../../src/agent/verdict/verdict.ts';
import { atOf, look, restarted } from '../../../judged.ts';
import { lastWordsOf, probeStatusOf, statusFactsOf } from '../../../status-report.ts';

const refused = { reason: 'refused', msg: 'connection refused' } as const;

const store = (seconds: number, isDown: boolean, from = 10): ProbeStatus =>
  probeStatusOf('store/main', { at: atOf(seconds), ...(isDown && refused) }, { since: atOf(from) });
const unchecked = (probe: ProbeStatus): ProbeStatus => ({ ...probe, last: undefined, state: undefined });
const history = (seconds: number): ProbeStatus =>
  probeStatusOf(
    'health/history',
    { at: atOf(seconds), reason: 'persistence', msg: 'no store' },
    { since: atOf(20) },
  );
const errors = (since = 10, last?: number, of = 'history') => ({
  kind: 'persistence_errors',
  about: { role: of },
  value: '9 errors',
  limit: '1',
  since: atOf(since),
  ...(last !== undefined && { newSince: atOf(last), lastCounted: atOf(last) }),
});

test('a new agent knows the cause of a problem before it has checked that cause', () => {
  const first = createJudge();
  look(first, 30, { probes: [store(30, true), history(30)] });
  const second = restarted(first);
  const started = { startedAt: atOf(60) };
  expect(
    look(second, 61, { ...started, probes: [unchecked(store(0, true)), history(61)] }).verdict,
  ).toMatchObject({
    level: 'critical',
    headline: 'Store main refuses connections; 1 role is down because of it',
    problems: [
      { id: 'store_down/main', since: atOf(10), unreadSince: atOf(61) },
      { id: 'role_down/history', since: atOf(20), causedBy: 'store_down/main' },
    ],
  });
  const { verdict } = look(second, 65, { ...started, probes: [store(64, true), history(61)] });
  expect(verdict.problems).toMatchObject([
    { id: 'store_down/main', since: atOf(10) },
    { id: 'role_down/history', since: atOf(20), causedBy: 'store_down/main' },
  ]);
});

test('a cause of a kind that only another version has explains nothing', () => {
  const first = createJudge();
  look(first, 30, { probes: [store(30, true), history(30)] });
  const kept = new TextDecoder().decode(first.durable.freeze()).replaceAll('"store_down"', '"later_kind"');
  const second = createJudge();
  second.durable.restore(new TextEncoder().encode(kept));
  const started = { startedAt: atOf(60) };
  // The check ran before the second agent looked, so that it looks back at whatever its cause was.
  const probes = [unchecked(store(0, true)), history(60)];
  expect(look(second, 61, { ...started, probes }).verdict.problems).toMatchObject([
    { id: 'role_down/history', since: atOf(20) },
  ]);
});

test('a cause that ended while the agent was down still explains what has not been checked since', () => {
  const first = createJudge();
  look(first, 30, { probes: [store(30, true), history(30)], exceeded: [errors()] });
  const second = restarted(first);
  const started = { startedAt: atOf(60) };
  // The store is unknown at first, and then it is well.
  look(second, 61, { ...started, probes: [unchecked(store(0, false)), unchecked(history(0))] });
  const report = look(second, 70, { ...started, probes: [store(69, false), history(65)] });
  expect(report.verdict).toMatchObject({
    level: 'unknown',
    sentence: 'Store main recovered; it is not known yet whether the consequences are over.',
  });
  // A second restart changes nothing about it: the end of the cause is known, too.
  const third = restarted(second);
  const later = { startedAt: atOf(75), probes: [store(79, false), history(65)] };
  expect(look(third, 80, later).verdict.level).toBe('unknown');
  const again = { startedAt: atOf(75), probes: [store(89, false), history(85)] };
  expect(look(third, 90, again).verdict.problems).toMatchObject([
    { kind: 'role_down', since: atOf(20), subject: 'history' },
  ]);
});

test('a value whose cause cannot be judged yet after a restart is told at once, under its cause', () => {
  const exceeded = [errors(), { ...errors(), kind: 'shard_movement' }];
  const first = createJudge();
  expect(look(first, 30, { exceeded }).verdict.problems[1]?.causedBy).toBe('persistence_errors/history');
  const report = look(restarted(first), 70, { startedAt: atOf(60), exceeded: exceeded.slice(1) });
  expect(report.verdict.problems).toMatchObject([
    { kind: 'persistence_errors', since: atOf(10), unreadSince: atOf(70) },
    { kind: 'shard_movement', since: atOf(10), causedBy: 'persistence_errors/history' },
  ]);
});

test('errors that stop and begin again within the window of their rate are two incidents', () => {
  const judge = createJudge();
  look(judge, 30, { exceeded: [errors(10, 30)] });
  look(judge, 100, { exceeded: [errors(10, 40)] });
  // Errors that have paused are over, and were over when they paused.
  expect(look(judge, 115, {}).incidents).toMatchObject([{ start: atOf(10), end: atOf(40) }]);
  const { verdict, incidents } = look(judge, 160, { exceeded: [errors(155, 160)] });
  expect(verdict.problems).toMatchObject([{ since: atOf(155), evidence: [{ at: atOf(155) }] }]);
  expect(incidents).toMatchObject([{ cause: 'persistence_errors', start: atOf(10), end: atOf(40) }]);
});

test('errors that begin again after the end of their cause are a problem at once', () => {
  const judge = createJudge();
  look(judge, 30, { probes: [store(30, true)], exceeded: [errors(10, 30)] });
  const well = (seconds: number, ...exceeded: ReturnType<typeof errors>[]) =>
    look(judge, seconds, { probes: [store(seconds, false)], exceeded }).verdict;
  expect(well(40, errors(10, 39)).level).toBe('unknown');
  expect(well(100, errors(10, 39)).level).toBe('unknown');
  expect(well(114).level).toBe('ok');
  expect(well(130, errors(125, 130)).problems).toMatchObject([
    { kind: 'persistence_errors', since: atOf(125) },
  ]);
});

test('what a cause left behind is not the work of another cause that begins then', () => {
  const judge = createJudge();
  const role = (seconds: number, isDown: boolean) =>
    probeStatusOf('health/history', { at: atOf(seconds), ...(isDown && refused) }, { since: atOf(50) });
  look(judge, 30, { probes: [store(30, true), role(30, false)], exceeded: [errors(10, 30)] });
  const problems = (seconds: number, last: number, newSince = last) => {
    const probes = [store(seconds, false), role(seconds, true)];
    const exceeded = [{ ...errors(10, last), newSince: atOf(newSince) }];
    const { verdict, incidents } = look(judge, seconds, { probes, exceeded });
    expect(incidents.map(({ cause }) => cause)).toEqual(['store_down']);
    return verdict.problems.map(({ id }) => id);
  };
  // The store is well from 50 on, and the role is gone since then.
  expect(problems(50, 45)).toEqual(['role_down/history']);
  expect(problems(80, 45)).toEqual(['role_down/history']);
  expect(problems(130, 124)).toEqual(['role_down/history']);
  // Few errors that are counted a pause after the end of the store are the work of what is seen then.
  expect(problems(130, 124, 90)).toEqual(['role_down/history']);
  expect(problems(130, 125, 90)).toEqual(['role_down/history', 'persistence_errors/history']);
  // What is counted a pause after the end of the store is not its work.
  expect(problems(130, 125)).toEqual(['role_down/history', 'persistence_errors/history']);
});

test('what another cause explains when the first is over lasts', () => {
  const judge = createJudge();
  const other = (seconds: number, isDown: boolean) => ({
    ...store(seconds, isDown),
    name: 'store/other',
    since: atOf(15),
  });
  look(judge, 30, { probes: [store(30, true), other(30, false)], exceeded: [errors()] });
  const { verdict } = look(judge, 40, {
    probes: [store(40, false), other(40, true)],
    exceeded: [errors()],
  });
  expect(verdict.problems).toMatchObject([
    { id: 'store_down/other', consequences: ['persistence_errors/history'] },
    { causedBy: 'store_down/other' },
  ]);
});

test('a consequence that is over is forgotten: what begins later is no rest of the cause', () => {
  const judge = createJudge();
  look(judge, 30, { probes: [store(30, true)], exceeded: [errors()] });
  look(judge, 40, { probes: [store(40, true)] });
  look(judge, 50, { probes: [store(50, false)] });
  const late = { ...errors(), since: atOf(490) };
  expect(look(judge, 500, { probes: [store(500, false)], exceeded: [late] }).verdict.problems).toMatchObject([
    { id: 'persistence_errors/history', since: atOf(490) },
  ]);
});

test('what ended for a moment and is back with its cause is still explained by it', () => {
  const judge = createJudge();
  look(judge, 30, { probes: [store(30, true)], exceeded: [errors()] });
  look(judge, 50, { probes: [store(50, false)], exceeded: [errors()] });
  expect(look(judge, 185, { probes: [store(185, false)] }).verdict.problems).toEqual([]);
  const back = look(judge, 200, { probes: [store(200, true, 200)], exceeded: [errors()] });
  expect(back.verdict.problems).toMatchObject([
    { id: 'store_down/main', since: atOf(200) },
    { id: 'persistence_errors/history', causedBy: 'store_down/main' },
  ]);
});

test('that a cause was over before the agent started again is known, also while nothing can be said about it', () => {
  const moving = { ...errors(), kind: 'shard_movement' };
  const first = createJudge();
  look(first, 30, { exceeded: [errors(), moving] });
  expect(look(first, 40, { exceeded: [moving] }).verdict.level).toBe('unknown');
  const { verdict } = look(restarted(first), 70, { startedAt: atOf(60), exceeded: [moving] });
  expect(verdict.level).toBe('unknown');
  expect(verdict.problems).toEqual([]);
});

test('the end of a process that was announced is no fatal entry', () => {
  const judge = createJudge();
  look(judge, 30, { probes: [store(30, true), history(30)] });
  judge.announce({ at: atOf(45), kind: 'exit', role: 'history', what: 'fatal: signal 9' });
  const { verdict } = look(judge, 50, { probes: [store(50, false), history(35)] });
  expect(verdict.level).toBe('unknown');
});

test('what a consequence explains is as much a rest of the cause that is over as the consequence itself', () => {
  const requests = { ...errors(), kind: 'request_errors', about: { role: 'frontend', callee: 'history' } };
  const judge = createJudge();
  look(judge, 30, { probes: [store(30, true), history(30)], exceeded: [requests] });
  const { verdict } = look(judge, 50, { probes: [store(50, false), history(45)], exceeded: [requests] });
  expect([verdict.level, verdict.problems]).toEqual(['unknown', []]);
  // The role has failed a check since then: it has a cause of its own, and so have the requests.
  const later = look(judge, 60, { probes: [store(60, false), history(55)], exceeded: [requests] }).verdict;
  expect(later.problems.map(({ id, causedBy }) => [id, causedBy])).toEqual([
    ['role_down/history', undefined],
    ['request_errors/frontend to history', 'role_down/history'],
  ]);
});

describe('the rate of a short outage, which exceeds its limit only after it', () => {
  const ids = (judge: Judge, seconds: number, since: number) => {
    const exceeded = [errors(since)];
    const { level, problems } = look(judge, seconds, { probes: [store(seconds, false)], exceeded }).verdict;
    return [level, ...problems.map(({ id }) => id)];
  };
  const short = () => {
    const judge = createJudge();
    look(judge, 30, { probes: [store(30, true)] });
    look(judge, 40, { probes: [store(40, false)] });
    return judge;
  };

  test('is what it left, until the errors of the outage are out of the window', () => {
    const judge = short();
    expect(ids(judge, 45, 45)).toEqual(['unknown']);
    const { verdict, incidents } = look(judge, 50, { probes: [store(50, false)], exceeded: [errors()] });
    expect(verdict.sentence).toBe(
      'Store main recovered; it is not known yet whether the consequences are over.',
    );
    expect(incidents.map(({ cause }) => cause)).toEqual(['store_down']);
    expect(ids(judge, 159, 45)).toEqual(['unknown']);
    expect(ids(judge, 160, 45)).toEqual(['critical', 'persistence_errors/history']);
  });
  test('is no rest of it if it shows later than pages are read, or was there before', () => {
    expect(ids(short(), 114, 114)).toEqual(['unknown']);
    expect(ids(short(), 115, 115)).toEqual(['critical', 'persistence_errors/history']);
    const judge = createJudge();
    const old = { ...errors(), since: atOf(-900) };
    look(judge, -800, { exceeded: [old] });
    look(judge, 30, { probes: [store(30, true)], exceeded: [old] });
    expect(ids(judge, 40, -900)).toEqual(['critical', 'persistence_errors/history']);
  });
  test('is what the store left, which can cause more, although a role was well again before the store', () => {
    const judge = createJudge();
    const role = (name: string, seconds: number, isGone = false) =>
      probeStatusOf(`health/${name}`, { at: atOf(seconds), ...(isGone && refused) }, { since: atOf(10) });
    const at = (seconds: number, isStoreDown: boolean, isRoleGone: boolean, more: object = {}) => {
      const others = ['frontend', 'matching'].map((name) => role(name, seconds));
      const probes = [store(seconds, isStoreDown), role('history', seconds, isRoleGone), ...others];
      return look(judge, seconds, { probes, ...more }).verdict;
    };
    expect(at(30, true, true).problems.map(({ causedBy }) => causedBy)).toEqual([undefined, undefined]);
    at(35, true, false);
    at(40, false, false);
    const requests = {
      ...errors(45),
      kind: 'request_errors',
      about: { role: 'frontend', callee: 'history' },
    };
    expect(at(45, false, false, { exceeded: [requests] }).headline).toBe(
      'Store main recovered; it is not known yet whether the consequences are over',
    );
  });
  test('is no rest of it two minutes later, whatever its own window is', () => {
    const moving = (seconds: number) => {
      const exceeded = [{ ...errors(45), kind: 'shard_movement' }];
      return look(short(), seconds, { probes: [store(seconds, false)], exceeded }).verdict.level;
    };
    expect([moving(159), moving(160)]).toEqual(['unknown', 'warning']);
  });
  test('is no rest of something that does not explain it, and explained by the store if that fails again', () => {
    const judge = createJudge();
    const archive = (isDown: boolean) =>
      probeStatusOf('archive/history', { at: atOf(30), ...(isDown && refused) }, { since: atOf(10) });
    look(judge, 30, { probes: [archive(true)] });
    look(judge, 40, { probes: [archive(false)] });
    expect(ids(judge, 45, 45)).toEqual(['critical', 'persistence_errors/history']);
    const again = short();
    ids(again, 45, 45);
    const exceeded = [{ ...errors(), since: atOf(45) }];
    const { problems } = look(again, 50, { probes: [store(50, true, 48)], exceeded }).verdict;
    expect(problems.map(({ id, causedBy }) => [id, causedBy])).toEqual([
      ['store_down/main', undefined],
      ['persistence_errors/history', 'store_down/main'],
    ]);
  });
  test('is what it left also after a jump of the clock', () => {
    const judge = createJudge();
    const at = (seconds: number, jumped: number, isDown: boolean, more: object = {}) => {
      const wall = seconds + jumped;
      const facts = { startedAt: atOf(-9_000), now: atOf(wall), probes: [store(wall, isDown)], ...more };
      return judge.judge(statusFactsOf(facts), Date.parse(atOf(wall)), seconds * 1e3).verdict;
    };
    at(30, 0, true);
    at(40, 0, false);
    at(44, 3_600, false);
    const late = { exceeded: [{ ...errors(), since: atOf(3_645) }] };
    expect(at(45, 3_600, false, late)).toMatchObject({ level: 'unknown', problems: [] });
  });
});

test('thousands of problems that begin when thousands of others have ended are judged, and the store that ended last is found', () => {
  const judge = createJudge();
  const domains = (from: number, isWell: boolean) =>
    Array.from({ length: 3_000 }, (_, i) =>
      probeStatusOf(`domain/d${from + i}`, { at: atOf(30), ...(!isWell && refused) }, { since: atOf(10) }),
    );
  look(judge, 30, { probes: domains(0, false) });
  look(judge, 35, { probes: [...domains(0, true), store(35, true)] });
  look(judge, 38, { probes: [...domains(0, true), store(38, false)] });
  const exceeded = Array.from({ length: 3_000 }, (_, i) => ({
    ...errors(10, undefined, `r${i}`),
    since: atOf(40),
  }));
  const { verdict } = look(judge, 40, { probes: [...domains(0, true), store(40, false)], exceeded });
  expect([verdict.level, verdict.problems]).toEqual(['unknown', []]);
});

test('a cause of two consequences is named once when it is over', () => {
  const judge = createJudge();
  const exceeded = [errors(), errors(10, undefined, 'matching')];
  look(judge, 30, { probes: [store(30, true)], exceeded });
  expect(look(judge, 40, { probes: [store(40, false)], exceeded }).verdict.sentence).toBe(
    'Store main recovered; it is not known yet whether the consequences are over.',
  );
  // Both are one problem again when the store is down again.
  expect(look(judge, 50, { probes: [store(50, true)], exceeded }).verdict.problems).toMatchObject([
    { kind: 'store_down', consequences: ['persistence_errors/history', 'persistence_errors/matching'] },
    {},
    {},
  ]);
});

test('a clock that jumps while a cause lasts does not end what it explains', () => {
  const judge = createJudge();
  const at = (seconds: number, jumped: number, isDown: boolean) => {
    const wall = seconds + jumped;
    const facts = {
      ...{ startedAt: atOf(-9_000), now: atOf(wall) },
      ...{ probes: [store(wall, isDown)], exceeded: [errors()] },
    };
    return judge.judge(statusFactsOf(facts), Date.parse(atOf(wall)), seconds * 1e3).verdict;
  };
  at(30, 0, true);
  // The jump and the end are seen at the same time.
  expect(at(40, 600, false).level).toBe('unknown');
});

test('a clock that jumps back does not make an end last: what goes on after the window is a problem', () => {
  const judge = createJudge();
  const at = (seconds: number, jumped: number, isDown: boolean) => {
    const wall = seconds + jumped;
    const probes = [store(wall, isDown)];
    const facts = { startedAt: atOf(-9_000), now: atOf(wall), probes, exceeded: [errors()] };
    return judge.judge(statusFactsOf(facts), Date.parse(atOf(wall)), seconds * 1e3).verdict;
  };
  expect(at(30, 0, true).cause?.id).toBe('store_down/main');
  expect(at(40, 0, false).level).toBe('unknown');
  expect(at(50, -3_600, false).level).toBe('unknown');
  // The window of the rate is two minutes.
  expect(at(159, -3_600, false).level).toBe('unknown');
  expect(at(160, -3_600, false).cause?.kind).toBe('persistence_errors');
});

test('a clock that jumps back does not hide errors that cannot be from the cause: they are a problem at once', () => {
  const judge = createJudge();
  const at = (seconds: number, jumped: number, isDown: boolean) => {
    const wall = seconds + jumped;
    const probes = [store(wall, isDown)];
    const facts = {
      ...{ startedAt: atOf(-9_000), now: atOf(wall), probes },
      exceeded: [{ ...errors(10), newSince: atOf(wall) }],
    };
    return judge.judge(statusFactsOf(facts), Date.parse(atOf(wall)), seconds * 1e3).verdict;
  };
  at(30, 0, true);
  expect(at(40, 0, false).level).toBe('unknown');
  // Pages are read within 75 s of the end.
  expect(at(114, -3_600, false).level).toBe('unknown');
  expect(at(115, -3_600, false).cause?.kind).toBe('persistence_errors');
});

test('requests that still fail after the last restart of a crash loop are a problem once they cannot be from it', () => {
  const judge = createJudge();
  const isOwnAt = (seconds: number) => {
    const exceeded = [
      { ...errors(10, 100), kind: 'crash_loop' },
      { ...errors(20, seconds), kind: 'request_errors', about: { role: 'frontend', callee: 'history' } },
    ];
    const { problems } = look(judge, seconds, { exceeded }).verdict;
    return problems.some(({ kind, causedBy }) => kind === 'request_errors' && causedBy === undefined);
  };
  const seconds = Array.from({ length: 30 }, (_, i) => 100 + 5 * i);
  // A restart in second 100 is counted until 130, and what it did is read within another 75 s.
  expect(seconds.find(isOwnAt)).toBe(205);
});

test('what a lasting cause explains is not taken over by one that began minutes later', () => {
  const judge = createJudge();
  const alive = (seconds: number) =>
    (['frontend', 'matching'] as const).map((role) => probeStatusOf(`health/${role}`, { at: atOf(seconds) }));
  const gone = (seconds: number) =>
    probeStatusOf('health/history', { ...refused, at: atOf(seconds) }, { since: atOf(10) });
  const exceeded = [{ ...errors(), kind: 'request_errors', about: { role: 'frontend', callee: 'history' } }];
  look(judge, 30, { probes: [...alive(30), gone(30)], exceeded });
  const late = { ...store(400, true), since: atOf(400) };
  const { problems } = look(judge, 400, { probes: [...alive(400), gone(400), late], exceeded }).verdict;
  expect(problems.find(({ kind }) => kind === 'request_errors')?.causedBy).toBe('role_down/history');
});

test('what outlasted its cause is of it again if it is back at once, and not when it is back much later', () => {
  const back = (seconds: number) => {
    const judge = createJudge();
    look(judge, 30, { probes: [store(30, true)], exceeded: [errors()] });
    for (let at = 70; at < seconds; at += 5)
      look(judge, at, { probes: [store(at, false)], exceeded: [errors()] });
    // It is its effect in the first report that has both, and from then on.
    const causes = [seconds, seconds + 5].map((at) => {
      const again = { ...store(at, true), since: atOf(seconds) };
      const { problems } = look(judge, at, { probes: [again], exceeded: [errors()] }).verdict;
      return problems.find(({ kind }) => kind === 'persistence_errors')?.causedBy;
    });
    expect(causes[1]).toBe(causes[0]);
    return causes[0];
  };
  // Its end was seen in second 70.
  expect(back(189)).toBe('store_down/main');
  expect(back(250)).toBe('store_down/main');
  expect(back(255)).toBeUndefined();
});

test('what outlasts its cause is of another one that is there when the first ends', () => {
  const judge = createJudge();
  look(judge, 30, { probes: [store(30, true)], exceeded: [errors()] });
  look(judge, 395, { probes: [store(395, true)], exceeded: [errors()] });
  const readOnly = probeStatusOf('store/main', { at: atOf(400), details: { readOnly: true } });
  const { problems } = look(judge, 400, { probes: [readOnly], exceeded: [errors()] }).verdict;
  expect(problems.map(({ id, causedBy }) => [id, causedBy])).toEqual([
    ['read_only/main', undefined],
    ['persistence_errors/history', 'read_only/main'],
  ]);
});

test('a check that fails for another reason has another cause from then on, unless it had that reason before', () => {
  const judge = createJudge();
  const frontend = (seconds: number, reason: 'not_ok' | 'persistence') =>
    probeStatusOf('health/frontend', { at: atOf(seconds), reason, msg: 'x' }, { since: atOf(10) });
  const at = (seconds: number, reason: 'not_ok' | 'persistence', ...more: ProbeStatus[]) =>
    look(judge, seconds, { probes: [frontend(seconds, reason), ...more] }).verdict.problems;
  at(30, 'not_ok');
  const down = { ...store(400, true), since: atOf(400) };
  expect(at(400, 'not_ok', down).find(({ kind }) => kind === 'role_down')?.causedBy).toBeUndefined();
  expect(at(405, 'persistence', down).find(({ kind }) => kind === 'role_down')?.causedBy).toBe(
    'store_down/main',
  );
  // The reason of its first failure is valid since the first failure.
  expect(at(410, 'not_ok', down).find(({ kind }) => kind === 'role_down')?.since).toBe(atOf(10));
});

test('a page that failed minutes before the role failed its check is a problem of its own', () => {
  const page = (failedSeconds: number) => ({
    ...{ service: 'history', url: 'http://x', up: false, failures: {}, page: undefined },
    ...{ firstInvalid: undefined, vocabulary: 'svc', lastTakenMs: Date.parse(atOf(failedSeconds)) - 5_000 },
    failingSinceMs: Date.parse(atOf(failedSeconds)),
    lastFailure: { reason: 'refused' as const, what: 'refused', atMs: Date.parse(atOf(400)) },
  });
  const kindsOf = (takenSeconds: number, state: 'up' | 'down') => {
    const check = probeStatusOf(
      'health/history',
      { ...refused, at: atOf(400) },
      { since: atOf(400), state, consecutiveFailures: 1 },
    );
    const facts = { probes: [check], scrapes: [page(takenSeconds)] };
    return look(createJudge(), 400, facts).verdict.problems.map(({ kind }) => kind);
  };
  expect(kindsOf(220, 'down')).toEqual(['role_down']);
  expect(kindsOf(220, 'up')).toEqual(['role_failing']);
  expect(kindsOf(219, 'down')).toEqual(['role_down', 'scrape_down']);
  expect(kindsOf(219, 'up')).toEqual(['role_failing', 'scrape_down']);
});

test('a role that failed because of a store and now fails of itself is not what the store left behind', () => {
  const judge = createJudge();
  const own = (seconds: number) =>
    probeStatusOf(
      'health/history',
      { at: atOf(seconds), reason: 'tls_expired', msg: 'certificate has expired' },
      { since: atOf(20) },
    );
  const causes = (seconds: number, probes: ProbeStatus[]) =>
    look(judge, seconds, { probes })
      .verdict.problems.filter(({ causedBy }) => causedBy === undefined)
      .map(({ id }) => id);
  expect(causes(30, [store(30, true), history(30)])).toEqual(['store_down/main']);
  expect(causes(40, [store(40, true), own(40)])).toEqual(['store_down/main', 'role_down/history']);
  expect(causes(50, [store(50, false), own(45)])).toEqual(['role_down/history']);
});

test('a check at the very moment at which the cause ended is one after it', () => {
  const ids = (checkedAt: number) => {
    const judge = createJudge();
    look(judge, 30, { probes: [store(30, true), history(30)] });
    const { verdict } = look(judge, 50, { probes: [store(50, false), history(checkedAt)] });
    return verdict.problems.map(({ id }) => id);
  };
  expect(ids(49)).toEqual([]);
  expect(ids(50)).toEqual(['role_down/history']);
});

test('errors that began again when their cause ended are none that it left, also for a new agent', () => {
  const since = (last: number) => {
    const first = createJudge();
    look(first, 30, { probes: [store(30, true)], exceeded: [errors(10, 30)] });
    const second = restarted(first);
    const facts = (seconds: number) => ({ startedAt: atOf(60), probes: [store(seconds, false)] });
    look(second, 70, { ...facts(70), exceeded: [errors(61, 70)] });
    const { verdict } = look(second, 150, { ...facts(150), exceeded: [errors(61, last)] });
    return verdict.problems.map(({ id, since: began }) => [id, began]);
  };
  expect(since(144)).toEqual([]);
  expect(since(145)).toEqual([['persistence_errors/history', atOf(145)]]);
});

test('a process that ends with a fatal entry after its cause is over is a problem of its own', () => {
  const ids = (fatalAt: number) => {
    const judge = createJudge();
    look(judge, 30, { probes: [store(30, true), history(30)] });
    const entries = lastWordsOf({ at: atOf(fatalAt), msg: 'panic' });
    const { verdict } = look(judge, 50, { probes: [store(50, false), history(45)], entries });
    return verdict.problems.map(({ id }) => id);
  };
  expect(ids(49)).toEqual([]);
  expect(ids(50)).toEqual(['role_down/history']);
});

describe('a role failed its check for a moment, and why is known only afterwards:', () => {
  const check = (seconds: number, isFailing: boolean, role: 'history' | 'matching' = 'history') =>
    probeStatusOf(
      `health/${role}`,
      { at: atOf(seconds), ...(isFailing && refused) },
      { state: 'up', since: atOf(0), ...(isFailing && { failingSince: atOf(20) }) },
    );
  const value = (kind: string, since: number) => ({
    ...{ kind, about: { role: 'history' }, value: '9', limit: '1', since: atOf(since) },
  });
  /** The incidents and problems of a role that failed its check from 20 to 25 s, with what is found then, which began at `since`. */
  const told = (kind: string, since: number, role?: 'matching') => {
    const judge = createJudge();
    look(judge, 10, { probes: [check(10, false, role)] });
    look(judge, 20, { probes: [check(20, true, role)] });
    look(judge, 25, { probes: [check(25, false, role)] });
    const at = Math.max(30, since);
    const found = { probes: [check(at, false, role)], exceeded: [value(kind, since)] };
    look(judge, at, found);
    const { verdict } = look(restarted(judge), at, found);
    const { incidents } = look(judge, 120, { probes: [check(120, false, role)] });
    return [...verdict.problems.map(({ id }) => id), ...incidents.map(({ id }) => id)];
  };
  test.each<[string, Parameters<typeof told>, string[]]>([
    ['fatal errors', ['fatal', 20], ['fatal/history', 'fatal/history']],
    ['fatal errors that began soon after', ['fatal', 50], ['fatal/history', 'fatal/history']],
    ['later fatal errors', ['fatal', 51], ['fatal/history', 'fatal/history', 'role_failing/history']],
    [
      'fatal errors of another role',
      ['fatal', 20, 'matching'],
      ['fatal/history', 'fatal/history', 'role_failing/matching'],
    ],
    ['a large heap', ['heap', 20], ['heap/history', 'heap/history']],
  ])('%s', (_, args, ids) => {
    expect(told(...args)).toEqual(ids);
  });
  test.each([
    ['what is less severe does not hide an outage', 'heap', ['heap/history', 'role_down/history']],
    ['what is as severe explains an outage', 'crash_loop', ['crash_loop/history']],
  ])('%s', (_, kind, ids) => {
    const judge = createJudge();
    const down = probeStatusOf('health/history', { at: atOf(20), ...refused }, { since: atOf(20) });
    look(judge, 20, { probes: [down] });
    look(judge, 25, { probes: [check(25, false)] });
    look(judge, 30, { probes: [check(30, false)], exceeded: [value(kind, 20)] });
    const { incidents } = look(judge, 120, { probes: [check(120, false)] });
    expect(incidents.map(({ id }) => id)).toEqual(ids);
  });
});

describe('a store was down for three minutes, and', () => {
  const endsAt = 900;
  /** Plays pages that are read every 15 s, with what the counters count in each interval, and returns what is said. */
  const played = (
    until: number,
    ofInterval: (seconds: number) => readonly [errors: number, calls: number, restarts?: number],
  ) => {
    const readings = createServiceReadings();
    const judge = createJudge();
    let [errors, calls, restarts] = [0, 0, 0];
    const reports = new Map<number, ReturnType<typeof look>>();
    for (let seconds = 0; seconds <= until; seconds += 15) {
      const [failed, called, ended = 0] = ofInterval(seconds);
      errors += failed;
      calls += called;
      restarts += ended;
      const row = (value: number) => [{ service: 'history', labels: {}, value }];
      const rows = {
        svc_persistence_errors: row(errors),
        svc_persistence_requests: row(calls),
        svc_role_restarts_total: row(restarts),
      };
      readings.sample((family) => rows[family as keyof typeof rows] ?? [], {
        nowMs: Date.parse(atOf(seconds)),
        monotonicMs: seconds * 1e3,
      });
      const probes = [store(seconds, seconds >= endsAt - 180 && seconds < endsAt, endsAt - 180)];
      reports.set(seconds, look(judge, seconds, { probes, exceeded: readings.report().exceeded }));
    }
    return reports;
  };
  const isOutage = (seconds: number) => seconds > endsAt - 180 && seconds <= endsAt;
  const named = ({ verdict, incidents }: ReturnType<typeof look>) => [
    ...verdict.problems.map(({ id }) => id),
    ...incidents.map(({ cause }) => cause),
  ];

  test('a single call fails 90 s after its end: no incident of errors begins', () => {
    const reports = played(endsAt + 600, (seconds) =>
      isOutage(seconds) ? [1_500, 1_500] : [seconds === endsAt + 90 ? 1 : 0, 1_500],
    );
    for (let after = 15; after <= 600; after += 15)
      expect([after, ...named(reports.get(endsAt + after)!)]).toEqual([after, 'store_down']);
  });
  test('a role with few calls has enough of them to judge only 90 s after its end: no incident begins', () => {
    const reports = played(endsAt + 600, (seconds) =>
      isOutage(seconds) ? [2, 2] : [0, seconds > endsAt + 60 ? 12 : 0],
    );
    for (let after = 15; after <= 600; after += 15)
      expect([after, ...named(reports.get(endsAt + after)!)]).toEqual([after, 'store_down']);
  });
  test('the errors go on: they are a problem as soon as they cannot be from before its end', () => {
    const reports = played(endsAt + 120, (seconds) =>
      isOutage(seconds) || seconds > endsAt + 30 ? [1_500, 1_500] : [0, 1_500],
    );
    expect(named(reports.get(endsAt + 60)!)).toEqual(['store_down']);
    expect(named(reports.get(endsAt + 75)!)).toEqual(['persistence_errors/history', 'store_down']);
  });
  test('the errors begin again after a pause: they are a problem at once, with their own start', () => {
    const reports = played(endsAt + 105, (seconds) =>
      isOutage(seconds) || seconds > endsAt + 75 ? [1_500, 1_500] : [0, 1_500],
    );
    expect(named(reports.get(endsAt + 75)!)).toEqual(['store_down']);
    expect(reports.get(endsAt + 90)!.verdict.problems).toMatchObject([
      { id: 'persistence_errors/history', since: atOf(endsAt + 90) },
    ]);
  });
  test.each([
    ['of it', isOutage],
    ['that were counted after it', (seconds: number) => seconds > endsAt && seconds <= endsAt + 30],
  ])('few errors %s are still in the window when others begin: these have their own start', (_, isOfIt) => {
    const begins = endsAt + 75;
    const reports = played(begins + 30, (seconds) => [isOfIt(seconds) || seconds > begins ? 7 : 0, 15]);
    expect(named(reports.get(begins)!)).toEqual(['store_down']);
    expect(reports.get(begins + 30)!.verdict.problems).toMatchObject([
      { id: 'persistence_errors/history', since: atOf(begins + 15) },
    ]);
  });
  test('a role had crashed again and again because of it, and does not any more: no incident begins', () => {
    const reports = played(endsAt + 600, (seconds) => [0, 1_500, isOutage(seconds) ? 1 : 0]);
    for (let after = 15; after <= 600; after += 15)
      expect([after, ...named(reports.get(endsAt + after)!)]).toEqual([after, 'store_down']);
  });
  test('a role restarts again and again soon after it: what cannot be from before its end is a problem', () => {
    const reports = played(endsAt + 105, (seconds) => [0, 1_500, seconds > endsAt + 30 ? 1 : 0]);
    expect(named(reports.get(endsAt + 90)!)).toEqual(['store_down']);
    expect(reports.get(endsAt + 105)!.verdict.problems).toMatchObject([
      { id: 'crash_loop/history', since: atOf(endsAt + 75) },
    ]);
  });
  test('a role that crashed because of it goes on to: three more restarts are a problem', () => {
    const reports = played(endsAt + 105, (seconds) => [0, 1_500, seconds > endsAt - 180 ? 1 : 0]);
    expect(named(reports.get(endsAt + 90)!)).toEqual(['store_down']);
    expect(named(reports.get(endsAt + 105)!)).toEqual(['crash_loop/history', 'store_down']);
  });
  test('restarts of it that a page of one minute shows late are no incident', () => {
    const reports = played(endsAt + 600, (seconds) => [0, 1_500, seconds === endsAt + 60 ? 4 : 0]);
    for (let after = 15; after <= 600; after += 15)
      expect([after, ...named(reports.get(endsAt + after)!)]).toEqual([after, 'store_down']);
  });
});
