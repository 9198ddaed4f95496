import { randomBytes } from 'node:crypto';
import { existsSync } from 'node:fs';
import { constants, mkdir, open, readdir, rename, rmdir, stat, unlink } from 'node:fs/promises';
import { createConnection, createServer } from 'node:net';
import { join } from 'node:path';
import { AgentError, systemCode } from '../../core/errors.ts';

export interface Lock {
  /** Whether the lock is still at the directory's path; false once the directory was deleted or replaced. */
  holds(): Promise<boolean>;
  release(): Promise<void>;
}

/** A listening socket, `DIRECTORY/lock-<random>/<pid>-<random>`, that may become the lock. */
interface LockSocket {
  readonly name: string;
  /** Moves the socket to `DIRECTORY/lock`; false if there is a lock already. */
  place(): Promise<boolean>;
  drop(): Promise<void>;
}

const attempts = 20;

const none = () => undefined;

function ignoring(codes: readonly string[]) {
  return (thrown: unknown): undefined => {
    if (!codes.includes(systemCode(thrown) ?? '')) throw thrown;
  };
}

/** Whether a process listens on the socket; true if connecting is not permitted. Throws any other system error. */
function isListening(path: string): Promise<boolean> {
  return new Promise((resolve, reject) => {
    const socket = createConnection(path);
    socket.once('connect', () => {
      socket.destroy();
      resolve(true);
    });
    socket.once('error', (error) => {
      const code = systemCode(error) ?? '';
      // ECONNRESET: the process closed the socket, or died, while this connection was in its queue.
      if (['ECONNREFUSED', 'ECONNRESET', 'ENOENT', 'ENOTDIR'].includes(code)) resolve(false);
      else if (['EAGAIN', 'EACCES', 'EPERM'].includes(code)) resolve(true);
      else reject(error);
    });
  });
}

/** Creates a socket. Undefined if the holder took the new directory for one that a dead process left behind. */
async function createLockSocket(base: string): Promise<LockSocket | undefined> {
  const id = randomBytes(6).toString('hex');
  const lockPath = join(base, `lock-${id}`);
  const name = `${process.pid}-${id}`;
  let home = lockPath;
  await mkdir(lockPath, { mode: 0o755 });
  const server = createServer((socket) => socket.destroy());
  const drop = async () => {
    await new Promise((resolve) => server.close(resolve));
    await unlink(join(home, name)).catch(none);
    await rmdir(home).catch(none);
  };
  const listening = new Promise<void>((resolve, reject) => {
    server.once('error', reject);
    server.listen(join(lockPath, name), resolve);
  });
  try {
    await listening;
  } catch (error) {
    const isTakenAway = !existsSync(lockPath);
    await drop();
    if (isTakenAway) return undefined;
    throw error;
  }
  // A failed accept (no descriptor left) does not matter: the kernel has completed the connection.
  server.on('error', none);
  server.unref();
  const place = async () => {
    const target = join(base, 'lock');
    const moved = await rename(lockPath, target).then(
      () => true,
      ignoring(['ENOTEMPTY', 'EEXIST', 'ENOENT']),
    );
    if (!moved) return false;
    home = target;
    return existsSync(join(target, name));
  };
  return { name, place, drop };
}

/** Removes the sockets of dead processes in `home`; returns the name of the socket of a live process, if there is one. */
async function clearDead(home: string): Promise<string | undefined> {
  const names = (await readdir(home).catch(ignoring(['ENOENT', 'ENOTDIR']))) ?? [];
  for (const name of names) {
    if (await isListening(join(home, name))) return name;
    await unlink(join(home, name)).catch(ignoring(['ENOENT']));
  }
  return undefined;
}

async function clearAbandonedSockets(base: string): Promise<void> {
  for (const entry of await readdir(base)) {
    if (!entry.startsWith('lock-')) continue;
    const living = await clearDead(join(base, entry));
    if (!living) await rmdir(join(base, entry)).catch(none);
  }
}

function lockedError(directory: string, holder: string): AgentError {
  const pid = /^(\d+)-/.exec(holder)?.[1];
  return new AgentError('state_locked', {
    where: 'stateDirectory',
    what: `another agent${pid ? ` (pid ${pid})` : ''} holds the directory`,
    got: directory,
    allowed: 'stop that agent, or give each agent its own directory',
  });
}

export const isLocked = (thrown: unknown): thrown is AgentError =>
  thrown instanceof AgentError && thrown.code === 'state_locked';

async function contend(base: string, directory: string): Promise<LockSocket> {
  for (let attempt = 0; attempt < attempts; attempt++) {
    const socket = await createLockSocket(base);
    if (!socket) continue;
    try {
      if (await socket.place()) return socket;
      const holder = await clearDead(join(base, 'lock'));
      if (holder) throw lockedError(directory, holder);
    } catch (error) {
      await socket.drop();
      throw error;
    }
    await socket.drop();
  }
  throw lockedError(directory, '');
}

/**
 * Locks a state directory with a Unix socket that listens in `DIRECTORY/lock/`. The kernel releases the lock when the process
 * ends, in whatever way. Replacing a dead lock is free of races: a new socket listens before it is visible; its name is never
 * reused, so that removing a dead socket cannot remove a live one; and `rename` of its directory succeeds only onto an empty
 * directory. The lock excludes other agents on the same machine, including other containers, but not agents on another machine
 * that mounts the same directory. Throws `state_locked` with the holder's pid (as the holder itself sees it), or the system's
 * error if no socket can be made.
 */
export async function takeLock(directory: string): Promise<Lock> {
  const handle = await open(directory, constants.O_RDONLY | constants.O_DIRECTORY);
  // A socket's path is limited to 107 bytes (unix(7)). Through the descriptor it is short, whatever the directory.
  const viaDescriptor = `/proc/self/fd/${handle.fd}`;
  const base = existsSync(viaDescriptor) ? viaDescriptor : directory;
  try {
    const socket = await contend(base, directory);
    await clearAbandonedSockets(base).catch(none);
    return {
      holds: () =>
        stat(join(directory, 'lock', socket.name)).then(
          () => true,
          () => false,
        ),
      release: async () => {
        await socket.drop();
        await handle.close();
      },
    };
  } catch (error) {
    await handle.close();
    throw error;
  }
}
