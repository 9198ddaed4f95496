import { expect, test } from 'vitest';
import type { Exceeded, ProbeStatus, StatusFacts } from '../../../../src/agent/report.ts';
import { createServiceReadings } from '../../../../src/agent/verdict/readings.ts';
import { createJudge, type Judge } from '../../../../src/agent/verdict/verdict.ts';
import { probeStatusOf, statusFactsOf } from '../../../status-report.ts';

const startMs = Date.parse('2026-01-01T12:00:00.000Z');
const atOf = (seconds: number) => new Date(startMs + seconds * 1e3).toISOString();
const look = (judge: Judge, seconds: number, facts: Partial<StatusFacts>) =>
  judge.judge(
    statusFactsOf({ startedAt: atOf(-36_000), now: atOf(seconds), ...facts }),
    startMs + seconds * 1e3,
  );
type Name = Parameters<typeof probeStatusOf>[0];
const up = (name: Name, seconds: number) => probeStatusOf(name, { at: atOf(seconds) });
const down = (name: Name, seconds: number, from: number, reason = 'refused', msg = 'connection refused') =>
  probeStatusOf(name, { at: atOf(seconds), reason, msg } as never, { since: atOf(from) });
const restarted = (judge: Judge): Judge => {
  const next = createJudge();
  next.durable.restore(judge.durable.freeze());
  return next;
};
const causesOf = ({ verdict }: ReturnType<typeof look>) =>
  verdict.problems.filter(({ causedBy }) => causedBy === undefined).map(({ id, since }) => `${id} ${since}`);

test('two roles with faults of their own are two causes, and the end of one leaves the other with its start', () => {
  const judge = createJudge();
  const roles = (seconds: number, worker: ProbeStatus, matching: ProbeStatus) => ({
    probes: [up('health/frontend', seconds), up('health/history', seconds), worker, matching],
  });
  look(judge, 0, roles(0, up('health/worker', 0), up('health/matching', 0)));
  const expired = ['tls_expired', 'certificate has expired'] as const;
  const both = look(
    judge,
    60,
    roles(
      60,
      down('health/worker', 60, 30, ...expired),
      down('health/matching', 60, 45, 'not_in_ring', 'no'),
    ),
  );
  expect(causesOf(both)).toEqual([`role_down/worker ${atOf(30)}`, `role_down/matching ${atOf(45)}`]);
  expect(both.verdict.sentence).toMatch(
    /role worker .* \(since 12:00:30 UTC\) and role matching .* \(since 12:00:45/i,
  );
  const one = look(
    judge,
    90,
    roles(90, up('health/worker', 90), down('health/matching', 90, 45, 'not_in_ring', 'no')),
  );
  expect(causesOf(one)).toEqual([`role_down/matching ${atOf(45)}`]);
  expect(one.incidents).toMatchObject([{ id: 'role_down/worker', start: atOf(30), end: atOf(90) }]);
});

test('a consequence that outlasts its cause becomes a cause, with the start that it had', () => {
  const judge = createJudge();
  const facts = (seconds: number, storeIsDown: boolean) => ({
    probes: [
      storeIsDown ? down('store/main', seconds, 10) : up('store/main', seconds),
      down('health/history', seconds, 40, 'persistence', 'no store'),
    ],
  });
  const during = look(judge, 60, facts(60, true));
  expect(causesOf(during)).toEqual([`store_down/main ${atOf(10)}`]);
  const after = look(judge, 120, facts(120, false));
  expect(causesOf(after)).toEqual([`role_down/history ${atOf(40)}`]);
  expect(after.incidents).toMatchObject([
    { id: 'store_down/main', start: atOf(10), end: atOf(120), consequences: '1 role' },
  ]);
  // When it ends, it becomes a separate incident.
  look(judge, 180, { probes: [up('store/main', 180), up('health/history', 180)] });
  const { incidents } = look(judge, 300, { probes: [up('store/main', 300), up('health/history', 300)] });
  expect(incidents.map(({ id, start, end }) => [id, start, end])).toEqual([
    ['role_down/history', atOf(40), atOf(180)],
    ['store_down/main', atOf(10), atOf(120)],
  ]);
});

test('ten restarts of the agent in the middle of two problems change neither start, cause nor sentence', () => {
  let judge = createJudge();
  const facts = (seconds: number) => ({
    startedAt: atOf(seconds - 1),
    probes: [
      down('store/main', seconds, seconds),
      down('health/worker', seconds, seconds, 'tls_expired', 'old'),
    ],
  });
  look(judge, 0, { probes: [up('store/main', 0), up('health/worker', 0)] });
  const { sentence } = look(judge, 10, facts(10)).verdict;
  for (let i = 2; i < 12; i++) {
    judge = restarted(judge);
    const report = look(judge, i * 10, facts(i * 10));
    expect(report.verdict.sentence).toBe(sentence);
    expect(report.incidents).toEqual([]);
  }
});

test.each([
  ['forward by a day', 86_400],
  ['back by a day', -86_400],
  ['back by a minute', -60],
])('a clock that jumps %s neither ends a problem nor begins it anew', (_, jump) => {
  const judge = createJudge();
  look(judge, 0, { probes: [up('store/main', 0)] });
  look(judge, 10, { probes: [down('store/main', 10, 10)] });
  const later = 20 + jump;
  const { verdict, incidents } = look(judge, later, { probes: [down('store/main', later, later)] });
  expect(verdict.problems.map(({ id, since }) => [id, since])).toEqual([['store_down/main', atOf(10)]]);
  expect(incidents).toEqual([]);
  look(judge, later + 10, { probes: [up('store/main', later + 10)] });
  const ended = look(judge, later + 100, { probes: [up('store/main', later + 100)] }).incidents;
  expect(ended).toHaveLength(jump > -86_400 ? 1 : ended.length);
  for (const { durationSeconds } of ended) expect(durationSeconds).toBeGreaterThanOrEqual(0);
});

test.each([
  ['an hour ahead', 3_600, 40],
  ['an hour back', -3_600, 40],
  ['a second ahead', 1, 40],
  // If a clock is slewed, the problem has taken longer.
  ['less than a second ahead', 0.9, 40.9],
])('an incident lasts as long as time has passed, though the clock jumps %s', (_, jump, lasted) => {
  const judge = createJudge();
  const at = (seconds: number, jumped: number, probe: typeof up | typeof down) => {
    const wall = seconds + jumped;
    return judge.judge(
      statusFactsOf({ startedAt: atOf(-9_000), now: atOf(wall), probes: [probe('store/main', wall, wall)] }),
      startMs + wall * 1e3,
      seconds * 1e3,
    );
  };
  at(0, 0, up);
  at(10, 0, down);
  at(20, jump, down);
  at(30, jump, down);
  at(50, jump, up);
  const { incidents } = at(200, jump, up);
  expect(incidents).toMatchObject([
    { start: atOf(10), end: atOf(Math.max(10, 50 + jump)), durationSeconds: Math.round(lasted) },
  ]);
});

test.each([
  ['is gone', 'history', 'refused', 60],
  ['says that it lacks something', 'history', 'persistence', 20],
  ['fails for a reason of its own', 'history', 'tls_expired', 20],
  ['is another one that is gone', 'worker', 'refused', 20],
])('the crashes of a role after which the role %s: until then', (_, role, reason, endSeconds) => {
  const judge = createJudge();
  const at = (seconds: number, isDown: boolean, isCounted = true) => {
    const loop = { kind: 'crash_loop', about: { role: 'history' }, value: '4 restarts', limit: '2' };
    const times = { since: atOf(10), newSince: atOf(20), lastCounted: atOf(20) };
    const name: Name = `health/${role}`;
    return look(judge, seconds, {
      probes: [isDown ? down(name, seconds, 30, reason) : up(name, seconds)],
      exceeded: isCounted ? [{ ...loop, ...times }] : [],
    });
  };
  at(20, false);
  for (const seconds of [30, 45, 60]) at(seconds, true);
  for (const seconds of [75, 90]) at(seconds, false);
  const { incidents } = at(400, false, false);
  expect(incidents.find(({ id }) => id === 'crash_loop/history')).toMatchObject({
    start: atOf(10),
    end: atOf(endSeconds),
  });
});

test('the crashes of a role do not end in the future if the clock is set back while the role is gone', () => {
  const judge = createJudge();
  const at = (seconds: number, jumped: number, isGone: boolean, isCounted = true) => {
    const wall = seconds + jumped;
    const lastCounted = atOf(20 + jumped);
    const loop = { kind: 'crash_loop', about: { role: 'history' }, value: '4 restarts', limit: '2' };
    const probe = isGone ? down('health/history', wall, 30 + jumped) : up('health/history', wall);
    return judge.judge(
      statusFactsOf({
        ...{ startedAt: atOf(-9_000), now: atOf(wall), probes: [probe] },
        exceeded: isCounted
          ? [{ ...loop, since: atOf(10 + jumped), newSince: lastCounted, lastCounted }]
          : [],
      }),
      startMs + wall * 1e3,
      seconds * 1e3,
    );
  };
  at(40, 0, true);
  at(100, 0, true);
  at(115, -3_600, false);
  at(130, -3_600, false, false);
  const { incidents } = at(300, -3_600, false, false);
  expect(incidents.map(({ id }) => id)).toEqual(['crash_loop/history']);
  expect(Date.parse(incidents[0]!.end)).toBeLessThanOrEqual(startMs + 40_000);
});

test('the time that a clock has jumped is kept with the problem across a restart of the agent', () => {
  const first = createJudge();
  const at = (judge: Judge, seconds: number, jumped: number, isUp = false) => {
    const wall = seconds + jumped;
    const probes = [(isUp ? up : down)('store/main', wall, wall)];
    return judge.judge(
      statusFactsOf({ startedAt: atOf(-9_000), now: atOf(wall), probes }),
      startMs + wall * 1e3,
      seconds * 1e3,
    );
  };
  at(first, 10, 0);
  at(first, 20, 600);
  at(first, 30, 500);
  const second = restarted(first);
  at(second, 40, 500);
  expect(at(second, 60, 500, true).incidents).toMatchObject([{ start: atOf(10), durationSeconds: 50 }]);
});

test('readings of a clock that jumps keep their spans: a rate is over monotonic time', () => {
  const readings = createServiceReadings();
  const jumps = [0, 3_600_000, -86_400_000, 0];
  for (let step = 0; step <= 40; step++) {
    const rows = {
      svc_workflow_timeout: [{ service: 'history', labels: { domain: 'd' }, value: step * 60 }],
    };
    readings.sample((family) => rows[family as keyof typeof rows] ?? [], {
      nowMs: startMs + step * 15_000 + jumps[step % 4]!,
      monotonicMs: step * 15_000,
    });
  }
  const { exceeded } = readings.report();
  // Four a second are below the limit of five, but the share of the closed ones is above its limit.
  expect(exceeded.map(({ value }) => value)).toEqual(['100% of the closed workflows timed out']);
});

test('forty stores and five hundred domains that fail at once: stores are named by number, and all is counted', () => {
  const judge = createJudge();
  const stores = Array.from({ length: 40 }, (_, i) => down(`store/s${i}/persistence`, 60, 10));
  const domains = Array.from({ length: 500 }, (_, i) =>
    down(`domain/d${i}`, 60, 30, 'command_failed', 'exit 1'),
  );
  const { verdict } = look(judge, 60, { probes: [...stores, ...domains] });
  expect(verdict.problems).toHaveLength(540);
  expect(verdict.sentence).toBe(
    '40 stores refuse connections (since 12:00:10 UTC); 500 domains are down because of them.',
  );
  expect(verdict.sentence.length).toBeLessThan(200);
  const { incidents } = look(judge, 120, {
    probes: [...stores, ...domains].map(({ name }) => up(name as Name, 120)),
  });
  expect(incidents).toHaveLength(40);
});

test('a role, a kind and labels that nobody knows are told as they are', () => {
  const judge = createJudge();
  const exceeded: Exceeded[] = [
    { kind: 'heap', about: { role: 'Ünbekannt <b>' }, value: '9GB', limit: '8GB', since: atOf(5) },
    { kind: 'no_such_kind', about: {}, value: '1', limit: '0', since: atOf(5) },
    { kind: 'workflow_timeouts', about: {}, value: '1', limit: '0', since: atOf(5) },
  ];
  const { verdict } = look(judge, 10, {
    exceeded,
    probes: [
      down('health/gateway', 10, 5),
      down('health/history', 10, 5, 'not_ok', 'gateway is missing'),
      probeStatusOf('health/constructor', { at: atOf(10) }),
    ],
  });
  expect(verdict.problems.map(({ id }) => id)).toContain('role_down/gateway');
  expect(verdict.problems.map(({ id }) => id)).toContain('heap/Ünbekannt <b>');
  // The table knows no role that calls it, so it explains no other role.
  expect(verdict.problems.find(({ id }) => id === 'role_down/history')?.causedBy).toBeUndefined();
});
