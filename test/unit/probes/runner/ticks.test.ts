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

/** The ticks, each as its time in ms, with the number of ticks that were missed before it if there are any. */
function heard(latenessMs: number[], totalMs: number) {
  const { hand, clock } = lateClock(latenessMs);
  const ticks: string[] = [];
  const started = startTicks(phase, clock, (missed) =>
    ticks.push(`${hand.monotonicMs()}${missed > 0 ? ` after ${missed}` : ''}`),
  );
  hand.advance(totalMs);
  return { ticks, started, hand };
}

describe('ticks', () => {
  test.each<[string, number[], string]>([
    ['come first at the start, then an interval apart', [], '100, 1700, 2700, 3700'],
    ['a late first', [50], '150, 1700, 2700, 3700'],
    ['lateness does not add up', [30, 30, 30, 30], '130, 1730, 2730, 3730'],
    ['over one', [0, 1200], '100, 2900 after 1, 3700'],
    ['over the first and two more', [2700], '2800 after 2, 3700'],
    ['up to the very next', [0, 1000], '100, 2700 after 1, 3700'],
  ])('%s', (_, latenessMs, expected) => {
    expect(heard(latenessMs, 4000).ticks.join(', ')).toBe(expected);
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
