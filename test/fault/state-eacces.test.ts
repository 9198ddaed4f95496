import { chmodSync, mkdirSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { afterRestart, errors, loadedBed, temporaryDirectory } from './state/bed.ts';
import { faultyFs } from './state/faulty-fs.ts';
import { holderStarter } from './state/holder-process.ts';

const isRoot = process.getuid?.() === 0;
const nobody = 65_534;

test.skipIf(!isRoot)(
  "a directory of another user (a real process without root's rights): degraded, still counting",
  async () => {
    const start = await holderStarter({ uid: nobody });
    const parent = temporaryDirectory();
    chmodSync(parent, 0o755);
    const directory = join(parent, 'state');
    mkdirSync(directory, { mode: 0o700 });
    const holder = start(directory, 'count');
    expect(await holder.line()).toBe('locked');
    expect(await holder.line()).toBe('degraded no_directory');
    expect(await holder.line()).toBe('degraded no_directory');
  },
);

test('EACCES on the new file: the old snapshot stays, the next commit that may write brings it up to date', async () => {
  const directory = temporaryDirectory();
  const fs = faultyFs();
  const { state, values, entries } = await loadedBed({ directory, fs });
  values.add('n', 1);
  await state.commit();
  fs.plan = (operation, path) => (operation === 'open' && path.endsWith('.new') ? 'EACCES' : undefined);
  values.add('n', 1);
  expect(await state.commit()).toEqual({ sequence: 1, degraded: 'open' });
  expect(state.status().error).toBe('permission denied (EACCES)');
  expect(await state.commit()).toEqual({ sequence: 1, degraded: 'open' });
  expect(values.shown()).toEqual({ n: 2 });
  expect(errors(entries)).toHaveLength(1);
  fs.plan = () => undefined;
  expect((await state.commit()).degraded).toBeUndefined();
  expect(state.status()).not.toHaveProperty('error');
  await state.close();
  expect(entries.at(-1)).toMatchObject({ level: 'info', msg: 'the state is written again' });
  expect(await afterRestart({ directory })).toEqual({ n: 2 });
});

test('a snapshot that may not be read is set aside, not written over', async () => {
  const directory = temporaryDirectory();
  const before = await loadedBed({ directory });
  before.values.add('n', 1);
  await before.state.commit();
  await before.state.close();
  const fs = faultyFs();
  fs.plan = (operation, path) => (operation === 'open' && path.endsWith('snapshot-a') ? 'EACCES' : undefined);
  const { state, entries } = await loadedBed({ directory, fs });
  expect(errors(entries)).toMatchObject([{ fields: { error: { code: 'EACCES' } } }]);
  await state.close();
  expect(await fs.readdir(directory)).toEqual([expect.stringMatching(/^snapshot-a\.corrupt-2026/)]);
});
