import nodeFs from 'node:fs/promises';
import { expect, test } from 'vitest';
import { afterRestart, errors, loadedBed, temporaryDirectory } from './state/bed.ts';
import { faultyFs, type Operation } from './state/faulty-fs.ts';

test.each<[code: string, operation: Operation, pathEnd: string, degraded: string]>([
  ['EMFILE', 'open', 'snapshot.new', 'open'],
  ['EIO', 'write', 'snapshot.new', 'write'],
  ['EDQUOT', 'close', 'snapshot.new', 'write'],
  ['EIO', 'datasync', 'snapshot.new', 'sync'],
  ['EIO', 'rename', 'snapshot.new', 'rename'],
])(
  '%s at %s of the new file: degraded, the pair before it comes back',
  async (code, operation, pathEnd, degraded) => {
    const directory = temporaryDirectory();
    const fs = faultyFs();
    const { state, values, entries } = await loadedBed({ directory, fs, fsync: true });
    values.add('n', 1);
    await state.commit();
    fs.plan = (at, path) => (at === operation && path.endsWith(pathEnd) ? code : undefined);
    values.add('n', 1);
    expect(await state.commit()).toEqual({ sequence: 1, degraded });
    expect(values.shown()).toEqual({ n: 2 });
    expect(errors(entries)).toMatchObject([{ fields: { reason: degraded, error: { code } } }]);
    await state.close();
    expect(await afterRestart({ directory })).toEqual({ n: 1 });
  },
);

test('EIO at the sync of the directory, after the rename: degraded, and what comes later is found as newer', async () => {
  const directory = temporaryDirectory();
  const fs = faultyFs();
  const { state, values } = await loadedBed({ directory, fs, fsync: true });
  fs.plan = (operation) => (operation === 'sync' ? 'EIO' : undefined);
  values.add('n', 1);
  expect(await state.commit()).toEqual({ sequence: 0, degraded: 'sync' });
  fs.plan = () => undefined;
  values.add('n', 1);
  expect((await state.commit()).degraded).toBeUndefined();
  await state.close();
  expect(await afterRestart({ directory })).toEqual({ n: 2 });
});

test('a file system that takes only a part of each write gets the rest', async () => {
  const directory = temporaryDirectory();
  const open: typeof nodeFs.open = async (...args) => {
    const handle = await nodeFs.open(...args);
    const write = handle.write.bind(handle) as (bytes: Uint8Array, at: number, length: number) => unknown;
    return Object.assign(handle, {
      write: (bytes: Uint8Array, at: number, length: number) => write(bytes, at, Math.min(length, 7)),
    });
  };
  const { state, values } = await loadedBed({ directory, fs: { ...nodeFs, open } });
  values.add('n', 1);
  expect(await state.commit()).toEqual({ sequence: 1 });
  await state.close();
  expect(await afterRestart({ directory })).toEqual({ n: 1 });
});
