import { readFileSync } from 'node:fs';
import { runCommand } from '../src/probes/command.ts';

/** A program of this language, as a command. */
export const script = (text: string, ...args: string[]) => [process.execPath, '-e', text, ...args];

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
