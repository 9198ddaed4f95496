import { copyFileSync, readFileSync, renameSync, writeFileSync } from 'node:fs';
import { gzipSync } from 'node:zlib';
import { expect, test } from 'vitest';
import { createTail, numbered, tailOf } from '../tail.ts';

test('a copy is read though its original cannot be told from others that begin the same', async () => {
  const banner = `=== ${'b'.repeat(66)} ===\n`;
  const tail = createTail({ paths: ['app.log*'] });
  const older = `${banner}${numbered(0, 5).text}`;
  const line = `the only line of this generation ${'x'.repeat(12)}\n`;
  tail.create('app.log.2', older);
  tail.create('app.log', banner.slice(0, 5));
  await tail.scan();
  tail.append('app.log', `${banner.slice(5)}${line}`);
  copyFileSync(tail.path('app.log'), tail.path('app.log.1'));
  await tail.tailer.discover();
  tail.truncate('app.log');
  tail.append('app.log', 'the first line of the next one\n');
  await tail.settle();
  await tail.settle();
  const written = `${older}${banner}${line}the first line of the next one\n`;
  expect(tail.recorder.lines.toSorted()).toEqual(written.trimEnd().split('\n').toSorted());
  expect(tail.recorder.skips).toEqual([]);
});

test('a copy that was out of sight while its original was given up is read from there', async () => {
  const tail = await tailOf(30, { paths: ['app.log*'] });
  tail.append('app.log', numbered(30, 10).text);
  copyFileSync(tail.path('app.log'), tail.path('app.log.1'));
  await tail.tailer.discover();
  renameSync(tail.path('app.log.1'), tail.path('elsewhere'));
  tail.truncate('app.log');
  tail.append('app.log', numbered(40, 5).text);
  await tail.settle();
  renameSync(tail.path('elsewhere'), tail.path('app.log.1'));
  await tail.restart();
  expect((await tail.settled()).toSorted()).toEqual(numbered(0, 45).lines);
});

test.each([
  ['compared as a whole', 70],
  ['too large to be compared as a whole', 7000],
])('an archive goes on where its generation was given up: %s', async (_, read) => {
  const tail = createTail({ paths: ['app.log*'] });
  tail.create('app.log', numbered(0, read).text);
  await tail.scan();
  tail.append('app.log', numbered(read, 10).text);
  const copy = readFileSync(tail.path('app.log'));
  tail.truncate('app.log');
  tail.append('app.log', numbered(read + 10, 10).text);
  await tail.settle();
  writeFileSync(tail.path('app.log.1.gz'), gzipSync(copy));
  await tail.settle();
  await tail.restart();
  expect((await tail.settled()).toSorted()).toEqual(numbered(0, read + 20).lines);
});

test('an archive that begins as a generation that was given up, and is another one, is read whole', async () => {
  const banner = `=== ${'b'.repeat(4100)} ===\n`;
  const tail = createTail({ paths: ['app.log*'] });
  const lost = `${banner}${numbered(0, 100).text}`;
  tail.create('app.log', lost);
  await tail.scan();
  tail.truncate('app.log');
  tail.append('app.log', numbered(100, 10).text);
  await tail.settle();
  const other = `${banner}${numbered(110, 5000).text}`;
  writeFileSync(tail.path('app.log.1.gz'), gzipSync(other, { level: 0 }));
  await tail.settle();
  await tail.settle();
  const written = `${lost}${numbered(100, 10).text}${other}`;
  expect(tail.recorder.lines.toSorted()).toEqual(written.trimEnd().split('\n').toSorted());
  expect(tail.recorder.skips).toEqual([]);
});
