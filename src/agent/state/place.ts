import { AgentError } from '../../core/errors.ts';
import type { Clock, Log } from '../../core/ports.ts';
import {
  createSnapshotFiles,
  type Found,
  type SnapshotFiles,
  type StateFs,
  type UnreadFile,
} from './files.ts';
import { type Lock, takeLock } from './lock.ts';

/** The state directory while it is ours. */
export interface Place extends Pick<SnapshotFiles, 'write'> {
  /**
   * Makes the directory if it is missing, takes its lock, sets aside what cannot be read. Throws `state_locked`,
   * or the system's error where the directory cannot be had; it is not ours then.
   */
  enter(): Promise<Found>;
  /** What can be read there without having entered. */
  look(): Promise<Found>;
  setAside(unread: UnreadFile): Promise<void>;
  /** Whether we are in, and the path still leads to where we entered. */
  isOurs(): Promise<boolean>;
  /** Whether the last snapshot written is still there. */
  stands(): Promise<boolean>;
  leave(): Promise<void>;
}

export function createPlace(
  options: { directory: string; fsync: boolean },
  deps: { fs: StateFs; clock: Clock; log: Log },
): Place {
  const files = createSnapshotFiles(options, deps);
  let lock: Lock | undefined;

  const leave = async () => {
    const left = lock;
    lock = undefined;
    await left?.release();
  };
  const settle = async () => {
    await files.clear();
    const found = await files.read();
    for (const unread of found.unread) await files.setAside(unread);
    return found;
  };

  return {
    async enter() {
      await leave();
      await deps.fs.mkdir(options.directory, { recursive: true, mode: 0o750 });
      lock = await takeLock(options.directory);
      try {
        return await settle();
      } catch (error) {
        await leave();
        throw error;
      }
    },
    look: () => files.read(),
    setAside: (unread) => files.setAside(unread),
    isOurs: async () => (await lock?.holds()) ?? false,
    write: (bytes) => files.write(bytes),
    stands: () => files.stands(),
    leave,
  };
}

export const isLocked = (thrown: unknown) => thrown instanceof AgentError && thrown.code === 'state_locked';
