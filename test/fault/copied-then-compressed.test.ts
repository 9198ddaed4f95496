import { appendFileSync, copyFileSync, readFileSync, truncateSync, unlinkSync, writeFileSync } from 'node:fs';
import { gzipSync } from 'node:zlib';
import { expect, test } from 'vitest';
import { createTail, numbered, tailOf } from '../tail.ts';

const patterns = [['app.log'], ['app.log*']];

test.each(patterns)(
  'lines after the copy were counted; the copy is compressed before it is seen (%s)',
  async (pattern) => {
    const tail = await tailOf(60, { paths: [pattern] });
    copyFileSync(tail.path('app.log'), tail.path('app.log.1'));
    tail.append('app.log', numbered(60, 10).text);
    await tail.settle();
    truncateSync(tail.path('app.log'));
    tail.gzip('app.log.1');
    tail.append('app.log', numbered(70, 10).text);
    await tail.settle();
    await tail.restart();
    expect(await tail.settled()).toEqual(numbered(0, 80).lines);
  },
);

test.each(patterns)('the copy and its archive are both there (%s)', async (pattern) => {
  const tail = await tailOf(40, { paths: [pattern] });
  tail.append('app.log', numbered(40, 20).text);
  copyFileSync(tail.path('app.log'), tail.path('app.log.1'));
  truncateSync(tail.path('app.log'));
  writeFileSync(tail.path('app.log.1.gz'), gzipSync(readFileSync(tail.path('app.log.1'))));
  tail.append('app.log', numbered(60, 10).text);
  await tail.scan();
  unlinkSync(tail.path('app.log.1'));
  expect(await tail.settled()).toEqual(numbered(0, 70).lines);
  expect(tail.recorder.skips).toEqual([]);
});

test('the original was given up before its archive appears', async () => {
  const tail = await tailOf(60, { paths: ['app.log*'] });
  const copy = readFileSync(tail.path('app.log'));
  tail.append('app.log', numbered(60, 10).text);
  await tail.scan();
  truncateSync(tail.path('app.log'));
  tail.append('app.log', numbered(70, 10).text);
  await tail.settle();
  writeFileSync(tail.path('app.log.1.gz'), gzipSync(copy));
  expect(await tail.settled()).toEqual(numbered(0, 80).lines);
});

test('the archive is one of few bytes: the copy was known, and more was read of its original', async () => {
  const tail = await tailOf(3, { paths: ['app.log'] });
  copyFileSync(tail.path('app.log'), tail.path('app.log.1'));
  tail.append('app.log', numbered(3, 2).text);
  await tail.scan();
  tail.truncate('app.log');
  tail.append('app.log', numbered(100, 10).text);
  await tail.settle();
  await tail.restart();
  tail.gzip('app.log.1');
  tail.rename('app.log.1.gz', 'app.log.2.gz');
  expect(await tail.settled()).toEqual([...numbered(0, 5).lines, ...numbered(100, 10).lines]);
});

test('the archive appears after a scan that found neither the copy nor the archive', async () => {
  const tail = await tailOf(60, { paths: ['app.log*'] });
  tail.append('app.log', numbered(60, 10).text);
  const copy = readFileSync(tail.path('app.log'));
  truncateSync(tail.path('app.log'));
  tail.append('app.log', numbered(70, 10).text);
  await tail.scan();
  tail.clock.advance(900);
  await tail.scan();
  writeFileSync(tail.path('app.log.1.gz'), gzipSync(copy));
  expect((await tail.settled()).toSorted()).toEqual(numbered(0, 80).lines);
  expect(tail.recorder.skips).toEqual([]);
});

test('an archive that is being written is not taken for the generation, plain or not beside it', async () => {
  const tail = await tailOf(50, { paths: ['app.log*'] });
  tail.append('app.log', numbered(50, 3000).text);
  await tail.restart();
  const packed = gzipSync(readFileSync(tail.path('app.log')));
  tail.rename('app.log', 'app.log.1');
  tail.create('app.log', numbered(3050, 10).text);
  tail.create('app.log.1.gz', packed.subarray(0, packed.length / 2));
  await tail.scan();
  appendFileSync(tail.path('app.log.1.gz'), packed.subarray(packed.length / 2));
  unlinkSync(tail.path('app.log.1'));
  expect(await tail.settled()).toEqual(numbered(0, 3060).lines);
  expect(tail.recorder.skips).toEqual([]);
});

test.each([3, 4, 7])(
  'the archive of the first %i lines appears after the rest was counted',
  async (lines) => {
    const tail = createTail({ paths: ['app.log*'] });
    tail.create('app.log', numbered(10, lines).text);
    await tail.scan();
    const copy = readFileSync(tail.path('app.log'));
    tail.append('app.log', numbered(10 + lines, 20).text);
    await tail.scan();
    tail.truncate('app.log');
    tail.append('app.log', numbered(30 + lines, 10).text);
    writeFileSync(tail.path('app.log.1.gz'), gzipSync(copy));
    await tail.settle();
    await tail.restart();
    expect(await tail.settled()).toEqual(numbered(10, 30 + lines).lines);
  },
);
