import { readdirSync, statSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { counter, openBed, receiverForEachTest, status, untilMoving, valuesOf, written } from '../hosted.ts';
import { until } from '../until.ts';

const receiver = receiverForEachTest();

const upTo = (n: number, from = 1) => Array.from({ length: n - from + 1 }, (_, i) => from + i);

function bytesOf(directory: string): number {
  const queue = join(directory, 'hosted-metrics');
  return readdirSync(queue).reduce((sum, name) => sum + statSync(join(queue, name)).size, 0);
}

test('half an hour without receiver, then recovery: everything arrives, in order, without a pause', async () => {
  receiver.reply(status(503));
  const bed = await openBed(receiver.url, { reportingIntervalMs: 10_000 });
  for (const value of upTo(180)) {
    bed.show([counter(value)]);
    await bed.tick(10_000);
  }
  const firstMs = bed.clock.nowMs() - 179 * 10_000;
  expect(bed.queued().oldestMs).toBe(firstMs);
  receiver.reply(written);
  await untilMoving(bed.clock, 1000, () => bed.delivered() > 0, 'the first one goes through');
  await until('the backlog is gone', () => bed.queued().bytes === 0);
  const values = valuesOf(receiver.taken());
  expect(values.slice(0, 180)).toEqual(upTo(180));
  const times = receiver.taken().flatMap((one) => one.samples().map(({ timeMs }) => timeMs));
  expect(times).toEqual([...times].sort((a, b) => a - b));
  expect(times[0]).toBe(firstMs);
  expect(bed.drops).toEqual({});
  expect(bed.queued()).toEqual({ bytes: 0, oldestMs: undefined });
});

test('what is older than the queue’s age goes, oldest first, counted by its samples', async () => {
  receiver.reply(status(503));
  const queue = { maxBytes: 16_777_216, maxAgeMs: 60_000 };
  const bed = await openBed(receiver.url, { reportingIntervalMs: 10_000, queue });
  for (const value of upTo(20)) {
    bed.show([counter(value), { ...counter(-value), name: 'other' }]);
    await bed.tick(10_000);
  }
  // There were 20 batches. Only the batches of the last 60 s are left: the newest and the six before it.
  expect(bed.drops).toEqual({ 'hosted/too_old': 13 * 2 });
  receiver.reply(written);
  await bed.stop();
  expect(valuesOf(receiver.taken()).slice(0, 14)).toEqual(upTo(20, 14).flatMap((value) => [value, -value]));
});

test('what is over the queue’s bytes goes, oldest first, counted; the files stay within the bound', async () => {
  receiver.reply(status(503));
  const bed = await openBed(receiver.url, { queue: { maxBytes: 20_000, maxAgeMs: 7_200_000 } });
  for (const value of upTo(400)) {
    bed.show([counter(value)]);
    await bed.tick();
    expect(bytesOf(bed.directory)).toBeLessThanOrEqual(20_000);
  }
  receiver.reply(written);
  await bed.stop();
  // There are 400 batches and the final one, which repeats the value 400; the oldest may have been in transit.
  const lost = bed.drops['hosted/queue_full']!;
  expect(lost).toBeGreaterThan(200);
  const values = valuesOf(receiver.taken());
  expect(values).toHaveLength(401 - lost);
  const rest = values.slice(1, -1);
  expect(rest).toEqual(upTo(400, 400 - rest.length + 1));
  expect(values[0]).toBeLessThan(rest[0] as number);
});
