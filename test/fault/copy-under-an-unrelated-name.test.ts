import { appendFileSync, copyFileSync, readFileSync } from 'node:fs';
import { expect, test } from 'vitest';
import { type Disk, systemDisk } from '../../src/sources/logs/discovery/disk.ts';
import { createTail, numbered, tailOf } from '../tail.ts';

/** A disk that calls `before` with each path that is opened. */
const watched = (before: (path: string) => void): Disk => ({
  ...systemDisk,
  open(path) {
    before(path);
    return systemDisk.open(path);
  },
});

/** The copy is empty when it is first seen, as `cp` creates it. */
test('a copy that was empty at first is no file of its own, though no more than one file may be open', async () => {
  const tail = await tailOf(60, { paths: ['*.log'], maxOpenFiles: 1 });
  tail.append('app.log', numbered(60, 10).text);
  tail.create('saved.log', '');
  await tail.tailer.discover();
  appendFileSync(tail.path('saved.log'), readFileSync(tail.path('app.log')));
  await tail.tailer.poll();
  tail.truncate('app.log');
  tail.append('app.log', numbered(70, 5).text);
  await tail.scan();
  expect((await tail.settled()).toSorted()).toEqual(numbered(0, 75).lines);
});

test('a copy that was empty when the agent was killed is still known as one', async () => {
  const tail = await tailOf(60, { paths: ['*.log'] });
  tail.create('saved.log', '');
  await tail.tailer.discover();
  tail.save();
  await tail.kill();
  appendFileSync(tail.path('saved.log'), readFileSync(tail.path('app.log')));
  await tail.scan();
  tail.truncate('app.log');
  tail.append('app.log', numbered(60, 5).text);
  expect((await tail.settled()).toSorted()).toEqual(numbered(0, 65).lines);
});

test('a copy of a file that cannot be taken up in this scan is not taken up either', async () => {
  let isHidden = false;
  const disk = watched((path) => {
    if (isHidden && path.endsWith('/saved-1.log'))
      throw Object.assign(new Error('ENOENT'), { code: 'ENOENT' });
  });
  const tail = await tailOf(60, { paths: ['*.log'], disk });
  await tail.restart();
  tail.copyTruncate('app.log', 'saved-1.log');
  tail.append('app.log', numbered(60, 40).text);
  copyFileSync(tail.path('app.log'), tail.path('saved-2.log'));
  isHidden = true;
  await tail.tailer.discover();
  isHidden = false;
  await tail.scan();
  tail.truncate('app.log');
  tail.append('app.log', numbered(100, 5).text);
  expect((await tail.settled()).toSorted()).toEqual(numbered(0, 105).lines);
});

test('an original that was empty at first is known, though the agent is killed while it decides what it is', async () => {
  let deciding: (() => void) | undefined;
  const disk: Disk = {
    ...systemDisk,
    real(path) {
      if (path.endsWith('/app.log')) {
        deciding?.();
        deciding = undefined;
      }
      return systemDisk.real(path);
    },
  };
  const tail = createTail({ paths: ['*.log'], disk });
  tail.create('app.log', '');
  await tail.scan();
  tail.append('app.log', numbered(0, 60).text);
  deciding = tail.save;
  await tail.tailer.discover();
  expect(deciding).toBeUndefined();
  copyFileSync(tail.path('app.log'), tail.path('saved.log'));
  await tail.kill();
  await tail.scan();
  tail.truncate('app.log');
  tail.append('app.log', numbered(60, 5).text);
  expect((await tail.settled()).toSorted()).toEqual(numbered(0, 65).lines);
});

test('a copy of the first few bytes is known after a truncation, too', async () => {
  const tail = createTail({ paths: ['*'] });
  tail.create('app.log', 'first\n');
  await tail.scan();
  copyFileSync(tail.path('app.log'), tail.path('saved-app.log'));
  await tail.scan();
  tail.append('app.log', numbered(0, 10).text);
  await tail.scan();
  tail.truncate('app.log');
  tail.append('app.log', numbered(100, 5).text);
  await tail.settle();
  expect(await tail.settled()).toEqual(['first', ...numbered(0, 10).lines, ...numbered(100, 5).lines]);
});

test('a copy that a generation of a few bytes goes on in is still known after a restart', async () => {
  const tail = createTail({ paths: ['*'] });
  tail.create('app.log', 'half');
  await tail.scan();
  tail.append('app.log', ` a line\n${numbered(0, 10).text}`);
  tail.copyTruncate('app.log', 'saved-app.log');
  tail.append('app.log', numbered(100, 5).text);
  await tail.tailer.discover();
  await tail.tailer.discover();
  await tail.restart();
  await tail.settle();
  await tail.settle();
  const expected = ['half a line', ...numbered(0, 10).lines, ...numbered(100, 5).lines];
  expect(tail.recorder.lines.toSorted()).toEqual(expected);
});

test('a copy without the unfinished line, which the truncation removed, is the generation nevertheless', async () => {
  const tail = await tailOf(40, { paths: ['*'] });
  copyFileSync(tail.path('app.log'), tail.path('saved-1'));
  tail.append('app.log', 'begun');
  await tail.tailer.poll();
  tail.truncate('app.log');
  tail.append('app.log', numbered(100, 60).text);
  // A new file is followed only once nothing is missing.
  tail.create('other.log', numbered(200, 5).text);
  await tail.settle();
  await tail.settle();
  const expected = [numbered(0, 40), numbered(100, 60), numbered(200, 5)].flatMap(({ lines }) => lines);
  expect(tail.recorder.lines.toSorted()).toEqual(['begun', ...expected].toSorted());
});
