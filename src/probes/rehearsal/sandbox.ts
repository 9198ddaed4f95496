import { type ChildProcess, execFileSync, type SpawnOptions, spawn } from 'node:child_process';
import {
  chmodSync,
  chownSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  statfsSync,
  writeFileSync,
} from 'node:fs';
import { lstat, opendir } from 'node:fs/promises';
import { join } from 'node:path';
import type { Readable } from 'node:stream';
import { errorText } from '../../core/errors.ts';
import { CannotLook } from './rehearsal.ts';

/** A separate directory for a throwaway server, the processes that run in it, and the limits of both. */
export interface Sandbox {
  readonly path: string;
  /** The directory for temporary files, which the server's user owns. */
  readonly scratch: string;
  /** Aborts when time or space is used up or the agent is gone; its reason is an error. */
  readonly signal: AbortSignal;
  /** Creates a directory that the server's user owns. */
  makeDirectory(name: string): string;
  /** Gives a file or a directory to the server's user. */
  give(path: string): void;
  /**
   * Runs a program to its end as the server's user; returns its output. For an exit status other than 0, throws an error with the
   * end of its standard error.
   */
  run(argv: readonly string[], options?: RunOptions): Promise<string>;
  /** Starts a program that runs until the end of the sandbox, or until it ends by itself. */
  start(argv: readonly string[], options?: RunOptions): RunningProgram;
  /** The number of bytes in the sandbox now. */
  size(): Promise<number>;
  /** Ends every program. */
  stop(): Promise<void>;
  /** Ends every program and removes the directory. */
  remove(): Promise<void>;
}

interface RunOptions {
  env?: Readonly<Record<string, string>>;
  /** The standard input of the program; without it the caller writes to it. */
  input?: Readable;
  /** Whether the program runs as the agent's own user, who may read the backups. */
  asAgent?: boolean;
}

export interface RunningProgram {
  child: ChildProcess;
  /** The end of the program's standard error. */
  said(): string;
  /** Resolves with the reason why the program failed, or undefined. */
  ended: Promise<string | undefined>;
}

interface SandboxOptions {
  directory: string;
  owner: string;
  maxBytes: number;
  timeoutMs: number;
  /** The user as which the server runs if the agent is root, because servers refuse root. */
  user: string;
  /** Ends the sandbox. */
  signal: AbortSignal;
}

const prefix = 'svc-agent-rehearsal-';
const ownerFile = 'owner';
const checkEveryMs = 500;
/** Space that is left free for everything else on the file system. */
const spareBytes = 256 << 20;
const saidBytes = 64 << 10;

/** Creates a sandbox. Throws CannotLook. */
export function openSandbox({
  directory,
  owner,
  maxBytes,
  timeoutMs,
  user,
  signal,
}: SandboxOptions): Sandbox {
  const identity = identityOf(user);
  const path = madeIn(directory);
  writeFileSync(join(path, ownerFile), owner);
  // The server's user must be able to pass through the directory.
  chmodSync(path, 0o711);
  const over = new AbortController();
  const running = new Set<RunningProgram>();
  const give = (file: string) => {
    if (identity.uid !== undefined) chownSync(file, identity.uid, identity.gid!);
  };
  const makeDirectory = (name: string) => {
    const made = join(path, name);
    mkdirSync(made, { mode: 0o700 });
    give(made);
    return made;
  };
  const scratch = makeDirectory('scratch');
  const stopBounds = watchBounds(path, { maxBytes, timeoutMs }, (why) => over.abort(why));

  const start = (argv: readonly string[], { env, input, asAgent }: RunOptions = {}): RunningProgram => {
    if (over.signal.aborted) throw over.signal.reason;
    const program = spawned(argv, {
      ...(asAgent ? {} : identity),
      cwd: path,
      env: { ...plainEnvironment(scratch), ...env },
    });
    running.add(program);
    void program.ended.then(() => running.delete(program));
    // A program that ends early does not read the rest.
    program.child.stdin!.on('error', () => {});
    if (input) input.on('error', () => program.child.kill('SIGKILL')).pipe(program.child.stdin!);
    return program;
  };
  const stop = async () => {
    await endProcessesOf(path);
    for (const { child } of running) child.kill('SIGKILL');
    await Promise.all([...running].map(({ ended }) => ended));
  };
  const cutOff = () => over.abort(new CannotLook('it was cut off'));
  signal.addEventListener('abort', cutOff, { once: true });
  over.signal.addEventListener('abort', () => void stop());
  return {
    path,
    signal: over.signal,
    scratch,
    give,
    makeDirectory,
    async run(argv, options) {
      const program = start(argv, options);
      if (!options?.input) program.child.stdin!.end();
      const chunks: Buffer[] = [];
      program.child.stdout!.on('data', (chunk: Buffer) => chunks.push(chunk));
      const fault = await program.ended;
      if (over.signal.aborted) throw over.signal.reason;
      if (fault !== undefined) throw new Error(fault);
      return Buffer.concat(chunks).toString();
    },
    start,
    size: () => sizeOf(path),
    stop,
    async remove() {
      stopBounds();
      await stop();
      rmSync(path, { recursive: true, force: true, maxRetries: 5 });
    },
  };
}

function madeIn(directory: string): string {
  try {
    return mkdtempSync(join(directory, prefix));
  } catch (thrown) {
    throw new CannotLook(`no directory can be made in ${directory}: ${errorText(thrown)}`);
  }
}

/**
 * The environment of programs. It has no variables of the agent, which may contain secrets, and none that would lead a client to
 * the real store. When MariaDB starts, it removes every temporary table from its directory for temporary files; in the host's
 * directory these would include the tables of the store.
 */
const plainEnvironment = (scratch: string) => ({
  TMPDIR: scratch,
  PATH: process.env.PATH ?? '/usr/bin:/bin',
  LC_ALL: 'C',
  TZ: 'UTC',
  HOME: '/nonexistent',
});

/** The ids of the user as which the server runs; none unless this process is root. Throws CannotLook. */
function identityOf(user: string): { uid?: number; gid?: number } {
  if (process.getuid?.() !== 0) return {};
  try {
    const id = (flag: string) =>
      Number(execFileSync('id', [flag, user], { encoding: 'utf8', stdio: 'pipe' }));
    return { uid: id('-u'), gid: id('-g') };
  } catch {
    throw new CannotLook(`the server refuses to run as root, and this host has no user ${user}`);
  }
}

function spawned([program = '', ...args]: readonly string[], options: SpawnOptions): RunningProgram {
  const child = spawn(program, args, { ...options, stdio: ['pipe', 'pipe', 'pipe'] });
  let said = '';
  child.stderr!.on('data', (chunk: Buffer) => {
    said = (said + chunk.toString()).slice(-saidBytes);
  });
  const ended = new Promise<string | undefined>((resolve) => {
    child.once('error', (thrown) => resolve(`${program}: cannot be started: ${errorText(thrown)}`));
    child.once('close', (status, signal) => {
      if (status === 0) return resolve(undefined);
      const how = signal === null ? `exit status ${status}` : `ended by ${signal}`;
      resolve(`${program.split('/').at(-1)}: ${how}: ${lastWords(said)}`);
    });
  });
  return { child, said: () => said, ended };
}

/** The line of an output that says what went wrong. */
export function lastWords(said: string): string {
  const lines = said.split('\n').filter((line) => line.trim() !== '');
  const telling = lines.filter((line) => /fatal|panic|error/i.test(line) && !/Aborting$/.test(line));
  return (telling.at(-1) ?? lines.at(-1) ?? 'it printed nothing').trim().slice(0, 300);
}

export const mebibytes = (bytes: number): string => `${Math.ceil(bytes / (1 << 20))} MiB`;

/** Calls back once when the time or the space is used up, or when the parent of this process has ended. */
function watchBounds(
  path: string,
  { maxBytes, timeoutMs }: Pick<SandboxOptions, 'maxBytes' | 'timeoutMs'>,
  onOver: (why: Error) => void,
): () => void {
  const beganMs = performance.now();
  const parent = process.ppid;
  let isLooking = false;
  const look = async () => {
    if (process.ppid !== parent) return onOver(new CannotLook('the agent has ended'));
    if (performance.now() - beganMs > timeoutMs)
      return onOver(
        new CannotLook(`not done within ${Math.round(timeoutMs / 1000)} s; set recovery.rehearsal.timeout`),
      );
    const { bavail, bsize } = statfsSync(path);
    if (bavail * bsize < spareBytes)
      return onOver(
        new CannotLook(
          `less than ${mebibytes(spareBytes)} is free in its directory; set recovery.rehearsal.directory`,
        ),
      );
    if ((await sizeOf(path)) > maxBytes)
      return onOver(
        new CannotLook(`it takes more than ${mebibytes(maxBytes)}; set recovery.rehearsal.maxBytes`),
      );
  };
  const timer = setInterval(() => {
    if (isLooking) return;
    isLooking = true;
    // Files come and go while they are counted.
    void look()
      .catch(() => {})
      .finally(() => {
        isLooking = false;
      });
  }, checkEveryMs);
  return () => clearInterval(timer);
}

/** The number of bytes that everything below a path takes on the disk. Files that are removed meanwhile do not count. */
export async function sizeOf(path: string): Promise<number> {
  let bytes = 0;
  try {
    for await (const entry of await opendir(path)) {
      const each = join(path, entry.name);
      if (entry.isDirectory()) bytes += await sizeOf(each);
      else bytes += 512 * ((await lstat(each).catch(() => undefined))?.blocks ?? 0);
    }
  } catch {
    // The file was removed.
  }
  return bytes;
}

/**
 * Ends the servers and removes the directories that killed rehearsals of this owner left. The processes are recognized by the
 * directory on their command line, so no other process is affected.
 */
export async function removeLeftovers(directory: string, owner: string): Promise<void> {
  if (!existsSync(directory)) return;
  for (const name of readdirSync(directory)) {
    if (!name.startsWith(prefix)) continue;
    const path = join(directory, name);
    let left: string;
    try {
      left = readFileSync(join(path, ownerFile), 'utf8');
    } catch {
      continue;
    }
    if (left !== owner) continue;
    await endProcessesOf(path);
    rmSync(path, { recursive: true, force: true, maxRetries: 5 });
  }
}

/** How long a server may take to end by itself. */
const graceMs = 3000;

/**
 * Ends processes whose command line names the directory. A server that is killed leaves its shared memory behind; SIGQUIT ends a
 * PostgreSQL server at once, and it removes its shared memory.
 */
async function endProcessesOf(path: string): Promise<void> {
  signalAll(path, 'SIGQUIT');
  const beganMs = performance.now();
  while (processesOf(path).length > 0 && performance.now() - beganMs < graceMs)
    await new Promise((resolve) => setTimeout(resolve, 20));
  signalAll(path, 'SIGKILL');
}

function signalAll(path: string, name: NodeJS.Signals): void {
  for (const pid of processesOf(path)) {
    try {
      process.kill(pid, name);
    } catch {
      // The process has ended, or belongs to another user.
    }
  }
}

/** The ids of these processes, from proc(5); none on a system without /proc. */
function processesOf(path: string): number[] {
  const pids = existsSync('/proc') ? readdirSync('/proc').filter((name) => /^\d+$/.test(name)) : [];
  return pids.map(Number).filter((pid) => {
    if (pid === process.pid) return false;
    try {
      return readFileSync(`/proc/${pid}/cmdline`, 'utf8').includes(`${path}/`);
    } catch {
      return false;
    }
  });
}
