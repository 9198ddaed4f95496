import { expect, test } from 'vitest';
import { startDelivery } from '../../../src/reporters/hosted/delivery.ts';
import type { PostResult } from '../../../src/reporters/hosted/post.ts';
import type { QueuedBatch } from '../../../src/reporters/hosted/queue/queue.ts';
import { manualClock } from '../../clock.ts';
import { until } from '../../until.ts';

test('a receiver that refuses a batch for good answers: the next failure waits as briefly as a first one', async () => {
  const queued = [1, 2].map((points) => ({ batch: { points }, entry: {} }) as unknown as QueuedBatch);
  const resets: number[] = [];
  const results: PostResult[] = [];
  const delivery = startDelivery({
    queue: {
      peek: async (place) => queued[place],
      remove: async () => void queued.shift(),
      release() {},
    },
    post: {
      // Refused for good: nothing is left of the batch, and nothing of it was accepted.
      send: async () => {
        results.push({ pieces: [], acceptedAny: false });
        return results.at(-1)!;
      },
      split: async () => [],
      probe: async () => false,
    },
    limits: { refused: () => 'split' },
    backoff: { nextMs: () => 0, reset: () => void resets.push(results.length) },
    clock: manualClock(),
    drops: { count() {} },
  });
  await until('both are sent', () => queued.length === 0);
  await delivery.end();
  expect(resets).toEqual([1, 2]);
});
