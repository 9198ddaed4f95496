import type { Clock } from './ports.ts';

/** Waits for `work`, but no longer than `waitMs`; it goes on by itself then. Rejects as `work` does. */
export function atMost(waitMs: number, clock: Pick<Clock, 'after'>, work: Promise<void>): Promise<void> {
  return new Promise((resolve, reject) => {
    const cancel = clock.after(waitMs, resolve);
    work.then(resolve, reject).finally(cancel);
  });
}
