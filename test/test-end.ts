import { afterAll, onTestFinished } from 'vitest';

/** Calls `end` at some end: that of the test (`atTestEnd`), or of the file (`afterAll`). */
export type AtEnd = (end: () => unknown) => void;

/** Calls `end` when the running test has finished, the last one first, and waits for it. */
export const atTestEnd = (end: () => unknown): void =>
  onTestFinished(async () => {
    await end();
  });

/** A stop that runs once: when the test calls it, or else at the end. */
export function stopOnce<T>(stop: () => T, atEnd: AtEnd = atTestEnd): () => T {
  let stopped: { result: T } | undefined;
  const once = () => {
    stopped ??= { result: stop() };
    return stopped.result;
  };
  atEnd(once);
  return once;
}

/** A list of what is to be stopped when the tests of a file or of a group have finished, the last one first. */
export function stopsAtEnd(): (() => unknown)[] {
  const stops: (() => unknown)[] = [];
  afterAll(async () => {
    for (const stop of stops.reverse()) await stop();
  });
  return stops;
}
