import { describe, expect, it } from 'vitest';
import { runEvery, systemClock } from '../../../src/core/clock.ts';
import { manualClock } from '../../clock.ts';

describe('the hand-moved clock', () => {
  it('runs due timers in order of time, then of registration, each at its own moment', () => {
    const clock = manualClock(1000);
    const seen: string[] = [];
    const note = (name: string) => () => void seen.push(`${name}@${clock.monotonicMs()}/${clock.nowMs()}`);
    clock.after(20, note('b'));
    clock.after(10, note('a'));
    clock.after(20, note('c'));
    clock.after(31, note('late'));
    clock.advance(30);
    expect(seen).toEqual(['a@10/1010', 'b@20/1020', 'c@20/1020']);
    expect([clock.monotonicMs(), clock.waiting]).toEqual([30, 1]);
  });

  it('runs what a timer registers in the same stretch, and nothing that was cancelled', () => {
    const clock = manualClock(0);
    const seen: number[] = [];
    const tick = () => {
      seen.push(clock.monotonicMs());
      clock.after(10, tick);
    };
    clock.after(10, tick);
    clock.after(5, () => seen.push(-1))();
    clock.advance(35);
    expect(seen).toEqual([10, 20, 30]);
  });

  it('jumps the wall clock without moving the monotonic one', () => {
    const clock = manualClock(0);
    clock.advance(5);
    clock.jumpTo(1_000_000);
    clock.advance(1);
    expect([clock.nowMs(), clock.monotonicMs()]).toEqual([1_000_001, 6]);
  });
});

describe('a task that is run every 10 ms', () => {
  /** Lets the callbacks of promises that are settled run. */
  const settle = () => new Promise((resolve) => setImmediate(resolve));

  function bed() {
    const clock = manualClock();
    const begun: number[] = [];
    const ends: (() => void)[] = [];
    const stop = runEvery(10, clock, () => {
      begun.push(clock.monotonicMs());
      return new Promise((resolve) => ends.push(resolve));
    });
    const end = async () => {
      ends.pop()!();
      await settle();
    };
    return { clock, begun, end, stop };
  }

  it('runs first after one interval, and keeps its schedule when a run is long', async () => {
    const { clock, begun, end } = bed();
    clock.advance(9);
    expect(begun).toEqual([]);
    clock.advance(1);
    await end();
    clock.advance(10);
    clock.advance(35);
    expect(begun).toEqual([10, 20]);
    await end();
    clock.advance(10);
    await end();
    expect(begun).toEqual([10, 20, 60]);
    clock.advance(10);
    expect(begun).toEqual([10, 20, 60, 70]);
  });

  it('begins no run after it was stopped, and the stop waits for the run in progress', async () => {
    const { clock, begun, end, stop } = bed();
    clock.advance(10);
    let isStopped = false;
    const stopped = stop().then(() => {
      isStopped = true;
    });
    await settle();
    expect(isStopped).toBe(false);
    await end();
    await stopped;
    clock.advance(100);
    expect([begun, clock.waiting]).toEqual([[10], 0]);
  });

  it('is stopped between two runs', async () => {
    const { clock, begun, stop } = bed();
    await stop();
    clock.advance(100);
    expect([begun, clock.waiting]).toEqual([[], 0]);
  });
});

describe('the system clock', () => {
  it('calls back once, and not at all when cancelled', async () => {
    let cancelled = true;
    systemClock.after(0, () => {
      cancelled = false;
    })();
    const keepAlive = setInterval(() => {}, 1000);
    const before = systemClock.monotonicMs();
    await new Promise<void>((resolve) => systemClock.after(2, resolve));
    clearInterval(keepAlive);
    expect(systemClock.monotonicMs()).toBeGreaterThan(before);
    expect(cancelled).toBe(true);
  });

  it('never calls back before the delay has passed', async () => {
    const earlyMs: number[] = [];
    // Node's timers know only whole milliseconds; these begin and end at all fractions of one.
    const waited = Array.from({ length: 200 }, async (_, i) => {
      const delayMs = 1 + i / 20;
      const dueMs = systemClock.monotonicMs() + delayMs;
      await new Promise<void>((resolve) => systemClock.after(delayMs, resolve));
      earlyMs.push(Math.max(0, dueMs - systemClock.monotonicMs()));
    });
    const keepAlive = setInterval(() => {}, 1000);
    await Promise.all(waited);
    clearInterval(keepAlive);
    expect(earlyMs).toEqual(waited.map(() => 0));
  });
});
