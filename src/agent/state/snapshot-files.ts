import { constants } from 'node:fs';
import type { FileHandle } from 'node:fs/promises';
import { join } from 'node:path';
import { getSystemErrorMap } from 'node:util';
import { AgentError, errorText, systemCode } from '../../core/errors.ts';
import { makeDirectory } from '../../core/make-directory.ts';
import type { Clock, Log } from '../../core/ports.ts';
import type { DegradedReason } from '../../core/reasons.ts';
import { type Lock, takeLock } from './lock.ts';
import {
  createEncoder,
  decodeSnapshot,
  maxSnapshotBytes,
  type Snapshot,
  type SnapshotContent,
} from './snapshot.ts';

/** The part of `node:fs/promises` that snapshot files use; tests pass one that fails. */
export type StateFs = Pick<
  typeof import('node:fs/promises'),
  'mkdir' | 'open' | 'readdir' | 'rename' | 'rm' | 'stat'
>;

/** The step of a commit that failed; the cause has the reason. */
export class StepFailure extends Error {
  readonly reason: DegradedReason;

  constructor(reason: DegradedReason, cause: unknown) {
    super(`the state could not be written (${reason})`, { cause });
    this.reason = reason;
  }
}

export interface StoredSnapshot extends Snapshot {
  readonly file: string;
}

export interface UnreadFile {
  readonly file: string;
  readonly cause: unknown;
}

interface FoundSnapshot {
  /** The snapshots, newest first. */
  readonly snapshots: readonly StoredSnapshot[];
  readonly unread: readonly UnreadFile[];
}

interface SnapshotFiles {
  /** Reads the directory; changes nothing. */
  read(): Promise<FoundSnapshot>;
  /** Renames a file that cannot be read to `FILE.corrupt-TIME`, deletes all but the newest few of these, and logs it. */
  setAside(unread: UnreadFile): Promise<void>;
  /** Removes files that a crash between write and rename left behind. */
  clear(): Promise<void>;
  /** Replaces the older of the two snapshots; the newer one stays. Throws `StepFailure`. */
  write(bytes: Uint8Array): Promise<void>;
  /** Whether the snapshot that was written last is still there. */
  isLastThere(): Promise<boolean>;
}

/**
 * The names of the two snapshots, which are written in turn. If the disk loses the newest snapshot (power loss without `fsync`),
 * the snapshot before it is still there: its totals and offsets are older, but belong together.
 */
const slots = ['snapshot-a', 'snapshot-b'] as const;
const temporary = 'snapshot.new';
const keptAside = 4;

async function inStep<T>(reason: DegradedReason, work: () => Promise<T>): Promise<T> {
  try {
    return await work();
  } catch (cause) {
    throw new StepFailure(reason, cause);
  }
}

async function writeAll(handle: FileHandle, bytes: Uint8Array): Promise<void> {
  for (let at = 0; at < bytes.length; ) {
    const { bytesWritten } = await handle.write(bytes, at, bytes.length - at);
    at += bytesWritten;
  }
}

/** The whole content of a regular file of acceptable size; undefined if there is none. */
async function readWhole(fs: StateFs, file: string): Promise<Buffer | undefined> {
  // O_NONBLOCK: a pipe of that name must not block the start.
  const handle = await fs.open(file, constants.O_RDONLY | constants.O_NONBLOCK).catch((error) => {
    if (['ENOENT', 'ENOTDIR'].includes(systemCode(error) ?? '')) return undefined;
    throw error;
  });
  if (!handle) return undefined;
  try {
    const stats = await handle.stat();
    const allowed = `a regular file of at most ${maxSnapshotBytes} bytes`;
    if (!stats.isFile() || stats.size > maxSnapshotBytes) {
      throw new AgentError('snapshot_corrupt', {
        where: file,
        what: 'no snapshot',
        got: stats.size,
        allowed,
      });
    }
    return await handle.readFile();
  } finally {
    // The content has been read, so a failure to close does not matter.
    await handle.close().catch(() => undefined);
  }
}

async function syncDirectory(fs: StateFs, directory: string): Promise<void> {
  const handle = await fs.open(directory, constants.O_RDONLY);
  try {
    await handle.sync();
  } finally {
    await handle.close();
  }
}

/** Writes, syncs and closes a file; returns its inode. */
async function writeFile(fs: StateFs, file: string, bytes: Uint8Array, fsync: boolean): Promise<number> {
  const handle = await inStep('open', () => fs.open(file, 'w', 0o640));
  let inode: number;
  try {
    await inStep('write', () => writeAll(handle, bytes));
    inode = (await inStep('write', () => handle.stat())).ino;
    if (fsync) await inStep('sync', () => handle.datasync());
  } catch (failure) {
    await handle.close().catch(() => undefined);
    throw failure;
  }
  await inStep('write', () => handle.close());
  return inode;
}

async function pruneAside(fs: StateFs, directory: string): Promise<void> {
  const mark = '.corrupt-';
  const timeOf = (name: string) => name.slice(name.indexOf(mark) + mark.length);
  const aside = (await fs.readdir(directory)).filter((name) =>
    slots.some((slot) => name.startsWith(slot + mark)),
  );
  aside.sort((a, b) => (timeOf(a) < timeOf(b) ? 1 : -1));
  for (const name of aside.slice(keptAside))
    await fs.rm(join(directory, name), { recursive: true, force: true });
}

/** The snapshots of one state directory. The caller must hold its lock before it calls anything but `read`. */
function createSnapshotFiles(
  { directory, fsync }: { directory: string; fsync: boolean },
  { fs, clock, log }: { fs: StateFs; clock: Clock; log: Log },
): SnapshotFiles {
  const files = slots.map((slot) => join(directory, slot));
  let oldest = 0;
  let written: { file: string; inode: number } | undefined;

  return {
    async read() {
      const snapshots: StoredSnapshot[] = [];
      const unread: UnreadFile[] = [];
      for (const file of files) {
        try {
          const bytes = await readWhole(fs, file);
          if (bytes) snapshots.push({ ...decodeSnapshot(bytes), file });
        } catch (cause) {
          unread.push({ file, cause });
        }
      }
      snapshots.sort((a, b) => b.sequence - a.sequence);
      oldest = snapshots[0]?.file === files[0] ? 1 : 0;
      return { snapshots, unread };
    },
    async setAside({ file, cause }) {
      const name = `${file}.corrupt-${new Date(clock.nowMs()).toISOString().replaceAll(':', '')}`;
      await fs.rename(file, name);
      oldest = files.indexOf(file);
      log.write('error', 'a snapshot that cannot be read was set aside', {
        file,
        keptAs: name,
        error: cause,
      });
      await pruneAside(fs, directory);
    },
    clear: () => fs.rm(join(directory, temporary), { recursive: true, force: true }),
    async write(bytes) {
      const source = join(directory, temporary);
      const target = files[oldest]!;
      try {
        const inode = await writeFile(fs, source, bytes, fsync);
        await inStep('rename', () => fs.rename(source, target));
        written = { file: target, inode };
        oldest = 1 - oldest;
      } catch (failure) {
        await fs.rm(source, { force: true }).catch(() => undefined);
        throw failure;
      }
      if (fsync) await inStep('sync', () => syncDirectory(fs, directory));
    },
    async isLastThere() {
      if (!written) return false;
      const { file, inode } = written;
      return fs.stat(file).then(
        (stats) => stats.ino === inode,
        () => false,
      );
    },
  };
}

/** A state directory; `enter` locks it for this agent. */
export interface StateDirectory extends Pick<SnapshotFiles, 'write'> {
  /**
   * Creates the directory if it is missing, locks it, and sets aside files that cannot be read. Throws `state_locked`, or the
   * system's error if the directory cannot be used; the lock is not held then.
   */
  enter(): Promise<FoundSnapshot>;
  /** Reads the snapshots without locking the directory. */
  read(): Promise<FoundSnapshot>;
  setAside(unread: UnreadFile): Promise<void>;
  /** Whether the lock is held and the path still leads to the same directory. */
  isOurs(): Promise<boolean>;
  /** Whether the snapshot that was written last is still there. */
  isLastThere(): Promise<boolean>;
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
      await makeDirectory(deps.fs.mkdir, options.directory, 0o750);
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
    isLastThere: () => files.isLastThere(),
    leave,
  };
}

/** Writes contents as numbered snapshots; skips a content that equals the last. */
interface Writer {
  /** Checks the directory, and creates and enters it again if necessary. Throws `StepFailure` (`no_directory`). */
  prepare(): Promise<void>;
  /** Copies the content before it returns, then writes it. Throws `StepFailure`; the last snapshot stays then. */
  write(content: SnapshotContent): Promise<void>;
  /** Numbers the next snapshot higher than this one. */
  follow(sequence: number): void;
  /** Sequence number of the last snapshot that was written or followed. */
  sequence(): number;
}

export function createWriter(stateDirectory: StateDirectory): Writer {
  const encoder = createEncoder();
  let sequence = 0;
  /**
   * The last number that was used. A failed attempt uses a number, too, because a restart may find a snapshot whose attempt
   * failed after its rename.
   */
  let numbered = 0;
  let isOnDisk = false;

  const follow = (other: number) => {
    sequence = Math.max(sequence, other);
    numbered = Math.max(numbered, other);
  };
  const reenter = async () => {
    isOnDisk = false;
    const found = await stateDirectory.enter();
    // Otherwise a restart would consider an earlier agent's snapshot newer.
    follow(found.snapshots[0]?.sequence ?? 0);
  };
  return {
    async prepare() {
      try {
        const [isOurs, isLastThere] = await Promise.all([
          stateDirectory.isOurs(),
          stateDirectory.isLastThere(),
        ]);
        if (!isLastThere) isOnDisk = false;
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
  /** The last error of the system while the state is degraded, such as `no space left on device (ENOSPC)`. */
  readonly error?: string;
  /** The time of the last commit that was written, or that equalled the last snapshot, wall clock, ms. */
  readonly lastCommitMs?: number;
  /** The number of commits that failed. */
  readonly failures: number;
}

/**
 * Records how commits ended. It logs when the state becomes degraded and when it is no longer degraded, but not each failure in
 * between.
 */
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
  let lastError: string | undefined;
  let sinceMs = 0;
  let lastCommitMs: number | undefined;
  let failures = 0;

  const degrade = (reason: DegradedReason, error: unknown) => {
    const isNews = degraded === undefined;
    degraded = reason;
    lastError = systemText(error);
    if (!isNews) return;
    sinceMs = clock.monotonicMs();
    const msg = 'the state cannot be written: counts continue in memory and may repeat after a restart';
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
    status: () => ({
      degraded,
      ...(degraded !== undefined && { error: lastError }),
      lastCommitMs,
      failures,
    }),
  };
}

/** The text of an error: for a system error its own words and its code, otherwise the message. */
function systemText(thrown: unknown): string {
  const { errno = 0, code } = thrown as NodeJS.ErrnoException;
  const [, words] = getSystemErrorMap().get(errno) ?? [];
  return words === undefined ? errorText(thrown) : `${words} (${code})`;
}
