import { execFileSync } from 'node:child_process';
import { mkdtempSync, rmdirSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { onTestFinished } from 'vitest';

const run = (program: string, ...args: string[]) => void execFileSync(program, args, { stdio: 'pipe' });

function mountTmpfs(size: string): string {
  const directory = mkdtempSync(join(tmpdir(), 'svc-agent-tmpfs-'));
  try {
    run('mount', '-t', 'tmpfs', '-o', `size=${size}`, 'tmpfs', directory);
  } catch (error) {
    rmdirSync(directory);
    throw error;
  }
  return directory;
}

function unmount(directory: string): void {
  run('umount', directory);
  rmdirSync(directory);
}

/** Whether this user may mount a tmpfs here. */
export function canMount(): boolean {
  try {
    unmount(mountTmpfs('4k'));
    return true;
  } catch {
    return false;
  }
}

/** Mounts a separate file system, which is removed with the test. Call it before what uses it, so that it is removed last. */
export function tmpfs(size: string): { directory: string; remount(option: 'ro' | 'rw'): void } {
  const directory = mountTmpfs(size);
  onTestFinished(() => unmount(directory));
  return { directory, remount: (option) => run('mount', '-o', `remount,${option}`, directory) };
}
