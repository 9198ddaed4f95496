import { expect, test } from 'vitest';
import { type Disk, systemDisk } from '../../src/sources/logs/discovery/disk.ts';
import { createTail, numbered } from '../tail.ts';

test('a file that was looked up and not read is counted from its archive, and nothing counts as skipped', async () => {
  let beforeRead: (() => void) | undefined;
  const disk: Disk = {
    ...systemDisk,
    read(...args) {
      beforeRead?.();
      beforeRead = undefined;
      return systemDisk.read(...args);
    },
  };
  const tail = createTail({ paths: ['app.log*'], disk });
  tail.create('app.log', '');
  await tail.scan();
  tail.append('app.log', numbered(0, 30).text);
  beforeRead = tail.save;
  await tail.tailer.poll();
  expect(beforeRead).toBeUndefined();
  tail.gzip('app.log');
  await tail.kill();
  expect(await tail.settled()).toEqual(numbered(0, 30).lines);
  expect(tail.recorder.skips).toEqual([]);
});
