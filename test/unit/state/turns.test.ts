import { expect, test } from 'vitest';
import { createTurns } from '../../../src/agent/state/state.ts';

interface Run {
  shut(): void;
  resolve(value: string): void;
  reject(error: Error): void;
}

/** Turns whose runs the test moves by hand. */
function manualTurns() {
  const runs: Run[] = [];
  const turns = createTurns<string>(
    (shut) => new Promise((resolve, reject) => void runs.push({ shut, resolve, reject })),
  );
  return { turns, runs };
}

/** Lets every callback that is already due run. */
const settle = () => new Promise((resolve) => setImmediate(resolve));

test('callers share a run until it shuts, later ones share the next, which waits', async () => {
  const { turns, runs } = manualTurns();
  const early = [turns.join(), turns.join()];
  await settle();
  early.push(turns.join());
  runs[0]!.shut();
  const late = [turns.join(), turns.join()];
  await settle();
  late.push(turns.join());
  expect(runs).toHaveLength(1);
  runs[0]!.resolve('first');
  expect(await Promise.all(early)).toEqual(['first', 'first', 'first']);
  await settle();
  // The end of the first run does not shut the one that began then.
  late.push(turns.join());
  expect(runs).toHaveLength(2);
  runs[1]!.shut();
  runs[1]!.resolve('second');
  expect(await Promise.all(late)).toEqual(['second', 'second', 'second', 'second']);
});

test('a run that fails fails its callers alone', async () => {
  const { turns, runs } = manualTurns();
  const first = turns.join();
  await settle();
  runs[0]!.shut();
  const second = turns.join();
  runs[0]!.reject(new Error('first failed'));
  await expect(first).rejects.toThrow('first failed');
  await settle();
  runs[1]!.resolve('second');
  expect(await second).toBe('second');
});

test('a run that ends before it shuts is not joined afterwards', async () => {
  const { turns, runs } = manualTurns();
  const first = turns.join();
  await settle();
  runs[0]!.reject(new Error('failed early'));
  await expect(first).rejects.toThrow('failed early');
  const second = turns.join();
  await settle();
  runs[1]!.resolve('second');
  expect(await second).toBe('second');
});

test('idle waits for the run and for the one that waits', async () => {
  const { turns, runs } = manualTurns();
  const first = turns.join();
  await settle();
  runs[0]!.shut();
  const second = turns.join();
  let isIdle = false;
  const idle = turns.idle().then(() => {
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
