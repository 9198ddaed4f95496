import { describe, expect, test } from 'vitest';
import type { Row } from '../../../../src/agent/verdict/collected.ts';
import { createServiceReadings } from '../../../../src/agent/verdict/readings.ts';
import { createTracks } from '../../../../src/agent/verdict/tracks.ts';

const stepMs = 15_000;

/** Takes a number of samples of series that are a function of the step. */
function sampled(steps: number, rowsAt: (step: number) => Readonly<Record<string, Row[]>>) {
  const readings = createServiceReadings();
  for (let step = 0; step <= steps; step++) {
    const rows = rowsAt(step);
    const at = step * stepMs;
    readings.sample((family) => rows[family] ?? [], { nowMs: 1_767_225_600_000 + at, monotonicMs: at });
  }
  return readings.report();
}
const row = (service: string, value: number, labels: Record<string, string> = {}): Row => ({
  service,
  labels,
  value,
});
const kindsOf = (report: ReturnType<typeof sampled>) =>
  report.exceeded.filter(({ onlyGoesOn }) => !onlyGoesOn).map(({ kind }) => kind);

test.each([
  // The limit of the alert is 10 a second.
  ['at the limit', 150, []],
  ['above the limit', 151, ['persistence_errors']],
])('counted persistence errors %s', (_, perStep, kinds) => {
  const report = sampled(20, (step) => ({
    svc_persistence_requests: [row('history', step * 100_000)],
    svc_persistence_errors: [row('history', step * perStep)],
  }));
  expect(kindsOf(report)).toEqual(kinds);
});

test('a counter that appears began at 0 if its sender was there, and at its value if it was not', () => {
  const appears = (wasThere: boolean) =>
    sampled(20, (step) => ({
      svc_log_bytes_total: wasThere || step >= 15 ? [row('history', 1)] : [],
      svc_log_entries_total: step >= 15 ? [row('history', 1, { level: 'fatal' })] : [],
    }));
  expect(kindsOf(appears(true))).toEqual(['fatal']);
  expect(kindsOf(appears(false))).toEqual([]);
});

test('restarts in a quarter of an hour: three are a loop, and it began with the first', () => {
  const restartsAt = [8, 14, 20];
  const report = sampled(24, (step) => ({
    svc_role_restarts_total: [row('history', 5 + restartsAt.filter((at) => at <= step).length)],
  }));
  expect(report.exceeded).toMatchObject([
    { kind: 'crash_loop', value: '3 restarts in a quarter of an hour', since: '2026-01-01T00:02:00.000Z' },
  ]);
});

test.each([100, 250, 4_321, 250_000, 30_864_197, 12_345_678_901])(
  'thousands of %i a step are separated',
  (perStep) => {
    const report = sampled(40, (step) => ({
      svc_workflow_timeout: [row('history', step * perStep, { domain: 'orders' })],
      svc_workflow_completed: [row('history', step * perStep * 100, { domain: 'orders' })],
    }));
    const value = `${new Intl.NumberFormat('en-US').format(perStep * 4)} workflows a minute time out`;
    expect(report.exceeded).toMatchObject([{ kind: 'workflow_timeouts', value }]);
  },
);

test('what is usual stands beside what is above the limit', () => {
  let total = 0;
  const report = sampled(40, (step) => {
    total += step <= 20 ? 15 : 600;
    return {
      svc_persistence_requests: [row('history', step * 100_000)],
      svc_log_persistence_errors_total: [row('history', 0)],
      svc_workflow_timeout: [row('history', total, { domain: 'orders' })],
      svc_workflow_completed: [row('history', step * 100_000, { domain: 'orders' })],
    };
  });
  expect(report.exceeded).toMatchObject([
    {
      kind: 'workflow_timeouts',
      value: '2,400 workflows a minute time out',
      limit: '300',
      about: { domain: 'orders' },
    },
  ]);
  // It was 60 a minute, and rose for the two minutes of the rate's span.
  expect(Number(report.exceeded[0]!.usual)).toBeGreaterThanOrEqual(60);
  expect(Number(report.exceeded[0]!.usual)).toBeLessThan(120);
});

test('a share of few calls means nothing', () => {
  const failing = (perStep: number) =>
    sampled(20, (step) => ({
      svc_matching_client_requests: [row('frontend', step * perStep)],
      svc_matching_client_errors: [row('frontend', step * perStep)],
    }));
  expect(kindsOf(failing(2.9))).toEqual([]);
  expect(kindsOf(failing(3.1))).toEqual(['request_errors']);
});

test('calls of less than a minute are no share, and do not even show that a problem goes on', () => {
  const { exceeded } = sampled(3, (step) => ({
    svc_persistence_requests: [row('history', step * 1_000)],
    svc_persistence_errors: [row('history', step * 1_000)],
  }));
  expect(exceeded).toEqual([]);
});

test('drops are a problem after a quarter of an hour', () => {
  const dropping = (steps: number) =>
    sampled(steps, (step) => ({
      svc_agent_dropped_total: [row('', step, { component: 'statsd', reason: 'buffer_full' })],
    }));
  expect(kindsOf(dropping(60))).toEqual([]);
  expect(kindsOf(dropping(70))).toEqual(['dropping']);
});

test('a few time-outs an hour are no share', () => {
  const late = (perStep: number) =>
    sampled(60, (step) => ({ svc_workflow_timeout: [row('history', step * perStep, { domain: 'orders' })] }));
  expect(kindsOf(late(0.14))).toEqual([]);
  expect(kindsOf(late(0.16))).toEqual(['workflow_timeouts']);
});

test('a callee that counts its own faults is judged by them: answers such as "already started" are none', () => {
  const calls = (own: Record<string, Row[]>) =>
    sampled(20, (step) => ({
      svc_history_client_requests: [row('frontend', step * 100)],
      svc_history_client_errors: [row('frontend', step * 80)],
      ...Object.fromEntries(
        Object.entries(own).map(([family, rows]) => [
          family,
          rows.map((one) => ({ ...one, value: one.value * step })),
        ]),
      ),
    }));
  expect(kindsOf(calls({}))).toEqual(['request_errors']);
  expect(kindsOf(calls({ svc_served_requests: [row('history', 100)] }))).toEqual([]);
  expect(
    kindsOf(calls({ svc_served_requests: [row('history', 100)], svc_served_errors: [row('history', 9)] })),
  ).toEqual(['request_errors']);
});

test.each([
  ['one that is polled', { svc_matching_poll_timeout: 2 }, []],
  ['one that nobody polls', { svc_matching_poll_timeout: 0 }, ['list_unpolled', 'list_stalled']],
  ['one of a product that counts no polls', {}, []],
])('a list with tasks: %s', (_, polls: Record<string, number>, kinds) => {
  const list = { domain: 'orders', tasklist: 'default' };
  const report = sampled(60, (step) => ({
    svc_matching_tasklist_backlog: [row('matching', 50, list)],
    ...Object.fromEntries(
      Object.entries(polls).map(([family, perStep]) => [family, [row('matching', 7 + perStep * step, list)]]),
    ),
  }));
  expect(kindsOf(report).filter((kind) => kind === 'list_unpolled' || kinds.includes(kind as never))).toEqual(
    kinds,
  );
});

test('how much of the errors in the log the metrics show', () => {
  const truth = (shown: number) =>
    sampled(30, (step) => ({
      svc_log_persistence_errors_total: [row('history', step * 100)],
      svc_persistence_errors: [row('history', step * shown)],
    })).telemetryTruth.history;
  expect(truth(3)).toBeCloseTo(0.03);
  expect(truth(0)).toBe(0);
  expect(truth(500)).toBe(1);
});

test('what has counted since the start, and when: what a page or a log has at first, or a gauge that changes, does not count', () => {
  const { counted } = sampled(8, (step) => ({
    svc_persistence_requests: [row('history', 500 + (step === 2 ? 1 : 0)), row('matching', 70)],
    svc_log_entries_total: [
      row('worker', 10 + step, { level: 'info' }),
      row('history', 9, { level: 'info' }),
    ],
    svc_matching_tasklist_backlog: [row('matching', step, { domain: 'orders', tasklist: 'default' })],
  }));
  // A counter that falls began again, and counted its value.
  expect(counted).toEqual({
    'log/worker': '2026-01-01T00:02:00.000Z',
    'page/history': '2026-01-01T00:00:45.000Z',
  });
});

test('a track keeps a quarter of an hour, knows a reset, and is bounded', () => {
  const tracks = createTracks();
  const totals = [10, 20, 30, 5, 15];
  for (const [i, total] of totals.entries()) {
    tracks.begin(i * stepMs);
    tracks.set('total', 'a', total);
    for (let key = 0; key < 5_000; key++) tracks.set('many', `${key}`, 1);
  }
  // The increases are 10 + 10 + 5 after the reset + 10, in a minute.
  expect(tracks.rate('total', 'a', 60_000)).toBeCloseTo(35 / 60);
  expect(tracks.increase('total', 'a', 30_000)).toBe(15);
  expect(tracks.least('total', 'a', 60_000)).toBe(5);
  expect(tracks.least('total', 'a', 120_000)).toBeUndefined();
  expect(tracks.slope('total', 'a', 60_000)).toBeCloseTo(5 / 60);
  expect(tracks.unchangedMs('many', '1')).toBe(60_000);
  expect(tracks.keys('many')).toHaveLength(3_999);
  tracks.begin(5 * stepMs);
  expect(tracks.keys('total')).toEqual([]);
  expect(tracks.rate('total', 'a', 60_000)).toBeUndefined();
});

test.each([
  ['seconds are whole', 'svc_store_wal_oldest_unarchived_timestamp_seconds', '5m 1s'],
  ['a share keeps its digits', 'svc_persistence_errors', '9.5%'],
])('%s', (_, family, shown) => {
  const report = sampled(8, (step) =>
    family === 'svc_persistence_errors'
      ? {
          svc_persistence_requests: [row('history', step * 1000)],
          svc_persistence_errors: [row('history', step * 95)],
        }
      : { [family]: [row('', 1_767_225_600 + step * 15 - 301.4, { store: 'main', database: 'p' })] },
  );
  expect(report.exceeded).toHaveLength(1);
  expect(report.exceeded[0]?.value).toContain(`${shown} `);
  expect(report.exceeded[0]?.usual).toBeUndefined();
});

test('what is usual is kept of 4,000 values', () => {
  const behind = (step: number, stores: number, seconds: number) => ({
    svc_store_wal_oldest_unarchived_timestamp_seconds: Array.from({ length: stores }, (_, i) =>
      row('', 1_767_225_600 + step * 15 - seconds, { store: `s${i}`, database: 'p' }),
    ),
  });
  const after = (known: number) =>
    sampled(126, (step) => {
      if (step === 0) return behind(step, known, 100);
      if (step < 125) return {};
      // This store was not there before.
      const [one] = behind(
        step,
        1,
        step === 125 ? 100 : 400,
      ).svc_store_wal_oldest_unarchived_timestamp_seconds;
      return {
        svc_store_wal_oldest_unarchived_timestamp_seconds: [
          { ...one!, labels: { store: 'new', database: 'p' } },
        ],
      };
    }).exceeded[0]?.usual;
  expect(after(3_999)).toBe('1m 40s');
  expect(after(4_000)).toBeUndefined();
});

test.each([
  ['what is usual follows what is measured, by a fortieth of each sample', [40, 80], '41s'],
  ['and stays where nothing changes', [40, 40], '40s'],
  ['and may be the limit', [300, 300], '5m'],
])('%s', (_, [before, after], usual) => {
  const lag = sampled(2, (step) => ({
    svc_store_wal_oldest_unarchived_timestamp_seconds: [
      row('', 1_767_225_600 + step * 15 - [before!, after!, 1e6][step]!, { store: 'main', database: 'p' }),
    ],
  }));
  expect(lag.exceeded).toMatchObject([{ kind: 'wal_stalled', usual }]);
});

test.each([
  [1, '1 fatal entry'],
  [0.95, '0.95 fatal entries'],
  [9.94, '9.9 fatal entries'],
  [9.95, '10 fatal entries'],
  [9.96, '10 fatal entries'],
  [10.4, '10 fatal entries'],
  [1234.5, '1,235 fatal entries'],
])('a number of %d is shown as %s', (count, text) => {
  const report = sampled(40, (step) => ({
    svc_role_up: [row('history', 1)],
    svc_log_entries_total: [row('history', step < 39 ? 5 : 5 + count, { level: 'fatal' })],
  }));
  expect(report.exceeded[0]?.value).toBe(`${text} in ten minutes`);
});

test.each<[Record<string, string>, Record<string, string>]>([
  [{ build_version: '1.2', version: '1.1', revision: 'abc' }, { history: '1.2' }],
  [{ version: '1.1', revision: 'abc' }, { history: '1.1' }],
  [{ revision: 'abc' }, { history: 'abc' }],
  [{ revision: '' }, {}],
  [{}, {}],
  [{ version: 'x'.repeat(81) }, { history: 'x'.repeat(80) }],
])('the version of a role is in its labels: %o', (labels, versions) => {
  expect(sampled(0, () => ({ build_information: [row('history', 1, labels)] })).versions).toEqual(versions);
});

describe('errors that pause', () => {
  const step = 15_000;
  const at = (steps: number) => new Date(1_767_225_600_000 + steps * step).toISOString();
  const errors = (growsAt: (step: number) => boolean, steps: number) => {
    let total = 0;
    return sampled(steps, (now) => {
      total += growsAt(now) ? 3_000 : 0;
      return {
        svc_persistence_requests: [row('history', now * 100_000)],
        svc_persistence_errors: [row('history', total)],
      };
    });
  };
  test('for 75 s are over, although the window still contains them', () => {
    const exceeded = (steps: number) => errors((now) => now <= 20, steps).exceeded;
    expect(exceeded(24)).toMatchObject([{ kind: 'persistence_errors', lastCounted: at(20) }]);
    expect(exceeded(25)).toEqual([]);
  });
  test.each([
    ['that their caller counts', 'svc_history_client_errors', { svc_history_client_requests: 'frontend' }],
    [
      'that the callee counts',
      'svc_served_errors',
      { svc_history_client_requests: 'frontend', svc_served_requests: 'history' },
    ],
  ])('in requests %s are over, too', (_, family, requests: Record<string, string>) => {
    const exceeded = (steps: number) =>
      sampled(steps, (now) => ({
        ...Object.fromEntries(
          Object.entries(requests).map(([name, role]) => [name, [row(role, now * 1_000)]]),
        ),
        [family]: [row(family === 'svc_served_errors' ? 'history' : 'frontend', Math.min(now, 20) * 900)],
      })).exceeded;
    expect(exceeded(24)).toMatchObject([{ kind: 'request_errors', lastCounted: at(20) }]);
    expect(exceeded(25)).toEqual([]);
  });
  test.each([
    ['for 75 s and begin again are a new problem', 26, 26],
    ['for less than that are one problem', 25, 1],
  ])('%s', (_, again, since) => {
    const { exceeded } = errors((now) => now <= 20 || now >= again, 28);
    expect(exceeded).toMatchObject([{ since: at(since), lastCounted: at(28) }]);
  });
  test.each([
    ['it counts other things', (now: number) => now * 100_000, at(0)],
    ['it counts other things until a minute before', (now: number) => Math.min(now, 17) * 100_000, at(0)],
    ['it hangs for two minutes before', (now: number) => Math.min(now, 12) * 100_000, undefined],
  ])('and that an earlier agent may have seen: the role was quiet if %s', (_, requests, quietSince) => {
    let total = 5_000;
    const { exceeded } = sampled(22, (now) => {
      total += now > 20 ? 3_000 : 0;
      return {
        svc_persistence_requests: [row('history', requests(now))],
        svc_persistence_errors: [row('history', total)],
      };
    });
    expect(exceeded).toMatchObject([{ kind: 'persistence_errors', since: at(21) }]);
    expect(exceeded[0]!.quietSince).toBe(quietSince);
  });
  test.each([
    ['writes other entries', (now: number) => now * 100, at(0)],
    ['writes nothing else', () => 0, undefined],
  ])('and that a log tells: the role was quiet if it %s', (_, entries, quietSince) => {
    const { exceeded } = sampled(22, (now) => ({
      svc_log_entries_total: [row('history', entries(now), { level: 'info' })],
      svc_log_persistence_errors_total: [row('history', 5_000 + (now > 20 ? (now - 20) * 3_000 : 0))],
    }));
    expect(exceeded).toMatchObject([{ kind: 'persistence_errors', from: ['log/history'] }]);
    expect(exceeded[0]!.quietSince).toBe(quietSince);
  });
  // The limit of the alert is 10 a second, which 1,200 errors in the window exceed only together with more.
  test.each([
    ['one error', 1, []],
    ['as many as the limit', 1_200, []],
    ['one more than the limit', 1_201, [{ kind: 'persistence_errors', since: at(26), newSince: at(26) }]],
  ])('%s after a pause, while the window contains what was before it', (_, more, found) => {
    let total = 0;
    const { exceeded } = sampled(26, (now) => {
      total += now <= 20 ? 600 : now === 26 ? more : 0;
      return {
        svc_persistence_requests: [row('history', now * 100_000)],
        svc_persistence_errors: [row('history', total)],
      };
    });
    expect(exceeded).toMatchObject(found);
    expect(exceeded).toHaveLength(found.length);
  });
  test('end with the last that was too many, not with the usual ones after', () => {
    let total = 0;
    const { exceeded } = sampled(24, (now) => {
      total += now > 5 && now <= 20 ? 3_000 : 1;
      return {
        svc_persistence_requests: [row('history', now * 100_000)],
        svc_persistence_errors: [row('history', total)],
      };
    });
    expect(exceeded).toMatchObject([{ since: at(6), lastCounted: at(20) }]);
  });
  test('begin with the first of them, not with the usual ones before', () => {
    // One error in each step is usual; 200 exceed the limit of 150 once they fill the window.
    let total = 0;
    const { exceeded } = sampled(40, (now) => {
      total += now >= 30 ? 200 : 1;
      return {
        svc_persistence_requests: [row('history', now * 100_000)],
        svc_persistence_errors: [row('history', total)],
      };
    });
    expect(exceeded).toMatchObject([{ kind: 'persistence_errors', since: at(30) }]);
  });
});

test.each([
  ['fatal entries', 'svc_log_entries_total', { level: 'fatal' }, 'fatal'],
  ['restarts', 'svc_role_restarts_total', {}, 'crash_loop'],
])(
  'a new agent does not know how many %s the window has: one shows that the problem goes on',
  (_, family, labels, kind) => {
    const exceeded = (steps: number, at = 2) =>
      sampled(steps, (step) => ({ [family]: [row('history', step < at ? 7 : 8, labels)] })).exceeded.filter(
        ({ onlyGoesOn }) => kind === 'fatal' || onlyGoesOn,
      );
    expect(exceeded(1)).toEqual([]);
    expect(exceeded(2)).toMatchObject([{ kind }]);
    expect(exceeded(20, 70)).toEqual([]);
  },
);

test.each([
  [59, [['crash_loop', true]]],
  [60, []],
])(
  'two restarts may go on a loop that an earlier agent saw, for a quarter of an hour: after %i samples',
  (steps, shown) => {
    const { exceeded } = sampled(steps, (step) => ({
      svc_role_restarts_total: [row('history', step < 40 ? 7 : step < 45 ? 8 : 9)],
    }));
    expect(exceeded.map(({ kind, onlyGoesOn }) => [kind, onlyGoesOn])).toEqual(shown);
  },
);

test('a share that is above its limit for less than five minutes only shows that a problem goes on', () => {
  const late = (steps: number) =>
    sampled(steps, (step) => ({
      svc_workflow_timeout: [row('history', step * 3, { domain: 'orders' })],
    })).exceeded.map(({ kind, onlyGoesOn }) => [kind, onlyGoesOn]);
  expect(late(20)).toEqual([['workflow_timeouts', true]]);
  expect(late(30)).toEqual([['workflow_timeouts', undefined]]);
});

describe('a role that falls silent', () => {
  const silentOf = (report: ReturnType<typeof sampled>) =>
    report.exceeded.map(({ kind, silent = [] }) => [kind, ...silent]);
  /** Ten minutes with errors up to one step, and calls up to another. */
  const counted = (errorsUntil: number, callsUntil: number, errors = 3_000) =>
    sampled(40, (step) => ({
      svc_persistence_errors: [row('history', Math.min(step, errorsUntil) * errors)],
      svc_persistence_requests: [row('history', Math.min(step, callsUntil) * 1e6)],
      // Another role, and a process whose memory changes, say nothing about it.
      svc_history_client_requests: [row('frontend', step * 1_000)],
      svc_memory_heap: [row('history', step)],
      svc_memory_gc_pause_ms: [row('history', step)],
    }));

  test.each([
    ['counts nothing since it had errors', 20, 20, ['persistence_errors', 'page/history']],
    ['counts on without errors', 20, 40, undefined],
    ['counted on for as long as errors are looked back at', 20, 30, undefined],
    [
      'counted on for a moment, in which errors were above the limit',
      20,
      22,
      ['persistence_errors', 'page/history'],
    ],
  ])('%s', (_, errorsUntil, callsUntil, shown) => {
    expect(silentOf(counted(errorsUntil, callsUntil))).toEqual(shown ? [shown] : []);
  });
  test('is no problem without errors', () => {
    expect(silentOf(counted(20, 20, 0))).toEqual([]);
  });

  const logged = (fatalAt: number, linesUntil: number, steps = 80) =>
    sampled(steps, (step) => ({
      svc_log_entries_total: [row('matching', step < fatalAt ? 0 : 1, { level: 'fatal' })],
      svc_log_bytes_total: [row('matching', Math.min(step, linesUntil) * 100)],
      svc_role_up: [row('matching', 1)],
    }));
  test.each([
    ['its last words were fatal', 20, 20, ['fatal', 'log/matching']],
    ['it wrote something after them', 20, 21, undefined],
    ['it wrote nothing, and nothing was fatal', 100, 20, undefined],
  ])('its log: %s', (_, fatalAt, linesUntil, shown) => {
    expect(silentOf(logged(fatalAt, linesUntil))).toEqual(shown ? [shown] : []);
  });

  test('what several roles count is known while one of them counts', () => {
    const timedOut = (othersCount: boolean) =>
      sampled(60, (step) => ({
        svc_workflow_timeout: [
          row('history', Math.min(step, 20) * 9_000, { domain: 'orders' }),
          row('matching', othersCount ? step * 0.1 : 0, { domain: 'other' }),
        ],
      }));
    const own = ['workflow_timeouts', 'page/history', 'page/matching'];
    expect(silentOf(timedOut(false))).toContainEqual(own);
    expect(silentOf(timedOut(true))).toEqual([]);
  });
});

describe('what a value is read from', () => {
  const fromOf = (report: ReturnType<typeof sampled>) =>
    report.exceeded.map(({ about, from }) => [about.role, ...(from ?? [])]);
  test('is the page of the role alone, and that of its callee', () => {
    const failing = sampled(20, (step) => ({
      svc_persistence_errors: [row('history', step * 3_000), row('worker', 0)],
      svc_persistence_requests: [row('history', step * 1e6), row('worker', step)],
    }));
    expect(fromOf(failing)).toEqual([['history', 'page/history']]);
    const requests = sampled(20, (step) => ({
      svc_history_client_requests: [row('frontend', step * 100), row('matching', step * 100)],
      svc_history_client_errors: [row('frontend', step * 100)],
    }));
    expect(fromOf(requests)).toEqual([['frontend', 'page/frontend', 'page/history']]);
  });
  test('is nothing where the agent finds it out itself', () => {
    const [refused] = sampled(1, (step) => ({
      svc_agent_series_refused_total: [row('', step, { family: 'a', reason: 'limit_series' })],
    })).exceeded;
    expect(refused?.kind).toBe('refused');
    expect(refused).not.toHaveProperty('from');
  });
  test('is nothing of a role that nobody names, nor what the agent counts of a role', () => {
    const { exceeded } = sampled(20, (step) => ({
      svc_role_restarts_total: [row('history', step)],
      svc_workflow_timeout: [row('', step * 9_000, { domain: 'orders' })],
    }));
    expect(exceeded.map(({ kind, from }) => [kind, from])).toEqual(
      expect.arrayContaining([
        ['crash_loop', undefined],
        ['workflow_timeouts', undefined],
      ]),
    );
  });
  test('has fallen silent with the caller, though the callee counts on', () => {
    const { exceeded } = sampled(40, (step) => ({
      svc_history_client_requests: [row('frontend', Math.min(step, 20) * 100)],
      svc_history_client_errors: [row('frontend', Math.min(step, 20) * 100)],
      svc_persistence_requests: [row('history', step * 100)],
    }));
    expect(exceeded).toMatchObject([{ kind: 'request_errors', silent: ['page/frontend'] }]);
  });
});

test('what is usual is of the times at which there was enough to judge', () => {
  const { exceeded } = sampled(40, (step) => ({
    svc_history_client_requests: [row('frontend', (Math.min(step, 10) + Math.max(0, step - 30)) * 100)],
    svc_history_client_errors: [row('frontend', Math.max(0, step - 30) * 100)],
  }));
  expect(exceeded).toMatchObject([{ kind: 'request_errors', usual: '0%' }]);
});

test.each([
  ['canary', ['canary']],
  ['canary-archival', []],
  ['orders', []],
])('workflows of domain %s that stop completing', (domain, kinds) => {
  const report = sampled(90, (step) => ({
    svc_workflow_completed: [row('history', Math.min(step, 20) * 100, { domain })],
  }));
  expect(kindsOf(report)).toEqual(kinds);
});
