import { execFileSync } from 'node:child_process';
import { crc32 } from 'node:zlib';
import { expect, test } from 'vitest';
import { createTail, numbered, tailOf } from '../tail.ts';

/** What a compressor of another format may have made of a log: bytes without any order, and newlines among them. */
const archive = Buffer.from(Array.from({ length: 5000 }, (_, i) => crc32(`${i}`) & 0xff));
const names = ['app.log.1.zst', 'app.log.1.xz', 'app.log.1.bz2', 'app.log-20260101.zst'];

test.each(names)(
  'a log that was read and is compressed as %s: nothing of the archive is read',
  async (name) => {
    const tail = await tailOf(30, { paths: ['app.log*'] });
    tail.rename('app.log', 'app.log.1');
    tail.create('app.log', numbered(30, 5).text);
    await tail.settle();
    for (const end of [10, 2500, archive.length]) {
      tail.create(name, archive.subarray(0, end));
      await tail.scan();
    }
    tail.remove('app.log.1');
    await tail.settle();
    await tail.settle();
    await tail.restart();
    expect(await tail.settled()).toEqual(numbered(0, 35).lines);
    expect(tail.recorder.skips).toEqual([]);
  },
);

test.each(names)(
  'a log that was written and compressed as %s while the agent was down: its size counts as skipped once',
  async (name) => {
    const tail = await tailOf(30, { paths: ['app.log'] });
    tail.save();
    tail.create(name, archive);
    await tail.kill();
    await tail.settle();
    await tail.settle();
    tail.create(name, Buffer.concat([archive, archive]));
    await tail.settle();
    expect(await tail.settled()).toEqual(numbered(0, 30).lines);
    expect(tail.recorder.skips).toEqual([{ reason: 'unreadable', bytes: archive.length }]);
  },
);

test('archives in other formats that were there before their log was looked at are passed over', async () => {
  const tail = createTail({ paths: ['app.log'] });
  tail.create('app.log', numbered(0, 30).text);
  for (const name of names) tail.create(name, archive);
  await tail.settle();
  expect(await tail.settled()).toEqual(numbered(0, 30).lines);
  expect(tail.recorder.skips).toEqual([]);
});

test.each([
  ['app.log.1.tgz', '-czf'],
  ['app.log.1.tar.gz', '-czf'],
  ['app.log.1.tar', '-cf'],
])('a log that was read is put into %s by tar: nothing of the archive is read', async (name, flags) => {
  const tail = await tailOf(300, { paths: ['app.log*'] });
  tail.rename('app.log', 'app.log.1');
  tail.create('app.log', numbered(300, 5).text);
  await tail.settle();
  execFileSync('tar', ['-C', tail.root, flags, tail.path(name), 'app.log.1']);
  tail.remove('app.log.1');
  await tail.scan();
  await tail.settle();
  expect(await tail.settled()).toEqual(numbered(0, 305).lines);
  expect(tail.recorder.skips).toEqual([]);
});
