import type { Clock } from '../../../core/ports.ts';

/** Cuts long work into slices, so that nothing else waits longer than one of them. */
export interface Slices {
  spent(): boolean;
  /** Lets everything else have its turn, then begins a new slice. */
  turn(): Promise<void>;
}

export function createSlices(clock: Clock, sliceMs: number): Slices {
  let beganMs = clock.monotonicMs();
  return {
    spent: () => clock.monotonicMs() - beganMs >= sliceMs,
    async turn() {
      await new Promise((resolve) => setImmediate(resolve));
      beganMs = clock.monotonicMs();
    },
  };
}
