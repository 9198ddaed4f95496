import { expect, test } from 'vitest';
import { type Disk, systemDisk } from '../../src/sources/logs/discovery/disk.ts';
import { createTail } from '../tail.ts';

/** The lines begin with the same 16 bytes, as lines with timestamps do. */
const line = (n: number) => `2026-01-01T00:00:${10 + n} entry ${n}`;

test('a file that begins like one that cannot be opened is no copy of it', async () => {
  let opened = 0;
  let isRenamed = true;
  const disk: Disk = {
    ...systemDisk,
    open(path) {
      if (path.endsWith('/app.log') && ++opened > 1 && isRenamed)
        throw Object.assign(new Error('ENOENT'), { code: 'ENOENT' });
      return systemDisk.open(path);
    },
  };
  const tail = createTail({ paths: ['app.log*'], maxOpenFiles: 1, disk });
  tail.create('app.log', line(3).slice(0, 20));
  tail.create('app.log-20260001', 'a generation without timestamps\n');
  tail.create('app.log-20260002', `${line(2)}\n`);
  await tail.tailer.discover();
  isRenamed = false;
  await tail.scan();
  tail.append('app.log', `${line(3).slice(20)}\n`);
  await tail.settle();
  expect(opened).toBeGreaterThan(1);
  expect(tail.recorder.lines).toEqual(['a generation without timestamps', line(2), line(3)]);
});
