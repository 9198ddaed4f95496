import { execFileSync } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { runCommand } from '../src/probes/command.ts';

/** A program of this language, as a command. */
export const script = (text: string, ...args: string[]) => [process.execPath, '-e', text, ...args];

/**
 * Writes a shell script as a program of a folder that is put into the path. A process of its own writes it: Linux runs
 * no file that is open for writing, also in a process that was just forked.
 */
export function writeProgram(folder: string, name: string, text: string): void {
  const words = ['-c', 'cat > "$0" && chmod 755 "$0"', join(folder, name)];
  execFileSync('sh', words, { input: `#!/bin/sh\n${text}\n` });
}

/** Runs a command with a signal of its own; gives how it ended. */
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

/** Whether a process is there and does not only wait to be forgotten. */
export function isAlive(pid: number): boolean {
  try {
    return !/^\d+ \(.*\) [ZX] /s.test(readFileSync(`/proc/${pid}/stat`, 'utf8'));
  } catch {
    return false;
  }
}
