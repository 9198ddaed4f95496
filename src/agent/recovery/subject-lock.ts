import { mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { AgentError } from '../../core/errors.ts';
import { type Lock, takeLock } from '../state/lock.ts';
import type { Subject } from './commands.ts';

/** Who holds the lock, as written into its directory. */
interface Holder {
  pid: number;
  procedure: string;
  /** ms since the epoch. */
  startMs: number;
}

/**
 * Takes the lock of what a procedure changes, a database or a domain: two runs side by side would restore, or fail
 * over, at the same time, also those of different procedures. The kernel releases it with the process, however that
 * ends. Throws `state_locked` with the holder's procedure, pid and start.
 */
export async function lockSubject(
  stateDirectory: string,
  procedure: string,
  { store, database, domain }: Subject,
): Promise<Pick<Lock, 'release'>> {
  const parts = store === undefined ? ['domain', domain] : ['store', store, database];
  const subject = parts.filter((part) => part !== undefined).join('.');
  const directory = join(stateDirectory, 'recovery-runs', `${encodeURIComponent(subject)}.lock`);
  const holderFile = join(directory, 'holder.json');
  mkdirSync(directory, { recursive: true, mode: 0o750 });
  const lock = await takeLock(directory).catch((thrown: unknown) => {
    throw heldBy(thrown, holderFile, parts.slice(1).join('/'));
  });
  const holder: Holder = { pid: process.pid, procedure, startMs: Date.now() };
  writeFileSync(holderFile, JSON.stringify(holder), { mode: 0o640 });
  return lock;
}

function heldBy(thrown: unknown, holderFile: string, subject: string): unknown {
  if (!(thrown instanceof AgentError) || thrown.code !== 'state_locked') return thrown;
  const pid = Number(/pid (\d+)/.exec(thrown.message)?.[1]);
  const holder = readHolder(holderFile);
  // The file may still be that of a run before.
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

function readHolder(file: string): Holder | undefined {
  try {
    return JSON.parse(readFileSync(file, 'utf8')) as Holder;
  } catch {
    return undefined;
  }
}
