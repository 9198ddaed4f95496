import { expect, test } from 'vitest';
import { createHistory, type History, type HistoryHeader } from '../../../src/agent/admin/history.ts';
import type { StatusFacts } from '../../../src/agent/report.ts';
import { type ManualClock, manualClock } from '../../clock.ts';
import { probeStatusOf, statusReportOf } from '../../status-report.ts';

const turn = () => new Promise<void>((resolve) => void setImmediate(resolve));

/** Lets `seconds` pass, one sample at a time, because each sample waits for a commit. */
async function pass(clock: ManualClock, seconds: number): Promise<void> {
  for (let i = 0; i < seconds / 5; i++) {
    clock.advance(5_000);
    await turn();
  }
}

function unpacked(history: History): { header: HistoryHeader; values: Record<string, number[]> } {
  const packed = history.packed();
  const length = packed.readUInt32LE(0);
  const header = JSON.parse(packed.toString('utf8', 4, 4 + length)) as HistoryHeader;
  const values = Object.fromEntries(
    header.series.map((name, i) => [
      name,
      Array.from({ length: header.points }, (_, at) =>
        packed.readFloatLE(4 + length + 4 * (i * header.points + at)),
      ),
    ]),
  );
  return { header, values };
}

function started(facts: () => Partial<StatusFacts>, options = {}) {
  const clock = manualClock();
  const report = () => statusReportOf({ ...facts(), now: new Date(clock.nowMs()).toISOString() });
  const history = createHistory(options, { report, commit: async () => {}, clock });
  history.start();
  return { clock, history };
}

const refused = { reason: 'refused', msg: 'connection refused' } as const;

test('a sample every 5 s: a role as 1 or 0, what rises as a rate, what is unknown as nothing', async () => {
  let seconds = 0;
  let ok = true;
  const { clock, history } = started(() => ({
    probes: [
      probeStatusOf(
        'health/worker',
        ok ? { at: '2030-01-01T00:00:00.000Z' } : { ...refused, at: '2030-01-01T00:00:00.000Z' },
      ),
    ],
    entries: {
      services: [{ service: 'worker', levels: { error: 2 * seconds } }],
      loggers: [],
      loggerCount: 0,
      lastWords: [],
      lastErrors: [],
    },
  }));
  await pass(clock, 5);
  seconds = 5;
  ok = false;
  await pass(clock, 5);
  seconds = 15;
  await pass(clock, 5);
  // The total begins again.
  seconds = 0;
  ok = true;
  await pass(clock, 5);
  const { header, values } = unpacked(history);
  expect(header).toMatchObject({ tick: 3, points: 4, stepMs: 5_000 });
  expect(values['health/worker/up']).toEqual([1, 0, 0, 1]);
  expect(values['log/error']).toEqual([Number.NaN, 2, 4, Number.NaN]);
  expect(values['health/worker/seconds']!.map((value) => Math.round(value * 1e3))).toEqual([
    5,
    Number.NaN,
    Number.NaN,
    5,
  ]);
});

test('time that was slept through has no values', async () => {
  const clock = manualClock();
  let wake = () => {};
  const commit = () => new Promise<void>((resolve) => (wake = resolve));
  const report = () => statusReportOf({ now: new Date(clock.nowMs()).toISOString() });
  const history = createHistory({}, { report, commit, clock });
  history.start();
  for (const ms of [5_000, 5_000, 30_000, 5_000]) {
    clock.advance(ms);
    wake();
    await turn();
  }
  const { header, values } = unpacked(history);
  expect(header.points).toBe(9);
  expect(values['agent/series']).toEqual([0, 0, ...Array(5).fill(Number.NaN), 0, 0]);
});

test('a ring per series, the oldest value leaves; a series without values is forgotten; 128 series at most', async () => {
  let roles = Array.from({ length: 100 }, (_, i) => `role-${i}`);
  const { clock, history } = started(
    () => ({
      probes: roles.map((role) => probeStatusOf(`health/${role}`, { at: '2030-01-01T00:00:00.000Z' })),
    }),
    { points: 10 },
  );
  await pass(clock, 500);
  const full = unpacked(history);
  expect(full.header).toMatchObject({ points: 10, tick: 99 });
  expect(full.header.series).toHaveLength(128);
  expect(history.packed().length).toBeLessThan(128 * 10 * 4 + 8_192);
  roles = ['other'];
  await pass(clock, 120);
  const { header, values } = unpacked(history);
  expect(header.series).toContain('health/other/up');
  expect(header.series).not.toContain('health/role-1/up');
  expect(values['health/other/up']).toEqual(Array(10).fill(1));
});

test('a state that cannot be written does not end it, and a stop does', async () => {
  const clock = manualClock();
  const commit = () => Promise.reject(new Error('ENOSPC'));
  const history = createHistory({}, { report: () => statusReportOf(), commit, clock });
  history.start();
  history.start();
  await pass(clock, 15);
  expect(history.newest()?.tick).toBe(2);
  history.stop();
  await pass(clock, 15);
  expect(history.newest()?.tick).toBe(2);
  expect(clock.waiting).toBe(0);
});
