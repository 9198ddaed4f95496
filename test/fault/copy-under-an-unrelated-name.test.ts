import { appendFileSync, readFileSync } from 'node:fs';
import { expect, test } from 'vitest';
import { createTail, numbered } from '../tail.ts';

/** The copy is empty when it is first seen, as `cp` creates it. */
test('a copy that was empty at first is no file of its own, though no more than one file may be open', async () => {
  const tail = createTail({ paths: ['*.log'], maxOpenFiles: 1 });
  tail.create('app.log', numbered(0, 60).text);
  await tail.look();
  tail.append('app.log', numbered(60, 10).text);
  tail.create('saved.log', '');
  await tail.tailer.discover();
  appendFileSync(tail.path('saved.log'), readFileSync(tail.path('app.log')));
  await tail.tailer.glance();
  tail.truncate('app.log');
  tail.append('app.log', numbered(70, 5).text);
  await tail.look();
  await tail.settle();
  expect(tail.recorder.lines.toSorted()).toEqual(numbered(0, 75).lines);
});
