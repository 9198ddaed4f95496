import type { ChildProcess } from 'node:child_process';
import { existsSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import type { Loaded, LoadRequest } from './types.ts';

/** A file system that hangs must not make a reload hang for ever. On a starved machine the process takes over half a minute. */
const timeoutMs = 300_000;

/** The built worker, beside the bundle's entry or one level above its chunks; undefined if the program runs from source. */
function builtWorker(): string | undefined {
  if (import.meta.url.endsWith('.ts')) return undefined;
  const places = ['./config.cjs', '../config.cjs'].map((path) =>
    fileURLToPath(new URL(path, import.meta.url)),
  );
  return places.find((path) => existsSync(path));
}

type Env = LoadRequest['env'];

/** Starts the process, which then waits for a request. */
function startProcess(worker: string, env: Env): ChildProcess {
  // The module is loaded here, so that only commands that need it load it.
  const { spawn } = process.getBuiltinModule('node:child_process');
  // Pipes replace Node's channel between processes, whose modules this process would have to load.
  return spawn(process.execPath, [worker], {
    // The process connects to nothing, and Node would read the certificates for 40 ms.
    env: { ...env, NODE_OPTIONS: '', NODE_EXTRA_CA_CERTS: '' },
    stdio: ['pipe', 'pipe', 'inherit'],
  });
}

/** A process that has started and got no request yet. */
let early: ChildProcess | undefined;

/**
 * Starts the process for the next `loadConfig`: a start then does not wait for it, because the agent's code loads meanwhile. A
 * process that cannot be started, or that ends, is replaced. Without a request the process ends with the agent.
 */
export function startEarly(env: Env): void {
  const worker = builtWorker();
  early = worker ? startProcess(worker, env).on('error', () => {}) : undefined;
}

function takeEarly(): ChildProcess | undefined {
  const child = early;
  early = undefined;
  const isRunning = child?.pid !== undefined && child.exitCode === null && child.signalCode === null;
  return isRunning ? child : undefined;
}

/**
 * Reads and checks the whole configuration. The built program does it in a short-lived process: a worker thread would leave about
 * 9 MiB behind. Faults are part of the result; it rejects only if there is no result.
 */
export async function loadConfig(request: LoadRequest): Promise<Loaded> {
  const worker = builtWorker();
  if (!worker) return (await import('./validate.ts')).validate(request);
  const child = takeEarly() ?? startProcess(worker, request.env);
  try {
    return JSON.parse(await answerOf(child, request)) as Loaded;
  } finally {
    if (child.exitCode === null) child.kill();
  }
}

/** The answer of the process, one line of JSON. */
function answerOf(child: ChildProcess, request: LoadRequest): Promise<string> {
  let timer: NodeJS.Timeout | undefined;
  const answer = new Promise<string>((resolve, reject) => {
    const failed = (how: string, cause?: unknown) =>
      reject(new Error(`the configuration could not be checked: its process ${how}`, { cause }));
    timer = setTimeout(() => failed(`did not answer within ${timeoutMs / 1000} s`), timeoutMs);
    child.once('error', (error) => failed('could not be started', error));
    // Unlike `exit`, this comes after all that the process wrote.
    child.once('close', (code, signal) => failed(`ended with ${signal ?? code} and without an answer`));
    // Without descriptors for its pipes a process has none, and the error follows.
    if (!child.stdin || !child.stdout) return;
    let text = '';
    child.stdout.setEncoding('utf8').on('data', (piece: string) => {
      text += piece;
      if (text.endsWith('\n')) resolve(text);
    });
    // A process that ended before it read the request is reported by its end.
    child.stdin.on('error', () => {}).end(JSON.stringify(request));
  });
  return answer.finally(() => clearTimeout(timer));
}
