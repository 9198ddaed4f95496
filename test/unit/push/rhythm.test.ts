import { expect, test } from 'vitest';
import { runEvery } from '../../../src/core/clock.ts';
import { manualClock } from '../../clock.ts';

/** A task that ends when the test says so. */
function slowTask() {
  const ends: (() => void)[] = [];
  let running = 0;
  let most = 0;
  return {
    ends,
    most: () => most,
    task: async () => {
      running += 1;
      most = Math.max(most, running);
      await new Promise<void>((resolve) => ends.push(resolve));
      running -= 1;
    },
  };
}

/** Lets everything continue that is settled. */
const settled = () => new Promise((resolve) => setImmediate(resolve));

test('the first beat comes after one interval, and then each on its own', async () => {
  const clock = manualClock();
  let runs = 0;
  const end = runEvery(100, clock, async () => {
    runs += 1;
  });
  clock.advance(99);
  expect(runs).toBe(0);
  for (const expected of [1, 2, 3]) {
    clock.advance(expected === 1 ? 1 : 100);
    expect(runs).toBe(expected);
    await settled();
  }
  await end();
  clock.advance(1000);
  expect(runs).toBe(3);
  expect(clock.waiting).toBe(0);
});

test('never two at a time; what a long one runs over is left out, and the beat stays', async () => {
  const clock = manualClock();
  const { ends, task, most } = slowTask();
  const end = runEvery(100, clock, task);
  clock.advance(100);
  clock.advance(350);
  expect(ends).toHaveLength(1);
  ends[0]!();
  await settled();
  // The time is 450 ms: the beats at 200, 300 and 400 were skipped, the next is at 500.
  clock.advance(49);
  expect(ends).toHaveLength(1);
  clock.advance(1);
  expect(ends).toHaveLength(2);
  ends[1]!();
  expect(most()).toBe(1);
  await end();
});

test('a jump of the wall clock changes nothing', async () => {
  const clock = manualClock();
  let runs = 0;
  const end = runEvery(100, clock, async () => {
    runs += 1;
  });
  clock.jumpTo(clock.nowMs() + 3_600_000);
  clock.advance(99);
  expect(runs).toBe(0);
  clock.advance(1);
  expect(runs).toBe(1);
  await end();
});

test('the end waits for the one under way', async () => {
  const clock = manualClock();
  const { ends, task } = slowTask();
  const end = runEvery(100, clock, task);
  clock.advance(100);
  let isOver = false;
  const over = end().then(() => {
    isOver = true;
  });
  await settled();
  expect(isOver).toBe(false);
  ends[0]!();
  await over;
  expect(clock.waiting).toBe(0);
});
