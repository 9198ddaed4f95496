import type { Clock } from '../src/core/ports.ts';

/** A clock that stands still until a test moves it. */
export interface ManualClock extends Clock {
  /** Moves both clocks on and runs what falls due, in order of time, then of registration. */
  advance(ms: number): void;
  /** Sets the wall clock alone, as a jump of the system's time does. */
  jumpTo(nowMs: number): void;
  /** Timers that still wait. */
  readonly waiting: number;
}

interface Timer {
  dueMs: number;
  call: () => void;
}

/** `startMs` is the wall clock's first reading, by default 2026-01-01T00:00:00Z; the monotonic clock starts at 0. */
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
