import { appendFileSync, truncateSync, writeFileSync } from 'node:fs';
import { expect, test } from 'vitest';
import { type Disk, systemDisk } from '../../src/sources/logs/discovery/disk.ts';
import { createTail, numbered } from '../tail.ts';

/** A disk that calls `disturb` at each read of more than the beginning of a file. */
const disturbed = (disturb: () => void): Disk => ({
  ...systemDisk,
  read(fd, buffer, start, length, position) {
    const read = systemDisk.read(fd, buffer, start, length, position);
    if (length > 4096 && read > 0) disturb();
    return read;
  },
});

test('grows faster than it is read: the scan ends, and nothing is lost', async () => {
  let at = 0;
  const tail = createTail();
  const grow = () => {
    if (at > 2_000_000) throw new Error('the reader chases the writer');
    appendFileSync(tail.path('app.log'), numbered(at, 20_000).text);
    at += 20_000;
  };
  grow();
  await tail.restart({ disk: disturbed(grow) });
  await tail.scan();
  expect(tail.recorder.lines.length).toBeLessThan(at);
  await tail.restart({ disk: systemDisk });
  expect(await tail.scanned()).toEqual(numbered(0, at).lines);
});

test('shrinks: no exception, and what follows is read', async () => {
  const tail = createTail();
  tail.create('app.log', numbered(0, 40_000).text);
  let isDone = false;
  const shrink = () => {
    if (!isDone) truncateSync(tail.path('app.log'));
    isDone = true;
  };
  await tail.restart({ disk: disturbed(shrink) });
  await tail.scan();
  tail.append('app.log', numbered(50_000, 3).text);
  await tail.scan();
  await tail.scan();
  expect(tail.recorder.lines.slice(-3)).toEqual(numbered(50_000, 3).lines);
  const first = tail.recorder.lines.filter((line) => line < 'seq=0050000');
  const whole = numbered(0, 40_000).lines;
  expect(first.slice(0, -1)).toEqual(whole.slice(0, first.length - 1));
  expect(whole[first.length - 1]!.startsWith(first.at(-1)!)).toBe(true);
});

test('truncated after it was read, with a copy that is shorter: the copy is known by its beginning', async () => {
  const text = `first line\n${numbered(0, 50).text}`;
  let isNext = false;
  const copyAndTruncate = () => {
    if (!isNext) return;
    isNext = false;
    writeFileSync(tail.path('app.log.1'), text.slice(0, 800));
    truncateSync(tail.path('app.log'));
    appendFileSync(tail.path('app.log'), numbered(900, 3).text);
  };
  const tail = createTail({ paths: ['app.log*'], disk: disturbed(copyAndTruncate) });
  // At first the file is too short for a checksum.
  tail.create('app.log', 'first line\n');
  await tail.scan();
  tail.append('app.log', numbered(0, 50).text);
  isNext = true;
  await tail.tailer.poll();
  expect(await tail.settled()).toEqual(['first line', ...numbered(0, 50).lines, ...numbered(900, 3).lines]);
});

test('a line longer than the buffer, and one of many megabytes next to short ones', async () => {
  const tail = createTail();
  tail.create('app.log', `first\n${'l'.repeat(900_000)}\nlast\n`);
  await tail.scan();
  expect(tail.recorder.lines.map((line) => line.length)).toEqual([5, 900_000, 4]);
});
