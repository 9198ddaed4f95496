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
