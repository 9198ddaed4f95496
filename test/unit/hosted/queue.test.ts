import { expect, test } from 'vitest';
import type { Batch } from '../../../src/reporters/hosted/protocol.ts';
import { createQueue } from '../../../src/reporters/hosted/queue/queue.ts';
import { manualClock } from '../../clock.ts';

const bodyBytes = 968;
/** What a batch takes of the queue, with the head of its record. */
const batchBytes = 1000;

/** A queue in memory with room for three batches, and what it drops. */
function openQueue() {
  const clock = manualClock();
  const dropped: string[] = [];
  const queue = createQueue(
    { directory: undefined, maxBytes: 3 * batchBytes, maxAgeMs: 60_000 },
    {
      clock,
      drops: { count: (_, reason, n) => void dropped.push(`${reason} ${n}`) },
      diskFailed() {},
      diskWorks() {},
      changed() {},
    },
  );
  /** Batches are told apart by their number of points. */
  const append = (points: number) =>
    queue.append({ format: 'otlp', points, timeMs: clock.nowMs(), body: Buffer.alloc(bodyBytes) } as Batch);
  return { clock, dropped, queue, append };
}

test('a batch that may be in transit is not dropped for a newer one: those behind it are', async () => {
  const { queue, append, dropped } = openQueue();
  for (const points of [1, 2, 3]) await append(points);
  const inTransit = await queue.peek(0);
  // To look at the one behind it changes nothing.
  expect((await queue.peek(1))?.batch.points).toBe(2);
  await append(4);
  expect(dropped).toEqual(['queue_full 2']);
  expect((await queue.peek(0))?.entry).toBe(inTransit!.entry);
  await queue.remove(inTransit!);
  expect((await queue.peek(0))?.batch.points).toBe(3);
});

test('a batch that is given back may be dropped, and so may one that grows too old', async () => {
  const { clock, queue, append, dropped } = openQueue();
  for (const points of [1, 2, 3]) await append(points);
  await queue.peek(0);
  queue.release();
  await append(4);
  expect(dropped).toEqual(['queue_full 1']);
  await queue.peek(0);
  clock.advance(60_001);
  // The held one stays, though it is too old.
  expect((await queue.peek(0))?.batch.points).toBe(2);
  expect(dropped).toEqual(['queue_full 1', 'too_old 3', 'too_old 4']);
  queue.release();
  expect(await queue.peek(0)).toBeUndefined();
});

test('what is kept in memory is told at the end, by its points', async () => {
  const { queue, append } = openQueue();
  for (const points of [1, 2]) await append(points);
  expect(await queue.close()).toBe(3);
});
