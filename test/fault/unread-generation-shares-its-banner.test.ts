import { copyFileSync } from 'node:fs';
import { expect, test } from 'vitest';
import { createTail, numbered } from '../tail.ts';

const banner = '='.repeat(1600);

test('two generations are missing, and the archive of the one that was read is not taken for the unread one', async () => {
  const tail = createTail({ paths: ['app.log*'] });
  tail.create('app.log', `${banner}\n${numbered(0, 40).text}`);
  await tail.scan();
  const unread = `${banner}\n${numbered(500, 1).text}`;
  tail.create('app.log-20260101', unread);
  await tail.tailer.discover();
  tail.save();
  tail.gzip('app.log');
  tail.remove('app.log-20260101');
  await tail.kill();
  expect(await tail.settled()).toEqual([banner, ...numbered(0, 40).lines]);
  expect(tail.recorder.skips).toEqual([{ reason: 'vanished', bytes: unread.length }]);
});

test('a copy that is made of the next generation is not taken for the unread one', async () => {
  const tail = createTail({ paths: ['app.log'] });
  tail.create('app.log', `${banner}\n${numbered(0, 5).text}`);
  await tail.tailer.discover();
  await tail.restart();
  tail.append('app.log', numbered(5, 40).text);
  tail.copyTruncate('app.log', 'app.log.2');
  tail.gzip('app.log.2');
  tail.append('app.log', `${banner}\n${numbered(100, 1).text}`);
  copyFileSync(tail.path('app.log'), tail.path('app.log.1'));
  await tail.scan();
  tail.truncate('app.log');
  tail.append('app.log', numbered(200, 5).text);
  await tail.settle();
  const expected = [numbered(0, 45), numbered(100, 1), numbered(200, 5)].flatMap(({ lines }) => lines);
  expect(tail.recorder.lines.toSorted()).toEqual([banner, banner, ...expected].toSorted());
  expect(tail.recorder.skips).toEqual([]);
});

test('an unread generation goes on in the archive of its known copy', async () => {
  const tail = createTail({ paths: ['app.log*'] });
  tail.create('app.log', '');
  await tail.scan();
  tail.append('app.log', `${banner}\n${numbered(0, 5).text}`);
  await tail.tailer.discover();
  copyFileSync(tail.path('app.log'), tail.path('app.log.1'));
  await tail.tailer.discover();
  tail.truncate('app.log');
  tail.append('app.log', numbered(100, 5).text);
  tail.gzip('app.log.1');
  expect(await tail.settled()).toEqual([banner, ...numbered(0, 5).lines, ...numbered(100, 5).lines]);
  expect(tail.recorder.skips).toEqual([]);
});
