import { describe, expect, test } from 'vitest';
import type { ProbeReport } from '../../../../src/probes/runner/probe-state.ts';
import { dueBed, rest, runnerBed, scripted } from './bed.ts';

/** The result of a check; undefined as long as there is none. */
function followed(report: Promise<ProbeReport | undefined>) {
  const seen: { report?: ProbeReport; isOver: boolean } = { isOver: false };
  void report.then((report) => {
    seen.report = report;
    seen.isOver = true;
  });
  return seen;
}

describe('a check on demand', () => {
  test('a name that is not configured is undefined', async () => {
    const bed = runnerBed();
    bed.configure(scripted('health/a'));
    expect(await bed.runner.checkNow('health/b')).toBeUndefined();
    expect(await bed.runner.checkNow('__proto__')).toBeUndefined();
  });

  test('looks at once, and counts as a result', async () => {
    const bed = runnerBed();
    const probe = scripted('health/a');
    bed.configure(probe);
    const seen = followed(bed.runner.checkNow('health/a'));
    await rest();
    expect(probe.checks).toHaveLength(1);
    await bed.pass(40);
    await probe.lastCheck.finds({ reason: 'not_ok', msg: 'no', details: { status: 503 } });
    const result = { atMs: bed.clock.nowMs(), ok: false, reason: 'not_ok', msg: 'no', durationMs: 40 };
    expect(seen.report?.last).toEqual({ ...result, phasesMs: undefined, details: { status: 503 } });
    expect(seen.report).toMatchObject({ consecutiveFailures: 1, history: [result], failures: [result] });
    expect(bed.heard).toEqual([['health/a', false]]);
  });

  test('joins the check under way', async () => {
    const probe = scripted('health/a');
    const bed = await dueBed(probe);
    const both = [followed(bed.runner.checkNow('health/a')), followed(bed.runner.checkNow('health/a'))];
    await rest();
    expect(probe.checks).toHaveLength(1);
    expect(both.some(({ isOver }) => isOver)).toBe(false);
    await probe.lastCheck.finds();
    expect(both.map(({ report }) => report?.last?.ok)).toEqual([true, true]);
    expect(bed.heard).toHaveLength(1);
  });

  test('hands back a result that is younger than a second', async () => {
    const probe = scripted('health/a', { answers: async () => ({ msg: 'ok' }) });
    const bed = await dueBed(probe);
    await bed.pass(999);
    expect((await bed.runner.checkNow('health/a'))?.last?.ok).toBe(true);
    expect(probe.checks).toHaveLength(1);
    await bed.pass(1);
    await bed.runner.checkNow('health/a');
    expect(probe.checks).toHaveLength(2);
  });

  test('goes before those that wait, though all places are taken', async () => {
    const bed = runnerBed({ concurrency: 1 });
    const probes = ['a', 'b', 'c'].map((name) => scripted(name, { timeoutMs: 60_000 }));
    bed.configure(...probes);
    await bed.pass(10_000);
    const waiting = probes.filter(({ checks }) => checks.length === 0);
    expect(waiting).toHaveLength(2);
    const seen = followed(bed.runner.checkNow(waiting[1]!.row.name));
    await rest();
    expect(waiting.map(({ checks }) => checks.length)).toEqual([0, 1]);
    await waiting[1]!.lastCheck.finds();
    expect(seen.report?.last?.ok).toBe(true);
  });

  test('keeps to its lane, and waits for its turn no longer than its timeout', async () => {
    const hog = scripted('store/hog', { row: { lane: 'main' }, timeoutMs: 60_000 });
    const probe = scripted('store/a', { row: { lane: 'main' }, timeoutMs: 5000, intervalMs: 600_000 });
    const bed = await dueBed(hog);
    bed.configure(hog, probe);
    const seen = followed(bed.runner.checkNow('store/a'));
    await bed.pass(4999);
    expect(seen.isOver).toBe(false);
    await bed.pass(1);
    expect(seen.report).toMatchObject({ name: 'store/a', last: undefined });
    await hog.lastCheck.finds();
    expect(probe.checks).toHaveLength(1);
  });

  test('once its turn has come it has its whole timeout', async () => {
    const hog = scripted('store/hog', { row: { lane: 'main' }, timeoutMs: 60_000 });
    const probe = scripted('store/a', { row: { lane: 'main' }, timeoutMs: 5000, intervalMs: 600_000 });
    const bed = await dueBed(hog);
    bed.configure(hog, probe);
    const seen = followed(bed.runner.checkNow('store/a'));
    await bed.pass(4000);
    await hog.lastCheck.finds();
    await bed.pass(4000);
    expect([probe.checks.length, seen.isOver]).toEqual([1, false]);
    await probe.lastCheck.finds();
    expect(seen.report?.last).toMatchObject({ ok: true, durationMs: 4000 });
  });

  test('a probe that still hangs after its timeout is not asked again', async () => {
    const probe = scripted('health/a', { timeoutMs: 5000 });
    const bed = await dueBed(probe);
    await bed.pass(5000);
    await bed.pass(2000);
    expect((await bed.runner.checkNow('health/a'))?.last?.reason).toBe('too_slow');
    expect(probe.checks).toHaveLength(1);
  });

  test('a reload or stop ends the wait', async () => {
    const bed = runnerBed();
    const [a, b] = [scripted('health/a'), scripted('health/b')];
    bed.configure(a, b);
    const seen = ['health/a', 'health/b'].map((name) => followed(bed.runner.checkNow(name)));
    await rest();
    bed.configure(b);
    await rest();
    expect(seen.map(({ isOver }) => isOver)).toEqual([true, false]);
    void bed.runner.stop();
    await rest();
    expect(seen.map(({ isOver }) => isOver)).toEqual([true, true]);
  });
});
