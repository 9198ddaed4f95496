/** Starts and measures whole processes on Linux, for the benches. Whatever a bench opens here ends with it. */
import { type ChildProcess, type SpawnOptions, spawn, spawnSync } from 'node:child_process';
import { once } from 'node:events';
import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { createServer, type RequestListener } from 'node:http';
import type { AddressInfo, Server } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

/** This checkout, or the checkout whose built agent is measured. */
export const root = process.env.SVC_AGENT_ROOT ?? '.';
export const mainOf = (checkout: string) => join(checkout, 'dist', 'main.js');
export const words = (text = '') => text.split(' ').filter(Boolean);
const ticksPerSecond = Number(spawnSync('getconf', ['CLK_TCK'], { encoding: 'utf8' }).stdout);

/** CPU time and memory of a living process, according to the kernel. */
export interface Usage {
  cpuSeconds: number;
  /** The CPU time of children that ended and were waited for. */
  endedChildrenCpuSeconds: number;
  residentMiB: number;
  /** Private memory (`RssAnon`). */
  anonymousMiB: number;
  peakMiB: number;
}

export function usageOf(pid: number): Usage {
  const fields = readFileSync(`/proc/${pid}/stat`, 'utf8')
    .replace(/^.*\) /s, '')
    .split(' ');
  const status = readFileSync(`/proc/${pid}/status`, 'utf8');
  const mebibytes = (key: string) => Number(new RegExp(`${key}:\\s+(\\d+)`).exec(status)?.[1]) / 1024;
  const seconds = (at: number) => (Number(fields[at]) + Number(fields[at + 1])) / ticksPerSecond;
  return {
    cpuSeconds: seconds(11),
    endedChildrenCpuSeconds: seconds(13),
    residentMiB: mebibytes('VmRSS'),
    anonymousMiB: mebibytes('RssAnon'),
    peakMiB: mebibytes('VmHWM'),
  };
}

export const pause = (ms: number) => new Promise<void>((resolve) => setTimeout(resolve, ms));

export const hasCommand = (name: string) => spawnSync(name, ['--version']).error === undefined;

const atEnd: (() => void)[] = [];
process.once('exit', () => {
  for (const end of atEnd.reverse()) end();
});

/** A new directory, which is removed at the end of the bench. */
export function newPlace(name: string, parent = tmpdir()): string {
  const place = mkdtempSync(join(parent, `svc-agent-${name}-`));
  // A program that was killed a moment ago may still write.
  atEnd.push(() => rmSync(place, { recursive: true, force: true, maxRetries: 9 }));
  return place;
}

/** Starts a program, which is killed at the end of the bench. */
export function launch(
  command: string,
  args: readonly string[],
  options: SpawnOptions = { stdio: 'ignore' },
): ChildProcess {
  const child = spawn(command, args, options);
  atEnd.push(() => child.kill('SIGKILL'));
  return child;
}

/** Whether a program has ended, even if a signal ended it because it ran out of memory. */
export const hasEnded = ({ exitCode, signalCode }: ChildProcess) => exitCode !== null || signalCode !== null;

/** Stops a program and waits for its end. */
export async function stopped(child: ChildProcess): Promise<void> {
  const closed = once(child, 'close');
  child.kill('SIGTERM');
  await closed;
}

/** Makes a server listen until the end of the bench; resolves with its port on loopback. */
export async function listening(server: Server): Promise<number> {
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  return (server.address() as AddressInfo).port;
}

export const serve = (answer: RequestListener) => listening(createServer(answer));

/** Starts a server that accepts whatever is written to it. */
export const serveSink = () =>
  serve((request, response) => void request.resume().on('end', () => response.writeHead(204).end()));

/** Writes an agent.yaml with its own state directory, a listener for scrapes and `rest`; returns its path. */
export function configIn(directory: string, rest: string): string {
  mkdirSync(directory, { recursive: true });
  const file = join(directory, 'agent.yaml');
  const metrics = 'metrics: {pullmetrics: {listenAddress: 127.0.0.1:0}}';
  writeFileSync(file, `stateDirectory: ${join(directory, 'state')}\n${metrics}\n${rest}`);
  return file;
}

export interface RunningAgent {
  child: ChildProcess;
  pid: number;
  /** What the process has logged so far. */
  output(): string;
  /** The host:port to which a listener is bound. */
  address(listener: string): string;
}

interface StartOptions {
  main?: string;
  /** Flags of the agent's Node. Default: the flags in AGENT_FLAGS. */
  flags?: readonly string[];
  env?: NodeJS.ProcessEnv;
}

/**
 * Starts a built agent, and returns when it is ready; NODE names another node. Throws an error with what the agent has logged if
 * the agent ends before it is ready.
 */
export async function startAgent(
  config: string,
  { main = mainOf(root), flags = words(process.env.AGENT_FLAGS), env = process.env }: StartOptions = {},
): Promise<RunningAgent> {
  const child = launch(process.env.NODE ?? process.execPath, [...flags, main, 'run', '-c', config], {
    stdio: ['ignore', 'ignore', 'pipe'],
    env,
  });
  let output = '';
  child.stderr!.setEncoding('utf8').on('data', (text: string) => (output += text));
  while (!output.includes('"msg":"ready"')) {
    if (hasEnded(child)) throw new Error(`${main} ended: ${output}`);
    await pause(1);
  }
  return {
    child,
    pid: child.pid!,
    output: () => output,
    address: (listener) => new RegExp(`"listener":"${listener}","address":"([^"]+)"`).exec(output)![1]!,
  };
}

/** Starts vmagent, which scrapes the ports and writes what it has into a sink. */
export async function startVmagent(
  place: string,
  interval: string,
  ports: Iterable<number>,
): Promise<ChildProcess> {
  const config = join(place, 'vmagent.yml');
  const targets = [...ports].map((port) => `127.0.0.1:${port}`);
  const job = { job_name: 'svc', static_configs: [{ targets }] };
  writeFileSync(config, JSON.stringify({ global: { scrape_interval: interval }, scrape_configs: [job] }));
  return launch('vmagent', [
    `-promscrape.config=${config}`,
    `-remoteWrite.url=http://127.0.0.1:${await serveSink()}/api/v1/write`,
    `-remoteWrite.tmpDataPath=${join(place, 'vmagent')}`,
    '-httpListenAddr=127.0.0.1:0',
    '-promscrape.maxScrapeSize=64MB',
  ]);
}
