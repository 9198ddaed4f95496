import { describe, expect, it } from 'vitest';
import { systemClock } from '../../../src/core/clock.ts';
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
});
