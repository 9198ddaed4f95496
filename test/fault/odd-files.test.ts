import { execFileSync } from 'node:child_process';
import { mkdirSync, symlinkSync, writeFileSync } from 'node:fs';
import { createServer } from 'node:net';
import { expect, onTestFinished, test } from 'vitest';
import { createTail } from '../tail.ts';

test('what is no regular file is skipped and told once', async () => {
  const tail = createTail({ paths: ['*.log'] });
  mkdirSync(tail.path('directory.log'));
  execFileSync('mkfifo', [tail.path('pipe.log')]);
  symlinkSync('/dev/null', tail.path('device.log'));
  symlinkSync('nowhere', tail.path('dangling.log'));
  symlinkSync('loop.log', tail.path('loop.log'));
  const server = createServer();
  onTestFinished(() => void server.close());
  await new Promise<void>((resolve) => server.listen(tail.path('socket.log'), resolve));
  tail.create('app.log', 'line\n');
  for (let n = 0; n < 3; n++) await tail.scan();
  expect(tail.recorder.lines).toEqual(['line']);
  const told = tail.logged
    .filter(({ level }) => level !== 'debug')
    .map(({ fields }) => String(fields?.path).slice(tail.root.length + 1));
  expect(told.sort()).toEqual(['device.log', 'directory.log', 'loop.log', 'pipe.log', 'socket.log']);
  tail.create('nowhere', 'no longer dangling\n');
  expect(await tail.scanned()).toEqual(['line', 'no longer dangling']);
});

test('names with a newline, bytes that are no UTF-8, 255 characters, characters of patterns', async () => {
  const tail = createTail({ paths: ['*.log', '[[]x].log'] });
  const latin = Buffer.concat([Buffer.from(`${tail.root}/caf`), Buffer.from([0xe9]), Buffer.from('.log')]);
  const other = Buffer.concat([Buffer.from(`${tail.root}/caf`), Buffer.from([0xe8]), Buffer.from('.log')]);
  writeFileSync(latin, 'latin\n');
  writeFileSync(other, 'other\n');
  tail.create('a\nb.log', 'newline\n');
  tail.create(`${'n'.repeat(251)}.log`, 'long\n');
  tail.create('[x].log', 'brackets\n');
  tail.create('日本語 😀.log', 'wide\n');
  await tail.scan();
  const expected = ['brackets', 'latin', 'long', 'newline', 'other', 'wide'];
  expect([...tail.recorder.lines].sort()).toEqual(expected);
  await tail.restart();
  writeFileSync(latin, 'more\n', { flag: 'a' });
  await tail.scan();
  expect([...tail.recorder.lines].sort()).toEqual([...expected, 'more'].sort());
});

test('directories linked in a circle', async () => {
  const tail = createTail({ paths: ['**/*.log', '*/*/*/*.log'] });
  tail.create('a/b/app.log', 'line\n');
  symlinkSync('..', tail.path('a/b/up'));
  symlinkSync(tail.root, tail.path('a/top'));
  await tail.scan();
  expect(await tail.scanned()).toEqual(['line']);
});

test('excluded files and compressed ones are not followed', async () => {
  const tail = createTail({ paths: ['**/*.log*'], exclude: ['*debug*', 'old/**'] });
  for (const name of ['a.log', 'a-debug.log', 'old/b.log', 'old/deep/c.log', 'x/d.log', 'e.log.zst']) {
    tail.create(name, `${name}\n`);
  }
  await tail.scan();
  expect([...tail.recorder.lines].sort()).toEqual(['a.log', 'x/d.log']);
});
