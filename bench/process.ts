/** What the benches need to know of whole processes on Linux. */
import { spawnSync } from 'node:child_process';
import { readFileSync } from 'node:fs';

export const ticksPerSecond = Number(spawnSync('getconf', ['CLK_TCK'], { encoding: 'utf8' }).stdout);

/** CPU time and memory of a living process, as the kernel has them. */
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
