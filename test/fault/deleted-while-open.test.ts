import { readdirSync, readlinkSync } from 'node:fs';
import { expect, test } from 'vitest';
import { createTail, numbered, type Tail } from '../tail.ts';

/** The paths of the test's directory that this process has open. */
function openFiles(tail: Tail): string[] {
  return readdirSync('/proc/self/fd').flatMap((fd) => {
    try {
      const path = readlinkSync(`/proc/self/fd/${fd}`);
      return path.startsWith(tail.root) ? [path.slice(tail.root.length + 1)] : [];
    } catch {
      return [];
    }
  });
}

test('the writer goes on: its lines count until it ends, then the space is given back', async () => {
  const tail = createTail();
  const writer = tail.writer('app.log');
  writer.write(numbered(0, 10).text);
  await tail.scan();
  tail.remove('app.log');
  for (let n = 0; n < 5; n++) {
    writer.write(numbered(10 + n, 1).text);
    tail.clock.advance(900);
    await tail.scan();
  }
  writer.write('unfinished');
  writer.close();
  await tail.scan();
  expect(openFiles(tail)).toEqual(['app.log (deleted)']);
  tail.clock.advance(1000);
  await tail.scan();
  expect(openFiles(tail)).toEqual([]);
  expect(tail.recorder.lines).toEqual([...numbered(0, 15).lines, 'unfinished']);
  expect(tail.tailer.files()).toEqual([]);
});

test('rotated and quiet: closed, and its unfinished line counted', async () => {
  const tail = createTail();
  tail.create('app.log', `${numbered(0, 3).text}last`);
  await tail.scan();
  tail.rename('app.log', 'app.log.1');
  tail.create('app.log', '');
  expect(await tail.scanned()).toEqual(numbered(0, 3).lines);
  expect(await tail.settled()).toEqual([...numbered(0, 3).lines, 'last']);
  expect(openFiles(tail)).toEqual(['app.log']);
});

test('deleted while it was not open: what was written and not read is counted', async () => {
  const tail = createTail({ paths: ['*.log'] });
  tail.create('a.log', numbered(0, 3).text);
  tail.create('b.log', numbered(50, 3).text);
  await tail.scan();
  const unread = numbered(3, 7).text;
  tail.append('a.log', unread);
  await tail.tailer.discover();
  await tail.restart();
  tail.remove('a.log');
  expect(await tail.settled()).toEqual([...numbered(0, 3).lines, ...numbered(50, 3).lines]);
  expect(tail.recorder.skips).toEqual([{ reason: 'vanished', bytes: unread.length }]);
});

test('many files over a long time: positions and descriptors do not pile up', async () => {
  const tail = createTail({ paths: ['**/*.log'] });
  let largest = 0;
  for (let n = 0; n < 2000; n++) {
    tail.create(`pod${n}/0.log`, numbered(n, 1).text);
    if (n >= 10) tail.remove(`pod${n - 10}`);
    if (n % 20 === 0) await tail.scan();
    tail.clock.advance(2000);
    if (n % 20 === 10) await tail.scan();
    largest = Math.max(largest, tail.tailer.freeze().length);
  }
  await tail.settle();
  expect(largest).toBeLessThan(60_000);
  expect(tail.tailer.files().length).toBeLessThanOrEqual(10);
  expect(openFiles(tail).length).toBeLessThanOrEqual(10);
});
