import { execFileSync } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { runCommand } from '../src/probes/command.ts';

/** A JavaScript program as a command. */
export const script = (text: string, ...args: string[]) => [process.execPath, '-e', text, ...args];

/**
 * Writes a shell script as a program into a folder that is added to the path. A separate process writes it: Linux does not run a
 * file that is open for writing, not even in a process that was just forked.
 */
export function writeProgram(folder: string, name: string, text: string): void {
  const words = ['-c', 'cat > "$0" && chmod 755 "$0"', join(folder, name)];
  execFileSync('sh', words, { input: `#!/bin/sh\n${text}\n` });
}

/** Runs a command with its own signal; returns how it ended. */
export async function ran(
  command: readonly string[],
  { signal = new AbortController().signal, maxBytes = 65_536, env = {} as Record<string, string> } = {},
): Promise<{ stdout?: string; stderr?: string; reason?: string; msg?: string }> {
  try {
    return await runCommand(command, { signal, maxBytes, env });
  } catch (thrown) {
    const { reason, message } = thrown as { reason: string; message: string };
    return { reason, msg: message };
  }
}

/** Whether a process exists and is not a zombie. */
export function isAlive(pid: number): boolean {
  try {
    return !/^\d+ \(.*\) [ZX] /s.test(readFileSync(`/proc/${pid}/stat`, 'utf8'));
  } catch {
    return false;
  }
}
