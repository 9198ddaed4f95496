import type { Clock } from '../core/ports.ts';

/** Waits for a time in which this process can run. */
interface RunningWait {
  cancel(): void;
  /**
   * Whether this process stood still since the wait began: it was stopped, starved of CPU or suspended. What was measured
   * meanwhile, and what failed meanwhile, says nothing about the other side.
   */
  stoodStill(): boolean;
  /** The time that this process stood still, as far as the monotonic clock shows it. */
  readonly stillMs: number;
}

/** The wait has this many parts. A pause that is shorter than a part may pass unnoticed. */
const parts = 10;
/** A busy machine delays timers by some tens of milliseconds, which decides nothing. */
const leastStillMs = 100;

/**
 * Calls `call` after `delayMs` in which this process could run. A timer that is late fires before anything that has arrived is
 * read, so what it missed is added to the wait: up to the whole delay for each pause, and up to twice the delay for all of them,
 * because the wait of a process that is always starved must end, too. The monotonic clock stands still while a machine is
 * suspended; the wall clock then goes on alone.
 */
export function waitRunning(delayMs: number, clock: Clock, call: () => void): RunningWait {
  const partMs = Math.max(delayMs / parts, leastStillMs);
  const apartMs = () => clock.nowMs() - clock.monotonicMs();
  const startApartMs = apartMs();
  let leftMs = delayMs;
  let stillMs = 0;
  let spareMs = 2 * delayMs;
  let cancel = () => {};

  const arm = () => {
    const nextMs = Math.min(partMs, leftMs);
    const dueMs = clock.monotonicMs() + nextMs;
    cancel = clock.after(nextMs, () => {
      const lateMs = clock.monotonicMs() - dueMs;
      const missedMs = lateMs < leastStillMs ? 0 : lateMs;
      stillMs += missedMs;
      leftMs -= nextMs;
      const addedMs = Math.min(missedMs, delayMs - leftMs, spareMs);
      spareMs -= addedMs;
      leftMs += addedMs;
      // The rest of a millisecond would need a timer of its own.
      if (leftMs < 1) call();
      else arm();
    });
  };

  arm();
  return {
    cancel: () => cancel(),
    stoodStill: () => stillMs > 0 || Math.abs(apartMs() - startApartMs) >= partMs,
    get stillMs() {
      return stillMs;
    },
  };
}
