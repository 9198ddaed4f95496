import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { afterRestart, errors, loadedBed, temporaryDirectory } from './state/bed.ts';
import { notedText } from './state/values.ts';

/** Two snapshots: the older with n = 1, the newer with n = 2. */
async function twoSnapshots(): Promise<{ directory: string; newer: string }> {
  const directory = temporaryDirectory();
  const { state, values } = await loadedBed({ directory, durables: [notedText('logs', 'offsets')] });
  for (let n = 1; n <= 2; n++) {
    values.add('n', 1);
    await state.commit();
  }
  await state.close();
  return { directory, newer: join(directory, 'snapshot-b') };
}

test('cut off at any byte: the one before it comes back, the torn one is kept aside', async () => {
  const { directory, newer } = await twoSnapshots();
  const whole = readFileSync(newer);
  const older = readFileSync(join(directory, 'snapshot-a'));
  for (let length = 0; length < whole.length; length++) {
    writeFileSync(newer, whole.subarray(0, length));
    writeFileSync(join(directory, 'snapshot-a'), older);
    const logs = notedText('logs');
    const { state, values, entries } = await loadedBed({ directory, durables: [logs] });
    await state.commit();
    expect(values.shown(), `cut at ${length}`).toEqual({ n: 1 });
    expect(logs.text).toBe('offsets');
    expect(errors(entries)).toHaveLength(1);
    await state.close();
    writeFileSync(newer, '');
  }
});

test('both torn: totals from 0, both kept aside, and what is written then comes back', async () => {
  const { directory, newer } = await twoSnapshots();
  for (const file of [newer, join(directory, 'snapshot-a')])
    writeFileSync(file, readFileSync(file).subarray(1));
  const { state, values, entries } = await loadedBed({ directory });
  expect(errors(entries)).toHaveLength(2);
  values.add('n', 7);
  expect(await state.commit()).toEqual({ sequence: 1 });
  await state.close();
  expect(await afterRestart({ directory })).toEqual({ n: 7 });
});
