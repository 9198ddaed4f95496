import { expect, test } from 'vitest';
import { createTail, numbered, type Tail } from '../tail.ts';

const ends: Record<string, (tail: Tail) => void> = {
  deleted: (tail) => tail.remove('app.log'),
  truncated: (tail) => tail.truncate('app.log'),
  'rotated away': (tail) => tail.rename('app.log', 'app.log.1'),
  'rotated away and compressed': (tail) => {
    tail.rename('app.log', 'app.log.1');
    tail.gzip('app.log.1');
  },
  'copied and truncated': (tail) => tail.copyTruncate('app.log', 'app.log.1'),
};

const cases = Object.keys(ends).flatMap((end) => [false, true].map((isDown) => [end, isDown] as const));

test.each(cases)('%s (while down: %s): the line counts once', async (end, isDown) => {
  const tail = createTail();
  tail.create('app.log', `${numbered(0, 3).text}unfinished`);
  expect(await tail.scanned()).toEqual(numbered(0, 3).lines);
  if (isDown) await tail.restart();
  ends[end]!(tail);
  await tail.settle();
  expect(await tail.settled()).toEqual([...numbered(0, 3).lines, 'unfinished']);
  expect(tail.recorder.skips).toEqual([]);
});

test('completed in the meantime: one line', async () => {
  const tail = createTail();
  tail.create('app.log', 'one, ');
  await tail.scan();
  tail.append('app.log', 'two, ');
  await tail.scan();
  await tail.restart();
  await tail.scan();
  tail.append('app.log', 'three\n');
  expect(await tail.settled()).toEqual(['one, two, three']);
});
