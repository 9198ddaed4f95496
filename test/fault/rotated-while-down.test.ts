import { copyFileSync, truncateSync } from 'node:fs';
import { expect, test } from 'vitest';
import { type FileStat, systemDisk } from '../../src/sources/logs/discovery/disk.ts';
import { createTail, numbered, type Tail, tailOf } from '../tail.ts';

function rotate(tail: Tail, generation: number): void {
  for (let n = generation; n > 0; n--) {
    if (tail.exists(`app.log.${n}`)) tail.rename(`app.log.${n}`, `app.log.${n + 1}`);
  }
  tail.rename('app.log', 'app.log.1');
}

const patterns = [['app.log'], ['app.log*']];
const cases = patterns.flatMap(([pattern]) => [0, 1, 3].map((rotations) => [rotations, pattern!] as const));

test.each(cases)(
  'by rename, %i times (%s): the old rest, then what came between, then the new',
  async (times, pattern) => {
    const tail = createTail({ paths: [pattern] });
    tail.create('app.log.1', numbered(90_000, 3).text);
    tail.create('app.log', numbered(0, 20).text);
    await tail.scan();
    tail.taken();
    tail.append('app.log', numbered(20, 5).text);
    await tail.restart();
    for (let n = 0; n < times; n++) {
      rotate(tail, 4);
      tail.create('app.log', numbered(25 + 5 * n, 5).text);
    }
    await tail.scan();
    await tail.settle();
    expect(tail.taken()).toEqual(numbered(20, 5 + 5 * times).lines);
  },
);

test.each(patterns)('by copytruncate (%s), then smaller than the offset', async (pattern) => {
  const tail = await tailOf(20, { paths: [pattern] });
  await tail.restart();
  tail.append('app.log', numbered(20, 5).text);
  tail.copyTruncate('app.log', 'app.log.1');
  tail.append('app.log', numbered(25, 2).text);
  expect(await tail.settled()).toEqual(numbered(0, 27).lines);
});

test.each(patterns)('by copytruncate (%s), then larger than the offset', async (pattern) => {
  const tail = await tailOf(20, { paths: [pattern] });
  await tail.restart();
  tail.append('app.log', numbered(20, 5).text);
  tail.copyTruncate('app.log', 'app.log-20260101');
  tail.append('app.log', numbered(25, 200).text);
  expect(await tail.settled()).toEqual(numbered(0, 225).lines);
});

test('copied, and truncated after the restart', async () => {
  const tail = await tailOf(20, { paths: ['app.log*'] });
  copyFileSync(tail.path('app.log'), tail.path('app.log.1'));
  await tail.restart();
  await tail.scan();
  truncateSync(tail.path('app.log'));
  tail.append('app.log', numbered(20, 1).text);
  expect(await tail.settled()).toEqual(numbered(0, 21).lines);
});

test('the device number changed with the machine: nothing is read twice', async () => {
  const tail = await tailOf(20, { paths: ['app.log'] });
  tail.append('app.log', numbered(20, 5).text);
  const other = <T extends FileStat | undefined>(stat: T): T => stat && { ...stat, dev: stat.dev + 1n };
  await tail.restart({
    disk: {
      ...systemDisk,
      stat: (path) => other(systemDisk.stat(path)),
      fstat: (fd) => other(systemDisk.fstat(fd)),
    },
  });
  expect(await tail.settled()).toEqual(numbered(0, 25).lines);
});

test('a generation was deleted, and a younger and shorter one begins with the same banner', async () => {
  const tail = createTail({ paths: ['app.log*'] });
  const banner = '='.repeat(1400);
  tail.create('app.log', `${banner}\n${numbered(0, 60).text}`);
  await tail.scan();
  tail.save();
  tail.remove('app.log');
  tail.create('app.log-20260002', `${banner}\n${numbered(60, 3).text}`);
  tail.create('app.log', `${banner}\n${numbered(63, 5).text}`);
  await tail.kill();
  expect(await tail.settled()).toEqual([
    ...[banner, ...numbered(0, 60).lines],
    ...[banner, ...numbered(60, 3).lines],
    ...[banner, ...numbered(63, 5).lines],
  ]);
});

test('rotated files that were seen without their log, and not read, are renamed', async () => {
  const tail = createTail({ paths: ['app.log*'] });
  tail.create('app.log.4', numbered(0, 40).text);
  tail.create('app.log.3', numbered(100, 40).text);
  await tail.tailer.discover();
  await tail.restart();
  tail.rename('app.log.4', 'app.log.5');
  tail.rename('app.log.3', 'app.log.4');
  await tail.settle();
  const expected = [...numbered(0, 40).lines, ...numbered(100, 40).lines];
  expect(tail.recorder.lines.toSorted()).toEqual(expected);
  expect(tail.recorder.skips).toEqual([]);
});
