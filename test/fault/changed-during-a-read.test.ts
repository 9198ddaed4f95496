import { appendFileSync, truncateSync } from 'node:fs';
import { expect, test } from 'vitest';
import { type Disk, systemDisk } from '../../src/sources/logs/files/disk.ts';
import { createTail, numbered } from '../tail.ts';

/** Does something to the file at each read of more than its beginning. */
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
  await tail.scan();
  expect(tail.recorder.lines).toEqual(numbered(0, at).lines);
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

test('a line longer than the buffer, and one of many megabytes next to short ones', async () => {
  const tail = createTail();
  tail.create('app.log', `first\n${'l'.repeat(900_000)}\nlast\n`);
  await tail.scan();
  expect(tail.recorder.lines.map((line) => line.length)).toEqual([5, 900_000, 4]);
});
