import { mkdirSync, readdirSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { open } from 'node:fs/promises';
import { join } from 'node:path';
import { crc32 } from 'node:zlib';
import { expect, onTestFinished, test, vi } from 'vitest';
import type { Batch } from '../../../src/reporters/hosted/protocol.ts';
import { createQueue, pointsLeftIn } from '../../../src/reporters/hosted/queue/queue.ts';
import { manualClock } from '../../clock.ts';
import { newFolder } from '../../folder.ts';

const bodyBytes = 968;
/** The bytes of a batch in the queue, including the head of its record. */
const batchBytes = 1000;
/** Four of these bodies, with the heads of their records, are 16 MiB. */
const quarterBytes = 2 ** 22 - 32;

/** A queue with room for three batches, in memory unless there is a directory, and what it drops. */
function openQueue(directory?: string, maxBytes = 3 * batchBytes) {
  const clock = manualClock();
  const dropped: string[] = [];
  const failures: unknown[] = [];
  const queue = createQueue(
    { directory, maxBytes, maxAgeMs: 60_000 },
    {
      clock,
      drops: { count: (_, reason, n) => void dropped.push(`${reason} ${n}`) },
      diskFailed: (error) => void failures.push(error),
      diskWorks() {},
      changed() {},
    },
  );
  onTestFinished(async () => void (await queue.close()));
  /** Batches are distinguished by their number of points. */
  const append = (points: number, bytes = bodyBytes) =>
    queue.append({ format: 'otlp', points, timeMs: clock.nowMs(), body: Buffer.alloc(bytes) } as Batch);
  return { clock, dropped, failures, queue, append };
}

test('a batch that may be in transit is not dropped for a newer one: those behind it are', async () => {
  const { queue, append, dropped } = openQueue();
  for (const points of [1, 2, 3]) await append(points);
  const inTransit = await queue.peek(0);
  // Reading the batch behind it changes nothing.
  expect((await queue.peek(1))?.batch.points).toBe(2);
  await append(4);
  expect(dropped).toEqual(['queue_full 2']);
  // Nothing changes either if the batch behind it is given up meanwhile.
  await queue.remove((await queue.peek(1))!);
  for (const points of [5, 6]) await append(points);
  expect(dropped).toEqual(['queue_full 2', 'queue_full 4']);
  expect((await queue.peek(0))?.entry).toBe(inTransit!.entry);
  await queue.remove(inTransit!);
  expect((await queue.peek(0))?.batch.points).toBe(5);
});

test('a batch that is given back may be dropped, and so may one that grows too old', async () => {
  const { clock, queue, append, dropped } = openQueue();
  for (const points of [1, 2, 3]) await append(points);
  await queue.peek(0);
  queue.release();
  await append(4);
  expect(dropped).toEqual(['queue_full 1']);
  await queue.peek(0);
  clock.advance(60_000);
  expect((await queue.peek(1))?.batch.points).toBe(3);
  clock.advance(1);
  // The held batch stays, although it is too old.
  expect((await queue.peek(0))?.batch.points).toBe(2);
  expect(dropped).toEqual(['queue_full 1', 'too_old 3', 'too_old 4']);
  queue.release();
  expect(await queue.peek(0)).toBeUndefined();
});

test('what is kept in memory is told at the end, by its points', async () => {
  const { queue, append, failures } = openQueue();
  await queue.open();
  expect(failures).toEqual([]);
  for (const points of [1, 2]) await append(points);
  failures.length = 0;
  expect(await queue.close()).toBe(3);
  expect(failures).toEqual([]);
});

/** A file of the queue with batches of one, two and three points; its head has 16 bytes, and the head of each record has 32. */
async function threeInAFile(): Promise<string> {
  const directory = newFolder();
  const { queue, append } = openQueue(directory, 16 * 5 * batchBytes);
  await queue.open();
  for (const points of [1, 2, 3]) await append(points);
  await queue.close();
  return directory;
}

/** The batches that a new process delivers from a directory, by points, and what it drops. */
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
/** Changes a number in the head of the second record, and corrects the checksum. */
function resealed(file: Buffer, at: number): Buffer {
  file.writeUInt32LE(9, secondAt + at);
  file.writeUInt32LE(crc32(file.subarray(secondAt, secondAt + 28)), secondAt + 28);
  return file;
}
const markOf = (at: number) => Buffer.from(Float64Array.of(at).buffer);
const damages: [name: string, damage: (file: Buffer) => Buffer, delivered: number[], dropped: string[]][] = [
  ['none', (file) => file, [1, 2, 3], []],
  ['an empty file', () => Buffer.alloc(0), [], []],
  ['a part of a head', (file) => file.subarray(0, 15), [], ['corrupt 1']],
  ['a head alone', (file) => file.subarray(0, 16), [], []],
  ['another magic number', (file) => file.fill(0, 0, 1), [], ['corrupt 1']],
  ['another version', (file) => file.fill(2, 4, 5), [], ['corrupt 1']],
  ['records that were delivered', (file) => file.fill(markOf(secondAt), 8, 16), [2, 3], []],
  ['an offset within the head', (file) => file.fill(markOf(15), 8, 16), [], ['corrupt 1']],
  ['an offset that is no whole number', (file) => file.fill(markOf(16.5), 8, 16), [], ['corrupt 1']],
  ['an offset that is no number', (file) => file.fill(markOf(Number.NaN), 8, 16), [], ['corrupt 1']],
  ['an offset behind its end', (file) => file.fill(markOf(1e9), 8, 16), [], []],
  ['a record without its magic number', (file) => file.fill(0, secondAt, secondAt + 1), [1], ['corrupt 1']],
  [
    'a head of a record with another bit',
    (file) => file.fill(9, secondAt + 8, secondAt + 9),
    [1],
    ['corrupt 1'],
  ],
  ['a record in a format that is not known', (file) => resealed(file, 12), [1], ['corrupt 1']],
  ['a record of another magic number, sealed', (file) => resealed(file, 0), [1], ['corrupt 1']],
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

test('the points that wait in a directory to which no queue writes', async () => {
  const directory = await threeInAFile();
  const [file] = readdirSync(directory);
  writeFileSync(join(directory, file!.replace('0.', '5.')), readFileSync(join(directory, file!)));
  expect(await pointsLeftIn(directory)).toBe(2 * (1 + 2 + 3));
  // They wait still, for a queue that comes back.
  expect((await restarted(directory))[0]).toEqual([1, 2, 3, 1, 2, 3]);
  writeFileSync(join(directory, 'in the way'), '');
  await expect(pointsLeftIn(join(directory, 'in the way'))).rejects.toThrow('EEXIST');
});

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
  // The first file belongs to another process, because this one did not open the queue.
  expect(await restarted(directory)).toEqual([[1, 2, 3, 4], ['corrupt 1']]);
  expect(readdirSync(directory)).toContain('README');
});

/** Sizes of the files of a queue, by name. */
const filesIn = (directory: string) =>
  Object.fromEntries(
    readdirSync(directory)
      .sort()
      .map((name) => [name, statSync(join(directory, name)).size]),
  );

test('a file is filled to its share of the queue, and emptied when all of it was delivered', async () => {
  const directory = newFolder();
  // Each file has two batches.
  const { queue, append, failures } = openQueue(directory, 16 * (16 + 2 * batchBytes));
  const deliver = async () => queue.remove((await queue.peek(0))!);
  for (const points of [1, 2, 3]) await append(points);
  const [whole, begun] = [16 + 2 * batchBytes, 16 + batchBytes];
  expect(filesIn(directory)).toEqual({ '000000000000.queue': whole, '000000000001.queue': begun });
  await deliver();
  // Delivering a batch twice does not affect the other batch of its file.
  const second = (await queue.peek(0))!;
  expect(second.batch.points).toBe(2);
  await queue.remove(second);
  await queue.remove(second);
  expect(filesIn(directory)).toEqual({ '000000000001.queue': begun });
  await deliver();
  expect(filesIn(directory)).toEqual({ '000000000001.queue': 16 });
  // A batch that is larger than the share of a file has its own file.
  await append(4, 2 * whole);
  expect(filesIn(directory)).toEqual({ '000000000001.queue': 16 + 32 + 2 * whole });
  expect(failures).toEqual([]);
});

test('a file of an earlier process is not appended to, and its batches keep their age', async () => {
  const directory = await threeInAFile();
  const { clock, queue, append, dropped } = openQueue(directory, 16 * 5 * batchBytes);
  clock.jumpTo(clock.nowMs() + 50_000);
  await queue.open();
  await append(4);
  expect(Object.keys(filesIn(directory))).toEqual(['000000000000.queue', '000000000001.queue']);
  clock.advance(10_000);
  expect((await queue.peek(0))?.batch.points).toBe(1);
  queue.release();
  clock.advance(1);
  expect((await queue.peek(0))?.batch.points).toBe(4);
  expect(dropped).toEqual(['too_old 1', 'too_old 2', 'too_old 3']);
});

test('a file that cannot be opened is counted, and one that somebody deletes is no failure', async () => {
  const directory = await threeInAFile();
  mkdirSync(join(directory, '000000000007.queue'));
  const { queue, dropped, failures } = openQueue(directory, 16 * 5 * batchBytes);
  await queue.open();
  expect(dropped).toEqual(['corrupt 1']);
  rmSync(join(directory, '000000000000.queue'));
  for (let queued = await queue.peek(0); queued; queued = await queue.peek(0)) await queue.remove(queued);
  expect(failures).toEqual([]);
});

test('while the disk cannot be written, batches on disk are not dropped for those in memory', async () => {
  const directory = join(newFolder(), 'queue');
  const { queue, append, dropped, failures } = openQueue(directory, 2 ** 30);
  await append(1);
  rmSync(directory, { recursive: true });
  writeFileSync(directory, 'in the way');
  for (const points of [2, 3, 4, 5, 6]) await append(points, quarterBytes);
  expect(failures).toHaveLength(5);
  expect(dropped).toEqual(['queue_full 2']);
  expect((await queue.peek(0))?.batch.points).toBe(1);
});

test.each([
  ['as large as', batchBytes, []],
  ['larger than', batchBytes - 1, ['queue_full 7']],
])('a batch that is %s the whole queue', async (_, maxBytes, expected) => {
  const { queue, append, dropped } = openQueue(undefined, maxBytes);
  await append(7);
  expect(dropped).toEqual(expected);
  expect((await queue.peek(0))?.batch.points).toBe(expected.length === 0 ? 7 : undefined);
});

test('16 MiB are kept in memory at most while the disk cannot be written, the oldest dropped first', async () => {
  const { queue, append, dropped } = openQueue(undefined, 2 ** 30);
  for (const points of [1, 2, 3, 4]) await append(points, quarterBytes);
  expect(dropped).toEqual([]);
  await append(5, quarterBytes);
  expect(dropped).toEqual(['queue_full 1']);
  expect((await queue.peek(0))?.batch.points).toBe(2);
});

/** Makes the next writes to any file write only this part of their bytes; with 0 the disk is full. */
async function writesTake(parts: number[]): Promise<void> {
  const file = await open(join(newFolder(), 'any'), 'w');
  const handles = Object.getPrototypeOf(file);
  await file.close();
  const { write } = handles;
  const spy = vi.spyOn(handles, 'write').mockImplementation(async function (this: unknown, ...given) {
    const [bytes, offset, length, position] = given as [Buffer, number, number, number];
    const part = parts.shift() ?? 1;
    if (part === 0) throw Object.assign(new Error('no space left on device'), { code: 'ENOSPC' });
    return write.call(this, bytes, offset, Math.floor(length * part), position);
  });
  onTestFinished(() => spy.mockRestore());
}

test.each([
  ['the rest, too', [0.5, 1], 0, { '000000000000.queue': 16 + 2 * batchBytes }],
  ['a part of the rest', [0.5, 0.5], 1, { '000000000000.queue': 16 + batchBytes }],
  ['nothing of the rest', [0.5, 0], 1, { '000000000000.queue': 16 + batchBytes }],
])('a disk that takes half of a batch and %s: whole batches are in the file', async (...row) => {
  const [, parts, failed, files] = row;
  const directory = newFolder();
  const { queue, append, failures } = openQueue(directory, 16 * 5 * batchBytes);
  await append(1);
  await writesTake(parts);
  await append(2);
  expect([failures.length, filesIn(directory)]).toEqual([failed, files]);
  for (const points of [1, 2]) {
    const queued = await queue.peek(0);
    expect([queued?.batch.points, queued?.batch.body]).toEqual([points, Buffer.alloc(bodyBytes)]);
    await queue.remove(queued!);
  }
});
