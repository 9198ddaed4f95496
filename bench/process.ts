/** Measures whole processes on Linux, for the benches. */
import { type ChildProcess, spawn, spawnSync } from 'node:child_process';
import { readFileSync } from 'node:fs';

export const ticksPerSecond = Number(spawnSync('getconf', ['CLK_TCK'], { encoding: 'utf8' }).stdout);

/** CPU time and memory of a living process, according to the kernel. */
export interface Usage {
  cpuSeconds: number;
  residentMiB: number;
  /** Private memory (`RssAnon`). */
  anonymousMiB: number;
  peakMiB: number;
}

export function usageOf(pid: number): Usage {
  const fields = readFileSync(`/proc/${pid}/stat`, 'utf8')
    .replace(/^.*\) /, '')
    .split(' ');
  const status = readFileSync(`/proc/${pid}/status`, 'utf8');
  const mebibytes = (key: string) => Number(new RegExp(`${key}:\\s+(\\d+)`).exec(status)?.[1]) / 1024;
  const cpuSeconds = (Number(fields[11]) + Number(fields[12])) / ticksPerSecond;
  return {
    cpuSeconds,
    residentMiB: mebibytes('VmRSS'),
    anonymousMiB: mebibytes('RssAnon'),
    peakMiB: mebibytes('VmHWM'),
  };
}

export const pause = (ms: number) => new Promise<void>((resolve) => setTimeout(resolve, ms));

export const hasCommand = (name: string) => spawnSync(name, ['--version']).error === undefined;

interface RunningAgent {
  child: ChildProcess;
  /** What the process has logged so far. */
  output(): string;
  /** The host:port to which a listener is bound. */
  address(listener: string): string;
  /** Whether the process has ended, even if a signal ended it because it ran out of memory. */
  hasEnded(): boolean;
}

/** Starts a built agent, and returns when it is ready. If it ends before, throws an error with what it has logged. */
export async function startAgent(
  main: string,
  config: string,
  { flags = [], env = process.env }: { flags?: readonly string[]; env?: NodeJS.ProcessEnv } = {},
): Promise<RunningAgent> {
  const child = spawn(process.execPath, [...flags, main, 'run', '-c', config], {
    stdio: ['ignore', 'ignore', 'pipe'],
    env,
  });
  let output = '';
  child.stderr.setEncoding('utf8').on('data', (text: string) => (output += text));
  const hasEnded = () => child.exitCode !== null || child.signalCode !== null;
  while (!output.includes('"msg":"ready"')) {
    if (hasEnded()) throw new Error(`${main} ended: ${output}`);
    await pause(2);
  }
  return {
    child,
    hasEnded,
    output: () => output,
    address: (listener) => new RegExp(`"listener":"${listener}","address":"([^"]+)"`).exec(output)![1]!,
  };
}
