import { expect, test } from 'vitest';
import { createTail, numbered, tailOf } from '../tail.ts';

test('renamed and created while idle', async () => {
  const tail = await tailOf(10);
  tail.rename('app.log', 'app.log.1');
  await tail.scan();
  tail.create('app.log', numbered(10, 10).text);
  expect(await tail.scanned()).toEqual(numbered(0, 20).lines);
});

test('renamed with unread lines, which count before those of the new file', async () => {
  const tail = await tailOf(10);
  tail.append('app.log', numbered(10, 5).text);
  tail.rename('app.log', 'app.log.1');
  tail.create('app.log', numbered(15, 5).text);
  expect(await tail.scanned()).toEqual(numbered(0, 20).lines);
});

test('the writer keeps the old file open and writes to both', async () => {
  const tail = createTail();
  const old = tail.writer('app.log');
  old.write(numbered(0, 10).text);
  await tail.scan();
  tail.rename('app.log', 'app.log.1');
  const young = tail.writer('app.log');
  for (let second = 0; second < 5; second++) {
    old.write(numbered(100 + second, 1).text);
    young.write(numbered(200 + second, 1).text);
    tail.clock.advance(1000);
    await tail.scan();
  }
  const of = (hundred: string) => tail.recorder.lines.filter((line) => line.startsWith(`seq=0000${hundred}`));
  expect(of('1')).toEqual(numbered(100, 5).lines);
  expect(of('2')).toEqual(numbered(200, 5).lines);
  expect(tail.recorder.lines).toHaveLength(20);
});

test('the writer comes back to the old file long after the rotation', async () => {
  const tail = createTail();
  const old = tail.writer('app.log');
  old.write(numbered(0, 3).text);
  await tail.scan();
  tail.rename('app.log', 'app.log.1');
  tail.create('app.log', numbered(50, 1).text);
  await tail.settle();
  old.write(numbered(3, 1).text);
  expect(await tail.scanned()).toEqual([
    ...numbered(0, 3).lines,
    ...numbered(50, 1).lines,
    ...numbered(3, 1).lines,
  ]);
});

test.each([1, 1000, 60_000])('the path is missing for %i ms', async (gapMs) => {
  const tail = await tailOf(10);
  tail.append('app.log', numbered(10, 2).text);
  tail.rename('app.log', 'app.log.1');
  tail.clock.advance(gapMs);
  await tail.scan();
  await tail.scan();
  tail.create('app.log', numbered(12, 3).text);
  expect(await tail.scanned()).toEqual(numbered(0, 15).lines);
});

test('the rotated name matches the pattern and moves on: nothing is read twice', async () => {
  const tail = createTail({ paths: ['app.log*'] });
  let at = 0;
  for (let round = 0; round < 6; round++) {
    for (let n = 4; n > 0; n--)
      if (tail.exists(`app.log.${n}`)) tail.rename(`app.log.${n}`, `app.log.${n + 1}`);
    if (tail.exists('app.log')) tail.rename('app.log', 'app.log.1');
    tail.create('app.log', numbered(at, 7).text);
    at += 7;
    await tail.scan();
  }
  expect(await tail.settled()).toEqual(numbered(0, at).lines);
});

test.each(['old/app.log', 'app-2026-01-01.log', 'saved'])(
  'the rotated name %s is outside the pattern',
  async (name) => {
    const tail = createTail({ paths: ['app.log'] });
    tail.create('old/keep', '');
    tail.create('app.log', numbered(0, 10).text);
    await tail.scan();
    tail.append('app.log', numbered(10, 10).text);
    tail.rename('app.log', name);
    tail.create('app.log', numbered(20, 10).text);
    await tail.scan();
    tail.append(name, numbered(90, 1).text);
    expect(await tail.scanned()).toEqual([...numbered(0, 30).lines, ...numbered(90, 1).lines]);
  },
);

test.each(['app.log', 'app.log*'])('several rotations between two scans (%s)', async (pattern) => {
  for (const rotations of [2, 5]) {
    const tail = await tailOf(10, { paths: [pattern] });
    tail.append('app.log', numbered(10, 10).text);
    for (let n = 0; n < rotations; n++) {
      for (let k = n; k > 0; k--) tail.rename(`app.log.${k}`, `app.log.${k + 1}`);
      tail.rename('app.log', 'app.log.1');
      tail.create('app.log', numbered(20 + n * 10, 10).text);
    }
    expect(await tail.scanned()).toEqual(numbered(0, 20 + 10 * rotations).lines);
  }
});

test('generations that were there before the first scan are left alone', async () => {
  const tail = createTail();
  tail.create('app.log.2', numbered(0, 5).text);
  tail.create('app.log.1', numbered(5, 5).text);
  tail.create('app.log', numbered(10, 5).text);
  await tail.scan();
  tail.rename('app.log.2', 'app.log.3');
  tail.rename('app.log.1', 'app.log.2');
  tail.rename('app.log', 'app.log.1');
  tail.create('app.log', numbered(15, 5).text);
  expect(await tail.scanned()).toEqual(numbered(10, 10).lines);
});
