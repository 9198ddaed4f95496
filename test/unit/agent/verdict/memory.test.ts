import { describe, expect, test } from 'vitest';
import { timelineOf } from '../../../../src/agent/admin/timeline.ts';
import type { ProbeStatus, StatusFacts, StatusReport } from '../../../../src/agent/report.ts';
import { incidentsIn } from '../../../../src/agent/verdict/alike.ts';
import type { Row } from '../../../../src/agent/verdict/collected.ts';
import { createServiceReadings } from '../../../../src/agent/verdict/readings.ts';
import { createJudge } from '../../../../src/agent/verdict/verdict.ts';
import { atOf, look, restarted } from '../../../judged.ts';
import { lastWordsOf, probeStatusOf } from '../../../status-report.ts';

/** The page of history last counted something at this moment. */
const counted = (seconds: number) => ({ counted: { 'page/history': atOf(seconds) } });

const refused = { reason: 'refused', msg: 'connection refused' } as const;

const store = (seconds: number, isDown: boolean, from = seconds) => ({
  probes: [probeStatusOf('store/main', { at: atOf(seconds), ...(isDown && refused) }, { since: atOf(from) })],
});

test('a restart of the agent keeps the start of a problem, also before its first check', () => {
  const first = createJudge();
  look(first, 0, store(0, false));
  expect(look(first, 10, store(10, true)).verdict.problems[0]?.since).toBe(atOf(10));
  const second = restarted(first);
  const started = { startedAt: atOf(40) };
  const unchecked = {
    ...started,
    probes: [{ ...store(41, true).probes[0]!, last: undefined, state: undefined }],
  };
  expect(look(second, 41, unchecked)).toMatchObject({
    verdict: {
      problems: [{ id: 'store_down/main', since: atOf(10), unreadSince: atOf(41) }],
      level: 'unknown',
    },
    incidents: [],
  });
  // The probe of a new process does not know the beginning.
  const { verdict } = look(second, 50, { ...started, ...store(50, true, 50) });
  expect(verdict.problems[0]?.since).toBe(atOf(10));
  expect(verdict.sentence).toBe('Store main refuses connections (since 00:00:10 UTC).');
  look(second, 60, { ...started, ...store(60, false) });
  const third = restarted(second);
  expect(look(third, 200, store(200, false)).incidents).toEqual([
    expect.objectContaining({ id: 'store_down/main', start: atOf(10), end: atOf(60), durationSeconds: 50 }),
  ]);
});

describe('a role that was down when the agent was restarted', () => {
  const role = (seconds: number, state: ProbeStatus['state'], more: object = refused): ProbeStatus[] => [
    probeStatusOf('health/history', { ...more, at: atOf(seconds) }, { state, since: atOf(seconds) }),
  ];
  test.each([
    ['of itself', []],
    ['because of its store', store(0, true).probes],
  ])('is still down after one failed check, and not after one that passed: it was down %s', (_, stores) => {
    const first = createJudge();
    look(first, 0, { probes: [...role(0, 'down'), ...stores] });
    const second = restarted(first);
    const at = (seconds: number, probes: ProbeStatus[]) =>
      look(second, seconds, { startedAt: atOf(20), probes }).verdict.problems;
    expect(at(30, role(30, undefined))).toContainEqual(
      expect.objectContaining({ kind: 'role_down', since: atOf(0) }),
    );
    expect(at(40, role(40, 'up', {}))).not.toContainEqual(expect.objectContaining({ subject: 'history' }));
    expect(at(150, role(150, 'up'))).toContainEqual(
      expect.objectContaining({ kind: 'role_failing', since: atOf(150) }),
    );
  });
  test('is down before its first check if its page cannot be scraped, and else it is not known', () => {
    const first = createJudge();
    look(first, 0, { probes: role(0, 'down') });
    const probes = [{ ...role(30, undefined)[0]!, last: undefined }];
    const facts = { startedAt: atOf(20), probes };
    const lastFailure = { reason: 'refused', what: 'connection refused', atMs: Date.parse(atOf(29)) };
    const scrapes = [{ service: 'history', up: false, lastFailure }] as unknown as StatusFacts['scrapes'];
    expect(look(restarted(first), 30, facts).verdict).toMatchObject({
      level: 'unknown',
      headline: 'It is no longer known whether role history is down',
    });
    expect(look(restarted(first), 30, { ...facts, scrapes }).verdict).toMatchObject({
      level: 'critical',
      headline: 'Role history is down',
      cause: { id: 'role_down/history', since: atOf(0) },
    });
  });
});

test('a problem that ended while the agent was down ends when its first check is well', () => {
  const first = createJudge();
  look(first, 0, store(0, true, 0));
  const second = restarted(first);
  expect(look(second, 100, { startedAt: atOf(90), ...store(100, false) }).incidents).toMatchObject([
    { start: atOf(0), end: atOf(100) },
  ]);
});

test('what has not been checked since a restart is not over, though another probe has a result', () => {
  const of = (role: string, seconds: number, isDown: boolean) =>
    probeStatusOf(`health/${role}` as 'health/worker', { at: atOf(seconds), ...(isDown && refused) });
  const first = createJudge();
  look(first, 0, { probes: [of('history', 0, false), of('worker', 0, true)] });
  const second = restarted(first);
  const unchecked = { ...of('worker', 70, true), last: undefined, state: undefined };
  const probes = [of('history', 70, false), unchecked];
  expect(look(second, 70, { startedAt: atOf(5), probes }).incidents).toEqual([]);
});

test('a pause of less than a minute is none, a longer one ends the incident', () => {
  const judge = createJudge();
  look(judge, 0, store(0, true, 0));
  expect(look(judge, 20, store(20, false)).incidents).toHaveLength(1);
  const again = look(judge, 50, store(50, true, 50));
  expect(again).toMatchObject({ incidents: [], verdict: { problems: [{ since: atOf(0) }] } });
  look(judge, 60, store(60, false));
  const { incidents, verdict } = look(judge, 130, store(130, true, 130));
  expect(incidents).toMatchObject([{ start: atOf(0), end: atOf(60) }]);
  expect(verdict.problems[0]?.since).toBe(atOf(130));
});

test('a role that fails its checks and then is down has one start; what a cause took down is told, not listed', () => {
  const judge = createJudge();
  const role = (seconds: number, state: 'up' | 'down', consecutiveFailures: number) => [
    probeStatusOf(
      'health/history',
      { ...refused, at: atOf(seconds) },
      { state, consecutiveFailures, since: atOf(seconds) },
    ),
  ];
  look(judge, 0, { probes: role(0, 'up', 1) });
  expect(look(judge, 30, { probes: role(30, 'down', 3) }).verdict.problems[0]).toMatchObject({
    kind: 'role_down',
    since: atOf(0),
  });
  const both = { probes: [...role(60, 'down', 5), ...store(60, true, 1).probes] };
  expect(look(judge, 60, both).verdict.problems).toMatchObject([
    { id: 'store_down/main', consequences: ['role_down/history'] },
    { id: 'role_down/history', causedBy: 'store_down/main', since: atOf(0) },
  ]);
  const { incidents } = look(judge, 90, {
    probes: [probeStatusOf('health/history', { at: atOf(90) }), ...store(90, false).probes],
  });
  expect(incidents).toMatchObject([{ cause: 'store_down', subject: 'main', consequences: '1 role' }]);
});

test('what a probe saw before its target went down still holds: a full disk stays the cause', () => {
  const judge = createJudge();
  const checks = [{ check: 'free_space', holds: false, found: '1 % free', severity: 'data_at_risk' }];
  look(judge, 0, { probes: [probeStatusOf('store/main', { at: atOf(0), details: { checks } })] });
  expect(look(judge, 30, store(30, true, 30)).verdict).toMatchObject({
    cause: { id: 'disk_full/main', since: atOf(0) },
    sentence: 'The disk of store main is almost full (since 00:00:00 UTC); it causes 1 more problem.',
  });
  expect(look(judge, 60, store(60, false)).verdict.problems).toEqual([]);
});

test('incidents are kept for 30 days, and 300 at most', () => {
  const judge = createJudge();
  const dayMs = 86_400;
  look(judge, 0, store(0, true, 0));
  look(judge, 10, store(10, false));
  expect(look(judge, 29 * dayMs, store(29 * dayMs, false)).incidents).toHaveLength(1);
  expect(look(judge, 31 * dayMs, store(31 * dayMs, false)).incidents).toEqual([]);
  for (let i = 0; i < 310; i++) {
    look(judge, 40 * dayMs + i * 200, store(40 * dayMs + i * 200, true, 40 * dayMs + i * 200));
    look(judge, 40 * dayMs + i * 200 + 100, store(40 * dayMs + i * 200 + 100, false));
  }
  const { incidents, verdict } = look(judge, 41 * dayMs, store(41 * dayMs, false));
  expect(incidents).toHaveLength(300);
  expect(incidents[0]!.end > incidents[299]!.end).toBe(true);
  expect(timelineOf({ verdict, incidents, changes: [] })[0]).toMatchObject({
    kind: 'ended',
    text: 'store main recovered after 1 min 40 s',
  });
  expect(judge.durable.freeze().length).toBeLessThan(150_000);
});

test('what changed in the half hour before stands beside the cause, and on the time line', () => {
  const judge = createJudge();
  const facts = (seconds: number, isDown: boolean, more: Partial<StatusFacts> = {}) => ({
    ...store(seconds, isDown, seconds),
    versions: { history: '1.0' },
    restarts: { history: 1 },
    domains: [{ domain: 'a', failovers: 0 }],
    certificates: [{ probe: 'store/main', notAfter: '2027-01-01T00:00:00.000Z' }],
    ...more,
  });
  look(judge, 0, facts(0, false));
  judge.announce({ at: atOf(5), kind: 'deploy', what: 'history 1.1' });
  const changed = {
    versions: { history: '1.1' },
    restarts: { history: 2 },
    domains: [{ domain: 'a', failovers: 1, activeCluster: 'dc2', lastFailover: atOf(11) }],
    certificates: [{ probe: 'store/main', notAfter: '2028-01-01T00:00:00.000Z' }],
    config: { files: [], lastReloadSuccessful: true, changedAt: atOf(12) },
  };
  look(judge, 15, facts(15, false, changed));
  const report = look(judge, 20, facts(20, true, changed));
  expect(report.verdict.problems[0]?.changes?.map(({ kind, what }) => `${kind}: ${what}`).sort()).toEqual([
    'certificate: store/main has a new certificate, valid until 2028-01-01T00:00:00.000Z',
    'configuration: the agent loaded a new configuration',
    'failover: domain a failed over to dc2',
    'restart: role history restarted',
    'version: the version of history changed from 1.0 to 1.1',
  ]);
  // A restart may be a consequence, too; the newest of the other changes is in the sentence.
  expect(report.verdict.sentence).toBe(
    'Store main refuses connections (since 00:00:20 UTC). Shortly before, at 00:00:15 UTC: store/main has a new certificate, valid until 2028-01-01T00:00:00.000Z.',
  );
  expect(timelineOf(report).map(({ at, kind }) => `${at} ${kind}`)).toEqual([
    `${atOf(20)} began`,
    `${atOf(15)} certificate`,
    `${atOf(15)} restart`,
    `${atOf(15)} version`,
    `${atOf(12)} configuration`,
    `${atOf(11)} failover`,
    `${atOf(5)} deploy`,
  ]);
  // A change after the start is no cause of it.
  judge.announce({ at: atOf(25), kind: 'note', what: 'later' });
  const later = look(judge, 30, facts(30, true, changed)).verdict.problems[0]?.changes;
  expect(later?.map(({ what }) => what)).not.toContain('later');
  // Half an hour later the change explains nothing.
  look(judge, 2_000, facts(2_000, false, changed));
  expect(look(judge, 2_100, facts(2_100, true, changed)).verdict.problems[0]?.changes).toBeUndefined();
  expect(look(restarted(judge), 2_200, facts(2_200, true, changed)).changes).toHaveLength(7);
});

test.each([
  ['deploy', 'history 1.4.2', 'deploy (history 1.4.2)'],
  ['note', 'disks are slow', 'note (disks are slow)'],
  ['failover', 'domain a failed over to dc2', 'domain a failed over to dc2'],
] as const)('a %s shortly before is in the sentence as what it is', (kind, what, text) => {
  const judge = createJudge();
  look(judge, 0, store(0, false));
  judge.announce({ at: atOf(5), kind, what });
  expect(look(judge, 20, store(20, true)).verdict.sentence).toBe(
    `Store main refuses connections (since 00:00:20 UTC). Shortly before, at 00:00:05 UTC: ${text}.`,
  );
});

test('what is seen for the first time did not change', () => {
  const judge = createJudge();
  look(judge, 0, {});
  const seen = {
    restarts: { history: 4 },
    versions: { history: '1.0' },
    domains: [{ domain: 'a', failovers: 3 }],
  };
  expect(look(judge, 5, seen).changes).toEqual([]);
});

test('announced maintenance lasts until its end', () => {
  const judge = createJudge();
  judge.announce({ at: atOf(0), kind: 'maintenance', what: 'new disks', until: atOf(60) });
  const { maintenance, maintenanceReason, verdict } = look(judge, 59, store(59, false));
  expect([maintenance, maintenanceReason]).toEqual([atOf(60), 'new disks']);
  expect(verdict.sentence).toMatch(/ Planned work until 00:01:00 UTC: new disks\.$/);
  expect(look(judge, 60, store(60, false)).maintenance).toBeUndefined();
});

/** Errors of history in a window that still contains the outage, of a role whose check has not run since, or new errors. */
const errors = (since: number) => ({
  exceeded: [
    {
      kind: 'persistence_errors',
      about: { role: 'history' },
      value: '9 errors',
      limit: '1',
      since: atOf(since),
    },
  ],
});

test('what only looks back at a cause that is over is not wrong any more, and becomes no incident', () => {
  const judge = createJudge();
  look(judge, 0, store(0, false));
  look(judge, 10, { ...store(10, true), ...errors(10) });
  const [down] = look(judge, 60, { ...store(60, true, 10), ...errors(10) }).verdict.problems;
  expect(down).toMatchObject({ kind: 'store_down', consequences: ['persistence_errors/history'] });
  for (const seconds of [70, 189]) {
    const { verdict } = look(judge, seconds, { ...store(seconds, false), ...errors(10) });
    expect(verdict).toMatchObject({
      ok: false,
      level: 'unknown',
      sentence: 'Store main recovered; it is not known yet whether the consequences are over.',
      problems: [],
    });
  }
  const well = look(judge, 200, store(200, false));
  expect(well.verdict.ok).toBe(true);
  expect(look(judge, 300, store(300, false)).incidents.map(({ cause }) => cause)).toEqual(['store_down']);
});

test('what goes on for longer than its window after the cause is a problem, since it began', () => {
  const judge = createJudge();
  look(judge, 10, { ...store(10, true), ...errors(10) });
  look(judge, 70, { ...store(70, false), ...errors(10) });
  const { verdict } = look(judge, 190, { ...store(190, false), ...errors(10) });
  expect(verdict.problems).toMatchObject([{ kind: 'persistence_errors', since: atOf(10) }]);
  const { incidents } = look(judge, 300, store(300, false));
  look(judge, 400, store(400, false));
  expect(incidents.map(({ cause }) => cause)).toEqual(['persistence_errors', 'store_down']);
});

test('errors that a role logs while it recovers do not say that its errors go on, and a lag is read now', () => {
  const judge = createJudge();
  const logged = (at: number) => ({
    ...errors(10),
    entries: lastWordsOf({ at: atOf(at), level: 'error', msg: 'late' }),
  });
  look(judge, 10, { ...store(10, true), ...logged(10) });
  expect(look(judge, 70, { ...store(70, false), ...logged(70) }).verdict.level).toBe('unknown');

  const other = createJudge();
  const cluster = (seconds: number, isDown: boolean) => ({
    probes: [
      probeStatusOf('cluster/dc2', { at: atOf(seconds), ...(isDown && refused) }, { since: atOf(10) }),
    ],
    replication: [{ source: 'dc1', target: 'dc2', lagSeconds: 900 }],
  });
  expect(look(other, 10, cluster(10, true)).verdict.problems).toMatchObject([
    { kind: 'cluster_down' },
    { kind: 'replication_lag', causedBy: 'cluster_down/dc2' },
  ]);
  expect(look(other, 70, cluster(70, false)).verdict.problems).toMatchObject([
    { kind: 'replication_lag', since: atOf(10) },
  ]);
});

test('a check that has run since the end of the cause, and a fatal entry, are problems at once', () => {
  const health = (seconds: number) =>
    probeStatusOf(
      'health/history',
      { at: atOf(seconds), reason: 'persistence', msg: 'no store' },
      { since: atOf(10) },
    );
  const both = (seconds: number, isDown: boolean, checked: number) => ({
    probes: [...store(seconds, isDown, 10).probes, health(checked)],
  });
  const judge = createJudge();
  look(judge, 10, both(10, true, 10));
  expect(look(judge, 20, both(20, false, 19)).verdict).toMatchObject({ level: 'unknown', problems: [] });
  expect(look(judge, 25, both(25, false, 25)).verdict.problems).toMatchObject([{ kind: 'role_down' }]);

  const fatal = (at: number) => ({
    exceeded: [{ kind: 'fatal', about: { role: 'history' }, value: '1 entry', limit: '0', since: atOf(10) }],
    entries: lastWordsOf({ at: atOf(at), msg: 'sql: gone' }),
  });
  const other = createJudge();
  expect(look(other, 10, { ...store(10, true), ...fatal(9) }).verdict.problems[1]?.causedBy).toBe(
    'store_down/main',
  );
  expect(look(other, 70, { ...store(70, false), ...fatal(9) }).verdict.level).toBe('unknown');
  expect(look(other, 80, { ...store(80, false), ...fatal(75) }).verdict.problems).toMatchObject([
    { kind: 'fatal', evidence: [{}, { text: 'fatal: sql: gone' }] },
  ]);
});

test('how the process of a role ended stands beside its problem, if it was announced', () => {
  const down = (role: string) => ({
    probes: [probeStatusOf(`health/${role}`, { ...refused, at: atOf(100) }, { since: atOf(100) })],
  });
  const exits = (judge: ReturnType<typeof createJudge>, role: string) =>
    look(judge, 120, down(role)).verdict.problems[0]!.evidence.filter(({ source }) => source === 'exit');
  const judge = createJudge();
  judge.announce({ at: atOf(-3_000), kind: 'exit', role: 'history', what: 'history ended: an hour ago' });
  expect(exits(judge, 'history')).toEqual([]);
  judge.announce({ at: atOf(98), kind: 'exit', role: 'history', what: 'history ended: killed by signal 9' });
  judge.announce({ at: atOf(99), kind: 'exit', role: 'worker', what: 'worker ended: exited 1' });
  const exit = { source: 'exit', text: 'history ended: killed by signal 9', at: atOf(98) };
  expect(exits(judge, 'history')).toEqual([exit]);
  expect(exits(restarted(judge), 'history')).toEqual([exit]);
  expect(exits(judge, 'matching')).toEqual([]);
});

test('the last words of a role that is down are its newest fatal entry, with workflow and run', () => {
  const entry = (level: string, msg: string, seconds: number) => ({
    ...{ at: atOf(seconds), level, msg, workflow: 'w-1', run: 'r-1' },
  });
  const entries = (words: ReturnType<typeof entry>[]) => ({ entries: lastWordsOf(...words) });
  const down = {
    probes: [probeStatusOf('health/history', { ...refused, at: atOf(10) }, { since: atOf(10) })],
  };
  const wordsOf = (words: ReturnType<typeof entry>[]) =>
    look(createJudge(), 20, { ...down, ...entries(words) }).verdict.problems[0]!.evidence.filter(
      ({ source }) => source === 'log',
    );
  const fatal = entry('fatal', 'bootstrap ringpop: join duration exceeded 30 s', 8);
  const said = 'fatal: bootstrap ringpop: join duration exceeded 30 s (workflow w-1, run r-1)';
  expect(wordsOf([fatal, entry('error', 'later', 9)])).toEqual([{ source: 'log', text: said, at: atOf(8) }]);
  expect(wordsOf([entry('error', 'alone', 9)])).toMatchObject([
    { text: 'error: alone (workflow w-1, run r-1)' },
  ]);
  // Log entries from an hour ago are about something else.
  expect(wordsOf([entry('fatal', 'old', -3600)])).toEqual([]);
});

test('health that says ok beside errors is a conflict, and so are metrics that hide them', () => {
  const exceeded = [
    {
      ...{ kind: 'persistence_errors', about: { role: 'history' }, limit: '12', since: atOf(0) },
      value: '1,899 persistence errors a minute are in its log',
    },
  ];
  const { verdict } = look(createJudge(), 10, {
    probes: [probeStatusOf('health/history', { at: atOf(9) }), ...store(9, false).probes],
    exceeded,
    telemetryTruth: { history: 0.03 },
  });
  expect(
    verdict.problems[0]!.evidence.filter(({ source }) => source === 'conflict').map(({ text }) => text),
  ).toEqual([
    'The health check passes, but 1,899 persistence errors a minute are in the log',
    'The agent reaches store/main, but persistence calls of the role fail',
    'The metrics of the role show 3 % of the errors in its log',
  ]);
});

test('beside an installation of one cluster, a global domain and a local one are well', () => {
  const domain = (name: string, details: object) =>
    probeStatusOf(`domain/${name}`, { at: atOf(0), details: details as Record<string, unknown> });
  const { verdict } = look(createJudge(), 1, {
    probes: [
      domain('canary', {
        global: true,
        clusters: ['c0'],
        failover: { ready: false, why: 'no other cluster has the domain' },
      }),
      domain('local', { global: false, clusters: ['c0', 'c1'], failover: { ready: false, why: 'x' } }),
      probeStatusOf('cluster/c0', { at: atOf(0) }),
    ],
  });
  expect(verdict).toMatchObject({ ok: true, sentence: 'All is well: 2 domains and 1 cluster.' });
});

describe('what the role that counts it cannot say any more', () => {
  const timeouts = {
    kind: 'workflow_timeouts',
    ...{ about: { domain: 'orders' }, value: '9', limit: '5', since: atOf(0), from: ['page/history'] },
  };
  const page = (up: boolean) => ({
    ...{ service: 'history', url: '', up, lastTakenMs: Date.parse(atOf(0)), failures: {}, vocabulary: 'svc' },
    failingSinceMs: up ? undefined : Date.parse(atOf(0)),
    lastFailure: up ? undefined : { reason: 'refused' as const, what: 'refused', atMs: Date.parse(atOf(60)) },
  });
  const dead = { scrapes: [page(false)] } as unknown as Partial<StatusFacts>;
  const back = { scrapes: [page(true)] } as unknown as Partial<StatusFacts>;

  test('is unknown below what is wrong with the role, and over once the role has had the time to say so', () => {
    const judge = createJudge();
    look(judge, 0, { ...back, exceeded: [timeouts] });
    const silent = look(judge, 60, dead);
    expect(silent.incidents).toEqual([]);
    expect(silent.verdict.problems).toMatchObject([
      { id: 'scrape_down/history', consequences: ['workflow_timeouts/orders'] },
      {
        id: 'workflow_timeouts/orders',
        causedBy: 'scrape_down/history',
        unreadSince: atOf(60),
        since: atOf(0),
      },
    ]);
    expect(silent.verdict.headline).toBe(
      'Role history cannot be scraped; it is no longer known whether workflows of domain orders time out',
    );
    // It is a separate incident, which lasts.
    expect(timelineOf(silent).map(({ at, kind, text }) => `${at} ${kind} ${text}`)).toEqual([
      `${atOf(0)} began role history cannot be scraped: refused`,
      `${atOf(0)} began workflows of domain orders time out: 9`,
    ]);
    expect(incidentsIn(silent.verdict).map(({ id }) => id)).toEqual([
      'scrape_down/history',
      'workflow_timeouts/orders',
    ]);
    // A rate over two minutes would show it, and there is one minute for what is late.
    const returned = look(judge, 90, back);
    expect(returned.verdict).toMatchObject({
      level: 'unknown',
      headline: 'It is no longer known whether workflows of domain orders time out',
    });
    expect(look(judge, 60 + 179, back).verdict.problems).toHaveLength(1);
    const over = look(judge, 60 + 180, back);
    expect(over.verdict.problems).toEqual([]);
    expect(over.incidents.map(({ id }) => id).sort()).toEqual([
      'scrape_down/history',
      'workflow_timeouts/orders',
    ]);
  });
  test('is not over after a restart of the agent either', () => {
    const first = createJudge();
    look(first, 0, { ...back, exceeded: [timeouts] });
    const second = restarted(first);
    expect(look(second, 3_600, { startedAt: atOf(30), ...dead }).incidents).toEqual([]);
    const { incidents } = look(second, 7_200, { startedAt: atOf(30), ...back, ...counted(7_200) });
    expect(incidents.find(({ id }) => id === 'workflow_timeouts/orders')?.end).toBe(atOf(7_200));
  });
});

test('what was within its limit only because a role counts nothing is unknown, and over once the role has counted for a while', () => {
  const judge = createJudge();
  const failing = {
    kind: 'workflow_failures',
    ...{ about: { domain: 'orders' }, value: '9', limit: '5', since: atOf(0), from: ['page/history'] },
  };
  const silent = { ...failing, silent: ['page/history'] };
  look(judge, 0, { exceeded: [failing] });
  const { verdict, incidents } = look(judge, 60, { exceeded: [silent] });
  expect(incidents).toEqual([]);
  expect(verdict).toMatchObject({
    level: 'unknown',
    headline: 'It is no longer known whether workflows of domain orders fail',
    problems: [{ id: 'workflow_failures/orders', since: atOf(0), unreadSince: atOf(60) }],
  });
  expect(look(judge, 90, {}).verdict.problems).toHaveLength(1);
  expect(look(judge, 3_600, {}).incidents).toMatchObject([{ id: 'workflow_failures/orders' }]);
});

test.each([
  ['shortly after', 90, true],
  ['long after', 3_600, false],
])('what begins %s it is no longer known whether its cause lasts', (_, seconds, isExplained) => {
  const judge = createJudge();
  const errors = {
    ...{ kind: 'persistence_errors', about: { role: 'history' }, since: atOf(0), from: ['page/history'] },
    ...{ value: '20', limit: '10' },
  };
  const requests = {
    ...{ kind: 'request_errors', about: { role: 'frontend' }, since: atOf(seconds), from: ['page/frontend'] },
    ...{ value: '9 %', limit: '5 %' },
  };
  look(judge, 0, { exceeded: [errors] });
  const silent = { ...errors, silent: ['page/history'] };
  look(judge, 60, { exceeded: [silent] });
  const { verdict } = look(judge, seconds, { exceeded: [silent, requests] });
  const of = (kind: string) => verdict.problems.find((problem) => problem.kind === kind);
  expect(of('request_errors')?.causedBy).toBe(isExplained ? 'persistence_errors/history' : undefined);
  expect(verdict.headline).toMatch(
    isExplained
      ? /^Role history has persistence errors; .* because of it/
      : /^Requests from frontend fail; it is no longer known whether role history has persistence errors/,
  );
});

test('what began before a restart is not over while the role counts nothing: it may hang', () => {
  const failing = {
    kind: 'workflow_failures',
    ...{ about: { domain: 'orders' }, value: '9', limit: '5', since: atOf(0), from: ['page/history'] },
  };
  const scrapes = [{ service: 'history', up: true }] as unknown as StatusReport['scrapes'];
  const first = createJudge();
  look(first, 0, { exceeded: [failing] });
  const second = restarted(first);
  const hanging = look(second, 7_200, { startedAt: atOf(60), scrapes });
  expect(hanging.incidents).toEqual([]);
  expect(hanging.verdict).toMatchObject({
    level: 'unknown',
    headline: 'It is no longer known whether workflows of domain orders fail',
    problems: [{ since: atOf(0), unreadSince: atOf(7_200) }],
  });
  // What it counted at once is from before the restart, such as the rest of a log.
  const early = { startedAt: atOf(60), scrapes, ...counted(75) };
  expect(look(second, 7_230, early).incidents).toEqual([]);
  look(second, 7_260, { startedAt: atOf(60), scrapes, ...counted(7_260) });
  const { incidents } = look(second, 10_800, { startedAt: atOf(60), scrapes, ...counted(10_800) });
  expect(incidents).toMatchObject([{ id: 'workflow_failures/orders', start: atOf(0), end: atOf(10_800) }]);
  // Nobody watches the role any more.
  expect(look(restarted(first), 7_200, { startedAt: atOf(60) }).incidents).toHaveLength(1);
});

test('a role that was well is well while it counts nothing', () => {
  const silent = {
    kind: 'workflow_failures',
    ...{ about: { domain: 'orders' }, value: '9', limit: '5', since: atOf(0), silent: ['page/history'] },
  };
  expect(look(createJudge(), 0, { exceeded: [silent] }).verdict.problems).toEqual([]);
});

describe('what a probe cannot tell any more', () => {
  const backup = (seconds: number, last: { reason?: 'late' | 'unreachable'; msg?: string }) => ({
    probes: [probeStatusOf('backup/nightly', { at: atOf(seconds), ...last }, { since: atOf(seconds) })],
  });

  test('a store that was down while its probe hangs is unknown, and recovered once the probe says so', () => {
    const judge = createJudge();
    look(judge, 0, store(0, true, 0));
    const stale = look(judge, 600, store(0, true, 0));
    expect(stale.incidents).toEqual([]);
    expect(stale.verdict.problems).toMatchObject([
      { id: 'stale/store/main', consequences: ['store_down/main'] },
      { id: 'store_down/main', causedBy: 'stale/store/main', since: atOf(0), unreadSince: atOf(600) },
    ]);
    const over = look(judge, 610, store(610, false));
    expect(over.verdict.problems).toEqual([]);
    expect(over.incidents.find(({ id }) => id === 'store_down/main')).toMatchObject({
      start: atOf(0),
      end: atOf(610),
    });
  });
  test('a backup that was late is not on time because it cannot be read', () => {
    const judge = createJudge();
    look(judge, 0, backup(0, { reason: 'late', msg: 'the newest is 26 h old' }));
    const unreadable = look(judge, 60, backup(60, { reason: 'unreachable', msg: 'no answer' }));
    expect(unreadable.incidents).toEqual([]);
    expect(unreadable.verdict.problems).toMatchObject([
      { id: 'backup_failed/nightly', consequences: ['backup_late/nightly'] },
      { id: 'backup_late/nightly', since: atOf(0), unreadSince: atOf(60) },
    ]);
    expect(
      look(judge, 120, backup(120, {}))
        .incidents.map(({ id }) => id)
        .sort(),
    ).toEqual(['backup_failed/nightly', 'backup_late/nightly']);
  });
});

test('the page of a role that is killed does not come back because the health check fails, too', () => {
  const judge = createJudge();
  const facts = (seconds: number, pageUp: boolean, isWell: boolean) =>
    ({
      scrapes: [
        {
          ...{ service: 'history', url: '', up: pageUp, failures: {}, vocabulary: 'svc' },
          lastTakenMs: Date.parse(atOf(pageUp ? seconds : 0)),
          failingSinceMs: pageUp ? undefined : Date.parse(atOf(0)),
          lastFailure: pageUp
            ? undefined
            : { reason: 'refused', what: 'refused', atMs: Date.parse(atOf(seconds)) },
        },
      ],
      probes: [
        probeStatusOf(
          'health/history',
          { at: atOf(seconds), ...(!isWell && refused) },
          { since: atOf(isWell ? 0 : 10) },
        ),
      ],
    }) as unknown as Partial<StatusFacts>;
  look(judge, 0, facts(0, true, true));
  expect(look(judge, 5, facts(5, false, true)).verdict.cause?.kind).toBe('scrape_down');
  for (const seconds of [10, 20, 200]) {
    const { verdict, incidents } = look(judge, seconds, facts(seconds, false, false));
    expect(verdict.problems.map(({ kind }) => kind)).toEqual(['role_down']);
    expect(incidents).toEqual([]);
  }
  const { verdict, incidents } = look(judge, 210, facts(210, true, true));
  expect(verdict.problems).toEqual([]);
  expect(incidents.map(({ id, end }) => `${id} ${end}`)).toEqual([`role_down/history ${atOf(210)}`]);
});

describe('an archive that is behind', () => {
  const hour = 3_600;
  const archive = { archive: 'history', scheme: 's3' };
  /** The newest object is from this second. */
  const course = () => {
    const readings = createServiceReadings();
    let completed = 0;
    let judge = createJudge();
    let probes = [probeStatusOf('domain/orders')];
    const rows = (newest: number): Record<string, readonly Row[]> => ({
      svc_archival_newest_object_timestamp_seconds: [
        { service: '', labels: archive, value: Date.parse(atOf(newest)) / 1e3 },
      ],
      svc_workflow_completed: [{ service: 'history', labels: { domain: 'orders' }, value: completed }],
      ...(probes[0]!.last?.ok && {
        svc_domain_retention_seconds: [{ service: '', labels: { domain: 'orders' }, value: 2 * 24 * hour }],
        svc_domain_archival_enabled: [
          { service: '', labels: { domain: 'orders', archive: 'history' }, value: 1 },
        ],
      }),
    });
    const judged = (at: number) =>
      look(judge, at, {
        probes: probes.map((one) => ({ ...one, ageMs: 0 })),
        exceeded: readings.report().exceeded,
      });
    return {
      /** The sentence after a quarter of an hour of samples. */
      pass(from: number, completes: boolean, newest: number) {
        for (let at = from; at < from + 900; at += 60) {
          completed += completes ? 5 : 0;
          const families = rows(newest);
          const monotonicMs = at * 1e3;
          readings.sample((family) => families[family] ?? [], { nowMs: Date.parse(atOf(at)), monotonicMs });
          judged(at);
        }
        return judged(from + 900);
      },
      describe(fails: boolean) {
        probes = [
          probeStatusOf('domain/orders', fails ? { reason: 'command_failed', msg: 'no answer' } : {}),
        ];
      },
      restart() {
        judge = restarted(judge);
      },
    };
  };
  const causes = ({ verdict: { problems } }: Pick<StatusReport, 'verdict'>) =>
    problems.filter(({ causedBy }) => causedBy === undefined).map(({ id }) => id);
  const stalled = ['archival_stalled/history'];

  test('goes on when no workflow completes any more, also after a restart, until something is archived', () => {
    const { pass, restart } = course();
    const first = pass(0, true, -25 * hour);
    expect(causes(first)).toEqual(stalled);
    expect(first.verdict.problems[0]?.what).toContain('since the newest object, although workflows complete');
    const { since } = first.verdict.problems[0]!;
    const idle = pass(hour, false, -25 * hour);
    expect(causes(idle)).toEqual(stalled);
    expect(idle.verdict.problems[0]).toMatchObject({ since });
    expect(idle.verdict.problems[0]?.what).not.toContain('complete');
    restart();
    const later = pass(30 * hour, false, -25 * hour);
    expect(later.verdict.problems.map(({ id, since: from }) => [id, from])).toEqual([
      ['archival_stalled/history', since],
    ]);
    expect(later.incidents).toEqual([]);
    const over = pass(31 * hour, false, 31 * hour);
    expect(over.verdict.problems).toEqual([]);
    expect(over.incidents).toMatchObject([
      { id: 'archival_stalled/history', start: since, end: atOf(31 * hour) },
    ]);
  });

  test('past the shortest retention goes on, too, and is not over because the domain cannot be read', () => {
    const { pass, describe: read } = course();
    const ids = (report: Pick<StatusReport, 'verdict'>) => report.verdict.problems.map(({ id }) => id).sort();
    const both = [...stalled, 'retention_unarchived/history'];
    expect(ids(pass(0, true, -49 * hour))).toEqual(both);
    expect(ids(pass(hour, false, -49 * hour))).toEqual(both);
    read(true);
    const unread = pass(2 * hour, true, -49 * hour);
    expect(ids(unread)).toEqual([stalled[0], 'domain/orders', both[1]]);
    expect(unread.verdict.problems.find(({ id }) => id === both[1])?.causedBy).toBe('domain/orders');
    read(false);
    expect(ids(pass(3 * hour, false, 3 * hour))).toEqual([]);
  });

  test('is none of an installation that has nothing to archive', () => {
    const { pass } = course();
    expect(pass(0, false, -100 * hour).verdict.problems).toEqual([]);
    expect(pass(hour, false, -100 * hour).verdict.problems).toEqual([]);
    const { verdict } = pass(2 * hour, true, -100 * hour);
    // The problem began when workflows began to complete.
    expect(verdict.problems.map(({ since }) => since >= atOf(2 * hour))).toEqual([true, true]);
  });
});

/** The health check of history, which failed for the first time at `from` with one reason, and has another one now. */
const history = (seconds: number, reason: string | undefined, from: number) =>
  probeStatusOf(
    'health/history',
    { at: atOf(seconds), ...(reason && { reason: reason as 'refused', msg: reason }) },
    { since: atOf(from), intervalMs: 10_000, timeoutMs: 3_000 },
  );

test('a role that was down before its store is an incident beside that of the store, from its start to its end', () => {
  const judge = createJudge();
  const at = (seconds: number, isStoreDown: boolean, reason: string | undefined) =>
    look(judge, seconds, {
      probes: [
        ...store(seconds, isStoreDown, isStoreDown ? 300 : seconds).probes,
        history(seconds, reason, reason ? 10 : seconds),
        probeStatusOf('health/worker', { at: atOf(seconds) }),
      ],
    });
  expect(at(10, false, 'refused').verdict.cause?.id).toBe('role_down/history');
  at(290, false, 'refused');
  at(300, true, 'refused');
  // Its process is back and cannot use the store.
  const folded = at(500, true, 'persistence').verdict;
  expect(folded.problems.find(({ kind }) => kind === 'role_down')?.causedBy).toBe('store_down/main');
  // The last check of the role is from before the end of the store's outage.
  const { probes } = { probes: [...store(600, false).probes, history(590, 'persistence', 10)] };
  look(judge, 600, { probes });
  const { incidents } = at(610, false, undefined);
  expect(incidents.map(({ id, start }) => `${id} ${start}`).sort()).toEqual([
    `role_down/history ${atOf(10)}`,
    `store_down/main ${atOf(300)}`,
  ]);
});

test('what nothing shows any more is not named once its cause is over', () => {
  const judge = createJudge();
  const failing = {
    ...{ kind: 'persistence_errors', about: { role: 'history' }, since: atOf(10), from: ['page/history'] },
    ...{ value: '20', limit: '10' },
  };
  look(judge, 10, { ...store(10, true), exceeded: [failing] });
  look(judge, 60, { ...store(60, true, 10), exceeded: [{ ...failing, silent: ['page/history'] }] });
  // Longer after the end than the errors look back, and sooner than a role needs to show them again.
  for (const seconds of [300, 310, 425]) {
    const exceeded = seconds < 420 ? [{ ...failing, silent: ['page/history'] }] : [];
    const { verdict } = look(judge, seconds, { ...store(seconds, false, 300), exceeded });
    expect([seconds, verdict.problems]).toEqual([seconds, []]);
  }
});

test('the page of a role that is back is no problem before it was scraped again', () => {
  const judge = createJudge();
  const at = (seconds: number, failedAt: number, reason: string | undefined, from: number) =>
    look(judge, seconds, {
      scrapes: [
        {
          ...{ service: 'history', url: '', up: false, failures: {}, vocabulary: 'svc' },
          lastTakenMs: Date.parse(atOf(0)),
          failingSinceMs: Date.parse(atOf(0)),
          lastFailure: { reason: 'refused', what: 'refused', atMs: Date.parse(atOf(failedAt)) },
        },
      ] as unknown as StatusFacts['scrapes'],
      probes: [history(seconds, reason, from)],
    }).verdict.problems.map(({ kind }) => kind);
  expect(at(20, 15, 'refused', 10)).toEqual(['role_down']);
  expect(at(40, 35, undefined, 40)).toEqual([]);
  expect(at(50, 50, undefined, 40)).toEqual(['scrape_down']);
});

test('a role that its own heap takes down is named in the consequences', () => {
  const heap = {
    ...{ kind: 'heap', about: { role: 'history' }, since: atOf(0), value: '9 GB', limit: '4 GB' },
    from: ['page/history'],
  };
  const { verdict } = look(createJudge(), 20, {
    exceeded: [heap],
    probes: [history(20, 'refused', 10), probeStatusOf('health/worker', { at: atOf(20) })],
  });
  expect(verdict.headline).toBe('Role history has a large heap; the role is down because of it');
});

test('roles that their heaps take down are counted', () => {
  const of = (role: string) => ({
    ...{ kind: 'heap', about: { role }, since: atOf(0), value: '9 GB', limit: '4 GB' },
  });
  const { verdict } = look(createJudge(), 60, {
    probes: [history(60, 'refused', 30), { ...history(60, 'refused', 30), name: 'health/matching' }],
    exceeded: [of('history'), of('matching')],
  });
  expect(verdict.headline).toBe(
    'Roles history and matching have a large heap; 2 of the roles are down because of them',
  );
});

describe('a store that fails for another reason without having been well in between', () => {
  const fails = (seconds: number, reason?: 'refused' | 'connect_timeout' | 'credentials') => ({
    probes: [
      probeStatusOf(
        'store/main',
        { at: atOf(seconds), ...(reason && { reason, msg: reason }) },
        { since: atOf(0) },
      ),
    ],
  });
  const told = ({ verdict: { sentence, problems } }: ReturnType<typeof look>) => [
    sentence,
    problems[0]?.since,
    problems[0]?.reasonSince,
  ];

  test('has one start, and the sentence says since when the reason is what it is', () => {
    const judge = createJudge();
    look(judge, 0, fails(0, 'refused'));
    look(judge, 300, fails(300, 'connect_timeout'));
    look(judge, 600, fails(600, 'credentials'));
    const expected = [
      'Store main refuses the credentials (since 00:00:00 UTC, for this reason since 00:10:00 UTC).',
      atOf(0),
      atOf(600),
    ];
    expect(told(look(judge, 900, fails(900, 'credentials')))).toEqual(expected);
    // A new agent knows it, too, before its first check and after it.
    const second = restarted(judge);
    const started = { startedAt: atOf(905) };
    const unchecked = fails(910).probes.map((probe) => ({ ...probe, last: undefined, state: undefined }));
    expect(look(second, 910, { ...started, probes: unchecked }).verdict.problems).toMatchObject([
      { since: atOf(0), reasonSince: atOf(600), unreadSince: atOf(910) },
    ]);
    expect(told(look(second, 920, { ...started, ...fails(920, 'credentials') }))).toEqual(expected);
    expect(look(second, 1_200, fails(1_200)).incidents).toMatchObject([{ start: atOf(0), end: atOf(1_200) }]);
  });
  test.each([
    ['a reason of the same fault is not told apart', 'connect_timeout', 300, undefined],
    ['the reason of the beginning, after another one, is not told apart', 'refused', 300, undefined],
    ['another reason less than a minute later is not told apart', 'credentials', 59, undefined],
    ['another reason a minute later is told apart', 'credentials', 60, atOf(60)],
  ] as const)('%s', (_, reason, after, reasonSince) => {
    const judge = createJudge();
    look(judge, 0, fails(0, 'refused'));
    if (reason === 'refused') look(judge, 200, fails(200, 'credentials'));
    const [sentence, ...times] = told(look(judge, after, fails(after, reason)));
    const reasonText = reasonSince ? ', for this reason since 00:01:00 UTC' : '';
    expect(sentence?.endsWith(` (since 00:00:00 UTC${reasonText}).`)).toBe(true);
    expect(times).toEqual([atOf(0), reasonSince]);
  });
});

test('a role that fails again after its store and the role itself were well is a problem with its own start', () => {
  const judge = createJudge();
  const at = (seconds: number, isStoreDown: boolean, reason: string | undefined, from: number) =>
    look(judge, seconds, {
      probes: [
        ...store(seconds, isStoreDown, isStoreDown ? 10 : seconds).probes,
        history(seconds, reason, from),
      ],
    });
  at(10, true, 'persistence', 10);
  at(90, true, 'persistence', 10);
  at(100, false, undefined, 100);
  expect(at(110, false, 'warming_up', 110).verdict.problems).toMatchObject([
    { kind: 'role_down', since: atOf(110) },
  ]);
  const { incidents } = at(120, false, undefined, 120);
  expect(incidents.map(({ cause, start, end }) => [cause, start, end])).toEqual([
    ['role_down', atOf(110), atOf(120)],
    ['store_down', atOf(10), atOf(100)],
  ]);
});

test('a role that failed of itself and is back after a moment has the cause that it has then, and its old start', () => {
  const judge = createJudge();
  const causeAt = (seconds: number, isStoreDown: boolean, reason?: string) => {
    const probes = [
      ...store(seconds, isStoreDown, isStoreDown ? 628 : 0).probes,
      history(seconds, reason, reason && seconds < 600 ? 10 : seconds),
    ];
    const { problems } = look(judge, seconds, { probes }).verdict;
    const role = problems.find(({ kind }) => kind === 'role_down');
    return role && [role.since, role.causedBy];
  };
  expect(causeAt(10, false, 'persistence')).toEqual([atOf(10), undefined]);
  expect(causeAt(590, false, 'persistence')).toEqual([atOf(10), undefined]);
  expect(causeAt(600, false)).toBeUndefined();
  expect(causeAt(630, true, 'persistence')).toEqual([atOf(10), 'store_down/main']);
  expect(causeAt(640, true, 'persistence')).toEqual([atOf(10), 'store_down/main']);
});

test.each([
  ['is seen', false],
  ['an earlier agent has seen, and nobody has checked since', true],
])('a cause that %s keeps its start, although an older effect is found', (_, isRestarted) => {
  const first = createJudge();
  expect(look(first, 30, store(30, true, 20)).verdict.problems[0]?.since).toBe(atOf(20));
  const judge = isRestarted ? restarted(first) : first;
  const [known] = store(40, true, 20).probes;
  const probes = [
    isRestarted ? { ...known!, last: undefined, state: undefined } : known!,
    history(40, 'persistence', 10),
  ];
  const { problems } = look(judge, 40, { ...(isRestarted && { startedAt: atOf(35) }), probes }).verdict;
  expect(problems).toMatchObject([
    { id: 'store_down/main', since: atOf(20) },
    { id: 'role_down/history', causedBy: 'store_down/main' },
  ]);
});

test('a role that restarts again and again is one problem, although it is refused, warms up and passes in turn', () => {
  const judge = createJudge();
  for (let restart = 0; restart < 4; restart++) {
    const from = restart * 15;
    look(judge, from, { probes: [history(from, 'refused', from)] });
    look(judge, from + 5, { probes: [history(from + 5, 'warming_up', from)] });
    const { verdict } = look(judge, from + 6, { probes: [history(from + 6, 'warming_up', from)] });
    expect(verdict.problems).toMatchObject([{ kind: 'role_down', since: atOf(0) }]);
    look(judge, from + 10, { probes: [history(from + 10, undefined, from + 10)] });
  }
  const { incidents } = look(judge, 120, { probes: [history(120, undefined, 55)] });
  expect(incidents.map(({ start, end }) => [start, end])).toEqual([[atOf(0), atOf(55)]]);
});

test('a new agent knows that a role has a reason of its own before the first check', () => {
  const first = createJudge();
  const probes = [...store(30, true, 10).probes, history(30, 'not_in_ring', 10)];
  expect(look(first, 30, { probes }).verdict.problems.map(({ causedBy }) => causedBy)).toEqual([
    undefined,
    undefined,
  ]);
  const unchecked = probes.map((probe) => ({ ...probe, last: undefined, state: undefined }));
  const { verdict } = look(restarted(first), 61, {
    startedAt: atOf(60),
    probes: [...store(61, true, 10).probes, ...unchecked.slice(1)],
  });
  expect(verdict.problems.map(({ id, causedBy }) => [id, causedBy])).toEqual([
    ['store_down/main', undefined],
    ['role_down/history', undefined],
  ]);
});
