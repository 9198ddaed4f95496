import { setImmediate } from 'node:timers/promises';
import type { Clock } from '../core/ports.ts';

/**
 * Runs a task every `intervalMs` of monotonic time, first after one interval, never two at a time. Runs that
 * would fall into a long one are skipped, and the schedule is kept. `task` must not reject. The returned function
 * stops the schedule and waits for the run in progress.
 */
export function runEvery(intervalMs: number, clock: Clock, task: () => Promise<void>): () => Promise<void> {
  let dueMs = clock.monotonicMs() + intervalMs;
  let running: Promise<void> | undefined;
  let isEnded = false;
  let cancel = () => {};

  const arm = () => {
    if (!isEnded) cancel = clock.after(dueMs - clock.monotonicMs(), run);
  };
  const run = () => {
    running = task().then(() => {
      running = undefined;
      const lateMs = Math.max(0, clock.monotonicMs() - dueMs);
      dueMs += intervalMs * (Math.floor(lateMs / intervalMs) + 1);
      arm();
    });
  };

  arm();
  return async () => {
    isEnded = true;
    cancel();
    await running;
  };
}

const sliceMs = 2;
/** The clock is read once per this many calls. */
const stride = 32;

/** Yields to the event loop: work on many series must not block it for longer than 2 ms. */
export interface Yielder {
  /** Call once per series. */
  isDue(): boolean;
  yield(): Promise<void>;
}

export function createYielder(): Yielder {
  let sinceMs = performance.now();
  let count = 0;
  return {
    isDue() {
      count += 1;
      return count % stride === 0 && performance.now() - sinceMs >= sliceMs;
    },
    async yield() {
      await setImmediate();
      sinceMs = performance.now();
    },
  };
}
