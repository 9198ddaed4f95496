import { existsSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, test } from 'vitest';
import { afterRestart, errors, loadedBed, temporaryDirectory } from './state/bed.ts';
import { canMount, tmpfs } from './state/mount.ts';

describe.skipIf(!canMount())('a file system that is read-only (real tmpfs)', () => {
  test('from the start: goes on from memory with what it finds, writes once it may', async () => {
    const { directory, remount } = tmpfs('1m');
    const before = await loadedBed({ directory });
    before.values.add('n', 4);
    await before.state.commit();
    await before.state.close();

    remount('ro');
    const { state, values, entries } = await loadedBed({ directory });
    expect(state.status().degraded).toBe('no_directory');
    values.add('n', 1);
    expect((await state.commit()).degraded).toBe('no_directory');
    expect(values.shown()).toEqual({ n: 5 });
    expect(errors(entries)).toHaveLength(1);
    expect(errors(entries)[0]?.fields.error).toMatchObject({ code: 'EROFS' });

    remount('rw');
    expect((await state.commit()).degraded).toBeUndefined();
    await state.close();
    expect(await afterRestart({ directory })).toEqual({ n: 5 });
  });

  test('later: the last snapshot stays', async () => {
    const { directory, remount } = tmpfs('1m');
    const { state, values } = await loadedBed({ directory });
    values.add('n', 1);
    await state.commit();
    remount('ro');
    values.add('n', 1);
    expect(await state.commit()).toEqual({ sequence: 1, degraded: 'open' });
    expect(values.shown()).toEqual({ n: 2 });
    remount('rw');
    await state.close();
    expect(await afterRestart({ directory })).toEqual({ n: 1 });
  });
});

test('a file in place of the directory: degraded until it is a directory', async () => {
  const directory = join(temporaryDirectory(), 'state');
  writeFileSync(directory, 'in the way');
  const { state, values } = await loadedBed({ directory });
  values.add('n', 1);
  expect((await state.commit()).degraded).toBe('no_directory');
  expect(values.shown()).toEqual({ n: 1 });
  expect(existsSync(join(directory, 'lock'))).toBe(false);
});

test('a directory that cannot be made, its parent being a file: degraded', async () => {
  const parent = join(temporaryDirectory(), 'file');
  writeFileSync(parent, '');
  const { state } = await loadedBed({ directory: join(parent, 'state') });
  expect(state.status().degraded).toBe('no_directory');
  expect(await state.commit()).toEqual({ sequence: 0, degraded: 'no_directory' });
});

test('a directory that is missing is made, with its parents', async () => {
  const directory = join(temporaryDirectory(), 'var', 'lib', 'svc-agent');
  const { state, values } = await loadedBed({ directory });
  values.add('n', 1);
  expect(await state.commit()).toEqual({ sequence: 1 });
  await state.close();
  expect(await afterRestart({ directory })).toEqual({ n: 1 });
});

test('a directory whose path is longer than a socket may have is locked and written all the same', async () => {
  const directory = join(temporaryDirectory(), 'd'.repeat(120), 'e'.repeat(120));
  const { state, values } = await loadedBed({ directory });
  values.add('n', 1);
  expect(await state.commit()).toEqual({ sequence: 1 });
  await state.close();
  expect(await afterRestart({ directory })).toEqual({ n: 1 });
});
