import { copyFileSync } from 'node:fs';
import { expect, test } from 'vitest';
import { createTail, type Tail } from '../tail.ts';

// A service that logs the same line again and again, without a time. Equal files are then generations of their own, unless a
// rotation copies one of them at this moment.

const line = `{"level":"info","msg":"again","logger":"a"}`;
const of = (count: number) => `${line}\n`.repeat(count);
const paths = ['app.log*'];

/** The number of lines that were counted; all of them are the same. */
function counted({ recorder }: Tail): number {
  expect(recorder.lines.every((one) => one === line)).toBe(true);
  expect(recorder.skips).toEqual([]);
  return recorder.lines.length;
}

test.each([
  ['as long', 100],
  ['shorter', 60],
  ['longer', 140],
])('a rotated file that is %s as the log, both seen for the first time', async (_, count) => {
  const tail = createTail({ paths });
  tail.create('app.log', of(100));
  tail.create('app.log.1', of(count));
  await tail.settle();
  expect(counted(tail)).toBe(100 + count);
  await tail.restart();
  await tail.settle();
  expect(counted(tail)).toBe(100 + count);
});

test('of files that are there first, nothing counts if the log starts at its end', async () => {
  const tail = createTail({ paths, startAt: 'end' });
  tail.create('app.log', of(100));
  tail.create('app.log.1', of(100));
  await tail.settle();
  tail.append('app.log', of(5));
  expect(await tail.settled()).toHaveLength(5);
});

test.each([
  ['equal', 60, 60],
  ['shorter', 60, 40],
  ['longer', 60, 90],
])('two rotations between two scans, the second file %s', async (_, first, second) => {
  const tail = createTail({ paths });
  tail.create('app.log', of(first));
  await tail.scan();
  tail.rename('app.log', 'app.log.2');
  tail.create('app.log.1', of(second));
  tail.create('app.log', of(10));
  await tail.settle();
  await tail.settle();
  expect(counted(tail)).toBe(first + second + 10);
});

test.each([60, 40, 90])('a rotation while the agent is dead, and a log of %d lines', async (count) => {
  const tail = createTail({ paths });
  tail.create('app.log', of(60));
  await tail.scan();
  tail.save();
  tail.rename('app.log', 'app.log.1');
  tail.create('app.log', of(count));
  await tail.kill();
  await tail.settle();
  expect(counted(tail)).toBe(60 + count);
});

test('a log that is created anew while the agent is dead', async () => {
  const tail = createTail({ paths });
  tail.create('app.log', of(60));
  await tail.scan();
  tail.save();
  // The other file takes the inode.
  tail.remove('app.log');
  tail.create('other', '');
  tail.create('app.log', of(60));
  await tail.kill();
  await tail.settle();
  expect(counted(tail)).toBe(120);
});

test('another file with the same lines that is renamed over the log', async () => {
  const tail = createTail({ paths });
  tail.create('app.log', of(60));
  await tail.scan();
  tail.create('new', of(60));
  tail.rename('new', 'app.log');
  await tail.settle();
  expect(counted(tail)).toBe(120);
});

test.each([0, 7])('copytruncate counts once, %d lines unread when it copies', async (unread) => {
  const tail = createTail({ paths });
  tail.create('app.log', of(60));
  await tail.scan();
  tail.append('app.log', of(unread));
  copyFileSync(tail.path('app.log'), tail.path('app.log.1'));
  await tail.tailer.discover();
  tail.truncate('app.log');
  tail.append('app.log', of(3));
  await tail.settle();
  await tail.settle();
  expect(counted(tail)).toBe(60 + unread + 3);
});

test('copytruncate between two scans counts once', async () => {
  const tail = createTail({ paths });
  tail.create('app.log', of(60));
  await tail.scan();
  tail.copyTruncate('app.log', 'app.log.1');
  tail.append('app.log', of(3));
  await tail.settle();
  expect(counted(tail)).toBe(63);
});

test('a rotated file that is compressed counts once', async () => {
  const tail = createTail({ paths });
  tail.create('app.log', of(60));
  await tail.scan();
  tail.rename('app.log', 'app.log.1');
  tail.create('app.log', of(5));
  await tail.scan();
  tail.gzip('app.log.1');
  await tail.settle();
  expect(counted(tail)).toBe(65);
});
