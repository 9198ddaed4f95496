import { spawnSync } from 'node:child_process';
import { closeSync, existsSync, openSync, readFileSync, statSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { mainFile } from '../e2e/process.ts';
import { newFolder } from '../folder.ts';
import { available } from '../installed.ts';

const hasFull = available('/dev/full', existsSync('/dev/full'));

test.skipIf(!hasFull)('output that does not fit on the disk is a failure', () => {
  const full = openSync('/dev/full', 'w');
  const { status, stderr } = spawnSync(process.execPath, [mainFile, 'schema'], {
    stdio: ['ignore', full, 'pipe'],
    encoding: 'utf8',
  });
  closeSync(full);
  expect(stderr).toMatch(/^svc-agent: standard output cannot be written, ENOSPC: [^\n]*\n$/);
  expect(status).toBe(1);
});

test('output of which only the beginning fits is a failure', () => {
  const file = join(newFolder(), 'schema.json');
  // The kernel writes up to the limit of 16 blocks, and says how much; only the next write fails.
  const script = 'ulimit -f 16; exec "$0" "$1" schema > "$2"';
  const { status, stderr } = spawnSync('sh', ['-c', script, process.execPath, mainFile, file], {
    encoding: 'utf8',
  });
  expect(stderr).toMatch(/^svc-agent: standard output cannot be written, EFBIG: /);
  expect(status).toBe(1);
  expect(statSync(file).size).toBeGreaterThan(0);
});

test.skipIf(!hasFull)('messages that cannot be written do not end a command', () => {
  const file = join(newFolder(), 'ran');
  const full = openSync('/dev/full', 'w');
  const command = [
    'backup',
    'run',
    '--job',
    'a',
    '-c',
    '/nonexistent.yaml',
    '--',
    'sh',
    '-c',
    'echo > "$0"',
    file,
  ];
  const { status } = spawnSync(process.execPath, [mainFile, ...command], {
    stdio: ['ignore', 'ignore', full],
  });
  closeSync(full);
  expect(readFileSync(file, 'utf8')).toBe('\n');
  expect(status).toBe(0);
});
