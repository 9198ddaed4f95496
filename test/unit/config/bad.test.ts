import { readdirSync, readFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { expect, test } from 'vitest';
import { loadConfig } from '../../../src/agent/config/load.ts';
import { faultLine } from '../../../src/core/errors.ts';

const fixture = (name: string) => fileURLToPath(new URL(`../../fixtures/config/${name}`, import.meta.url));

/** What is wrong with each file of the folder `bad`, written by hand: one line for each fault, in order. */
const table = readFileSync(fixture('bad.txt'), 'utf8').trimEnd().split('\n');

test.each(readdirSync(fixture('bad')))('%s', async (file) => {
  const { config, faults } = await loadConfig({ file, env: {}, cwd: fixture('bad') });
  expect(faults.map(faultLine)).toEqual(table.filter((line) => line.startsWith(`${file}:`)));
  expect(faults).not.toHaveLength(0);
  expect(config).toBeUndefined();
});

test('every line of the table has its file', () => {
  const files = readdirSync(fixture('bad'));
  expect(table.filter((line) => !files.some((file) => line.startsWith(`${file}:`)))).toEqual([]);
});
