import { expect, test } from 'vitest';
import { createTail, numbered, tailOf } from '../tail.ts';

test('renamed over with the same content: nothing is read twice', async () => {
  const tail = await tailOf(20);
  tail.create('app.log.tmp', numbered(0, 25).text);
  tail.rename('app.log.tmp', 'app.log');
  expect(await tail.settled()).toEqual(numbered(0, 25).lines);
});

test('renamed over with new content: read from its beginning', async () => {
  const tail = await tailOf(20);
  tail.create('new', numbered(100, 20).text);
  tail.rename('new', 'app.log');
  expect(await tail.settled()).toEqual([...numbered(0, 20).lines, ...numbered(100, 20).lines]);
});

test('renamed over while the agent is down, same content', async () => {
  const tail = await tailOf(20);
  await tail.restart();
  tail.create('new', numbered(0, 30).text);
  tail.rename('new', 'app.log');
  expect(await tail.settled()).toEqual(numbered(0, 30).lines);
});

test('deleted and made anew with the same name and size, within one scan', async () => {
  const tail = await tailOf(20);
  for (let round = 1; round <= 4; round++) {
    tail.remove('app.log');
    tail.create('app.log', numbered(round * 23 * 100, 20).text);
    await tail.scan();
  }
  expect(tail.recorder.lines).toEqual(
    [0, 1, 2, 3, 4].flatMap((round) => numbered(round * 23 * 100, 20).lines),
  );
});

test('deleted with unread lines, made anew', async () => {
  const tail = await tailOf(20);
  tail.append('app.log', numbered(20, 5).text);
  tail.remove('app.log');
  tail.create('app.log', numbered(25, 5).text);
  expect(await tail.scanned()).toEqual(numbered(0, 30).lines);
});

test('two files with equal content under unrelated names are two files', async () => {
  const tail = createTail({ paths: ['*.log'] });
  tail.create('one.log', numbered(0, 20).text);
  await tail.scan();
  tail.create('two.log', numbered(0, 20).text);
  await tail.scan();
  // This might be the first half of copytruncate, so the file is not read until it has been quiet for a while.
  expect(await tail.settled()).toEqual([...numbered(0, 20).lines, ...numbered(0, 20).lines]);
});
