import { copyFileSync, truncateSync } from 'node:fs';
import { expect, test } from 'vitest';
import { type Disk, systemDisk } from '../../src/sources/logs/discovery/disk.ts';
import { createTail, numbered } from '../tail.ts';

const banner = '='.repeat(1600);

/** With one descriptor the original is opened for the comparison: that it was open before cannot be concluded from it. */
test('an original that is truncated before it is opened to be compared goes on in its copy', async () => {
  let swap: (() => void) | undefined;
  const disk: Disk = {
    ...systemDisk,
    open(path) {
      if (path.endsWith('/app.log')) {
        swap?.();
        swap = undefined;
      }
      return systemDisk.open(path);
    },
  };
  const tail = createTail({ paths: ['app.log*', 'z.log'], maxOpenFiles: 1, disk });
  tail.create('app.log', `${banner}\n${numbered(0, 40).text}`);
  tail.create('z.log', numbered(900, 5).text);
  for (let n = 0; n < 3; n++) await tail.tailer.discover();
  copyFileSync(tail.path('app.log'), tail.path('app.log.1'));
  swap = () => {
    truncateSync(tail.path('app.log'));
    tail.append('app.log', `${banner}\n${numbered(40, 5).text}`);
  };
  await tail.tailer.discover();
  expect(swap).toBeUndefined();
  await tail.settle();
  const expected = [banner, banner, ...numbered(0, 45).lines, ...numbered(900, 5).lines];
  expect(tail.recorder.lines.toSorted()).toEqual(expected.toSorted());
  expect(tail.recorder.skips).toEqual([]);
});
