import { describe, expect, test } from 'vitest';
import { dueBed, runnerBed, type Scripted, scripted } from './bed.ts';

const ok = async () => ({ msg: 'ok' });
const many = (count: number, more: Parameters<typeof scripted>[1] = {}) =>
  Array.from({ length: count }, (_, i) => scripted(`health/${i}`, more));
describe('when probes run', () => {
  test('first within 10 s, then every interval at the same moments of the wall clock', async () => {
    const bed = runnerBed();
    const probes = many(20, { answers: ok });
    bed.configure(...probes);
    await bed.pass(10_000, 500);
    expect(probes.map(({ checks }) => checks.length)).toEqual(probes.map(() => 1));
    const firstDue = probes.map((probe) => bed.report(probe).nextRunMs % 60_000);
    expect(new Set(firstDue).size).toBeGreaterThan(15);
    for (let i = 0; i < 300; i++) await bed.pass(1000);
    for (const probe of probes) expect(probe.checks.length).toBeGreaterThanOrEqual(5);
    expect(probes.map((probe) => bed.report(probe).nextRunMs % 60_000)).toEqual(firstDue);

    const later = runnerBed();
    await later.pass(1_234_567);
    later.configure(...probes);
    await later.pass(10_000, 500);
    expect(probes.map((probe) => later.report(probe).nextRunMs % 60_000)).toEqual(firstDue);
  });

  test('a run that is over is let go: the stop aborts only the run that is under way', async () => {
    const bed = runnerBed();
    const [over, underWay] = [scripted('health/over'), scripted('health/under-way')];
    bed.configure(over, underWay);
    const ended = await bed.due(over);
    await ended.finds();
    await bed.pass(10_000);
    expect(underWay.checks.length).toBe(1);
    const stopped = bed.runner.stop();
    expect([ended.signal.aborted, underWay.lastCheck.signal.aborted]).toEqual([false, true]);
    await underWay.lastCheck.throws(new Error('aborted'));
    await stopped;
  });

  test('the agent’s name moves them', () => {
    const moments = ['host-1', 'host-2'].map((instance) => {
      const bed = runnerBed({ instance });
      const probe = scripted('health/frontend');
      bed.configure(probe);
      return bed.report(probe).nextRunMs;
    });
    expect(moments[0]).not.toBe(moments[1]);
  });

  test.each([
    ['eight unless told', undefined, 8],
    ['as many as told', 3, 3],
  ])('at once: %s, the others as soon as one ends', async (_, concurrency, expected) => {
    const bed = runnerBed({ concurrency });
    const probes = many(20, { timeoutMs: 60_000 });
    bed.configure(...probes);
    await bed.pass(10_000);
    const ended = new Set<Scripted>();
    while (ended.size < 20) {
      const begun = probes.filter((probe) => probe.checks.length > 0 && !ended.has(probe));
      expect(begun).toHaveLength(Math.min(expected, 20 - ended.size));
      await begun[0]!.lastCheck.finds();
      ended.add(begun[0]!);
    }
    expect(bed.heard).toHaveLength(20);
    expect(probes.every(({ checks }) => checks.length === 1)).toBe(true);
  });

  test('one of a lane at a time', async () => {
    const bed = runnerBed();
    const [a, b, free] = [
      scripted('store/main/persistence', { timeoutMs: 60_000, row: { lane: 'main' } }),
      scripted('store/main/visibility', { timeoutMs: 60_000, row: { lane: 'main' } }),
      scripted('health/frontend'),
    ];
    bed.configure(a, b, free);
    await bed.pass(10_000);
    expect(free.checks).toHaveLength(1);
    const [first, second] = a.checks.length === 1 ? [a, b] : [b, a];
    expect([first.checks.length, second.checks.length]).toEqual([1, 0]);
    await first.lastCheck.finds();
    expect([first.checks.length, second.checks.length]).toEqual([1, 1]);
  });
});

describe('runs that are left out', () => {
  const skippedOf = (name: string, overlap: number, backlog: number) => ({
    [`svc_probe_skipped_total{probe="${name}",reason="overlap"}`]: overlap,
    [`svc_probe_skipped_total{probe="${name}",reason="backlog"}`]: backlog,
  });

  test('due while running: overlap', async () => {
    const probe = scripted('health/a', { intervalMs: 10_000, timeoutMs: 10_000 });
    const bed = await dueBed(probe);
    expect(bed.series('svc_probe')).toEqual(skippedOf('health/a', 0, 0));
    bed.clock.advance(bed.report(probe).nextRunMs - bed.clock.nowMs());
    expect(bed.series('svc_probe_skipped')).toEqual(skippedOf('health/a', 1, 0));
    expect(probe.checks).toHaveLength(1);
    expect(bed.report(probe).skipped).toEqual({ overlap: 1, backlog: 0 });
  });

  test('due while waiting for its turn: backlog; its turn comes all the same, once', async () => {
    const slow = scripted('health/slow', { intervalMs: 600_000, timeoutMs: 600_000 });
    const probe = scripted('health/a', { intervalMs: 10_000 });
    const bed = await dueBed(slow, { concurrency: 1 });
    bed.configure(slow, probe);
    await bed.pass(10_000);
    expect(bed.report(probe).skipped.backlog).toBeLessThanOrEqual(1);
    const before = bed.report(probe).skipped.backlog;
    await bed.pass(50_000, 10_000);
    expect(bed.report(probe).skipped).toEqual({ overlap: 0, backlog: before + 5 });
    expect(probe.checks).toHaveLength(0);
    await slow.lastCheck.finds();
    expect(probe.checks).toHaveLength(1);
    await probe.lastCheck.finds();
    expect(probe.checks).toHaveLength(1);
  });

  test('nobody starves while there is more to do than time', async () => {
    const bed = runnerBed({ concurrency: 1 });
    const probes = many(6, { intervalMs: 10_000, timeoutMs: 10_000 });
    bed.configure(...probes);
    const settled = new Map<Scripted, number>();
    for (let i = 0; i < 120; i++) {
      await bed.pass(5000);
      const running = probes.find((probe) => probe.checks.length > (settled.get(probe) ?? 0));
      if (!running) continue;
      settled.set(running, running.checks.length);
      await running.lastCheck.finds();
    }
    const counts = probes.map(({ checks }) => checks.length);
    expect(Math.min(...counts)).toBeGreaterThanOrEqual(15);
    expect(Math.max(...counts) - Math.min(...counts)).toBeLessThanOrEqual(2);
  });
});
