import { statSync } from 'node:fs';
import { expect, test } from 'vitest';
import { type Disk, type FileStat, systemDisk } from '../../src/sources/logs/discovery/disk.ts';
import { createRecorder, createTail, numbered, type Recorder, tailOf } from '../tail.ts';

/** A disk on which files have other inodes than the real ones. */
function withInodes(inodeOf: (stat: FileStat) => bigint): Disk {
  const changed = (stat: FileStat): FileStat => ({ ...stat, ino: inodeOf(stat) });
  return {
    ...systemDisk,
    stat: (path) => {
      const stat = systemDisk.stat(path);
      return stat && changed(stat);
    },
    fstat: (fd) => changed(systemDisk.fstat(fd)),
  };
}

/** A disk on which every file has the inode number 7, as if each deletion freed it for the next file. */
const oneInode = withInodes(({ kind, ino }) => (kind === 'file' ? 7n : ino));

test.each([
  ['smaller', 5],
  ['the same size', 20],
  ['larger', 90],
])('by another file under the same name (%s) while the agent is down', async (_, count) => {
  const tail = await tailOf(20, { disk: oneInode });
  await tail.restart();
  tail.remove('app.log');
  tail.create('app.log', numbered(2300, count).text);
  expect(await tail.scanned()).toEqual([...numbered(0, 20).lines, ...numbered(2300, count).lines]);
});

test('by a file in the same directory that no pattern leads to: it is not read', async () => {
  const tail = await tailOf(20, { disk: oneInode });
  await tail.restart();
  tail.remove('app.log');
  tail.create('secret.txt', numbered(500, 50).text);
  expect(await tail.settled()).toEqual(numbered(0, 20).lines);
});

test('of an archive that was read, by a plain file with the same bytes before that offset', async () => {
  const tail = createTail({ paths: ['app.log*', '*.gz'], disk: oneInode });
  const sameEnd = '='.repeat(100);
  const archived = [...Array.from({ length: 40 }, (_, n) => `archived ${n}`.padEnd(20)), sameEnd];
  const plain = [...Array.from({ length: 40 }, (_, n) => `plain ${n}`.padEnd(20)), sameEnd, 'more'];
  tail.create('app.log.1', `${archived.join('\n')}\n`);
  tail.gzip('app.log.1');
  await tail.settle();
  tail.remove('app.log.1.gz');
  tail.create('app.log.2', `${plain.join('\n')}\n`);
  expect(await tail.settled()).toEqual([...archived, ...plain]);
});

test('by the next file of another log, which begins with the same banner', async () => {
  const banner = '='.repeat(1600);
  const given = new Map<bigint, bigint>();
  const recorders = new Map<string, Recorder>();
  const tail = createTail({
    paths: ['*.log*'],
    disk: withInodes(({ ino }) => given.get(ino) ?? ino),
    open: (file) => {
      const recorder = recorders.get(file.path) ?? createRecorder();
      recorders.set(file.path, recorder);
      return recorder.open(file);
    },
  });
  const linesOf = (name: string) => recorders.get(tail.path(name))?.lines;
  const inodeOf = (name: string) => BigInt(statSync(tail.path(name)).ino);
  tail.create('app.log', `${banner}\n`);
  tail.create('other.log', `${banner}\n${numbered(0, 10).text}`);
  await tail.scan();
  await tail.restart();
  tail.append('app.log', numbered(100, 10).text);
  const freed = inodeOf('app.log');
  tail.rename('other.log', 'other.log-20260101');
  tail.create('other.log', `${banner}\n${numbered(20, 10).text}`);
  given.set(inodeOf('other.log'), freed);
  tail.rename('app.log', 'app.log-20260101');
  given.set(inodeOf('app.log-20260101'), 1n);
  tail.gzip('app.log-20260101');
  await tail.settle();
  expect(linesOf('app.log')).toEqual([banner, ...numbered(100, 10).lines]);
  expect(linesOf('other.log')).toEqual([banner, ...numbered(0, 10).lines, banner, ...numbered(20, 10).lines]);
});

test('by the next file of the same log, which begins with the same banner and is smaller', async () => {
  const banner = '='.repeat(1600);
  const given = new Map<bigint, bigint>();
  const tail = createTail({
    paths: ['*.log*'],
    maxOpenFiles: 1,
    disk: withInodes(({ ino }) => given.get(ino) ?? ino),
  });
  const inodeOf = (name: string) => BigInt(statSync(tail.path(name)).ino);
  tail.create('app.log', `${banner}\n`);
  tail.create('z.log', numbered(900, 5).text);
  await tail.scan();
  tail.append('app.log', numbered(0, 20).text);
  tail.append('z.log', numbered(905, 5).text);
  await tail.tailer.discover();
  const freed = inodeOf('app.log');
  tail.gzip('app.log');
  tail.rename('app.log.gz', 'app.log-20260101.gz');
  given.set(inodeOf('app.log-20260101.gz'), 1n);
  tail.create('app.log', `${banner}\n${numbered(20, 10).text}`);
  given.set(inodeOf('app.log'), freed);
  await tail.tailer.poll();
  await tail.settle();
  const expected = [...numbered(0, 30).lines, ...numbered(900, 10).lines, banner, banner];
  expect(tail.recorder.lines.toSorted()).toEqual(expected.toSorted());
  expect(tail.recorder.skips).toEqual([]);
});

test('of a rotated file that was read, by a smaller one that begins with the same banner', async () => {
  const banner = '='.repeat(1600);
  const given = new Map<bigint, bigint>();
  const tail = createTail({
    paths: ['app.log*'],
    disk: withInodes(({ ino }) => given.get(ino) ?? ino),
  });
  const inodeOf = (name: string) => BigInt(statSync(tail.path(name)).ino);
  tail.create('app.log', `${banner}\n${numbered(0, 20).text}`);
  await tail.scan();
  tail.rename('app.log', 'app.log-20260101');
  tail.create('app.log', `${banner}\n${numbered(20, 20).text}`);
  await tail.settle();
  const freed = inodeOf('app.log-20260101');
  tail.remove('app.log-20260101');
  tail.rename('app.log', 'app.log-20260102');
  tail.create('app.log-20260103', `${banner}\n${numbered(40, 1).text}`);
  given.set(inodeOf('app.log-20260103'), freed);
  tail.create('app.log', `${banner}\n${numbered(50, 20).text}`);
  await tail.settle();
  const wanted = [...numbered(0, 41).lines, ...numbered(50, 20).lines];
  expect(tail.recorder.lines.filter((line) => line !== banner).toSorted()).toEqual(wanted);
});

test.each([
  ['nothing', ''],
  ['half a timestamp', '2026-01-01T0'],
  ['a timestamp', '2026-01-01T00:00:10Z'],
])('of a file of which %s was seen, by a copy of the generation before', async (_, seen) => {
  const given = new Map<bigint, bigint>();
  const tail = createTail({
    paths: ['app.log*'],
    disk: withInodes(({ ino }) => given.get(ino) ?? ino),
  });
  const inodeOf = (name: string) => BigInt(statSync(tail.path(name)).ino);
  const entries = (from: number) =>
    Array.from({ length: 10 }, (_, n) => `2026-01-01T00:00:${from + n}Z entry ${from + n}`);
  tail.create('app.log', `${entries(10).join('\n')}\n`);
  await tail.scan();
  tail.rename('app.log', 'app.log.1');
  tail.create('app.log', seen);
  await tail.scan();
  await tail.restart();
  const freed = inodeOf('app.log');
  tail.remove('app.log');
  tail.create('app.log', `${entries(30).join('\n')}\n`);
  given.set(inodeOf('app.log'), 1n);
  tail.create('app.log.2', `${entries(10).join('\n')}\n`);
  given.set(inodeOf('app.log.2'), freed);
  expect(await tail.settled()).toEqual([...entries(10), ...entries(30)]);
});

test('in earnest, as often as the file system does it', async () => {
  const tail = createTail({ paths: ['*.log'], maxOpenFiles: 1 });
  const expected: string[] = [];
  const inodes = new Set<number>();
  for (let round = 0; round < 40; round++) {
    const name = round % 3 ? 'a.log' : 'b.log';
    if (tail.exists(name)) tail.remove(name);
    const { text, lines } = numbered(round * 2300, 10 + (round % 5));
    tail.create(name, text);
    inodes.add(statSync(tail.path(name)).ino);
    expected.push(...lines);
    await tail.scan();
    await tail.restart();
  }
  expect(tail.recorder.lines).toEqual(expected);
  expect(inodes.size).toBeLessThan(40);
});

test('by the next file of the same log, which holds only the banner yet, while the agent is down', async () => {
  const banner = '='.repeat(100);
  const tail = createTail({ paths: ['app.log*'], disk: oneInode });
  tail.create('app.log', `${banner}\n${numbered(0, 20).text}`);
  await tail.scan();
  await tail.restart();
  tail.remove('app.log');
  tail.create('app.log', `${banner}\n`);
  expect(await tail.settled()).toEqual([banner, ...numbered(0, 20).lines, banner]);
});
