import { expect, test } from 'vitest';
import { createTail, numbered } from '../tail.ts';

/** Two logs with the same name, and a directory for rotated files of the first. */
const paths = ['a/app.log*', 'b/app.log*', 'old/app.log*'];

test('a rotated file that was read beside the other log is known when its own log appears', async () => {
  const tail = createTail({ paths });
  tail.create('a/app.log', numbered(100, 10).text);
  tail.create('b/app.log.1', numbered(0, 100).text);
  await tail.scan();
  tail.rename('b/app.log.1', 'b/app.log.2');
  tail.gzip('b/app.log.2');
  tail.create('b/app.log', numbered(110, 10).text);
  await tail.settle();
  expect((await tail.settled()).toSorted()).toEqual(numbered(0, 120).lines.toSorted());
  expect(tail.recorder.skips).toEqual([]);
});

test('rotated files of two logs of one name are read after a long time down, once their logs are there', async () => {
  const tail = createTail({ paths });
  tail.create('b/app.log.1', numbered(0, 50).text);
  await tail.scan();
  tail.rename('b/app.log.1', 'b/app.log.4');
  for (const n of [3, 2, 1]) tail.create(`b/app.log.${n}`, numbered(1000 - 100 * n, 20).text);
  for (const n of [3, 2, 1]) tail.create(`old/app.log.${n}`, numbered(2000 - 100 * n, 20).text);
  for (const name of ['b/app.log.3', 'b/app.log.1', 'old/app.log.2', 'old/app.log.1']) tail.gzip(name);
  await tail.restart();
  await tail.settle();
  tail.create('a/app.log', numbered(2000, 10).text);
  tail.create('b/app.log', numbered(1000, 10).text);
  await tail.settle();
  await tail.settle();
  const expected = [
    [0, 50],
    [700, 20],
    [800, 20],
    [900, 20],
    [1000, 10],
    [1700, 20],
    [1800, 20],
    [1900, 20],
    [2000, 10],
  ];
  expect(tail.recorder.lines.toSorted()).toEqual(
    expected.flatMap(([from, count]) => numbered(from!, count!).lines).toSorted(),
  );
});
