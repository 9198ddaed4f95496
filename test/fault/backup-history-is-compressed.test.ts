import { execFileSync, spawnSync } from 'node:child_process';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { lineageOf } from '../../src/probes/backups/log-chain.ts';
import { historyName, readHistories } from '../../src/probes/backups/log-evidence.ts';
import { newFolder } from '../folder.ts';

// Barman compresses the history of a timeline like any segment, and leaves its name as it is. A history that was taken for an
// empty one denied that the backup belongs to its timeline.
const line = '1\t0/5000000\tno recovery target specified\n';
const base = { timeline: 1, start: '0/2000028', end: '0/3000000' };

async function lineageWith(name: string, content: string | Buffer) {
  const directory = newFolder();
  writeFileSync(join(directory, name), content);
  expect(name).toMatch(historyName);
  return lineageOf(base, { histories: await readHistories(directory, [name]) });
}

const programs = [
  ['gzip', 'gz'],
  ['bzip2', 'bz2'],
  ['xz', 'xz'],
  ['zstd', 'zst'],
  ['lz4', 'lz4'],
] as const;
const installed = programs.filter(([program]) => spawnSync(program, ['--version']).status === 0);

test.each(installed)('by %s', async (program, suffix) => {
  const compressed = execFileSync(program, ['-c'], { input: line });
  for (const name of ['00000002.history', `00000002.history.${suffix}`])
    expect(await lineageWith(name, compressed)).toEqual({
      timelines: [
        { timeline: 1, fromSegment: 0 },
        { timeline: 2, fromSegment: 5 },
      ],
    });
});

test.each([
  ['encrypted', 'Salted__0123456789abcdef'],
  ['cut off', execFileSync('gzip', ['-c'], { input: line }).subarray(0, 15)],
  ['empty', ''],
])('one that is %s is not known, instead of a fault of the backup', async (_, content) => {
  const { fault } = await lineageWith('00000002.history', content);
  expect(fault).toBe('00000002.history cannot be read here; a restore follows it');
});
