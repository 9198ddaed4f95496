import { type ChildProcess, spawn, spawnSync } from 'node:child_process';
import { fileURLToPath } from 'node:url';
import { dispatch } from '../../src/agent/cli/dispatch.ts';
import { listenersIn } from '../entries.ts';
import { fakeIo } from '../unit/cli/fake-io.ts';
import { until } from '../until.ts';

/** The built program. */
export const mainFile = fileURLToPath(new URL('../../dist/main.js', import.meta.url));

/** A program that a test started; its output is stored for failure messages. */
export interface Running {
  readonly child: ChildProcess;
  output(): string;
  /** Resolves with the exit status (or the signal's name) once it has ended. */
  readonly ended: Promise<number | string>;
  /** Sends the signal to exactly this process and waits for its end. */
  end(signal?: NodeJS.Signals): Promise<number | string>;
}

export function start(
  command: string,
  args: readonly string[],
  env: Record<string, string> = {},
  cwd?: string,
): Running {
  const child = spawn(command, args, {
    stdio: ['pipe', 'pipe', 'pipe'],
    env: { ...process.env, ...env },
    cwd,
  });
  let output = '';
  for (const stream of [child.stdout, child.stderr])
    stream.setEncoding('utf8').on('data', (text: string) => (output += text));
  const ended = new Promise<number | string>((resolve) => {
    child.on('error', (error) => resolve(String(error)));
    child.on('close', (code, signal) => resolve(code ?? signal ?? 'unknown'));
  });
  return {
    child,
    output: () => output,
    ended,
    end(signal = 'SIGTERM') {
      if (child.exitCode === null && child.signalCode === null) child.kill(signal);
      return ended;
    },
  };
}

/** Runs a command of the built agent to its end. */
export function command(args: readonly string[], env: Record<string, string> = {}, cwd?: string) {
  const { status, stdout, stderr } = spawnSync(process.execPath, [mainFile, ...args], {
    encoding: 'utf8',
    env: { ...process.env, ...env },
    cwd,
    timeout: 240_000,
  });
  return { status, stdout, stderr };
}

/**
 * What a command of the sources prints and returns, run in this process, for tables of cases. Each command of the built program
 * is two processes, and one case per mechanism is enough for these.
 */
export async function commandHere(args: readonly string[], env: Record<string, string> = {}, cwd?: string) {
  const io = fakeIo(cwd ?? process.cwd(), { ...process.env, ...env } as Record<string, string>);
  const status = await dispatch(args, io);
  return { status, stdout: io.out(), stderr: io.err() };
}

export interface RunningAgent extends Running {
  /** The host:port of a listener, by its name in the log line `listening`. */
  address(listener: string): string;
}

/** Starts the built agent and waits until /ready says so. */
export async function startAgent(
  configFile: string,
  args: readonly string[] = [],
  env: Record<string, string> = {},
): Promise<RunningAgent> {
  const running = start(process.execPath, [mainFile, 'run', '-c', configFile, ...args], env);
  const listeners = () => listenersIn(running.output());
  const failed = running.ended.then((status) => {
    throw new Error(`the agent ended with ${status}: ${running.output()}`);
  });
  failed.catch(() => {});
  const ready = until('the agent is ready', async () => {
    // With TLS on the admin listener, only the other one can be asked.
    const address = listeners().get('admin.health') ?? listeners().get('admin');
    const answer = address && (await fetch(`http://${address}/ready`).catch(() => undefined));
    return answer && answer.status === 200;
  });
  try {
    await Promise.race([ready, failed]);
  } catch (thrown) {
    await running.end('SIGKILL');
    throw thrown;
  }
  return { ...running, address: (name) => listeners().get(name) ?? '' };
}
