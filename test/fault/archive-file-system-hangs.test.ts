import { rmSync, writeFileSync } from 'node:fs';
import * as files from 'node:fs/promises';
import { join } from 'node:path';
import { beforeEach, expect, test } from 'vitest';
import { type ArchiveDisk, createDirectoryProbe } from '../../src/probes/archival/directory.ts';
import { manualClock } from '../clock.ts';
import { newFolder } from '../folder.ts';

let root: string;
beforeEach(() => {
  root = newFolder();
});

/** A file system in which one call waits until the test releases it. */
function hangingAt(call: 'stat' | 'writeFile' | 'unlink' | 'statfs' | 'opendir' | 'lstat') {
  let calls = 0;
  let letGo!: () => void;
  const gate = new Promise<void>((resolve) => {
    letGo = resolve;
  });
  const disk: Record<string, unknown> = { ...files };
  const own = disk[call] as (...args: unknown[]) => unknown;
  disk[call] = async (...args: unknown[]): Promise<unknown> => {
    calls++;
    await gate;
    return own(...args);
  };
  return { disk: disk as unknown as ArchiveDisk, letGo, calls: () => calls };
}

const open = (disk: ArchiveDisk, clock = manualClock()) => {
  const target = {
    archive: 'history',
    scheme: 'file',
    uri: `file://${root}/`,
    isWritten: true,
    writeCheck: true,
  } as const;
  return createDirectoryProbe(root, target, { clock, disk });
};

test.each(['stat', 'writeFile', 'unlink', 'statfs', 'opendir', 'lstat'] as const)(
  '%s hangs: the check ends with its signal, and no further call is made until it has come back',
  async (call) => {
    writeFileSync(join(root, 'a.history'), '');
    const { disk, letGo, calls } = hangingAt(call);
    const probe = open(disk);
    const stop = new AbortController();
    const pending = probe.check(stop.signal, undefined);
    stop.abort();
    expect(await pending).toEqual({
      reason: 'too_slow',
      msg: `${root}: the file system did not answer in time`,
    });
    const never = new AbortController().signal;
    expect(await probe.check(never, undefined)).toMatchObject({
      reason: 'too_slow',
      msg: expect.stringContaining('an earlier check still waits'),
    });
    expect(calls()).toBeLessThanOrEqual(1);
    letGo();
    await expect
      .poll(async () => (await probe.check(never, undefined)).reason, { timeout: 30_000 })
      .toBeUndefined();
  },
);

test('a slow one: the newest file is known once the checks have gone through all of it', async () => {
  writeFileSync(join(root, 'a.history'), '');
  writeFileSync(join(root, 'b.history'), '');
  const clock = manualClock();
  const lstat: ArchiveDisk['lstat'] = async (path) => {
    clock.advance(10_000);
    return files.lstat(path);
  };
  const probe = open({ ...files, lstat }, clock);
  const never = new AbortController().signal;
  const first = await probe.check(never, undefined);
  expect(first.reason).toBeUndefined();
  expect(first.gauges).toEqual([]);
  expect(first.msg).toContain('the next check continues the search');
  await probe.check(never, first.remember);
  expect((await probe.check(never, first.remember)).gauges).toHaveLength(1);
});

test('a file that goes away between being listed and looked at is passed over', async () => {
  writeFileSync(join(root, 'a.history'), '');
  writeFileSync(join(root, 'b.history'), '');
  const lstat: ArchiveDisk['lstat'] = async (path) => {
    if (path.endsWith('b.history')) rmSync(path);
    return files.lstat(path);
  };
  const finding = await open({ ...files, lstat }).check(new AbortController().signal, undefined);
  expect(finding).toMatchObject({ details: { files: 1, complete: true } });
});
