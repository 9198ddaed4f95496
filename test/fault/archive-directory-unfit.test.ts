import { mkdtempSync, rmSync, type StatsFs, writeFileSync } from 'node:fs';
import * as files from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { createDirectoryProbe, leastFreeBytes } from '../../src/probes/archival/directory.ts';
import type { Disk } from '../../src/probes/archival/disk.ts';
import type { Finding } from '../../src/probes/probe.ts';
import { handClock } from '../clock.ts';
import { openArchive } from '../object-store.ts';
import { canMount, tmpfs } from './state/mount.ts';

let root: string;
beforeEach(() => {
  root = mkdtempSync(join(tmpdir(), 'svc-archive-'));
});
afterEach(() => {
  rmSync(root, { recursive: true, force: true });
});
const look = async (directory: string, status?: 'enabled' | 'paused') =>
  (await openArchive({ uri: `file://${directory}/`, status })).check();
const never = new AbortController().signal;
const target = (isWritten: boolean) => ({
  archive: 'history' as const,
  scheme: 'file',
  uri: `file://${root}/`,
  isWritten,
});
const lookWith = (disk: Partial<Disk>, isWritten = true): Promise<Finding> =>
  createDirectoryProbe(root, target(isWritten), { clock: handClock(), disk: { ...files, ...disk } }).check(
    never,
    undefined,
  );

test('missing', async () => {
  const finding = await look(join(root, 'none'));
  expect(finding).toMatchObject({ reason: 'not_found', msg: expect.stringContaining('ENOENT') });
  expect(finding.gauges).toBeUndefined();
});

test('a file', async () => {
  writeFileSync(join(root, 'file'), '');
  expect(await look(join(root, 'file'))).toMatchObject({ reason: 'not_found' });
  const { reason } = await lookWith({ stat: () => files.stat(join(root, 'file')) });
  expect(reason).toBe('not_found');
});

describe('less room than the floor', () => {
  const statfs = (more: Partial<StatsFs>) => async () => {
    const real = await files.statfs(root);
    return Object.assign(real, { bsize: 4096, files: 10, ffree: 10, ...more });
  };
  const blocks = leastFreeBytes / 4096;

  test.each([
    ['one block less', { bavail: blocks - 1 }, 'no_space', 'less than 100 MiB free: 99 MiB'],
    ['no inodes', { bavail: blocks, ffree: 0 }, 'no_space', 'no inodes free'],
  ])('%s', async (_, more, reason, msg) => {
    expect(await lookWith({ statfs: statfs(more) })).toMatchObject({
      reason,
      msg: expect.stringContaining(msg),
    });
  });
  test.each([
    ['just enough', { bavail: blocks }, true],
    ['a file system that counts no inodes', { bavail: blocks, files: 0, ffree: 0 }, true],
    ['an archive that is only read', { bavail: 0, ffree: 0 }, false],
  ])('%s is well', async (_, more, isWritten) => {
    expect((await lookWith({ statfs: statfs(more) }, isWritten)).reason).toBeUndefined();
  });
});

describe.skipIf(!canMount())('a file system of its own', () => {
  test('that is full', async () => {
    const { directory } = tmpfs('1m');
    expect(await look(directory)).toMatchObject({ reason: 'no_space' });
    expect((await look(directory, 'paused')).reason).toBeUndefined();
  });
  test('that is mounted read-only', async () => {
    const { directory, remount } = tmpfs('200m');
    expect((await look(directory)).reason).toBeUndefined();
    remount('ro');
    expect(await look(directory)).toMatchObject({
      reason: 'not_writable',
      msg: `${directory}/: its file system is mounted read-only`,
    });
    expect((await look(directory, 'paused')).reason).toBeUndefined();
  });
});
