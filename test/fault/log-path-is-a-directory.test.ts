import { mkdirSync } from 'node:fs';
import { expect, test } from 'vitest';
import { createTail, numbered } from '../tail.ts';

test('a directory that is named as a log path is one warning', async () => {
  const tail = createTail({ paths: ['app.log', 'app.log/*', 'other.log'] });
  mkdirSync(tail.path('app.log'));
  tail.create('app.log/inner', 'line\n');
  tail.create('other.log', 'other\n');
  for (let n = 0; n < 5; n++) await tail.scan();
  expect(tail.recorder.lines.toSorted()).toEqual(['line', 'other']);
  expect(tail.logged.filter(({ level }) => level === 'warn').map(({ msg }) => msg)).toEqual([
    'not a regular file, not followed',
  ]);
});

test('gzip files that a pattern names are read; other compressed files are listed', async () => {
  const tail = createTail({ paths: ['old/*.log.gz', '*.log*'] });
  tail.create('old/one.log', numbered(0, 5).text);
  tail.gzip('old/one.log');
  tail.create('two.log.zst', 'not read\n');
  tail.create('three.log', numbered(50, 5).text);
  tail.gzip('three.log');
  await tail.scan();
  expect(await tail.settled()).toEqual(numbered(0, 5).lines);
  const names = (paths: readonly { path: string }[]) =>
    paths.map(({ path }) => path.slice(tail.root.length + 1)).sort();
  expect(names(tail.tailer.passedOver)).toEqual(['three.log.gz', 'two.log.zst']);
  await tail.restart();
  expect(await tail.settled()).toEqual(numbered(0, 5).lines);
});
