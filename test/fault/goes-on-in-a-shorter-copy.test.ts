import { copyFileSync } from 'node:fs';
import { expect, test } from 'vitest';
import { numbered, tailOf } from '../tail.ts';

/** What is written between the copy and the truncation is lost by copytruncate. */
test('a generation that was larger than its copy is found in it once, and counted as rewritten once', async () => {
  const tail = await tailOf(60, { paths: ['app.log*'], maxOpenFiles: 1 });
  tail.append('app.log', numbered(60, 20).text);
  copyFileSync(tail.path('app.log'), tail.path('app.log.1'));
  tail.append('app.log', numbered(80, 20).text);
  await tail.tailer.discover();
  tail.truncate('app.log');
  tail.append('app.log', numbered(100, 3).text);
  // Each followed file uses the only descriptor.
  for (let n = 0; n < 3; n++) {
    tail.create(`app.log-2026010${n}`, numbered(1000 + 10 * n, 10).text);
    await tail.tailer.discover();
  }
  await tail.settle();
  expect(tail.logged.filter(({ msg }) => msg === 'file was rewritten')).toHaveLength(1);
  const expected = [numbered(0, 80), numbered(100, 3), numbered(1000, 30)].flatMap(({ lines }) => lines);
  expect(tail.recorder.lines.toSorted()).toEqual(expected);
  expect(tail.recorder.skips).toEqual([{ reason: 'truncated', bytes: numbered(80, 20).text.length }]);
});
