import { AgentError } from '../../core/errors.ts';
import type { Clock, Log } from '../../core/ports.ts';
import type { DegradedReason } from '../../core/reasons.ts';
import { type Lock, takeLock } from './lock.ts';
import { createEncoder, type SnapshotContent } from './snapshot.ts';
import {
  createSnapshotFiles,
  type FoundSnapshot,
  type SnapshotFiles,
  type StateFs,
  StepFailure,
  type UnreadFile,
} from './snapshot-files.ts';

/** The state directory while this agent holds its lock. */
export interface StateDirectory extends Pick<SnapshotFiles, 'write'> {
  /**
   * Makes the directory if it is missing, takes its lock, sets aside what cannot be read. Throws `state_locked`,
   * or the system's error where the directory cannot be had; it is not ours then.
   */
  enter(): Promise<FoundSnapshot>;
  /** Reads the snapshots without entering. */
  read(): Promise<FoundSnapshot>;
  setAside(unread: UnreadFile): Promise<void>;
  /** Whether the lock is held and the path still leads to the same directory. */
  isOurs(): Promise<boolean>;
  /** Whether the last snapshot written is still there. */
  stands(): Promise<boolean>;
  leave(): Promise<void>;
}

export function createStateDirectory(
  options: { directory: string; fsync: boolean },
  deps: { fs: StateFs; clock: Clock; log: Log },
): StateDirectory {
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
    read: () => files.read(),
    setAside: (unread) => files.setAside(unread),
    isOurs: async () => (await lock?.holds()) ?? false,
    write: (bytes) => files.write(bytes),
    stands: () => files.stands(),
    leave,
  };
}

export const isLocked = (thrown: unknown) => thrown instanceof AgentError && thrown.code === 'state_locked';

/** Writes contents as numbered snapshots; skips one that equals the last. */
export interface Writer {
  /** Checks the directory, and creates and enters it again if necessary. Throws `StepFailure` (`no_directory`). */
  prepare(): Promise<void>;
  /** Takes the content before it returns, then writes it. Throws `StepFailure`; the last snapshot stays then. */
  write(content: SnapshotContent): Promise<void>;
  /** Numbers the next snapshot higher than this one. */
  follow(sequence: number): void;
  /** Of the last snapshot that was written or followed. */
  sequence(): number;
}

export function createWriter(stateDirectory: StateDirectory): Writer {
  const encoder = createEncoder();
  let sequence = 0;
  /** Failed attempts use a number, too: a restart may find one that failed after its rename. */
  let numbered = 0;
  let isOnDisk = false;

  const follow = (other: number) => {
    sequence = Math.max(sequence, other);
    numbered = Math.max(numbered, other);
  };
  const reenter = async () => {
    isOnDisk = false;
    const found = await stateDirectory.enter();
    // Otherwise a restart would take an earlier agent's snapshot for newer.
    follow(found.snapshots[0]?.sequence ?? 0);
  };
  return {
    async prepare() {
      try {
        const [isOurs, stands] = await Promise.all([stateDirectory.isOurs(), stateDirectory.stands()]);
        if (!stands) isOnDisk = false;
        if (!isOurs) await reenter();
      } catch (cause) {
        throw new StepFailure('no_directory', cause);
      }
    },
    async write(content) {
      if (isOnDisk && encoder.holds(content)) return;
      isOnDisk = false;
      numbered += 1;
      const number = numbered;
      await stateDirectory.write(encode(content, number));
      sequence = number;
      isOnDisk = true;
    },
    follow,
    sequence: () => sequence,
  };

  function encode(content: SnapshotContent, number: number): Uint8Array {
    try {
      return encoder.encode(content, number);
    } catch (cause) {
      throw new StepFailure('write', cause);
    }
  }
}

export interface CommitStatus {
  readonly degraded?: DegradedReason;
  /** Wall clock, ms, of the last commit that was written, or that equalled the last snapshot. */
  readonly lastCommitMs?: number;
  /** Commits that did not. */
  readonly failures: number;
}

/** How commits ended. Logs when the state becomes degraded and when it no longer is, not each failure between. */
export interface CommitOutcomes {
  succeeded(): void;
  failed(reason: DegradedReason, cause: unknown): void;
  /** Like `failed`, without an attempt to commit. */
  degrade(reason: DegradedReason, cause: unknown): void;
  status(): CommitStatus;
}

export function createCommitOutcomes(
  directory: string,
  { log, clock }: { log: Log; clock: Clock },
): CommitOutcomes {
  let degraded: DegradedReason | undefined;
  let sinceMs = 0;
  let lastCommitMs: number | undefined;
  let failures = 0;

  const degrade = (reason: DegradedReason, error: unknown) => {
    const isNews = degraded === undefined;
    degraded = reason;
    if (!isNews) return;
    sinceMs = clock.monotonicMs();
    const msg = 'the state cannot be written: counts go on from memory and may repeat after a restart';
    log.write('error', msg, { directory, reason, error });
  };
  return {
    succeeded() {
      lastCommitMs = clock.nowMs();
      if (degraded === undefined) return;
      degraded = undefined;
      const afterMs = Math.round(clock.monotonicMs() - sinceMs);
      log.write('info', 'the state is written again', { directory, afterMs });
    },
    failed(reason, cause) {
      failures += 1;
      degrade(reason, cause);
    },
    degrade,
    status: () => ({ degraded, lastCommitMs, failures }),
  };
}
