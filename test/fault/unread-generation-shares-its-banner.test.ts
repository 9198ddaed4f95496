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
  await tail.settle();
  expect(tail.recorder.lines).toEqual([banner, ...numbered(0, 40).lines]);
  expect(tail.recorder.skips).toEqual([{ reason: 'vanished', bytes: unread.length }]);
});
