import { describe, expect, test } from 'vitest';
import { plainScreen, screenOf } from '../../../src/agent/cli/io.ts';
import { readinessOf, statusLines } from '../../../src/agent/cli/status.ts';
import { type Problem, type StatusReport, undertakings } from '../../../src/agent/report.ts';
import { statusReportOf } from '../../status-report.ts';

const now = '2026-01-02T03:04:05.000Z';
const probe = (name: string, ok: boolean, msg: string) =>
  ({
    name,
    kind: name.split('/')[0],
    state: ok ? 'up' : 'down',
    since: '2026-01-02T03:03:05.000Z',
    nextRun: now,
    last: { ok, msg, reason: ok ? undefined : 'refused', at: now, durationMs: 3 },
  }) as unknown as StatusReport['probes'][number];

const problemOf = (change: Partial<Problem>): Problem => ({
  id: 'kind/',
  kind: 'kind',
  subject: '',
  severity: 'warning',
  what: '',
  firstSteps: 'Check the store.',
  since: '2026-01-02T03:03:05.000Z',
  evidence: [],
  consequences: [],
  blocks: [],
  ...change,
});

const report = (change: Partial<StatusReport> = {}): StatusReport => ({
  ...statusReportOf({
    now,
    roles: ['frontend'],
    startedAt: '2026-01-02T01:04:05.000Z',
    state: { directory: '/var/lib/svc-agent', sequence: 7, commitFailures: 0 },
    listeners: [{ listener: 'admin', address: '127.0.0.1:9465', tls: false }],
    probes: [probe('health/frontend', true, 'OK'), probe('store/main', true, 'PostgreSQL')],
    series: { total: 12, limit: 100, families: [] },
    refused: [{ family: 'x', reason: 'limit', count: 2 }],
    drops: [{ component: 'logs', reason: 'too_long', count: 3 }],
  }),
  verdict: { ok: true, level: 'ok', headline: 'All is well', sentence: 'All is well: 1 role.', problems: [] },
  ...change,
});

const down = report({
  verdict: {
    ok: false,
    level: 'critical',
    headline: 'Store main is down',
    sentence: 'Store main is down, since 2026-01-02 03:03 UTC.',
    problems: [
      problemOf({
        id: 'store_down/main',
        severity: 'critical',
        what: 'store main is down: refused: \u001b[2J',
        since: '2026-01-02T03:03:05.000Z',
        runbook: 'SvcStoreDown',
        fix: 'start it',
      }),
      problemOf({ id: 'reload/', severity: 'warning', what: 'the new configuration was refused' }),
    ],
  },
  probes: [probe('archive/history', true, 'readable'), probe('store/main', false, 'connect ECONNREFUSED')],
});

const screen = (columns: number, rows: number) =>
  screenOf({ isTTY: true, columns, rows }, { TERM: 'xterm', LANG: 'C.UTF-8', NO_COLOR: '1' });

describe('the status', () => {
  test('says first that all is well, then what is watched', () => {
    expect(statusLines(report(), plainScreen)).toEqual([
      'OK  All is well: 1 role.',
      '',
      'ROLE      HEALTH  METRICS  LOG',
      'frontend  up      -        -',
      '',
      'PROBE       STATE  FOR  TOOK  WHAT',
      'store/main  up     1m   3 ms  PostgreSQL',
      '',
      'svc-agent 1.2.3 on host-1, up 2h: OK, ready',
      'configuration as on disk (/etc/svc-agent/agent.yaml); state saved in /var/lib/svc-agent',
      '12 series, 3 dropped, 2 refused; admin http://127.0.0.1:9465/',
    ]);
  });

  test('says first what is wrong, since when, what to do, and obeys no escape sequence', () => {
    const lines = statusLines(down, plainScreen);
    expect(lines.slice(0, 4)).toEqual([
      'CRITICAL  Store main is down, since 2026-01-02 03:03 UTC.',
      '  ! store main is down: refused:  [2J (for 1m, runbook SvcStoreDown)',
      '      start it',
      '  - the new configuration was refused (for 1m)',
    ]);
    expect(lines[4]).toBe('      Check the store.');
    const probes = lines.findIndex((line) => line.startsWith('PROBE'));
    expect(lines[probes + 1]).toMatch(/^store\/main +refused/);
  });

  test('a failure that is no outage yet is as old as its first check, not as the state behind it', () => {
    const now = Date.parse(report().now);
    const at = (seconds: number) => new Date(now - seconds * 1000).toISOString();
    const failing = {
      ...probe('domain/orders', false, 'exit status 1'),
      state: 'up' as const,
      since: at(27 * 60),
      failingSince: at(13),
    };
    failing.last = { ...failing.last!, at: at(13) };
    const ageIn = (one: typeof failing) => {
      const lines = statusLines({ ...report(), probes: [one] }, plainScreen);
      return /^domain\/orders +\S+ +(\S+)/.exec(lines.find((line) => line.startsWith('domain/'))!)![1];
    };
    expect(ageIn(failing)).toBe('13s');
    expect(ageIn({ ...failing, failingSince: at(133) })).toBe('2m13s');
    expect(ageIn({ ...failing, state: 'down' as never })).toBe('27m');
  });

  test('on a narrow terminal the names of the probes stay whole', () => {
    const one = probe('store/main/persistence', false, 'connect ECONNREFUSED');
    const lines = statusLines({ ...down, probes: [one] }, screen(40, 30));
    expect(lines).toContain('PROBE                   STATE    FOR');
    expect(lines).toContain('store/main/persistence  refused  1m');
  });

  test.each([
    [80, 24],
    [40, 16],
    [40, 10],
    [80, 8],
  ])('fits %d columns and %d rows, the verdict first and the agent last', (columns, rows) => {
    const many = Array.from({ length: 30 }, (_, i) => probe(`store/s${i}`, false, 'no answer '.repeat(20)));
    const problems = many.map(({ name }) =>
      problemOf({ id: name, severity: 'critical', what: `${name} ${'x'.repeat(99)}` }),
    );
    const lines = statusLines(
      { ...down, probes: many, verdict: { ...down.verdict, problems } },
      screen(columns, rows),
    );
    expect(lines[0]).toMatch(/^CRITICAL {2}Store main is down/);
    expect(Math.max(...lines.map(({ length }) => length))).toBeLessThanOrEqual(columns);
    if (rows >= 16) expect(lines.length).toBeLessThan(rows);
    expect(lines.at(-1)).toContain('127.0.0.1:9465');
  });
});

test('with many roles, problems have half of the screen, and roles that fail are the first of the table', () => {
  const roles = Array.from({ length: 50 }, (_, i) => `role${i}`);
  const probes = roles.map((role, i) => probe(`health/${role}`, i !== 40, 'connection refused'));
  const problems = [1, 2, 3].map((n) =>
    problemOf({ id: `store_down/s${n}`, what: `store s${n} is down`, firstSteps: `Check server ${n}.` }),
  );
  const lines = statusLines(
    { ...report({ roles, probes }), verdict: { ...down.verdict, problems } },
    screen(80, 24),
  );
  expect(lines.length).toBeLessThan(24);
  const said = [1, 2, 3].flatMap((n) => [`store s${n} is down`, `Check server ${n}.`]);
  for (const text of said) expect(lines.join('\n')).toContain(text);
  expect(lines.slice(lines.findIndex((line) => line.startsWith('ROLE')) + 1)[0]).toMatch(/^role40 +down/);
  expect(lines).toContain('  and more; --json shows all');
});

test('what a cause takes down and what nobody can tell because of it are told apart, three of each', () => {
  const effects = (kind: string, unreadSince?: string) =>
    ['a', 'b', 'c', 'd'].map((subject) =>
      problemOf({
        id: `${kind}/${subject}`,
        what: `${kind} ${subject} fails: details`,
        causedBy: 'role_down/x',
        unreadSince,
      }),
    );
  const problems = [...effects('call'), ...effects('domain', now)];
  const cause = problemOf({
    id: 'role_down/x',
    what: 'role x is down',
    consequences: problems.map(({ id }) => id),
  });
  const verdict = { ...down.verdict, problems: [cause, ...problems] };
  const lines = statusLines({ ...down, verdict }, plainScreen).map((line) => line.trim());
  expect(lines.filter((line) => line.includes('because of it'))).toEqual([
    'because of it: call a fails, call b fails, call c fails and 1 more',
    'cannot be checked because of it: domain a fails, domain b fails, domain c fails and 1 more',
  ]);
});

describe.each(undertakings)('--check --for %s', (work) => {
  const unchecked = {
    ...probe('health/history', true, ''),
    last: undefined,
  } as StatusReport['probes'][number];
  const verdictOf = (change: Partial<StatusReport['verdict']>) => ({ ...report().verdict, ...change });
  const harmless = verdictOf({ ok: false, level: 'warning', problems: [problemOf({ id: 'advice/x' })] });

  test('a problem that blocks nothing does not stand for the checks without a result', () => {
    expect(readinessOf(report({ verdict: harmless }), work)).toEqual({
      ok: true,
      for: work,
      sentence: `The ${work} may begin.`,
      problems: [],
    });
    const probes = [probe('health/frontend', true, 'OK'), unchecked];
    expect(readinessOf(report({ verdict: harmless, probes }), work)).toMatchObject({
      ok: false,
      sentence: `The ${work} should wait: 1 of 2 checks has no result yet.`,
    });
    expect(readinessOf(report({ verdict: harmless, ready: false }), work)).toMatchObject({
      ok: false,
      sentence: `The ${work} should wait: the agent is starting.`,
    });
  });

  test('a failback waits while it is not known whether a domain can fail over', () => {
    const domain = (name: string, failover?: object) => ({
      ...probe(`domain/${name}`, true, ''),
      ...{ kind: 'domain', last: { ...probe(`domain/${name}`, true, '').last!, details: { failover } } },
    });
    const sentenceWith = (...probes: object[]) =>
      readinessOf(report({ verdict: harmless, probes: probes as never }), work).sentence;
    const unknown = { why: 'the lag of dc1 behind dc2 is not known' };
    const known = [domain('local'), domain('ready', { ready: true, why: '' })];
    const may = `The ${work} may begin.`;
    expect(sentenceWith(...known)).toBe(may);
    const waits = (names: string) =>
      work === 'failback'
        ? `The failback should wait: it is not known whether ${names} can fail over: the lag of dc1 behind dc2 is not known.`
        : may;
    expect(sentenceWith(...known, domain('orders', unknown))).toBe(waits('domain orders'));
    const five = ['a', 'b', 'c', 'd', 'e'].map((name) => domain(name, unknown));
    expect(sentenceWith(...five.slice(0, 2))).toBe(waits('domains a and b'));
    expect(sentenceWith(...five)).toBe(waits('5 domains'));
  });

  test('a problem that blocks the work is named before the checks without a result', () => {
    const blocking = problemOf({ id: 'store_down/main', what: 'store main is down', blocks: [work] });
    const verdict = verdictOf({ ok: false, level: 'critical', problems: [blocking] });
    expect(readinessOf(report({ verdict, probes: [unchecked] }), work)).toMatchObject({
      ok: false,
      sentence: `The ${work} should wait: store main is down (since 03:03:05 UTC).`,
      problems: ['store_down/main'],
    });
    const another = { ...blocking, reasonSince: blocking.since.replace('03:03:05', '03:13:06') };
    expect(readinessOf(report({ verdict: { ...verdict, problems: [another] } }), work).sentence).toBe(
      `The ${work} should wait: store main is down (since 03:03:05 UTC, for this reason since 03:13:06 UTC).`,
    );
  });

  test.each([
    ['Nothing is wrong so far', 'nothing is wrong so far'],
    ['WAL is late', 'WAL is late'],
  ])('what is not known continues the sentence: %s', (headline, clause) => {
    const verdict = verdictOf({ ok: false, level: 'unknown', headline });
    expect(readinessOf(report({ verdict }), work).sentence).toBe(`The ${work} should wait: ${clause}.`);
  });
});
