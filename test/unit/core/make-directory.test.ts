import { mkdirSync, statSync, writeFileSync } from 'node:fs';
import { mkdir } from 'node:fs/promises';
import { join } from 'node:path';
import { beforeEach, describe, expect, test } from 'vitest';
import { makeDirectory, makeDirectorySync } from '../../../src/core/make-directory.ts';
import { newFolder } from '../../folder.ts';

let base: string;
beforeEach(() => {
  base = newFolder();
});

describe.each([
  ['later', (path: string) => makeDirectory(mkdir, path, 0o750)],
  ['at once', async (path: string) => makeDirectorySync(mkdirSync, path, 0o750)],
])('%s', (_, make) => {
  test.each(['a', 'a/b/c', 'a//b/', 'a/../b'])('%s is made, and may be there', async (name) => {
    for (const __ of [1, 2]) {
      await make(`${base}/${name}`);
      expect(statSync(`${base}/${name}`).isDirectory()).toBe(true);
    }
    expect(statSync(`${base}/${name}`).mode & 0o777 & ~0o750).toBe(0);
  });

  test.each([
    ['where the kernel refuses one', () => '/proc/nope', 'ENOENT'],
    ['below that', () => '/proc/nope/queue/x', 'ENOENT'],
    ['below a file', () => join(base, 'file/x'), 'ENOTDIR'],
    ['in place of a file', () => join(base, 'file'), 'EEXIST'],
  ])('%s: an error', async (__, path, code) => {
    writeFileSync(join(base, 'file'), '');
    await expect(make(path())).rejects.toMatchObject({ code });
  });
});
