import { mkdirSync, readdirSync, rmSync, type StatsFs, writeFileSync } from 'node:fs';
import * as files from 'node:fs/promises';
import { join } from 'node:path';
import { beforeEach, describe, expect, test } from 'vitest';
import {
  type ArchiveDisk,
  createDirectoryProbe,
  leastFreeBytes,
} from '../../src/probes/archival/directory.ts';
import type { Finding } from '../../src/probes/probe.ts';
import { manualClock } from '../clock.ts';
import { newFolder } from '../folder.ts';
import { openArchive } from '../object-store.ts';
import { canMount, tmpfs } from './state/mount.ts';

let root: string;
beforeEach(() => {
  root = newFolder();
});
const runCheck = async (directory: string, status?: 'enabled' | 'paused') =>
  (await openArchive({ uri: `file://${directory}/`, status })).check();
const never = new AbortController().signal;
const target = (isWritten: boolean) => ({
  archive: 'history' as const,
  scheme: 'file',
  uri: `file://${root}/`,
  isWritten,
  writeCheck: isWritten,
});
const checkWith = (disk: Partial<ArchiveDisk>, isWritten = true): Promise<Finding> =>
  createDirectoryProbe(root, target(isWritten), { clock: manualClock(), disk: { ...files, ...disk } }).check(
    never,
    undefined,
  );

test('missing: no fault before the first archival, a fault once it existed', async () => {
  const directory = join(root, 'none', 'history');
  const { check } = await openArchive({ uri: `file://${directory}/` });
  const before = await check();
  expect(before.reason).toBeUndefined();
  expect(before.msg).toContain('does not exist yet');
  expect(before.gauges).toEqual([]);
  mkdirSync(directory, { recursive: true });
  const there = await check(undefined, before.remember);
  expect(there).toMatchObject({ msg: expect.stringMatching(/^writable, /) });
  rmSync(directory, { recursive: true });
  const gone = await check(undefined, JSON.parse(JSON.stringify(there.remember)));
  expect(gone).toMatchObject({ reason: 'not_found', msg: expect.stringContaining('ENOENT') });
  expect(gone.gauges).toBeUndefined();
  expect((await check(undefined, gone.remember)).reason).toBe('not_found');
});

test('missing, and only read', async () => {
  expect((await runCheck(join(root, 'none'), 'paused')).reason).toBe('not_found');
});

describe('a test file', () => {
  const left = () => readdirSync(root);
  test('is written, read and deleted', async () => {
    const calls: string[] = [];
    const finding = await checkWith({
      async writeFile(path, text, options) {
        calls.push('write');
        return files.writeFile(path, text, options);
      },
      async unlink(path) {
        calls.push('delete');
        expect(left()).toHaveLength(1);
        return files.unlink(path);
      },
    });
    expect(finding).toMatchObject({ msg: expect.stringMatching(/^writable, /), details: { files: 0 } });
    expect([calls, left()]).toEqual([['write', 'delete'], []]);
  });

  test('that a killed agent left is replaced, and never the newest file', async () => {
    await checkWith({ unlink: async () => {} });
    expect(left()).toHaveLength(1);
    const finding = await checkWith({});
    expect(finding).toMatchObject({ gauges: [], msg: expect.stringMatching(/^writable, .*no file yet$/) });
    expect(left()).toEqual([]);
  });

  test('is not written where that is turned off', async () => {
    const writeFile = async () => expect.fail('written');
    const off = { ...target(true), writeCheck: false };
    const probe = createDirectoryProbe(root, off, { clock: manualClock(), disk: { ...files, writeFile } });
    expect((await probe.check(never, undefined)).msg).toMatch(/^readable, writing is not tested, /);
  });

  const failing = (code: string) => ({
    writeFile: async () => {
      throw Object.assign(new Error(`${code}: no`), { code });
    },
  });
  test.each([
    ['ENOSPC', 'no_space'],
    ['EDQUOT', 'no_space'],
    ['EIO', 'failed'],
  ])('that cannot be written for %s is a fault', async (code, reason) => {
    expect((await checkWith(failing(code))).reason).toBe(reason);
  });

  test('that reads back with other content is a fault', async () => {
    const { reason, msg } = await checkWith({ readFile: async () => 'other' });
    expect([reason, msg]).toEqual(['failed', expect.stringContaining('reads back with other content')]);
    expect(left()).toEqual([]);
  });

  test.each(['EACCES', 'EROFS'])(
    'that the agent’s own user or mount refuses by %s proves nothing',
    async (code) => {
      const stat = async (path: string) => Object.assign(await files.stat(path), { uid: 4321 });
      const finding = await checkWith({ ...failing(code), stat });
      expect(finding.reason).toBeUndefined();
      expect(finding.msg).toContain('whether the service can write is not known');
      expect(finding.details).toMatchObject({ writable: 'unknown' });
      const disk = { ...files, ...failing(code), stat };
      const probe = createDirectoryProbe(root, target(true), { clock: manualClock(), disk });
      const couldBefore = { uri: target(true).uri, existed: true, written: true };
      expect((await probe.check(never, couldBefore)).reason).toBe('not_writable');
    },
  );
});

test('a file', async () => {
  writeFileSync(join(root, 'file'), '');
  expect(await runCheck(join(root, 'file'))).toMatchObject({ reason: 'not_found' });
  const { reason } = await checkWith({ stat: () => files.stat(join(root, 'file')) });
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
    expect(await checkWith({ statfs: statfs(more) })).toMatchObject({
      reason,
      msg: expect.stringContaining(msg),
    });
  });
  test('does not hide that the directory was there: it is missing once its file system is gone', async () => {
    const gone = async () => {
      throw Object.assign(new Error('ENOENT: no such file'), { code: 'ENOENT' });
    };
    const probeWith = (disk: Partial<ArchiveDisk>) =>
      createDirectoryProbe(root, target(true), { clock: manualClock(), disk: { ...files, ...disk } });
    const full = await probeWith({ statfs: statfs({ bavail: 0 }) }).check(never, undefined);
    expect(full.reason).toBe('no_space');
    expect((await probeWith({ stat: gone }).check(never, full.remember)).reason).toBe('not_found');
  });

  test.each([
    ['just enough', { bavail: blocks }, true],
    ['a file system that counts no inodes', { bavail: blocks, files: 0, ffree: 0 }, true],
    ['an archive that is only read', { bavail: 0, ffree: 0 }, false],
  ])('%s is well', async (_, more, isWritten) => {
    expect((await checkWith({ statfs: statfs(more) }, isWritten)).reason).toBeUndefined();
  });
});

describe.skipIf(!canMount())('a file system of its own', () => {
  test('that is full', async () => {
    const { directory } = tmpfs('1m');
    expect(await runCheck(directory)).toMatchObject({ reason: 'no_space' });
    expect((await runCheck(directory, 'paused')).reason).toBeUndefined();
  });
  test('that is mounted read-only', async () => {
    const { directory, remount } = tmpfs('200m');
    expect((await runCheck(directory)).reason).toBeUndefined();
    remount('ro');
    expect(await runCheck(directory)).toMatchObject({
      reason: 'not_writable',
      msg: `${directory}/: its file system is mounted read-only`,
    });
    expect((await runCheck(directory, 'paused')).reason).toBeUndefined();
  });
});
