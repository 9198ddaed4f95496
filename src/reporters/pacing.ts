import { setImmediate } from 'node:timers/promises';
import type { Clock } from '../core/ports.ts';

/**
 * Runs a task every `intervalMs` of monotonic time, the first time after one interval, never two at a time.
 * What a long task runs over is left out, so that the beat stays. `task` must not reject. The result ends it
 * and waits for the task under way.
 */
export function startRhythm(
  intervalMs: number,
  clock: Clock,
  task: () => Promise<void>,
): () => Promise<void> {
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
/** Series between two looks at the clock. */
const stride = 32;

/** Lets others have the event loop: whoever works through many series rests whenever it has been busy for 2 ms. */
export interface Pause {
  /** Asked once per series. */
  isDue(): boolean;
  rest(): Promise<void>;
}

export function createPause(): Pause {
  let sinceMs = performance.now();
  let count = 0;
  return {
    isDue() {
      count += 1;
      return count % stride === 0 && performance.now() - sinceMs >= sliceMs;
    },
    async rest() {
      await setImmediate();
      sinceMs = performance.now();
    },
  };
}
