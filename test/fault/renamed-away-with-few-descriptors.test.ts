import { mkdirSync } from 'node:fs';
import { expect, test } from 'vitest';
import { createTail, numbered } from '../tail.ts';

// Once it is closed, a file in a directory that no scan lists cannot be found again.
test('a log that was moved to another directory is read to its end though only one file may be open', async () => {
  const tail = createTail({ paths: ['*.log'], maxOpenFiles: 1 });
  mkdirSync(tail.path('old'));
  const writer = tail.writer('app.log');
  writer.write(numbered(0, 10).text);
  await tail.scan();
  writer.write(numbered(10, 10).text);
  tail.rename('app.log', 'old/app.log.1');
  tail.create('app.log', numbered(100, 10).text);
  await tail.scan();
  // The writer opens its log again a little later.
  writer.write(numbered(20, 10).text);
  writer.close();
  await tail.settle();
  expect(tail.recorder.lines.toSorted()).toEqual([...numbered(0, 30).lines, ...numbered(100, 10).lines]);
  expect(tail.recorder.skips).toEqual([]);
});
