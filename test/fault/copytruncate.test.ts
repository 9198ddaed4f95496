import { copyFileSync, ftruncateSync, openSync, truncateSync, writeSync } from 'node:fs';
import { expect, test } from 'vitest';
import { createTail, numbered, tailOf } from '../tail.ts';

const patterns = [['app.log'], ['app.log*']];

test.each(patterns)('caught up (%s): nothing is read twice, the copy is not read', async (pattern) => {
  const tail = createTail({ paths: [pattern] });
  const writer = tail.writer('app.log');
  let at = 0;
  for (let round = 1; round <= 5; round++) {
    writer.write(numbered(at, 20).text);
    at += 20;
    await tail.scan();
    tail.copyTruncate('app.log', `app.log.${round}`);
    if (round % 2) await tail.scan();
  }
  writer.write(numbered(at, 1).text);
  expect(await tail.settled()).toEqual(numbered(0, at + 1).lines);
  expect(tail.recorder.skips).toEqual([]);
});

test.each(patterns)(
  'lagging (%s): unread lines are read from the copy, before those that follow',
  async (pattern) => {
    const tail = await tailOf(10, { paths: [pattern] });
    tail.append('app.log', numbered(10, 90).text);
    tail.copyTruncate('app.log', 'app.log.1');
    tail.append('app.log', numbered(100, 200).text);
    expect(await tail.scanned()).toEqual(numbered(0, 300).lines);
    expect(tail.recorder.skips).toEqual([]);
  },
);

test.each(patterns)('looked at between the copy and the truncation (%s)', async (pattern) => {
  const tail = await tailOf(10, { paths: [pattern] });
  tail.append('app.log', numbered(10, 10).text);
  copyFileSync(tail.path('app.log'), tail.path('app.log.1'));
  await tail.scan();
  tail.append('app.log', numbered(20, 5).text);
  await tail.scan();
  truncateSync(tail.path('app.log'));
  tail.append('app.log', numbered(25, 5).text);
  expect(await tail.settled()).toEqual(numbered(0, 30).lines);
});

test('a copy that nobody truncates after: never read, also when the original goes', async () => {
  const tail = await tailOf(10, { paths: ['app.log*'] });
  copyFileSync(tail.path('app.log'), tail.path('app.log.bak'));
  await tail.scan();
  tail.append('app.log', numbered(10, 5).text);
  await tail.scan();
  await tail.restart();
  await tail.scan();
  tail.remove('app.log');
  expect(await tail.settled()).toEqual(numbered(0, 15).lines);
});

test('several copies between two scans, in order', async () => {
  const tail = await tailOf(10);
  for (let n = 0; n < 4; n++) {
    tail.append('app.log', numbered(10 + 10 * n, 10).text);
    for (let k = 3; k > 0; k--)
      if (tail.exists(`app.log.${k}`)) tail.rename(`app.log.${k}`, `app.log.${k + 1}`);
    tail.copyTruncate('app.log', 'app.log.1');
  }
  tail.append('app.log', numbered(50, 1).text);
  expect(await tail.scanned()).toEqual(numbered(0, 51).lines);
});

test('the copy is out of reach: the loss is counted', async () => {
  const tail = await tailOf(10);
  const unread = numbered(10, 90).text;
  tail.append('app.log', unread);
  await tail.tailer.discover();
  tail.truncate('app.log');
  await tail.scan();
  tail.append('app.log', numbered(500, 1).text);
  tail.clock.advance(1000);
  expect(await tail.scanned()).toEqual([...numbered(0, 10).lines, ...numbered(500, 1).lines]);
  expect(tail.recorder.skips).toEqual([{ reason: 'truncated', bytes: unread.length }]);
});

test('overwritten in place: the old rotated file becomes the copy', async () => {
  const tail = await tailOf(10, { paths: ['app.log*'] });
  tail.copyTruncate('app.log', 'app.log.1');
  tail.append('app.log', numbered(10, 10).text);
  await tail.scan();
  tail.append('app.log', numbered(20, 10).text);
  tail.copyTruncate('app.log', 'app.log.1');
  tail.append('app.log', numbered(30, 3).text);
  expect(await tail.settled()).toEqual(numbered(0, 33).lines);
});

test('a writer that does not append leaves a hole of 100 MB', async () => {
  const tail = createTail();
  const fd = openSync(tail.path('app.log'), 'w');
  const holeBytes = 100 * 1024 * 1024;
  writeSync(fd, numbered(0, 10).text, 0);
  await tail.scan();
  ftruncateSync(fd, 0);
  writeSync(fd, numbered(10, 10).text, holeBytes);
  expect(await tail.scanned()).toEqual(numbered(0, 20).lines);
  expect(tail.recorder.skips.reduce((sum, { bytes }) => sum + bytes, 0)).toBe(holeBytes);
});
