import { rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { afterRestart, errors, loadedBed, temporaryDirectory } from './state/bed.ts';
import { faultyFs } from './state/faulty-fs.ts';
import { canMount, tmpfs } from './state/mount.ts';
import { notedText } from './state/values.ts';

test.skipIf(!canMount())(
  'a full disk (real tmpfs): fresh counts go on, the old snapshot stays, space brings it back',
  async () => {
    const { directory } = tmpfs('64k');
    const { state, values, entries } = await loadedBed({ directory });
    values.add('n', 1);
    expect((await state.commit()).degraded).toBeUndefined();
    const ballast = join(directory, 'ballast');
    expect(() => writeFileSync(ballast, Buffer.alloc(128 * 1024))).toThrow('ENOSPC');

    values.add('n', 1);
    expect(await state.commit()).toEqual({ sequence: 1, degraded: 'write' });
    values.add('n', 1);
    await state.commit();
    expect(values.shown()).toEqual({ n: 3 });
    expect(state.status()).toMatchObject({ degraded: 'write', failures: 2, sequence: 1 });
    expect(errors(entries)).toHaveLength(1);
    expect(errors(entries)[0]?.fields.error).toMatchObject({ code: 'ENOSPC' });

    rmSync(ballast);
    expect((await state.commit()).degraded).toBeUndefined();
    expect(state.status()).toMatchObject({ degraded: undefined, failures: 2 });
    await state.close();
    expect(await afterRestart({ directory })).toEqual({ n: 3 });
  },
);

test.skipIf(!canMount())(
  'a disk that is too small for the snapshot (real tmpfs) keeps the last one that fitted',
  async () => {
    const { directory } = tmpfs('64k');
    const text = notedText('logs', 'small');
    const { state, values } = await loadedBed({ directory, durables: [text] });
    values.add('n', 1);
    await state.commit();
    text.text = 'x'.repeat(100_000);
    values.add('n', 1);
    expect((await state.commit()).degraded).toBe('write');
    await state.close();
    const after = notedText('logs');
    expect(await afterRestart({ directory, durables: [after] })).toEqual({ n: 1 });
    expect(after.text).toBe('small');
  },
);

test('a write that stops half way with ENOSPC leaves the old snapshot and nothing else, until there is room', async () => {
  const directory = temporaryDirectory();
  const fs = faultyFs();
  const { state, values, entries, clock } = await loadedBed({ directory, fs });
  values.add('n', 5);
  await state.commit();
  clock.advance(1000);
  fs.plan = (operation) => (operation === 'write' ? 'ENOSPC' : undefined);
  values.add('n', 1);
  expect((await state.commit()).degraded).toBe('write');
  expect(state.status()).toMatchObject({ degraded: 'write', error: 'no space left on device (ENOSPC)' });
  expect(values.shown()).toEqual({ n: 6 });
  expect((await fs.readdir(directory)).sort()).toEqual(['lock', 'snapshot-a']);
  clock.advance(2000);
  await state.commit();
  expect(errors(entries)).toHaveLength(1);
  fs.plan = () => undefined;
  clock.advance(3000);
  values.add('n', -1);
  await state.commit();
  expect(entries.slice(1)).toMatchObject([
    { msg: 'the state is written again', fields: { directory, afterMs: 5000 } },
  ]);
  await state.close();
  expect(await afterRestart({ directory })).toEqual({ n: 5 });
});
