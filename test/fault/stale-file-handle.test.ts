import { expect, test } from 'vitest';
import { type Disk, systemDisk } from '../../src/sources/logs/discovery/disk.ts';
import { createTail, numbered, tailOf } from '../tail.ts';

const fault = (code: string) => Object.assign(new Error(`${code}: played`), { code });

/** A disk whose open files become stale when `spoil` is called. */
function spoilable(code: string): { disk: Disk; spoil(): void } {
  const spoiled = new Set<number>();
  const opened = new Set<number>();
  const check = (fd: number) => {
    if (spoiled.has(fd)) throw fault(code);
  };
  return {
    spoil: () => {
      for (const fd of opened) spoiled.add(fd);
    },
    disk: {
      ...systemDisk,
      open(path) {
        const fd = systemDisk.open(path);
        opened.add(fd);
        spoiled.delete(fd);
        return fd;
      },
      read(fd, ...rest) {
        check(fd);
        return systemDisk.read(fd, ...rest);
      },
      fstat(fd) {
        check(fd);
        return systemDisk.fstat(fd);
      },
    },
  };
}

test('ESTALE: opened anew, goes on where it was', async () => {
  const { disk, spoil } = spoilable('ESTALE');
  const tail = await tailOf(5, { disk });
  spoil();
  tail.append('app.log', numbered(5, 5).text);
  await tail.scan();
  expect(await tail.scanned()).toEqual(numbered(0, 10).lines);
});

test('ESTALE after a rename on the server: found under its new name', async () => {
  const { disk, spoil } = spoilable('ESTALE');
  const tail = await tailOf(5, { disk });
  spoil();
  tail.append('app.log', numbered(5, 5).text);
  tail.rename('app.log', 'app.log.1');
  tail.create('app.log', numbered(10, 5).text);
  expect(await tail.settled()).toEqual(numbered(0, 15).lines);
});

test('EIO: told once, tried again, nothing lost', async () => {
  let isBroken = true;
  const tail = createTail({
    disk: {
      ...systemDisk,
      read(...read) {
        if (isBroken) throw fault('EIO');
        return systemDisk.read(...read);
      },
    },
  });
  tail.create('app.log', numbered(0, 5).text);
  await tail.scan();
  expect(await tail.scanned()).toEqual([]);
  expect(tail.logged.filter(({ msg }) => msg === 'file cannot be read')).toHaveLength(1);
  isBroken = false;
  expect(await tail.scanned()).toEqual(numbered(0, 5).lines);
});

test('a silent event source: the regular scan finds what was written', async () => {
  const tail = await tailOf(5);
  for (let n = 0; n < 10; n++) {
    tail.append('app.log', numbered(5 + n, 1).text);
    await tail.scan();
  }
  expect(tail.recorder.lines).toEqual(numbered(0, 15).lines);
});
