import { mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { crc32 } from 'node:zlib';
import { expect, onTestFinished, test } from 'vitest';
import type { Batch } from '../../../src/reporters/hosted/protocol.ts';
import { createQueue } from '../../../src/reporters/hosted/queue/queue.ts';
import { manualClock } from '../../clock.ts';

const bodyBytes = 968;
/** What a batch takes of the queue, with the head of its record. */
const batchBytes = 1000;

/** A queue with room for three batches, in memory unless there is a directory, and what it drops. */
function openQueue(directory?: string, maxBytes = 3 * batchBytes) {
  const clock = manualClock();
  const dropped: string[] = [];
  const queue = createQueue(
    { directory, maxBytes, maxAgeMs: 60_000 },
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

/** A file of the queue with batches of one, two and three points; its head has 16 bytes, that of each record 32. */
async function threeInAFile(): Promise<string> {
  const directory = mkdtempSync(join(tmpdir(), 'svc-agent-queue-'));
  onTestFinished(() => rmSync(directory, { recursive: true, force: true }));
  const { queue, append } = openQueue(directory, 16 * 5 * batchBytes);
  await queue.open();
  for (const points of [1, 2, 3]) await append(points);
  await queue.close();
  return directory;
}

/** What a new process delivers of a directory, by points, and what it drops. */
async function restarted(directory: string) {
  const { queue, dropped } = openQueue(directory, 16 * 5 * batchBytes);
  await queue.open();
  const delivered: number[] = [];
  for (let queued = await queue.peek(0); queued; queued = await queue.peek(0)) {
    expect(queued.batch.body).toEqual(Buffer.alloc(bodyBytes));
    delivered.push(queued.batch.points);
    await queue.remove(queued);
  }
  await queue.close();
  return [delivered, dropped];
}

const secondAt = 16 + batchBytes;
const markOf = (at: number) => Buffer.from(Float64Array.of(at).buffer);
const damages: [name: string, damage: (file: Buffer) => Buffer, delivered: number[], dropped: string[]][] = [
  ['none', (file) => file, [1, 2, 3], []],
  ['an empty file', () => Buffer.alloc(0), [], []],
  ['a part of a head', (file) => file.subarray(0, 15), [], ['corrupt 1']],
  ['a head alone', (file) => file.subarray(0, 16), [], []],
  ['another magic number', (file) => file.fill(0, 0, 1), [], ['corrupt 1']],
  ['another version', (file) => file.fill(2, 4, 5), [], ['corrupt 1']],
  ['records that were delivered', (file) => file.fill(markOf(secondAt), 8, 16), [2, 3], []],
  ['a record without its magic number', (file) => file.fill(0, secondAt, secondAt + 1), [1], ['corrupt 1']],
  [
    'a head of a record with another bit',
    (file) => file.fill(9, secondAt + 8, secondAt + 9),
    [1],
    ['corrupt 1'],
  ],
  [
    'a record in a format that is not known',
    (file) => {
      file.writeUInt32LE(9, secondAt + 12);
      file.writeUInt32LE(crc32(file.subarray(secondAt, secondAt + 28)), secondAt + 28);
      return file;
    },
    [1],
    ['corrupt 1'],
  ],
  ['a body with another bit', (file) => file.fill(1, secondAt + 32, secondAt + 33), [1, 3], ['corrupt 2']],
  ['an end that is cut off by a byte', (file) => file.subarray(0, -1), [1, 2], ['corrupt 1']],
  [
    'half a head of a record behind the last',
    (file) => Buffer.concat([file, Buffer.alloc(9)]),
    [1, 2, 3],
    ['corrupt 1'],
  ],
];

test.each(damages)(
  'a file of the queue with %s: whole batches are delivered, the rest is counted',
  async (...row) => {
    const [, damage, delivered, dropped] = row;
    const directory = await threeInAFile();
    const file = join(directory, readdirSync(directory)[0]!);
    writeFileSync(file, damage(readFileSync(file)));
    expect(await restarted(directory)).toEqual([delivered, dropped]);
  },
);

test('a new file takes the number after all others, whoever made them', async () => {
  const directory = await threeInAFile();
  writeFileSync(join(directory, '000000000001.queue'), 'not ours');
  writeFileSync(join(directory, 'README'), 'not ours');
  const { queue, append } = openQueue(directory);
  await append(4);
  await queue.close();
  expect(readdirSync(directory).sort()).toEqual([
    ...['000000000000.queue', '000000000001.queue', '000000000002.queue', 'README'],
  ]);
  // The first file is of another process: this one did not open the queue.
  expect(await restarted(directory)).toEqual([[1, 2, 3, 4], ['corrupt 1']]);
  expect(readdirSync(directory)).toContain('README');
});

test('a batch that is larger than the whole queue is dropped, and no other for it', async () => {
  const { queue, append, dropped } = openQueue(undefined, batchBytes - 1);
  await append(7);
  expect(dropped).toEqual(['queue_full 7']);
  expect(await queue.peek(0)).toBeUndefined();
});

test('16 MiB are kept in memory at most while the disk cannot be written, the oldest dropped first', async () => {
  const { clock, queue, dropped } = openQueue(undefined, 2 ** 30);
  const third = Buffer.alloc((2 ** 24 - 3 * 32) / 3);
  const append = (points: number) =>
    queue.append({ format: 'otlp', points, timeMs: clock.nowMs(), body: third } as Batch);
  const deliverable = async () => (await queue.peek(0))?.batch.points;
  for (const points of [1, 2, 3]) await append(points);
  expect(dropped).toEqual([]);
  await append(4);
  expect(dropped).toEqual(['queue_full 1']);
  expect(await deliverable()).toBe(2);
});
