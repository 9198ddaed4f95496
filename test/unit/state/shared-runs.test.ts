import { expect, test } from 'vitest';
import { createSharedRuns } from '../../../src/agent/state/state.ts';

interface Run {
  shut(): void;
  resolve(value: string): void;
  reject(error: Error): void;
}

/** Runs that the test ends by hand. */
function manualRuns() {
  const runs: Run[] = [];
  const shared = createSharedRuns<string>(
    (shut) => new Promise((resolve, reject) => void runs.push({ shut, resolve, reject })),
  );
  return { shared, runs };
}

/** Lets every callback that is already due run. */
const settle = () => new Promise((resolve) => setImmediate(resolve));

test('callers share a run until it shuts, later ones share the next, which waits', async () => {
  const { shared, runs } = manualRuns();
  const early = [shared.join(), shared.join()];
  await settle();
  early.push(shared.join());
  runs[0]!.shut();
  const late = [shared.join(), shared.join()];
  await settle();
  late.push(shared.join());
  expect(runs).toHaveLength(1);
  runs[0]!.resolve('first');
  expect(await Promise.all(early)).toEqual(['first', 'first', 'first']);
  await settle();
  // The end of the first run does not shut the run that began then.
  late.push(shared.join());
  expect(runs).toHaveLength(2);
  runs[1]!.shut();
  runs[1]!.resolve('second');
  expect(await Promise.all(late)).toEqual(['second', 'second', 'second', 'second']);
});

test('a run that fails fails its callers alone', async () => {
  const { shared, runs } = manualRuns();
  const first = shared.join();
  await settle();
  runs[0]!.shut();
  const second = shared.join();
  runs[0]!.reject(new Error('first failed'));
  await expect(first).rejects.toThrow('first failed');
  await settle();
  runs[1]!.resolve('second');
  expect(await second).toBe('second');
});

test('a run that ends before it shuts is not joined afterwards', async () => {
  const { shared, runs } = manualRuns();
  const first = shared.join();
  await settle();
  runs[0]!.reject(new Error('failed early'));
  await expect(first).rejects.toThrow('failed early');
  const second = shared.join();
  await settle();
  runs[1]!.resolve('second');
  expect(await second).toBe('second');
});

test('idle waits for the run and for the one that waits', async () => {
  const { shared, runs } = manualRuns();
  const first = shared.join();
  await settle();
  runs[0]!.shut();
  const second = shared.join();
  let isIdle = false;
  const idle = shared.idle().then(() => {
    isIdle = true;
  });
  runs[0]!.resolve('first');
  await first;
  await settle();
  expect(isIdle).toBe(false);
  runs[1]!.resolve('second');
  await second;
  await idle;
  expect(isIdle).toBe(true);
});
