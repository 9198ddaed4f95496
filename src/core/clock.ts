import type { Clock } from './ports.ts';

/** The machine's own time. Its timers never keep the process alive; a cancelled one never fires. */
export const systemClock: Clock = {
  nowMs: () => Date.now(),
  monotonicMs: () => performance.now(),
  after(delayMs, call) {
    const timer = setTimeout(call, delayMs);
    timer.unref();
    return () => clearTimeout(timer);
  },
};

/**
 * Wall time that never goes back, ms since the epoch: over a jump back it goes on at the pace of the monotonic
 * clock until the wall clock has caught up. Starts of series are told by it, because a start before the one of
 * who reads it would mean that the series was there first.
 */
export function monotonicWallTime({
  nowMs,
  monotonicMs,
}: Pick<Clock, 'nowMs' | 'monotonicMs'>): () => number {
  let latestMs = nowMs();
  let lookedMs = monotonicMs();
  return () => {
    const elapsedMs = monotonicMs();
    latestMs = Math.max(nowMs(), latestMs + elapsedMs - lookedMs);
    lookedMs = elapsedMs;
    return Math.floor(latestMs);
  };
}

/** Waits for `work`, but no longer than `waitMs`; it goes on by itself then. Rejects as `work` does. */
export function waitAtMost(waitMs: number, clock: Pick<Clock, 'after'>, work: Promise<void>): Promise<void> {
  return new Promise((resolve, reject) => {
    const cancel = clock.after(waitMs, resolve);
    work.then(resolve, reject).finally(cancel);
  });
}
