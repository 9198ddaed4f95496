import { mkdirSync, renameSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { takeLock } from '../../src/agent/state/lock.ts';
import { afterRestart, loadedBed, stateBed, temporaryDirectory } from './state/bed.ts';

test('deleted while running: made again and locked again by the next commit, even if nothing changed', async () => {
  const directory = join(temporaryDirectory(), 'state');
  const { state, values } = await loadedBed({ directory });
  values.add('n', 1);
  await state.commit();
  rmSync(directory, { recursive: true });
  expect((await state.commit()).degraded).toBeUndefined();
  await expect(takeLock(directory)).rejects.toMatchObject({ code: 'state_locked' });
  await state.close();
  expect(await afterRestart({ directory })).toEqual({ n: 1 });
});

test('the snapshot alone deleted: written again by the next commit, even if nothing changed', async () => {
  const directory = temporaryDirectory();
  const { state, values } = await loadedBed({ directory });
  values.add('n', 1);
  await state.commit();
  rmSync(join(directory, 'snapshot-a'));
  await state.commit();
  await state.close();
  expect(await afterRestart({ directory })).toEqual({ n: 1 });
});

test('the snapshot replaced by another file: written again by the next commit, even if nothing changed', async () => {
  const directory = temporaryDirectory();
  const { state, values } = await loadedBed({ directory });
  values.add('n', 1);
  await state.commit();
  writeFileSync(join(directory, 'other'), 'of another program');
  renameSync(join(directory, 'other'), join(directory, 'snapshot-a'));
  await state.commit();
  await state.close();
  expect(await afterRestart({ directory })).toEqual({ n: 1 });
});

test('moved away, another in its place: the new one is locked and written', async () => {
  const parent = temporaryDirectory();
  const directory = join(parent, 'state');
  const { state, values } = await loadedBed({ directory });
  values.add('n', 1);
  await state.commit();
  renameSync(directory, join(parent, 'moved'));
  mkdirSync(directory);
  values.add('n', 1);
  expect((await state.commit()).degraded).toBeUndefined();
  await state.close();
  expect(await afterRestart({ directory })).toEqual({ n: 2 });
});

test('taken over by another agent meanwhile: degraded, and its snapshots are left alone until it is gone', async () => {
  const directory = join(temporaryDirectory(), 'state');
  const first = await loadedBed({ directory });
  first.values.add('n', 1);
  await first.state.commit();
  rmSync(directory, { recursive: true });
  const second = stateBed({ directory });
  await second.state.load();
  second.values.add('n', 50);
  for (let i = 0; i < 5; i++) {
    second.values.add('n', 1);
    await second.state.commit();
  }
  first.values.add('n', 1);
  expect((await first.state.commit()).degraded).toBe('no_directory');
  expect(first.values.shown()).toEqual({ n: 2 });
  expect(second.state.status().sequence).toBe(5);

  await second.state.close();
  expect(await first.state.commit()).toEqual({ sequence: 6 });
  await first.state.close();
  expect(await afterRestart({ directory })).toEqual({ n: 2 });
});
