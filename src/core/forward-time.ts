import type { Clock } from './ports.ts';

/**
 * Wall time that never goes back, ms since the epoch: over a jump back it goes on at the pace of the monotonic
 * clock until the wall clock has caught up. Starts of series are told by it, because a start before the one of
 * who reads it would mean that the series was there first.
 */
export function forwardTime({ nowMs, monotonicMs }: Pick<Clock, 'nowMs' | 'monotonicMs'>): () => number {
  let latestMs = nowMs();
  let lookedMs = monotonicMs();
  return () => {
    const elapsedMs = monotonicMs();
    latestMs = Math.max(nowMs(), latestMs + elapsedMs - lookedMs);
    lookedMs = elapsedMs;
    return Math.floor(latestMs);
  };
}
