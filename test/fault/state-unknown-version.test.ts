import { readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { crc32 } from 'node:zlib';
import { expect, test } from 'vitest';
import { errors, loadedBed, temporaryDirectory } from './state/bed.ts';

test('a snapshot of a later version is kept aside as it is, for the agent that can read it', async () => {
  const directory = temporaryDirectory();
  const before = await loadedBed({ directory });
  before.values.add('n', 1);
  await before.state.commit();
  await before.state.close();
  const file = join(directory, 'snapshot-a');
  const later = readFileSync(file);
  later.writeUInt32LE(9, 8);
  later.writeUInt32LE(crc32(later.subarray(0, -4)), later.length - 4);
  writeFileSync(file, later);

  const { state, values, entries } = await loadedBed({ directory });
  await state.commit();
  expect(values.shown()).toEqual({});
  const [entry] = errors(entries);
  expect(String(entry?.fields.error)).toContain('unknown version, got 9');
  const kept = readdirSync(directory).find((name) => name.includes('.corrupt-'))!;
  expect(readFileSync(join(directory, kept)).equals(later)).toBe(true);
});
