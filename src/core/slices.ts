import type { Clock } from './ports.ts';

/**
 * Long work as a generator: each `yield` is a place where it may pause. `atOnce` runs it in one step, `inSlices` in steps
 * short enough for everything else in the process (DESIGN §4: 10 ms).
 */
export type Steps<T = void> = Generator<void, T>;

/** Time that a slice may take; the steps between two looks at the clock come on top. */
const sliceMs = 5;
/** Steps between two looks at the clock. */
const stepsPerLook = 64;

/** Runs the work to its end in one step. */
export function atOnce<T>(steps: Steps<T>): T {
  for (;;) {
    const { done, value } = steps.next();
    if (done) return value;
  }
}

/** Runs the work in slices, with `pause` between them. */
export async function inSlices<T>(
  steps: Steps<T>,
  clock: Pick<Clock, 'monotonicMs'>,
  pause: () => Promise<void> = nextTurn,
): Promise<T> {
  let begunMs = clock.monotonicMs();
  for (let count = 1; ; count++) {
    const { done, value } = steps.next();
    if (done) return value;
    if (count % stepsPerLook > 0 || clock.monotonicMs() - begunMs < sliceMs) continue;
    await pause();
    begunMs = clock.monotonicMs();
  }
}

/** Resolves when everything else that waits for the event loop had its turn. */
export const nextTurn = (): Promise<void> => new Promise((resolve) => void setImmediate(resolve));
