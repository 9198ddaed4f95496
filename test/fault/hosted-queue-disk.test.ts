import { existsSync, readdirSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { createQueue } from '../../src/reporters/hosted/queue/queue.ts';
import { manualClock } from '../clock.ts';
import { newFolder } from '../folder.ts';
import { counter, openBed, receiverForEachTest, status, untilMoving, valuesOf, written } from '../hosted.ts';
import { until } from '../until.ts';
import { canMount, tmpfs } from './state/mount.ts';

const receiver = receiverForEachTest();

/** A queue in a directory, and what its disk failed with. */
async function openedQueue(directory: string) {
  const clock = manualClock();
  const failures: unknown[] = [];
  const queue = createQueue(
    { directory, maxBytes: 2 ** 20, maxAgeMs: 3_600_000 },
    {
      clock,
      drops: { count() {} },
      diskFailed: (error) => void failures.push(error),
      diskWorks() {},
      changed() {},
    },
  );
  await queue.open();
  const append = (points: number) =>
    queue.append({ format: 'otlp', points, timeMs: clock.nowMs(), body: Buffer.alloc(9) });
  return { queue, failures, append };
}

const diskLog = 'cannot write the queue to disk; batches are kept in memory';

test('a folder that cannot be made: batches wait in memory, reported once a minute', async () => {
  const directory = newFolder();
  writeFileSync(join(directory, 'hosted-metrics'), 'in the way');
  receiver.reply(status(503));
  const bed = await openBed(receiver.url, { reportingIntervalMs: 10_000 }, { directory });
  expect(bed.failures.queue_disk).toBe(1);
  for (const value of [1, 2, 3, 4, 5, 6]) {
    bed.show([counter(value)]);
    await bed.tick(10_000);
  }
  expect(bed.failures.queue_disk).toBe(2);
  expect(bed.logged.filter((msg) => msg === diskLog)).toHaveLength(1);
  expect(bed.queued().bytes).toBeGreaterThan(0);
  rmSync(join(directory, 'hosted-metrics'));
  bed.show([counter(7)]);
  await bed.tick(10_000);
  expect(bed.logged).toContain('the queue is written to disk again');
  receiver.reply(written);
  await untilMoving(bed.clock, 500, () => bed.queued().bytes === 0, 'the backlog is gone');
  expect(valuesOf(receiver.taken()).slice(0, 7)).toEqual([1, 2, 3, 4, 5, 6, 7]);
  expect(bed.drops).toEqual({});
  await bed.stop();
});

test('no state directory at all: memory, within its bound, oldest dropped first and counted', async () => {
  receiver.reply(status(503));
  const queue = { maxBytes: 2000, maxAgeMs: 7_200_000 };
  const bed = await openBed(receiver.url, { queueDirectory: undefined, queue });
  for (let value = 1; value <= 40; value++) {
    bed.show([counter(value)]);
    await bed.tick();
  }
  expect(bed.queued().bytes).toBeLessThanOrEqual(2000);
  receiver.reply(written);
  await bed.stop();
  // There are 40 batches and the final one, which repeats the value 40; the oldest may have been in transit.
  const values = valuesOf(receiver.taken());
  expect(values).toHaveLength(41 - bed.drops['hosted/queue_full']!);
  const rest = values.slice(1, -1);
  expect(rest).toEqual(rest.map((_, i) => 40 - rest.length + 1 + i));
  expect(values.at(-1)).toBe(40);
  expect(values[0]).toBeLessThan(rest[0] as number);
});

test('a batch that the receiver refuses while the agent stops is sent once more', async () => {
  let refuse = () => {};
  receiver.reply((received, response) => {
    refuse = () => status(503)(received, response);
  });
  const bed = await openBed(receiver.url, { queueDirectory: undefined });
  await bed.tick();
  await until('the batch is on its way', () => receiver.received.length === 1);
  bed.show([counter(2)]);
  const stopped = bed.stop();
  receiver.reply(written);
  refuse();
  await stopped;
  expect(valuesOf(receiver.taken())).toEqual([1, 2]);
  expect(bed.drops).toEqual({});
});

test('what waits only in memory when the agent stops is lost, and the log says so', async () => {
  receiver.reply(status(503));
  const bed = await openBed(receiver.url, { queueDirectory: undefined });
  await bed.tick();
  await bed.stop();
  expect(bed.logged).toContain('points that were queued in memory are lost');
});

test('the folder deleted while it is used: nothing that comes after is lost to it', async () => {
  receiver.reply(status(503));
  const bed = await openBed(receiver.url);
  await bed.tick();
  const queue = join(bed.directory, 'hosted-metrics');
  rmSync(queue, { recursive: true });
  bed.show([counter(2)]);
  await bed.tick();
  expect(existsSync(join(queue, '000000000001.queue'))).toBe(true);
  receiver.reply(written);
  await untilMoving(bed.clock, 500, () => bed.queued().bytes === 0, 'the backlog is gone');
  expect(valuesOf(receiver.taken()).slice(0, 2)).toEqual([1, 2]);
  expect(bed.drops).toEqual({});
  await bed.stop();
});

test.skipIf(!canMount())(
  'a full disk (real tmpfs): memory, in order, and disk again when there is room',
  async () => {
    const { directory } = tmpfs('64k');
    receiver.reply(status(503));
    const bed = await openBed(receiver.url, { queueDirectory: join(directory, 'queue') });
    await bed.tick();
    const ballast = join(directory, 'ballast');
    expect(() => writeFileSync(ballast, Buffer.alloc(128 * 1024))).toThrow('ENOSPC');
    const large = Array.from({ length: 300 }, (_, i) => ({
      labels: { i: String(Math.imul(i + 1, 2_654_435_761)) },
      numbers: [Math.sqrt(i)],
    }));
    bed.show([{ name: 'large', kind: 'gauge', series: large }]);
    await bed.tick();
    expect(bed.failures.queue_disk).toBe(1);
    rmSync(ballast);
    bed.show([counter(3)]);
    await bed.tick();
    expect(bed.logged).toContain('the queue is written to disk again');
    receiver.reply(written);
    await untilMoving(bed.clock, 500, () => bed.queued().bytes === 0, 'the backlog is gone');
    const values = valuesOf(receiver.taken());
    expect([values[0], ...values.slice(-1)]).toEqual([1, 3]);
    const larges = receiver
      .taken()
      .flatMap((one) => one.samples().filter(({ labels }) => labels.__name__ === 'large'));
    expect(larges.filter(({ value }) => value !== 'stale')).toHaveLength(300);
    expect(bed.drops).toEqual({});
    await bed.stop();
  },
);

test.skipIf(!canMount())('a full disk (real tmpfs) keeps no file in which there is nothing', async () => {
  const { directory } = tmpfs('64k');
  const { queue, failures, append } = await openedQueue(join(directory, 'queue'));
  expect(() => writeFileSync(join(directory, 'ballast'), Buffer.alloc(128 * 1024))).toThrow('ENOSPC');
  for (const points of [1, 2]) await append(points);
  expect(failures).toMatchObject([{ code: 'ENOSPC' }, { code: 'ENOSPC' }]);
  expect(readdirSync(join(directory, 'queue'))).toEqual([]);
  await queue.close();
});

test.skipIf(!canMount())('a disk that turns read-only (real tmpfs): reports go on', async () => {
  const disk = tmpfs('256k');
  receiver.reply(status(503));
  const bed = await openBed(receiver.url, { queueDirectory: join(disk.directory, 'queue') });
  await bed.tick();
  await bed.stop();
  disk.remount('ro');
  receiver.reply(written);
  const next = await openBed(receiver.url, { queueDirectory: join(disk.directory, 'queue') });
  await until('what waited on the disk goes through', () => next.queued().bytes === 0);
  next.show([counter(3)]);
  await next.tick();
  await until('and the next report', () => next.delivered() === 3);
  expect(valuesOf(receiver.taken())).toEqual([1, 1, 3]);
  expect(next.failures.queue_disk).toBe(1);
  expect(next.drops).toEqual({});
  await next.stop();
  disk.remount('rw');
});

test.skipIf(!canMount())(
  'a disk that was read-only when the agent started: once it can be written, what was delivered is not sent again',
  async () => {
    const disk = tmpfs('256k');
    const before = await openedQueue(disk.directory);
    for (const points of [1, 2, 3]) await before.append(points);
    await before.queue.close();

    disk.remount('ro');
    const { queue, failures } = await openedQueue(disk.directory);
    await queue.remove((await queue.peek(0))!);
    expect(failures).toMatchObject([{ code: 'EROFS' }]);
    disk.remount('rw');
    await queue.remove((await queue.peek(0))!);
    expect(failures).toHaveLength(1);
    await queue.close();

    const after = await openedQueue(disk.directory);
    expect((await after.queue.peek(0))?.batch.points).toBe(3);
    await after.queue.close();
  },
);
