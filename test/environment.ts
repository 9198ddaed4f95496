import childProcess from 'node:child_process';
import { syncBuiltinESMExports } from 'node:module';
import { afterAll, expect } from 'vitest';
import { noteFacts } from './until.ts';

noteFacts((what) => expect(what).not.toBe(''));

// Files share the process of their worker, and some set variables: after each file, the environment is as before.
const before = { ...process.env };
afterAll(() => {
  for (const name of Object.keys(process.env)) if (!(name in before)) delete process.env[name];
  Object.assign(process.env, before);
});

/**
 * The limit of a program that a test waits for synchronously. The time-outs of Vitest do not end such a wait, because the process
 * of the test does nothing else meanwhile: it would last for ever. A nightly run waits for whole test runs.
 */
const limit = { timeout: 540_000, killSignal: 'SIGKILL' };

type Call = (program: string, ...rest: unknown[]) => unknown;

function limited(call: Call): Call {
  const withLimit: Call = (program, ...rest) => {
    const args = Array.isArray(rest[0]) ? rest.shift() : [];
    return call(program, args, { ...limit, ...(rest[0] as object | undefined) });
  };
  return Object.assign(withLimit, { isLimited: true });
}

// Files share the process of their worker, and this module is loaded for each of them.
if (process.env.TEST_SIZE !== 'nightly' && !('isLimited' in childProcess.spawnSync)) {
  const { spawnSync, execFileSync } = childProcess as unknown as Record<string, Call>;
  Object.assign(childProcess, { spawnSync: limited(spawnSync!), execFileSync: limited(execFileSync!) });
  syncBuiltinESMExports();
}
