import { setImmediate } from 'node:timers/promises';

const sliceMs = 2;
/** Series between two looks at the clock. */
const stride = 32;

/** Lets others have the event loop: whoever works through many series rests whenever it has been busy for 2 ms. */
export interface Pause {
  /** Asked once per series. */
  isDue(): boolean;
  rest(): Promise<void>;
}

export function createPause(): Pause {
  let sinceMs = performance.now();
  let count = 0;
  return {
    isDue() {
      count += 1;
      return count % stride === 0 && performance.now() - sinceMs >= sliceMs;
    },
    async rest() {
      await setImmediate();
      sinceMs = performance.now();
    },
  };
}
