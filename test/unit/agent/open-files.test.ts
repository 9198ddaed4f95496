import { spawnSync } from 'node:child_process';
import { expect, test } from 'vitest';
import { mostOpenFiles, openLogsLimit } from '../../../src/agent/open-files.ts';

test.each([
  [undefined, 512],
  [1, 1],
  [64, 32],
  [1024, 512],
  [1_048_576, 8192],
])('a process that may open %s files holds at most %i logs open', (most, logs) => {
  expect(openLogsLimit(most)).toBe(logs);
});

test('the number of files that the process may open is that of the shell', () => {
  // Node has raised its soft limit to the hard one, and its children inherit it.
  const { stdout } = spawnSync('sh', ['-c', 'ulimit -n'], { encoding: 'utf8' });
  expect(String(mostOpenFiles())).toBe(stdout.trim());
});
