import { execFileSync, spawnSync } from 'node:child_process';
import { expect, test } from 'vitest';

test('a program that a test waits for synchronously is killed at a limit, whatever the form of the call', () => {
  expect(spawnSync).toHaveProperty('isLimited');
  expect(execFileSync).toHaveProperty('isLimited');
  // SIGKILL is part of the limit; the default of Node is SIGTERM, which a program may ignore.
  const stubborn = ['-c', 'trap "" TERM; while :; do sleep 0.01; done'];
  expect(spawnSync('sh', stubborn, { timeout: 100 })).toMatchObject({
    signal: 'SIGKILL',
    error: { code: 'ETIMEDOUT' },
  });
  expect(spawnSync('true').status).toBe(0);
  expect(execFileSync('echo', ['a b'], { encoding: 'utf8' })).toBe('a b\n');
  expect(execFileSync('cat', { input: 'x', encoding: 'utf8' })).toBe('x');
});
