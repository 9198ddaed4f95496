import { readdirSync, writeFileSync } from 'node:fs';
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

test('half a new file is removed', async () => {
  const directory = temporaryDirectory();
  writeFileSync(join(directory, 'snapshot.new'), 'svcstat');
  await loadedBed({ directory });
  expect(readdirSync(directory)).toEqual(['lock']);
});
