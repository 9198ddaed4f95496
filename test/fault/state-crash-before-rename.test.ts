import { mkdirSync, readdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { afterRestart, loadedBed, temporaryDirectory } from './state/bed.ts';
import { faultyFs } from './state/faulty-fs.ts';

test('a whole new file that was never renamed does not count, and is removed', async () => {
  const directory = temporaryDirectory();
  const fs = faultyFs();
  const { state, values } = await loadedBed({ directory, fs });
  values.add('n', 1);
  await state.commit();
  fs.plan = (operation) => (operation === 'rename' || operation === 'rm' ? 'EIO' : undefined);
  values.add('n', 1);
  await state.commit();
  await state.close();
  expect(readdirSync(directory).sort()).toEqual(['snapshot-a', 'snapshot.new']);
  expect(await afterRestart({ directory })).toEqual({ n: 1 });
  expect(readdirSync(directory)).not.toContain('snapshot.new');
});

test.each<[string, (path: string) => void]>([
  ['half a new file', (path) => writeFileSync(path, 'svcstat')],
  ['a directory in its place', (path) => mkdirSync(join(path, 'below'), { recursive: true })],
])('%s is removed', async (_, make) => {
  const directory = temporaryDirectory();
  make(join(directory, 'snapshot.new'));
  await loadedBed({ directory });
  expect(readdirSync(directory)).toEqual(['lock']);
});
