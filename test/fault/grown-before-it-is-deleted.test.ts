import { expect, test } from 'vitest';
import { type Disk, systemDisk } from '../../src/sources/logs/discovery/disk.ts';
import { createTail, numbered } from '../tail.ts';

test('a file that was last seen while another one was looked for, and is deleted before it is read: what it had grown by counts as skipped', async () => {
  let isLookedFor = false;
  const disk: Disk = {
    ...systemDisk,
    stat(path) {
      if (!isLookedFor) return systemDisk.stat(path);
      // The directory is looked up before its files are searched for an inode.
      if (path === tail.root && tail.exists('grown.log')) tail.append('grown.log', unread.text);
      const stat = systemDisk.stat(path);
      if (path === tail.path('grown.log') && stat && stat.size > read.text.length) tail.remove('grown.log');
      return stat;
    },
  };
  const tail = createTail({ paths: ['*.log'], disk, maxOpenFiles: 1 });
  const [read, unread] = [numbered(0, 30), numbered(30, 3)];
  tail.create('gone.log', 'gone\n');
  tail.create('grown.log', read.text);
  tail.create('open.log', 'open\n');
  await tail.scan();
  tail.append('open.log', 'is open\n');
  await tail.tailer.poll();
  tail.remove('gone.log');
  isLookedFor = true;
  await tail.settle();
  await tail.settle();
  expect(tail.exists('grown.log')).toBe(false);
  expect(tail.recorder.lines.sort()).toEqual([...read.lines, 'gone', 'is open', 'open'].sort());
  expect(tail.recorder.skips).toEqual([{ reason: 'vanished', bytes: unread.text.length }]);
});
