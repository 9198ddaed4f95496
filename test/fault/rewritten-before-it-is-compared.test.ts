import { copyFileSync, utimesSync } from 'node:fs';
import { expect, test } from 'vitest';
import { type Disk, systemDisk } from '../../src/sources/logs/discovery/disk.ts';
import { createTail, numbered, type Tail, tailOf } from '../tail.ts';

/** A disk that calls the function in `next` once, before the next read. */
const interrupted = () => {
  const before: { next: (() => void) | undefined } = { next: undefined };
  const disk: Disk = {
    ...systemDisk,
    read(...args) {
      const call = before.next;
      before.next = undefined;
      call?.();
      return systemDisk.read(...args);
    },
  };
  return { before, disk };
};

/** Writes a file with a whole second as its time, so that a listing does not distinguish it from another file of this size. */
function writeUnnoticed(tail: Tail, name: string, text: string): void {
  tail.create(name, text);
  utimesSync(tail.path(name), 1_700_000_000, 1_700_000_000);
}

/** With one descriptor the log is closed while another file is read. */
test.each([
  ['a copy of what was written after an unnoticed truncation is no copy of what was read before it', false],
  ['an archive of what was written after an unnoticed truncation is read', true],
])('%s', async (_, isArchived) => {
  const tail = createTail({ paths: ['app.log*', 'z.log'], maxOpenFiles: 1 });
  tail.create('app.log', numbered(0, 60).text);
  tail.create('z.log', numbered(9000, 5).text);
  await tail.scan();
  writeUnnoticed(tail, 'app.log', numbered(0, 70).text);
  tail.append('z.log', numbered(9005, 5).text);
  await tail.tailer.discover();
  copyFileSync(tail.path('app.log'), tail.path('app.log.2'));
  tail.gzip('app.log.2');
  writeUnnoticed(tail, 'app.log', numbered(2300, 70).text);
  const copy = isArchived ? 'app.log.3' : 'app.log.1';
  copyFileSync(tail.path('app.log'), tail.path(copy));
  if (isArchived) tail.gzip(copy);
  await tail.tailer.discover();
  tail.truncate('app.log');
  tail.append('app.log', numbered(5000, 5).text);
  await tail.settle();
  const expected = [numbered(0, 70), numbered(2300, 70), numbered(5000, 5), numbered(9000, 10)];
  expect(tail.recorder.lines.toSorted()).toEqual(expected.flatMap(({ lines }) => lines));
  expect(tail.recorder.skips).toEqual([]);
});

test('a copy under an unrelated name is no file of its own, though its original is not known to be rewritten', async () => {
  const tail = createTail({ paths: ['*.log'] });
  tail.create('app.log', numbered(0, 40).text);
  await tail.tailer.discover();
  copyFileSync(tail.path('app.log'), tail.path('saved-2.log'));
  tail.truncate('app.log');
  tail.append('app.log', numbered(100, 60).text);
  copyFileSync(tail.path('app.log'), tail.path('saved-1.log'));
  await tail.scan();
  tail.truncate('app.log');
  tail.append('app.log', numbered(200, 5).text);
  await tail.settle();
  await tail.settle();
  const expected = [numbered(0, 40), numbered(100, 60), numbered(200, 5)].flatMap(({ lines }) => lines);
  expect(tail.recorder.lines.toSorted()).toEqual(expected);
});

test('a file that is truncated between its size and its beginning is known by what it holds then', async () => {
  const { before, disk } = interrupted();
  const tail = createTail({ paths: ['app.log*'], disk });
  await tail.scan();
  tail.create('app.log', numbered(0, 1000).text);
  before.next = () => {
    tail.copyTruncate('app.log', 'app.log.2');
    tail.append('app.log', numbered(2000, 500).text);
  };
  await tail.scan();
  expect(before.next).toBeUndefined();
  copyFileSync(tail.path('app.log'), tail.path('app.log.1'));
  await tail.scan();
  tail.truncate('app.log');
  tail.append('app.log', numbered(3000, 5).text);
  await tail.settle();
  const expected = [numbered(0, 1000), numbered(2000, 500), numbered(3000, 5)];
  expect(tail.recorder.lines.toSorted()).toEqual(expected.flatMap(({ lines }) => lines));
  expect(tail.recorder.skips).toEqual([]);
});

test('the size of what was written after a truncation is not that of the generation, after a kill either', async () => {
  const { before, disk } = interrupted();
  const tail = await tailOf(10, { paths: ['app.log*'], disk });
  tail.append('app.log', numbered(10, 5).text);
  tail.copyTruncate('app.log', 'app.log.1');
  tail.append('app.log', numbered(100, 60).text);
  before.next = () => tail.save();
  await tail.tailer.poll();
  expect(before.next).toBeUndefined();
  await tail.kill();
  await tail.settle();
  const expected = [...numbered(0, 15).lines, ...numbered(100, 60).lines];
  expect(tail.recorder.lines.toSorted()).toEqual(expected);
  expect(tail.recorder.skips).toEqual([]);
});

test('a log that was rewritten and is deleted while it is compared is read from the descriptor', async () => {
  const { before, disk } = interrupted();
  const tail = await tailOf(20, { disk });
  await tail.restart();
  tail.create('app.log', numbered(2300, 60).text);
  before.next = () => tail.remove('app.log');
  expect(await tail.settled()).toEqual([...numbered(0, 20).lines, ...numbered(2300, 60).lines]);
});

test('bytes that were known of a content count as skipped if a larger one is written in its place', async () => {
  const tail = await tailOf(20, { paths: ['app.log', 'z.log'], maxOpenFiles: 1 });
  const added = numbered(20, 10).text;
  tail.append('app.log', added);
  await tail.tailer.discover();
  await tail.restart();
  tail.create('app.log', numbered(2300, 90).text);
  expect(await tail.settled()).toEqual([...numbered(0, 20).lines, ...numbered(2300, 90).lines]);
  expect(tail.recorder.skips).toEqual([{ reason: 'truncated', bytes: added.length }]);
});
