import { type ChildProcess, spawn } from 'node:child_process';
import { accessSync, constants, statSync } from 'node:fs';
import { delimiter, join } from 'node:path';
import type { Readable } from 'node:stream';
import { errorText, systemCode } from '../core/errors.ts';
import { argumentHider } from '../core/known-secrets.ts';
import type { CommandFailureReason } from '../core/reasons.ts';
import { excerpt, ProbeError } from './probe.ts';

/** Whether a path is a file that may be executed. */
export function isProgram(path: string): boolean {
  try {
    accessSync(path, constants.X_OK);
    return statSync(path).isFile();
  } catch {
    return false;
  }
}

/** The folders of a search path in the form of `PATH`. */
export const foldersOf = (path = ''): string[] => path.split(delimiter).filter((folder) => folder !== '');

/** The first program of this name in the folders of a search path. A name with a slash is a path itself. */
export const findProgram = (name: string, path: string | undefined): string | undefined =>
  (name.includes('/') ? [name] : foldersOf(path).map((folder) => join(folder, name))).find(isProgram);

interface CommandLimits {
  /** Ends the command and everything that it has started: SIGTERM immediately, SIGKILL soon after. */
  signal: AbortSignal;
  /** The maximum number of bytes of standard output, and of standard error; with `onLine` the maximum of one line. */
  maxBytes: number;
  /** Called with each line of standard output as it comes; the output is not collected then. Must not throw. */
  onLine?: (line: string) => void;
  /**
   * Variables in addition to those that every command gets. The agent's own variables, which may contain secrets, are not passed
   * on.
   */
  env?: Readonly<Record<string, string>>;
}

interface CommandOutput {
  stdout: string;
  stderr: string;
  /** Removes what is secret among the arguments from a text of the program. */
  hide(text: string): string;
}

/** Variables that a program needs to be found, to find its files and to write its times and texts. */
const inherited = ['PATH', 'HOME', 'USER', 'LANG', 'LC_ALL', 'TZ', 'TMPDIR'];

/** Time between SIGTERM and SIGKILL. */
const graceMs = 500;
/** How long to wait for output after the last process of the group has ended. */
const lingerMs = 500;
const shownOfStderr = 300;
const searchedOfStderr = 1 << 16;

/**
 * Runs a program by its argument list, without a shell and without standard input. It has its own process group, which ends with
 * it: processes that it started end, too, unless they left the group.
 *
 * Throws ProbeError: `command_missing` for a program that cannot be started, `command_failed` for an exit status other than 0,
 * `too_slow` once the signal aborts, `too_large` for more output than allowed.
 */
export async function runCommand(
  command: readonly string[],
  { signal, maxBytes, env, onLine }: CommandLimits,
): Promise<CommandOutput> {
  const program = command[0] ?? '';
  const hide = argumentHider(command, process.env);
  if (signal.aborted) throw new ProbeError('too_slow', `${program}: there was no time left to start it`);
  const child = start(command, env);
  let failure: ProbeError<CommandFailureReason> | undefined;
  const stop = stopper(child);
  const fail = (reason: CommandFailureReason, what: string) => {
    failure ??= new ProbeError(reason, `${program}: ${what}`);
    stop.terminate();
  };
  const tooLarge = (stream: string) => () => fail('too_large', `more than ${maxBytes} bytes on ${stream}`);
  const onStdout = onLine && eachLine(onLine);
  const stdout = collector(child.stdout!, maxBytes, tooLarge('standard output'), onStdout);
  const stderr = collector(child.stderr!, maxBytes, tooLarge('standard error'));
  const onAbort = () => fail('too_slow', 'did not end in time');
  signal.addEventListener('abort', onAbort, { once: true });
  try {
    const fault = faultOf(await ended(child, stop), program, () => hide(stderr().slice(0, searchedOfStderr)));
    if (failure !== undefined || fault !== undefined) throw failure ?? fault;
    return { stdout: stdout(), stderr: stderr(), hide };
  } finally {
    signal.removeEventListener('abort', onAbort);
  }
}

function start([program = '', ...args]: readonly string[], env: CommandLimits['env']): ChildProcess {
  const own = Object.fromEntries(
    inherited.flatMap((name) => (process.env[name] === undefined ? [] : [[name, process.env[name]]])),
  );
  try {
    return spawn(program, args, {
      detached: true,
      stdio: ['ignore', 'pipe', 'pipe'],
      env: { ...own, ...env },
    });
  } catch (thrown) {
    throw new ProbeError('command_failed', `${program}: cannot be started: ${errorText(thrown)}`, thrown);
  }
}

/** Calls `onLine` with each complete line, and returns the text after the last newline. */
const eachLine = (onLine: (line: string) => void) => (kept: Buffer) => {
  const end = kept.lastIndexOf(0x0a) + 1;
  if (end === 0) return kept;
  for (const line of kept.toString('utf8', 0, end - 1).split('\n')) onLine(line);
  return kept.subarray(end);
};

/**
 * Returns the text so far; output over the limit is read and discarded. `take` may remove bytes from the text and
 * returns the rest.
 */
function collector(
  stream: Readable,
  maxBytes: number,
  onTooLarge: () => void,
  take?: (kept: Buffer) => Buffer,
): () => string {
  let chunks: Buffer[] = [];
  let size = 0;
  stream.on('error', () => {});
  stream.on('data', (chunk: Buffer) => {
    const fitted = size <= maxBytes;
    size += chunk.length;
    if (size > maxBytes) return fitted ? onTooLarge() : undefined;
    chunks.push(chunk);
    if (!take) return;
    chunks = [take(Buffer.concat(chunks))];
    size = chunks[0]!.length;
  });
  return () => Buffer.concat(chunks).toString('utf8');
}

interface Stopper {
  /** Sends SIGTERM to the group, and SIGKILL after the grace period. */
  terminate(): void;
  /** Sends SIGKILL now. */
  kill(): void;
  /** Sets the callback for giving up the wait. */
  onGivenUp(call: () => void): void;
  /** Cancels the timers. */
  done(): void;
}

function stopper(child: ChildProcess): Stopper {
  let timer: NodeJS.Timeout | undefined;
  let giveUp = () => {};
  const later = (delayMs: number, call: () => void) => {
    clearTimeout(timer);
    timer = setTimeout(call, delayMs);
  };
  const kill = () => {
    signalGroup(child, 'SIGKILL');
    // After two turns of the event loop, everything in the pipes has been read before they are closed.
    later(lingerMs, () => setImmediate(() => setImmediate(() => giveUp())));
  };
  return {
    kill,
    terminate() {
      signalGroup(child, 'SIGTERM');
      later(graceMs, kill);
    },
    onGivenUp(call) {
      giveUp = call;
    },
    done: () => clearTimeout(timer),
  };
}

function signalGroup({ pid }: ChildProcess, name: NodeJS.Signals): void {
  if (pid === undefined) return;
  try {
    process.kill(-pid, name);
  } catch {
    // No process of the group is left, or its processes run as another user: the wait ends after a while.
  }
}

interface ProcessEnd {
  status: number | null;
  killedBy: NodeJS.Signals | null;
  thrown?: unknown;
}

/** Waits for the program's end and its output; processes that it left behind are ended with it. */
function ended(child: ChildProcess, stop: Stopper): Promise<ProcessEnd> {
  return new Promise((resolve) => {
    const settle = (end: ProcessEnd) => {
      stop.done();
      child.stdout?.destroy();
      child.stderr?.destroy();
      child.unref();
      resolve(end);
    };
    stop.onGivenUp(() => settle({ status: child.exitCode, killedBy: child.signalCode }));
    child.once('error', (thrown) => settle({ status: null, killedBy: null, thrown }));
    child.once('exit', () => stop.kill());
    child.once('close', (status, killedBy) => settle({ status, killedBy }));
  });
}

function faultOf({ status, killedBy, thrown }: ProcessEnd, program: string, stderr: () => string) {
  if (thrown !== undefined) {
    const missing = ['ENOENT', 'EACCES', 'ENOTDIR', 'ENOEXEC'].includes(systemCode(thrown) ?? '');
    const msg = `${program}: cannot be started: ${systemCode(thrown) ?? errorText(thrown)}`;
    return new ProbeError(missing ? 'command_missing' : 'command_failed', msg, thrown);
  }
  if (status === 0) return undefined;
  const how = killedBy === null ? `exit status ${status}` : `ended by ${killedBy}`;
  return new ProbeError('command_failed', `${program}: ${how}${shown(stderr())}`);
}

function shown(stderr: string): string {
  const line = excerpt(stderr, shownOfStderr);
  return line === '' ? '' : `: ${line}`;
}
