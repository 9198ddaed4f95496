import { spawnSync } from 'node:child_process';

/**
 * Whether a test has what it needs. In CI, which installs everything that Debian provides, a missing program is an error: a test
 * must not be skipped there.
 */
export function available(what: string, isThere: boolean): boolean {
  if (!isThere && process.env.CI === 'true')
    throw new Error(`${what} is missing, and CI skips no test for it`);
  return isThere;
}

/** Whether a program of Debian is installed: with these arguments it ends with status 0. */
export const isInstalled = (program: string, args: readonly string[] = ['--version']): boolean =>
  available(program, spawnSync(program, args).status === 0);
