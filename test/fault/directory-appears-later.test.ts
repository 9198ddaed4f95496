import { expect, test } from 'vitest';
import { type FileStat, systemDisk } from '../../src/sources/logs/discovery/disk.ts';
import { createTail, numbered } from '../tail.ts';

test.each(['logs/app.log', 'logs/*/app.log', 'logs/**/*.log', '*/x/app.log'])('for %s', async (pattern) => {
  const tail = createTail({ paths: [pattern], startAt: 'end' });
  await tail.scan();
  await tail.scan();
  const name = pattern === 'logs/app.log' ? pattern : 'logs/x/app.log';
  tail.create(name, numbered(0, 5).text);
  expect(await tail.scanned()).toEqual(numbered(0, 5).lines);
  tail.append(name, numbered(5, 1).text);
  tail.remove('logs');
  await tail.scan();
  tail.create(name, numbered(6, 5).text);
  expect(await tail.settled()).toEqual(numbered(0, 11).lines);
});

test('a mount that comes after the agent: positions wait for it', async () => {
  const tail = createTail({ paths: ['mnt/*.log'] });
  tail.create('mnt/app.log', numbered(0, 5).text);
  await tail.scan();
  await tail.restart();
  tail.rename('mnt', 'unmounted');
  for (let minute = 0; minute < 60; minute++) {
    tail.clock.advance(60_000);
    await tail.scan();
  }
  tail.create('mnt/.empty', '');
  tail.remove('mnt');
  tail.rename('unmounted', 'mnt');
  tail.append('mnt/app.log', numbered(5, 5).text);
  expect(await tail.settled()).toEqual(numbered(0, 10).lines);
});

test('a mount over the directory hides the files for a while', async () => {
  const tail = createTail({ paths: ['mnt/*.log'] });
  tail.create('mnt/app.log', numbered(0, 5).text);
  await tail.scan();
  const elsewhere = (path: string) => path.replace(tail.path('mnt'), tail.path('over'));
  const other = (stat: FileStat | undefined) => stat && { ...stat, dev: stat.dev + 1n };
  tail.create('over/new.log', numbered(50, 5).text);
  await tail.restart({
    disk: {
      ...systemDisk,
      list: (path) => systemDisk.list(elsewhere(path)),
      stat: (path) => other(systemDisk.stat(elsewhere(path))),
      fstat: (fd) => other(systemDisk.fstat(fd))!,
      real: elsewhere,
      open: (path) => systemDisk.open(elsewhere(path)),
    },
  });
  await tail.settle();
  await tail.restart({ disk: systemDisk });
  tail.append('mnt/app.log', numbered(5, 5).text);
  expect(await tail.settled()).toEqual([
    ...numbered(0, 5).lines,
    ...numbered(50, 5).lines,
    ...numbered(5, 5).lines,
  ]);
});

test('a mount that never comes is forgotten after a day', async () => {
  const tail = createTail({ paths: ['mnt/*.log'] });
  tail.create('mnt/app.log', numbered(0, 5).text);
  await tail.scan();
  await tail.restart();
  tail.remove('mnt');
  await tail.scan();
  expect(tail.tailer.files()).toHaveLength(1);
  tail.clock.advance(25 * 3_600_000);
  await tail.scan();
  expect(tail.tailer.files()).toEqual([]);
});
