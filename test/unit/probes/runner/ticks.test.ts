import { describe, expect, test } from 'vitest';
import type { Clock } from '../../../../src/core/ports.ts';
import { startTicks } from '../../../../src/probes/runner/schedule.ts';
import { manualClock } from '../../../clock.ts';

const phase = { firstMs: 100, thenMs: 1700, intervalMs: 1000 };

/** A clock whose timers are late by the numbers in `latenessMs`, one after the other. */
function lateClock(latenessMs: number[]) {
  const hand = manualClock();
  const clock: Clock = {
    ...hand,
    after: (delayMs, call) => hand.after(delayMs + (latenessMs.shift() ?? 0), call),
  };
  return { hand, clock };
}

function heard(latenessMs: number[], totalMs: number) {
  const { hand, clock } = lateClock(latenessMs);
  const ticks: [atMs: number, missed: number][] = [];
  const started = startTicks(phase, clock, (missed) => ticks.push([hand.monotonicMs(), missed]));
  hand.advance(totalMs);
  return { ticks, started, hand };
}

describe('ticks', () => {
  test('come first at the start, then an interval apart', () => {
    expect(heard([], 4000).ticks).toEqual([
      [100, 0],
      [1700, 0],
      [2700, 0],
      [3700, 0],
    ]);
  });

  test.each<[string, number[], [number, number][]]>([
    [
      'a late first',
      [50],
      [
        [150, 0],
        [1700, 0],
        [2700, 0],
        [3700, 0],
      ],
    ],
    [
      'lateness does not add up',
      [30, 30, 30, 30],
      [
        [130, 0],
        [1730, 0],
        [2730, 0],
        [3730, 0],
      ],
    ],
    [
      'over one',
      [0, 1200],
      [
        [100, 0],
        [2900, 1],
        [3700, 0],
      ],
    ],
    [
      'over the first and two more',
      [2700],
      [
        [2800, 2],
        [3700, 0],
      ],
    ],
    [
      'up to the very next',
      [0, 1000],
      [
        [100, 0],
        [2700, 1],
        [3700, 0],
      ],
    ],
  ])('late timers: %s', (_, latenessMs, expected) => {
    expect(heard(latenessMs, 4000).ticks).toEqual(expected);
  });

  test('tell when the next is due, and end', () => {
    const { ticks, started, hand } = heard([], 2000);
    expect(started.dueMs).toBe(2700);
    started.cancel();
    hand.advance(10_000);
    expect(ticks).toHaveLength(2);
    expect(hand.waiting).toBe(0);
  });
});
