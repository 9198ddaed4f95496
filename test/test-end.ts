import { onTestFinished } from 'vitest';

/** Calls `end` when the running test has finished, the last one first, and waits for it. */
export const atTestEnd = (end: () => unknown): void =>
  onTestFinished(async () => {
    await end();
  });
