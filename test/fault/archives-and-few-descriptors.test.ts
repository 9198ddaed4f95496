import { gzipSync } from 'node:zlib';
import { expect, test } from 'vitest';
import { type Disk, systemDisk } from '../../src/sources/logs/discovery/disk.ts';
import { createTail, numbered } from '../tail.ts';

/** A disk that never reuses a descriptor, as on a system in which other programs open files, too. */
function withFreshDescriptors(): Disk {
  const fds = new Map<number, number>();
  let last = 1000;
  return {
    ...systemDisk,
    open(path) {
      fds.set(++last, systemDisk.open(path));
      return last;
    },
    close(fd) {
      systemDisk.close(fds.get(fd)!);
      fds.delete(fd);
    },
    fstat: (fd) => systemDisk.fstat(fds.get(fd)!),
    read(fd, buffer, start, length, position) {
      return systemDisk.read(fds.get(fd)!, buffer, start, length, position);
    },
  };
}

test('archives of two logs are read though only one file may be open', async () => {
  let reads = 0;
  const disk = withFreshDescriptors();
  const counting: Disk = {
    ...disk,
    read(...call) {
      if (++reads > 5000) throw new Error('the archives are read again and again');
      return disk.read(...call);
    },
  };
  const paths = ['app.log*.gz', 'other.log*.gz'];
  const tail = createTail({ paths, maxOpenFiles: 1, disk: counting });
  const [app, other] = [numbered(0, 20_000), numbered(20_000, 20_000)];
  tail.create('app.log.1.gz', gzipSync(app.text, { level: 0 }));
  tail.create('other.log.1.gz', gzipSync(other.text, { level: 0 }));
  expect((await tail.scanned()).toSorted()).toEqual([...app.lines, ...other.lines]);
});
