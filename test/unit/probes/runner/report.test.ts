import { expect, test } from 'vitest';
import { dueBed, type Entry, runnerBed, scripted } from './bed.ts';

const said = (entries: readonly Entry[]) =>
  entries.map(({ level, msg, fields }) => [level, msg, fields.probe, fields.reason, fields.found]);

test('a probe that has not looked yet', () => {
  const bed = runnerBed();
  const probe = scripted('health/frontend', { intervalMs: 30_000, timeoutMs: 4000 });
  bed.configure(probe);
  const [report] = bed.runner.reports();
  expect(report).toEqual({
    name: 'health/frontend',
    kind: 'health',
    target: 'http://127.0.0.1/health/frontend',
    state: undefined,
    sinceMs: undefined,
    flapping: false,
    intervalMs: 30_000,
    timeoutMs: 4000,
    nextRunMs: report!.nextRunMs,
    isRunning: false,
    last: undefined,
    consecutiveFailures: 0,
    failingSinceMs: undefined,
    skipped: { overlap: 0, backlog: 0 },
    history: [],
    failures: [],
  });
  expect(report!.nextRunMs - bed.clock.nowMs()).toBeLessThan(10_000);
});

test('reports stand in the rows’ order, and JSON takes them', () => {
  const bed = runnerBed();
  const probes = ['c', 'a', 'b'].map((name) => scripted(name));
  bed.configure(...probes);
  bed.configure(...probes.toReversed());
  expect(bed.runner.reports().map(({ name }) => name)).toEqual(['b', 'a', 'c']);
  expect(() => JSON.stringify(bed.runner.reports())).not.toThrow();
});

test('keeps the last 100 results and the last 20 failures', async () => {
  const bed = runnerBed();
  const probe = scripted('health/a');
  bed.configure(probe);
  for (let i = 0; i < 250; i++) {
    await bed.due(probe);
    await probe.lastCheck.finds(i % 5 === 0 ? { reason: 'not_ok', msg: `${i}` } : { msg: `${i}` });
  }
  const { history, failures, last } = bed.report(probe);
  expect(history.map(({ msg }) => Number(msg))).toEqual(Array.from({ length: 100 }, (_, i) => 150 + i));
  expect(failures.map(({ msg }) => Number(msg))).toEqual(Array.from({ length: 20 }, (_, i) => 150 + i * 5));
  expect(last?.msg).toBe('249');
});

test('as many as told', async () => {
  const bed = runnerBed({ history: 2, failures: 0 });
  const probe = scripted('health/a');
  bed.configure(probe);
  for (let i = 0; i < 9; i++) {
    await bed.due(probe);
    await probe.lastCheck.finds({ reason: 'not_ok', msg: `${i}` });
  }
  expect(bed.report(probe)).toMatchObject({ history: [{ msg: '7' }, { msg: '8' }], failures: [] });
});

test('the log says what changed, not what each check found', async () => {
  const bed = runnerBed();
  const probe = scripted('health/a', { failureThreshold: 2 });
  bed.configure(probe);
  for (const sign of '++-+---+++') {
    await bed.due(probe);
    await probe.lastCheck.finds(sign === '+' ? { msg: 'fine' } : { reason: 'not_ok', msg: 'no shards' });
  }
  expect(said(bed.entries)).toEqual([
    ['warn', 'the target of a probe is down', 'health/a', 'not_ok', 'no shards'],
    ['info', 'the target of a probe is up again', 'health/a', undefined, 'fine'],
  ]);
  expect(bed.report(probe)).toMatchObject({ state: 'up', consecutiveFailures: 0, failingSinceMs: undefined });
});

test('since when', async () => {
  const probe = scripted('health/a');
  const bed = await dueBed(probe);
  await probe.lastCheck.finds({ reason: 'not_ok', msg: 'no' });
  const sinceMs = bed.clock.nowMs();
  await bed.due(probe);
  await probe.lastCheck.finds({ reason: 'not_ok', msg: 'no' });
  expect(bed.report(probe)).toMatchObject({
    state: 'down',
    sinceMs,
    consecutiveFailures: 2,
    failingSinceMs: sinceMs,
  });
});

test('flapping is said once at its begin and once at its end', async () => {
  const bed = runnerBed();
  const probe = scripted('health/a', { failureThreshold: 3 });
  bed.configure(probe);
  const flags: boolean[] = [];
  for (const sign of `+-+-+-+-+${'+'.repeat(25)}`) {
    await bed.due(probe);
    await probe.lastCheck.finds(sign === '+' ? {} : { reason: 'not_ok', msg: 'no' });
    flags.push(bed.report(probe).flapping);
  }
  expect([flags[5], flags[6], flags[20], flags.at(-1)]).toEqual([false, true, true, false]);
  expect(said(bed.entries).map(([level, msg]) => [level, msg])).toEqual([
    ['warn', 'the target of a probe is flapping'],
    ['info', 'the target of a probe is no longer flapping'],
  ]);
});
