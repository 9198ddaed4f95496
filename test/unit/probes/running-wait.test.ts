import { expect, test } from 'vitest';
import type { Clock } from '../../../src/core/ports.ts';
import { waitRunning } from '../../../src/probes/running-wait.ts';

/** A clock whose one timer fires only when the test says so, at the time that the clock then has. */
function lateClock() {
  let [elapsedMs, dueMs] = [0, 0];
  let due: (() => void) | undefined;
  const clock: Clock = {
    nowMs: () => elapsedMs,
    monotonicMs: () => elapsedMs,
    after(delayMs, call) {
      dueMs = elapsedMs + delayMs;
      due = call;
      return () => {
        due = undefined;
      };
    },
  };
  const fire = (lateMs: number) => {
    const call = due;
    due = undefined;
    elapsedMs = dueMs + lateMs;
    call?.();
  };
  return { clock, fire, elapsedMs: () => elapsedMs, isWaiting: () => due !== undefined };
}

test.each<[what: string, delayMs: number, lateMs: number[], endMs: number, stillMs: number]>([
  ['timers in time', 1000, [], 1000, 0],
  ['a little late', 1000, [99, 99], 1198, 0],
  ['as late as a pause', 1000, [100], 1200, 100],
  ['a last part of a millisecond', 101, [], 101, 0],
  ['one pause within the wait', 5000, [0, 300], 5600, 300],
  ['a pause as long as the wait begins it again', 5000, [0, 0, 5000], 11_500, 5000],
  ['an hour at the last moment', 5000, [0, 0, 0, 0, 0, 0, 0, 0, 0, 3_600_000], 3_610_000, 3_600_000],
  ['two hours one after the other', 5000, [3_600_000, 3_600_000], 7_206_000, 7_200_000],
  ['timers that are always late', 1000, Array(100).fill(200), 9000, 6000],
  ['a short wait has fewer parts', 150, [0], 150, 0],
  ['nothing to wait for', 0, [], 0, 0],
])('%s', (_, delayMs, latenesses, endMs, stillMs) => {
  const { clock, fire, elapsedMs, isWaiting } = lateClock();
  let endedMs: number | undefined;
  const wait = waitRunning(delayMs, clock, () => {
    endedMs = elapsedMs();
  });
  const late = [...latenesses];
  while (isWaiting()) fire(late.shift() ?? 0);
  expect([endedMs, wait.stillMs, wait.stoodStill()]).toEqual([endMs, stillMs, stillMs > 0]);
});

test('a wait that is cancelled never ends', () => {
  const { clock, fire, isWaiting } = lateClock();
  let isOver = false;
  const wait = waitRunning(1000, clock, () => {
    isOver = true;
  });
  fire(0);
  wait.cancel();
  expect([isWaiting(), isOver]).toEqual([false, false]);
});

test.each([
  [-100, true],
  [-99, false],
  [99, false],
  [100, true],
])(
  'the wall clock of a machine that was suspended goes on alone, by %d ms of a second: %s',
  (jumpMs, stoodStill) => {
    const { clock } = lateClock();
    let wallMs = 0;
    const wait = waitRunning(1000, { ...clock, nowMs: () => wallMs }, () => {});
    wallMs += jumpMs;
    expect([wait.stoodStill(), wait.stillMs]).toEqual([stoodStill, 0]);
  },
);
