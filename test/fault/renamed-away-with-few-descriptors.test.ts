import { mkdirSync } from 'node:fs';
import { expect, test } from 'vitest';
import { systemDisk } from '../../src/sources/logs/discovery/disk.ts';
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
  expect((await tail.settled()).toSorted()).toEqual([...numbered(0, 30).lines, ...numbered(100, 10).lines]);
  expect(tail.recorder.skips).toEqual([]);
});

test('a scan looks each of many such files up a few times, however many others are opened', async () => {
  let looks = 0;
  const stat = (path: string) => {
    looks++;
    return systemDisk.stat(path);
  };
  const count = 200;
  const tail = createTail({ paths: ['*.log'], maxOpenFiles: count, disk: { ...systemDisk, stat } });
  mkdirSync(tail.path('old'));
  const names = Array.from({ length: count }, (_, n) => `app${n}.log`);
  for (const [n, name] of names.entries()) tail.create(name, numbered(10 * n, 5).text);
  await tail.scan();
  for (const [n, name] of names.entries()) {
    tail.append(name, numbered(10 * n + 5, 5).text);
    tail.rename(name, `old/${name}.1`);
    tail.create(name, numbered(10_000 + n, 1).text);
  }
  looks = 0;
  expect(await tail.scanned()).toHaveLength(11 * count);
  expect(looks).toBeLessThan(20 * count);
});
