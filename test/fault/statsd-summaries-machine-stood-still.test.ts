import { expect, test } from 'vitest';
import type { Clock } from '../../src/core/ports.ts';
import { createLazyStore } from '../../src/core/registry/value-stores.ts';
import { createSliceQueue } from '../../src/core/slices.ts';
import { createSummaries } from '../../src/sources/statsd/summaries.ts';
import { manualClock } from '../clock.ts';
import { testRegistry } from '../registry.ts';
import { until } from '../until.ts';

const minute = 60_000;

/** A clock whose timers fire too late: time may pass without them. */
function lateClock() {
  const hand = manualClock();
  let lostMs = 0;
  const clock: Clock = {
    nowMs: hand.nowMs,
    monotonicMs: () => hand.monotonicMs() + lostMs,
    after: hand.after,
  };
  return {
    clock,
    advance: hand.advance,
    standStill(ms: number) {
      lostMs += ms;
    },
  };
}

test.each([
  { stoodStillMs: 0, left: 1 },
  { stoodStillMs: 6 * minute, left: 1 },
  { stoodStillMs: 8 * minute, left: Number.NaN },
  { stoodStillMs: 24 * 60 * minute, left: Number.NaN },
])('for $stoodStillMs ms: the window is of the time that passed', async ({ stoodStillMs, left }) => {
  const { intake, shown } = testRegistry();
  const { clock, advance, standStill } = lateClock();
  const store = createLazyStore();
  const slices = createSliceQueue(clock);
  const summaries = createSummaries({ intake: intake({ store }), store, clock, slices });
  const stop = summaries.start();
  summaries.open('took', {}).observe(1);
  standStill(stoodStillMs);
  // The expected step begins at last.
  advance(2 * minute);
  let isSwept = false;
  slices.whenIdle(() => {
    isSwept = true;
    return true;
  });
  await until('the sweep is done', () => isSwept);
  const [half, , , , , sum, count] = shown().took as number[];
  expect([half, sum, count]).toEqual([Number.isNaN(left) ? left : expect.closeTo(left, 1), 1, 1]);

  summaries.open('took', {}).observe(3);
  advance(8 * minute - 1);
  expect((shown().took as number[]).slice(1, 5)).toEqual(Array(4).fill(expect.closeTo(3, 1)));
  stop();
});
