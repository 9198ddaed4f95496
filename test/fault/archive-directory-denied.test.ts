import { chmodSync, chownSync, mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { newFolder } from '../folder.ts';
import { openArchive } from '../object-store.ts';

const nobody = 65_534;
const isRoot = process.getuid?.() === 0;
const directories = ['closed', 'locked', 'locked/inside', 'hidden', 'mixed', 'mixed/hidden', 'open'];
let root: string;

const runCheck = async (directory: string, status?: 'enabled' | 'paused') =>
  (await openArchive({ uri: `file://${join(root, directory)}/`, status })).check();

/** Root may write everywhere, so this process runs as another user from here on. */
beforeAll(async () => {
  root = newFolder(afterAll);
  for (const directory of directories) mkdirSync(join(root, directory));
  writeFileSync(join(root, 'mixed', 'a.history'), 'x');
  if (isRoot) for (const directory of ['', ...directories]) chownSync(join(root, directory), nobody, nobody);
  // This loads the modules that load on demand, while everything may still be read.
  await runCheck('open');
  chmodSync(join(root, 'closed'), 0o555);
  chmodSync(join(root, 'locked'), 0o000);
  chmodSync(join(root, 'hidden'), 0o300);
  chmodSync(join(root, 'mixed', 'hidden'), 0o000);
  if (!isRoot) return;
  process.setgroups?.([]);
  process.setgid?.(nobody);
  process.setuid?.(nobody);
});
afterAll(() => {
  for (const directory of directories) chmodSync(join(root, directory), 0o700);
});

test('a directory that may be read and not written', async () => {
  expect(await runCheck('closed')).toMatchObject({
    reason: 'not_writable',
    msg: `${root}/closed/: the agent’s user (uid ${process.geteuid?.()}) has no permission to write`,
  });
  expect((await runCheck('closed', 'paused')).reason).toBeUndefined();
});

test('a directory that cannot be reached', async () => {
  const finding = await runCheck('locked/inside');
  expect(finding).toMatchObject({ reason: 'denied', msg: expect.stringContaining('EACCES') });
});

test('a directory that may be written and not read', async () => {
  expect(await runCheck('hidden')).toMatchObject({
    reason: 'denied',
    msg: expect.stringContaining('cannot be read'),
  });
});

test('a part that may not be read: the newest file is not known', async () => {
  const finding = await runCheck('mixed');
  expect(finding.reason).toBeUndefined();
  expect(finding.gauges).toEqual([]);
  expect(finding.msg).toContain('not all of it was searched: parts of it cannot be read');
});

test('a directory that may be both', async () => {
  expect(await runCheck('open')).toMatchObject({ msg: expect.stringMatching(/^writable, /) });
});
