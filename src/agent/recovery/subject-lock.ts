import { randomUUID } from 'node:crypto';
import { mkdirSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { AgentError } from '../../core/errors.ts';
import { makeDirectorySync } from '../../core/make-directory.ts';
import { isLocked, takeLock } from '../state/lock.ts';
import { type Subject, shellText } from './commands.ts';
import { journalError } from './journal.ts';

/**
 * The lock on a database or a domain. Without it, two runs at once, even of different procedures, would restore or fail over at
 * the same time. The kernel releases the lock when the process ends, in whatever way. A command may outlive its run: it is on
 * record here until it ends, and prevents the next run as well.
 */
export interface SubjectLock {
  /**
   * Puts a command on record before it starts, and returns environment variables that mark its processes. Processes of a
   * destructive command may outlive the process that the run knows: `bash -c 'gzip … | mysql'`. Throws `internal`.
   */
  commandStarts(command: readonly string[], isDestructive: boolean): Readonly<Record<string, string>>;
  /** Records the pid of the command. Throws `internal`. */
  commandStarted(pid: number): void;
  /**
   * Removes the record of a command. If a process of a command that did not succeed still runs, returns a text about it, and the
   * record prevents the next run.
   */
  commandEnded(succeeded: boolean): string | undefined;
  release(): Promise<void>;
}

/** The holder of the lock, as written into the lock's directory. */
interface Holder {
  pid: number;
  procedure: string;
  /** ms since the epoch. */
  startMs: number;
}

/** A command of a run, as written into the lock's directory. */
interface RunningCommand {
  command: readonly string[];
  isDestructive: boolean;
  /** Missing if the run was killed while it started the command. */
  pid?: number;
  /** The start of the process, which distinguishes it from a later process with the same pid. */
  start?: string;
  /** The value of the variable that each process of the command has in its environment. */
  mark: string;
}

const markVariable = 'SVC_AGENT_RECOVERY_COMMAND';

/** Locks a subject. Throws `state_locked` with the holder's procedure, pid and start, or with the command that still runs. */
export async function lockSubject(
  stateDirectory: string,
  procedure: string,
  { store, database, domain }: Subject,
): Promise<SubjectLock> {
  const parts = store === undefined ? ['domain', domain] : ['store', store, database];
  const directory = join(stateDirectory, 'recovery-runs', `${encodeURIComponent(parts.join('.'))}.lock`);
  const [holderFile, commandFile] = [join(directory, 'holder.json'), join(directory, 'command.json')];
  const write = (file: string, value: Holder | RunningCommand) => {
    try {
      makeDirectorySync(mkdirSync, directory, 0o750);
      writeFileSync(file, JSON.stringify(value), { mode: 0o640 });
    } catch (thrown) {
      throw journalError(file, thrown);
    }
  };
  try {
    makeDirectorySync(mkdirSync, directory, 0o750);
  } catch (thrown) {
    throw journalError(directory, thrown);
  }
  const lock = await takeLock(directory).catch((thrown: unknown) => {
    throw heldBy(thrown, holderFile, parts.slice(1).join('/'));
  });
  try {
    refuseBeside(readJson<RunningCommand>(commandFile));
    write(holderFile, { pid: process.pid, procedure, startMs: Date.now() });
  } catch (thrown) {
    await lock.release();
    throw thrown;
  }
  let running: RunningCommand | undefined;
  return {
    commandStarts(command, isDestructive) {
      running = { command, isDestructive, mark: randomUUID() };
      write(commandFile, running);
      return { [markVariable]: running.mark };
    },
    commandStarted(pid) {
      if (running !== undefined) write(commandFile, { ...running, pid, start: startOf(pid) });
    },
    commandEnded(succeeded) {
      // What a successful command leaves running is meant to stay, such as a server that it started.
      const left = succeeded || !running?.isDestructive ? undefined : markedProcess(running.mark);
      if (left === undefined) rmSync(commandFile, { force: true });
      return left;
    },
    release: lock.release,
  };
}

/** The ids of all processes; empty on a system without /proc. */
function processIds(): string[] {
  try {
    return readdirSync('/proc').filter((name) => /^\d+$/.test(name));
  } catch {
    return [];
  }
}

/**
 * A process with the mark in its environment, as text for people. A process that runs as another user, or that got a new
 * environment, as with sudo, is not found. From proc(5).
 */
function markedProcess(
  mark: string,
  isWanted: (words: readonly string[]) => boolean = () => true,
): string | undefined {
  for (const pid of processIds()) {
    try {
      const variables = readFileSync(`/proc/${pid}/environ`, 'latin1').split('\0');
      if (!variables.includes(`${markVariable}=${mark}`)) continue;
      const words = readFileSync(`/proc/${pid}/cmdline`, 'utf8').split('\0').slice(0, -1);
      if (isWanted(words)) return `pid ${pid}: ${shellText(words)}`;
    } catch {
      // The process has ended, or belongs to another user.
    }
  }
  return undefined;
}

/** When a process began, together with the boot of the machine; undefined if it has ended. From proc(5). */
function startOf(pid: number): string | undefined {
  try {
    const stat = readFileSync(`/proc/${pid}/stat`, 'utf8');
    // The name of the program, in parentheses, may contain spaces: fields count from its end.
    const [state, ...fields] = stat.slice(stat.lastIndexOf(')') + 2).split(' ');
    if (state === 'Z' || state === 'X') return undefined;
    return `${readFileSync('/proc/sys/kernel/random/boot_id', 'utf8').trim()} ${fields[18]}`;
  } catch {
    return undefined;
  }
}

/** Throws if the command still runs: a second restore beside a restore that outlived its run would ruin both. */
function refuseBeside(running: RunningCommand | undefined): void {
  if (running === undefined) return;
  const { pid, start, mark, command, isDestructive } = running;
  const isItself = pid !== undefined && start !== undefined && startOf(pid) === start;
  const isMarked = !isItself && (isDestructive || pid === undefined);
  // What another command has started is meant to stay, such as the services, so only the command itself counts. A script runs as
  // the last arguments of its interpreter.
  const isCommand = (words: readonly string[]) =>
    isDestructive || command.slice(1).every((word, index, args) => words.at(index - args.length) === word);
  const left = isItself ? `pid ${pid}` : isMarked ? markedProcess(mark, isCommand) : undefined;
  if (left === undefined) return;
  throw new AgentError('state_locked', {
    where: 'svc-agent recover',
    what: `a command of an earlier run is still running (${left}): ${shellText(command)}`,
    allowed: 'wait for its end, or end it',
  });
}

function heldBy(thrown: unknown, holderFile: string, subject: string): unknown {
  if (!isLocked(thrown)) return thrown;
  const pid = Number(/pid (\d+)/.exec(thrown.message)?.[1]);
  const holder = readJson<Holder>(holderFile);
  // The file may still be from an earlier run.
  const who =
    holder?.pid === pid
      ? `a run of ${holder.procedure} (pid ${pid}, since ${new Date(holder.startMs).toISOString()})`
      : `another run${Number.isNaN(pid) ? '' : ` (pid ${pid})`}`;
  return new AgentError(
    'state_locked',
    { where: 'svc-agent recover', what: `${who} is under way for ${subject}`, allowed: 'wait for its end' },
    thrown,
  );
}

function readJson<T>(file: string): T | undefined {
  try {
    return JSON.parse(readFileSync(file, 'utf8')) as T;
  } catch {
    return undefined;
  }
}
