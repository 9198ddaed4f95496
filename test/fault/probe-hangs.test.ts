import { describe, expect, test } from 'vitest';
import type { Finding } from '../../src/probes/probe.ts';
import { dueBed, rest, runnerBed, type Scripted, scripted } from '../unit/probes/runner/bed.ts';

/** A probe that waits for ever, unless its signal aborts. */
const listening = (finding: () => Finding) => (signal: AbortSignal) =>
  new Promise<Finding>((resolve) => signal.addEventListener('abort', () => resolve(finding())));

describe('a probe that listens to its signal', () => {
  test('may say at its timeout in which phase time ran out', async () => {
    const bed = runnerBed();
    const answers = listening(() => ({
      reason: 'first_byte_timeout',
      msg: 'nothing came',
      phasesMs: { connect: 3 },
    }));
    const probe = scripted('health/a', { answers });
    bed.configure(probe);
    await bed.due(probe);
    await bed.pass(4999);
    expect(probe.lastCheck.signal.aborted).toBe(false);
    await bed.pass(1);
    expect(bed.report(probe).last).toMatchObject({ reason: 'first_byte_timeout', phasesMs: { connect: 3 } });
    expect(bed.report(probe)).toMatchObject({ isRunning: false, last: { durationMs: 5000 } });
  });

  test.each([
    ['finds nothing wrong when time is over', listening(() => ({ msg: 'ok' }))],
    [
      'throws what its library throws',
      (signal: AbortSignal) =>
        new Promise<Finding>((_, reject) => {
          signal.addEventListener('abort', () => reject(new Error('socket hang up')));
        }),
    ],
  ])('is too slow if it %s', async (_, answers) => {
    const probe = scripted('health/a', { answers });
    const bed = await dueBed(probe);
    await bed.pass(5000);
    expect(bed.report(probe).last).toMatchObject({
      ok: false,
      reason: 'too_slow',
      msg: 'no result within 5000 ms',
    });
  });
});

describe('a probe that does not', () => {
  const scene = async () => {
    const hog = scripted('store/hog', { intervalMs: 10_000, timeoutMs: 5000, row: { lane: 'main' } });
    const sibling = scripted('store/sibling', { intervalMs: 600_000, row: { lane: 'main' } });
    const other = scripted('health/other', { intervalMs: 600_000, timeoutMs: 600_000 });
    const bed = await dueBed(hog, { concurrency: 1 });
    bed.configure(hog, sibling, other);
    return { bed, hog, sibling, other };
  };

  test('is too slow at its timeout; its place is free then, its lane is not', async () => {
    const { bed, hog, sibling, other } = await scene();
    await bed.pass(4999);
    expect([hog.checks.length, other.checks.length, bed.heard]).toEqual([1, 0, []]);
    await bed.pass(1);
    expect(bed.heard).toEqual([['store/hog', false]]);
    expect(bed.report(hog)).toMatchObject({
      isRunning: true,
      last: { reason: 'too_slow', durationMs: 5000 },
    });
    await bed.pass(10_000);
    expect([other.checks.length, sibling.checks.length]).toEqual([1, 0]);
  });

  test('is not started again until it has settled: what is due counts as overlap', async () => {
    const { bed, hog } = await scene();
    await bed.pass(5000);
    const { overlap } = bed.report(hog).skipped;
    await bed.pass(60_000, 5000);
    expect(hog.checks).toHaveLength(1);
    expect(bed.report(hog).skipped).toEqual({ overlap: overlap + 6, backlog: 0 });
    expect(bed.series('svc_probe_skipped_total{probe="store/hog",reason="overlap"}')).toEqual({
      'svc_probe_skipped_total{probe="store/hog",reason="overlap"}': overlap + 6,
    });
  });

  test('has nothing of what it says later taken, and goes on then', async () => {
    const { bed, hog, sibling, other } = await scene();
    await bed.pass(10_000);
    await hog.lastCheck.finds({
      msg: 'late',
      remember: { late: true },
      gauges: [{ name: 'svc_clusters', labels: {}, value: 1 }],
    });
    expect(bed.heard).toEqual([['store/hog', false]]);
    expect(bed.series('svc_clusters')).toEqual({});
    await other.lastCheck.finds();
    expect(sibling.checks).toHaveLength(1);
    await sibling.lastCheck.finds();
    await bed.due(hog);
    expect([hog.checks.length, hog.lastCheck.recalled]).toEqual([2, undefined]);
  });
});

test('a probe that hangs while it is made is too slow, and is there when it is ready', async () => {
  const bed = runnerBed();
  const ready = scripted('store/a');
  let make = (): void => {};
  const probe = scripted('store/a', {
    row: { open: (deps) => new Promise((resolve) => (make = () => resolve(ready.row.open(deps)))) },
  });
  bed.configure(probe);
  await bed.pass(10_000);
  await bed.pass(5000);
  expect(bed.report(probe).last?.reason).toBe('too_slow');
  make();
  await rest();
  expect(ready.checks).toHaveLength(0);
  await bed.due(probe);
  expect(ready.checks).toHaveLength(1);
});

test.each([
  [
    'throws while it is made',
    () => {
      throw new Error('no driver');
    },
  ],
  ['cannot be made', () => Promise.reject(new Error('no driver'))],
])('a probe that %s has failed, and is made again at the next check', async (_, fail) => {
  const bed = runnerBed();
  const probe = scripted('store/a');
  const { open } = probe.row;
  let isBroken = true;
  probe.row = { ...probe.row, open: (deps) => (isBroken ? fail() : open(deps)) };
  bed.configure(probe);
  await bed.pass(10_000);
  expect(bed.report(probe).last).toMatchObject({ reason: 'failed', msg: 'no driver' });
  isBroken = false;
  await bed.due(probe);
  expect(probe.checks).toHaveLength(1);
});

describe('the agent stops', () => {
  const stopped = (stop: Promise<void>) => {
    const seen = { isOver: false };
    void stop.then(() => {
      seen.isOver = true;
    });
    return seen;
  };

  test('every check is aborted; those that listen are waited for, all are closed', async () => {
    const bed = runnerBed();
    const [a, b] = ['health/a', 'health/b'].map((name) => scripted(name, { timeoutMs: 60_000 })) as [
      Scripted,
      Scripted,
    ];
    bed.configure(a, b);
    await bed.pass(10_000);
    const seen = stopped(bed.runner.stop());
    expect([a, b].map(({ lastCheck }) => lastCheck.signal.aborted)).toEqual([true, true]);
    expect(bed.series()).toEqual({});
    await a.lastCheck.throws(new Error('aborted'));
    expect([seen.isOver, a.closed, b.closed]).toEqual([false, 1, 0]);
    await b.lastCheck.finds();
    expect([seen.isOver, a.closed, b.closed]).toEqual([true, 1, 1]);
    expect([bed.heard, bed.clock.waiting]).toEqual([[], 0]);
  });

  test('one that hangs is waited for for two seconds, and closed all the same', async () => {
    const probe = scripted('health/a');
    const bed = await dueBed(probe);
    const seen = stopped(bed.runner.stop());
    await rest();
    await bed.pass(1999);
    expect([seen.isOver, probe.closed]).toEqual([false, 0]);
    await bed.pass(1);
    expect([seen.isOver, probe.closed, bed.clock.waiting]).toEqual([true, 1, 0]);
  });

  test('one that hangs while it closes holds nobody up for longer than half a second', async () => {
    const bed = runnerBed();
    const probe = scripted('health/a');
    const { open } = probe.row;
    const hangs = async (deps: Parameters<typeof open>[0]) => ({
      ...(await open(deps)),
      close: () => new Promise<void>(() => {}),
    });
    probe.row = { ...probe.row, open: hangs };
    bed.configure(probe);
    await bed.due(probe);
    await probe.lastCheck.finds();
    const seen = stopped(bed.runner.stop());
    await rest();
    await bed.pass(499);
    expect(seen.isOver).toBe(false);
    await bed.pass(1);
    expect(seen.isOver).toBe(true);
  });

  test('one that fails to close is told in the log', async () => {
    const bed = runnerBed();
    const probe = scripted('health/a');
    const { open } = probe.row;
    const fails = async (deps: Parameters<typeof open>[0]) => ({
      ...(await open(deps)),
      close: () => Promise.reject(new Error('already closed')),
    });
    probe.row = { ...probe.row, open: fails };
    bed.configure(probe);
    await bed.due(probe);
    await probe.lastCheck.finds();
    await bed.runner.stop();
    expect(bed.entries).toMatchObject([
      { level: 'warn', msg: 'a probe did not close', fields: { probe: 'health/a' } },
    ]);
  });
});
