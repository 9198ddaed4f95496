import type { Clock } from '../../core/ports.ts';
import type { Phase } from './phase.ts';

/** The moments at which one probe is due. */
export interface Ticks {
  /** The next one, in monotonic ms. */
  readonly dueMs: number;
  cancel(): void;
}

/**
 * Calls `tick` at each due moment. They are reckoned from the start, so that late timers do not add up; `missed`
 * says how many further ones went by before this call, as when the machine stood still.
 */
export function startTicks(
  { firstMs, thenMs, intervalMs }: Phase & { intervalMs: number },
  clock: Clock,
  tick: (missed: number) => void,
): Ticks {
  const startMs = clock.monotonicMs();
  let dueMs = startMs + firstMs;
  let cancel = () => {};

  const run = () => {
    const nowMs = clock.monotonicMs();
    dueMs = dueMs < startMs + thenMs ? startMs + thenMs : dueMs + intervalMs;
    const missed = nowMs < dueMs ? 0 : Math.floor((nowMs - dueMs) / intervalMs) + 1;
    dueMs += missed * intervalMs;
    arm();
    tick(missed);
  };
  const arm = () => {
    cancel = clock.after(dueMs - clock.monotonicMs(), run);
  };

  arm();
  return {
    get dueMs() {
      return dueMs;
    },
    cancel: () => cancel(),
  };
}
