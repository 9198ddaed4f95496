import { mkdirSync, readFileSync, renameSync, rmSync, symlinkSync, unlinkSync, writeFileSync } from 'node:fs';
import { gzipSync } from 'node:zlib';
import { expect, test } from 'vitest';
import { createTail, numbered, tailOf } from '../tail.ts';

test('an archive of several members is read to its end, once', async () => {
  const tail = createTail({ paths: ['*.gz'] });
  const members = [numbered(0, 500), numbered(500, 500), numbered(1000, 7)];
  tail.create('all.log.gz', Buffer.concat(members.map(({ text }) => gzipSync(text))));
  await tail.settle();
  await tail.restart();
  expect(await tail.settled()).toEqual(numbered(0, 1007).lines);
});

test('a cut off archive is counted as far as it goes, and said once', async () => {
  const tail = createTail({ paths: ['*.gz'] });
  const packed = gzipSync(numbered(0, 20_000).text);
  tail.create('cut.log.gz', packed.subarray(0, packed.length - 100));
  for (let n = 0; n < 5; n++) await tail.settle();
  await tail.restart();
  await tail.settle();
  const { lines } = tail.recorder;
  expect(lines).toEqual(numbered(0, 20_000).lines.slice(0, lines.length));
  expect(tail.recorder.skips.map(({ reason }) => reason)).toEqual(['unreadable']);
});

test('names with spaces, newlines, quotes and wildcards', async () => {
  const names = ['a b.log', 'new\nline.log', 'qu\'o"te.log', 'star*[x].log', '-rf.log', 'ünï😀.log'];
  const tail = createTail({ paths: ['*.log*'] });
  for (const [n, name] of names.entries()) tail.create(name, numbered(n * 100, 10).text);
  await tail.scan();
  for (const [n, name] of names.entries()) {
    tail.append(name, numbered(n * 100 + 10, 5).text);
    tail.rename(name, `${name}.1`);
    tail.create(name, numbered(n * 100 + 15, 5).text);
  }
  await tail.restart();
  expect((await tail.settled()).toSorted()).toEqual(names.flatMap((_, n) => numbered(n * 100, 20).lines));
});

test('a loop of links ends, and the files beside it are read', async () => {
  const tail = createTail({ paths: ['**/*.log'] });
  mkdirSync(tail.path('in'));
  symlinkSync('..', tail.path('in/up'));
  symlinkSync('self.log', tail.path('self.log'));
  symlinkSync('b.log', tail.path('a.log'));
  symlinkSync('a.log', tail.path('b.log'));
  tail.create('in/app.log', numbered(0, 5).text);
  for (let n = 0; n < 3; n++) await tail.settle();
  expect(tail.recorder.lines).toEqual(numbered(0, 5).lines);
  expect(tail.logged.filter(({ level }) => level === 'warn').length).toBeLessThanOrEqual(3);
});

test('a directory that is replaced by a file, and back', async () => {
  const tail = createTail({ paths: ['in/app.log'] });
  mkdirSync(tail.path('in'));
  tail.create('in/app.log', numbered(0, 20).text);
  await tail.scan();
  tail.append('in/app.log', numbered(20, 5).text);
  renameSync(tail.path('in'), tail.path('out'));
  writeFileSync(tail.path('in'), 'no directory');
  await tail.settle();
  unlinkSync(tail.path('in'));
  renameSync(tail.path('out'), tail.path('in'));
  tail.append('in/app.log', numbered(25, 5).text);
  expect(await tail.settled()).toEqual(numbered(0, 30).lines);
  expect(tail.recorder.skips).toEqual([]);
});

test('a thousand generations in the time of one scan', async () => {
  const tail = await tailOf(3, { paths: ['app.log*'] });
  for (let n = 1; n <= 1000; n++) {
    tail.rename('app.log', `app.log-${20_200_000 + n}`);
    tail.create('app.log', numbered(n * 3, 3).text);
  }
  await tail.settle();
  await tail.restart();
  expect(await tail.settled()).toEqual(numbered(0, 3003).lines);
  expect(readFileSync(tail.path('app.log'), 'utf8')).toBe(numbered(3000, 3).text);
  rmSync(tail.path('app.log'));
});
