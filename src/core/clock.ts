import type { Clock } from './ports.ts';

/**
 * The system clock. Its timers never keep the process alive; a cancelled timer never fires. Node rounds both the delay and the
 * time of its timers down to milliseconds. A timer that fired a fraction early would find that nothing is due, and would wake the
 * process a second time.
 */
export const systemClock: Clock = {
  nowMs: () => Date.now(),
  monotonicMs: () => performance.now(),
  after(delayMs, call) {
    const timer = setTimeout(call, Math.ceil(delayMs) + 1);
    timer.unref();
    return () => clearTimeout(timer);
  },
};

/**
 * Wall time in ms since the epoch that never goes back. After the wall clock was set back, it advances with the monotonic clock
 * until the wall clock has caught up. It is used for start times of series: a start before the start of the process would state a
 * history that the series does not have.
 */
export function monotonicWallTime({
  nowMs,
  monotonicMs,
}: Pick<Clock, 'nowMs' | 'monotonicMs'>): () => number {
  let latestMs = nowMs();
  let checkedMs = monotonicMs();
  return () => {
    const elapsedMs = monotonicMs();
    latestMs = Math.max(nowMs(), latestMs + elapsedMs - checkedMs);
    checkedMs = elapsedMs;
    return Math.floor(latestMs);
  };
}

/** Waits for `work`, but at most `waitMs`; the work continues after that. Rejects if `work` does. */
export function waitAtMost(waitMs: number, clock: Pick<Clock, 'after'>, work: Promise<void>): Promise<void> {
  return new Promise((resolve, reject) => {
    const cancel = clock.after(waitMs, resolve);
    work.then(resolve, reject).finally(cancel);
  });
}

/**
 * Runs a task every `intervalMs` of monotonic time, first after one interval, never two runs at a time. Runs that would begin
 * during a long run are skipped, and the schedule stays the same. `task` must not reject. The returned function stops the
 * schedule and waits for the run in progress.
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
