import { expect, test } from 'vitest';
import { type Disk, systemDisk } from '../../src/sources/logs/discovery/disk.ts';
import { createTail, numbered } from '../tail.ts';

/** A disk on which only this many files can be open. */
function limited(limit: number): Disk & { peak(): number; opened(): number } {
  const open = new Set<number>();
  let peak = 0;
  let opened = 0;
  return {
    ...systemDisk,
    peak: () => peak,
    opened: () => opened,
    open(path) {
      opened++;
      if (open.size >= limit)
        throw Object.assign(new Error('EMFILE: too many open files'), { code: 'EMFILE' });
      const fd = systemDisk.open(path);
      open.add(fd);
      peak = Math.max(peak, open.size);
      return fd;
    },
    close(fd) {
      open.delete(fd);
      systemDisk.close(fd);
    },
  };
}

test.each([
  ['the system allows 20', 20, 512],
  ['the agent allows itself 20', 1000, 20],
])('500 files, and %s: all are read, and followed', async (_, systemLimit, maxOpenFiles) => {
  const disk = limited(systemLimit);
  const tail = createTail({ paths: ['*.log'], disk, maxOpenFiles });
  const count = 500;
  for (let n = 0; n < count; n++) tail.create(`f${n}.log`, numbered(n * 10, 3).text);
  await tail.scan();
  for (let n = 0; n < count; n++) tail.append(`f${n}.log`, numbered(n * 10 + 3, 2).text);
  await tail.scan();
  const expected = Array.from({ length: count }, (_, n) => numbered(n * 10, 5).lines).flat();
  expect([...tail.recorder.lines].sort()).toEqual(expected.sort());
  expect(disk.peak()).toBeLessThanOrEqual(21);
  await tail.scan();
  const before = disk.opened();
  await tail.scan();
  expect(disk.opened() - before).toBe(0);
});

test('renamed while it was not open: found by its inode', async () => {
  const tail = createTail({ paths: ['*.log'], maxOpenFiles: 1 });
  for (const name of ['a', 'b', 'c']) tail.create(`${name}.log`, `${name}1\n`);
  await tail.scan();
  for (const name of ['a', 'b', 'c']) {
    tail.append(`${name}.log`, `${name}2\n`);
    tail.rename(`${name}.log`, `${name}.log.1`);
    tail.create(`${name}.log`, `${name}3\n`);
  }
  await tail.settle();
  for (const name of ['a', 'b', 'c']) {
    const own = tail.recorder.lines.filter((line) => line.startsWith(name));
    expect(own).toEqual([`${name}1`, `${name}2`, `${name}3`]);
  }
});
