import type { Clock } from '../src/core/ports.ts';

/** A clock that stands still until a test moves it. */
export interface ManualClock extends Clock {
  /** Advances both clocks and runs the timers that are due, ordered by time, then by registration. */
  advance(ms: number): void;
  /** Sets only the wall clock, like a jump of the system's time. */
  jumpTo(nowMs: number): void;
  /** The number of timers that still wait. */
  readonly waiting: number;
}

interface Timer {
  dueMs: number;
  call: () => void;
}

/**
 * Creates a clock. `startMs` is the first time of the wall clock, by default 2026-01-01T00:00:00Z; the monotonic clock starts at
 * 0.
 */
export function manualClock(startMs = 1_767_225_600_000): ManualClock {
  let wallOffsetMs = startMs;
  let elapsedMs = 0;
  const timers = new Set<Timer>();

  const nextDue = (untilMs: number): Timer | undefined => {
    let next: Timer | undefined;
    for (const timer of timers) {
      if (timer.dueMs <= untilMs && (next === undefined || timer.dueMs < next.dueMs)) next = timer;
    }
    return next;
  };

  return {
    nowMs: () => wallOffsetMs + elapsedMs,
    monotonicMs: () => elapsedMs,
    after(delayMs, call) {
      if (Number.isNaN(delayMs)) throw new Error('a timer without a time');
      const timer = { dueMs: elapsedMs + Math.max(0, delayMs), call };
      timers.add(timer);
      return () => void timers.delete(timer);
    },
    advance(ms) {
      const untilMs = elapsedMs + ms;
      for (let timer = nextDue(untilMs); timer; timer = nextDue(untilMs)) {
        timers.delete(timer);
        elapsedMs = Math.max(elapsedMs, timer.dueMs);
        timer.call();
      }
      elapsedMs = untilMs;
    },
    jumpTo(nowMs) {
      wallOffsetMs = nowMs - elapsedMs;
    },
    get waiting() {
      return timers.size;
    },
  };
}
