import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { createFileFaults } from '../../src/sources/logs/faults/file-faults.ts';
import { manualClock } from '../clock.ts';
import { available } from '../installed.ts';
import { watchFaults } from '../log-faults.ts';
import { createTail } from '../tail.ts';
import { until } from '../until.ts';
import { canMount, tmpfs } from './state/mount.ts';

test('a log that does not grow, in a file system without free space, cannot be written', async () => {
  const tail = createTail({ paths: ['app.log'] });
  let freeBytes = 0;
  const faults = watchFaults(tail, ['app.log'], async () => freeBytes);
  tail.create('app.log', 'a\n');
  expect(await faults.round()).toEqual([]);
  tail.append('app.log', 'b\n');
  expect(await faults.round(), 'it still grows').toEqual([]);
  expect(await faults.round()).toMatchObject([
    { kind: 'disk_full', path: tail.path('app.log'), services: ['history'] },
  ]);
  freeBytes = 4096;
  expect(await faults.round()).toEqual([]);
});

test('the first look is a second after the start, which it would slow, and the next 20 seconds later', async () => {
  const clock = manualClock();
  let looks = 0;
  const faults = createFileFaults({
    selection: () => ({ services: {}, selected: new Set() }),
    files: () => [
      { path: '/logs/app.log', services: ['history'], offset: 0, lagBytes: 0, state: 'following' },
    ],
    clock,
    async freeBytes() {
      looks++;
      return 4096;
    },
  });
  const stop = faults.start();
  clock.advance(999);
  expect(clock.waiting).toBe(1);
  clock.advance(1);
  expect(clock.waiting).toBe(0);
  await until('the look is over', () => clock.waiting === 1);
  expect(looks).toBe(1);
  clock.advance(20_000);
  await until('the look is over', () => clock.waiting === 1);
  expect(looks).toBe(2);
  await stop();
  expect(clock.waiting).toBe(0);
});

test.skipIf(!available('the right to mount a file system', canMount()))(
  'the free space is the one that statfs gives for the directory of the log',
  async () => {
    const { directory } = tmpfs('64k');
    const tail = createTail({ services: () => ({}) });
    const path = join(directory, 'app.log');
    writeFileSync(path, 'a\n');
    const files = [{ path, services: ['history'], offset: 2, lagBytes: 0, state: 'following' }];
    tail.tailer = { ...tail.tailer, files: () => files, scan: async () => {} };
    const faults = watchFaults(tail, ['app*.log']);
    await faults.round();
    expect(await faults.round()).toEqual([]);
    expect(() => writeFileSync(join(directory, 'other'), Buffer.alloc(1 << 20))).toThrow('ENOSPC');
    await faults.round();
    expect(await faults.round()).toMatchObject([{ kind: 'disk_full', path }]);
  },
);
