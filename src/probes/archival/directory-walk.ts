import type { Dirent, Stats } from 'node:fs';
import { join } from 'node:path';
import { systemCode } from '../../core/errors.ts';
import type { Clock } from '../../core/ports.ts';
import { later } from './archives.ts';

// Finds the newest file of a directory of any size. One poll reads a bounded number of entries; the next poll continues where it
// stopped, with the directories still open. The newest file is known once the first pass has ended.

/** The calls of `node:fs/promises` that the walk makes. */
export interface WalkDisk {
  lstat(path: string): Promise<Stats>;
  opendir(path: string, options: { bufferSize: number }): Promise<OpenDirectory>;
}

interface OpenDirectory {
  /** The next entry; null at the end. */
  read(): Promise<Dirent | null>;
  close(): Promise<void>;
}

/** Why a pass left something out. */
export type WalkGap = 'depth' | 'unreadable';

/** One pass over the whole directory. */
interface WalkPass {
  files: number;
  /** Modification time of the newest file, ms since the epoch; missing without a file. */
  newestMs?: number;
  /** The newest file itself, with its permissions. */
  newest?: { path: string; mode: number };
  /** Set if some files were not seen, so that another file may be newer. */
  gap?: WalkGap;
}

export interface DirectoryWalk {
  /** The present pass; undefined between two passes. */
  readonly current: WalkPass | undefined;
  readonly last: WalkPass | undefined;
  /**
   * Continues the pass, or starts the next one. Links are not followed; files that disappear meanwhile are skipped. Makes one
   * call to the file system at a time, so that a call that hangs occupies a single thread. Throws if the directory itself cannot
   * be read, and when `signal` aborts.
   */
  advance(signal: AbortSignal): Promise<void>;
  close(): Promise<void>;
}

/** The time limit of a poll, so that a slow file system still gives a result. */
const pollMs = 10_000;

interface DirectoryWalkOptions {
  /** The maximum number of entries per poll. Default 20,000: about a second on a local disk. */
  maxEntries?: number;
  /** Names that begin with this are left out. */
  ignore?: string;
}

/** The maximum depth below the directory; each level costs one open directory. */
export const maxDepth = 32;

interface DirectoryLevel {
  path: string;
  directory: OpenDirectory;
}

export function createDirectoryWalk(
  root: string,
  { maxEntries = 20_000, ignore = '' }: DirectoryWalkOptions,
  { disk, clock }: { disk: WalkDisk; clock: Clock },
): DirectoryWalk {
  const levels: DirectoryLevel[] = [];
  let current: WalkPass | undefined;
  let last: WalkPass | undefined;

  const enter = async (path: string) => {
    levels.push({ path, directory: await disk.opendir(path, { bufferSize: 256 }) });
  };
  const leave = async () => {
    await levels
      .pop()
      ?.directory.close()
      .catch(() => {});
  };
  const close = async () => {
    while (levels.length > 0) await leave();
    current = undefined;
  };
  const take = async ({ path }: DirectoryLevel, entry: Dirent, pass: WalkPass) => {
    const below = join(path, entry.name);
    if (entry.isDirectory()) {
      if (levels.length > maxDepth) pass.gap = 'depth';
      else await enter(below);
    } else if (entry.isFile() && (ignore === '' || !entry.name.startsWith(ignore))) {
      const { mtimeMs, mode } = await disk.lstat(below);
      pass.files++;
      if (pass.newestMs === undefined || mtimeMs >= pass.newestMs) pass.newest = { path: below, mode };
      pass.newestMs = later(pass.newestMs, mtimeMs);
    }
  };
  /** Handles one entry. Only an error of the root itself ends the walk; other errors leave a gap. */
  const step = async (level: DirectoryLevel, pass: WalkPass) => {
    let entry: Dirent | null;
    try {
      entry = await level.directory.read();
    } catch (error) {
      if (levels.length === 1) throw error;
      pass.gap = 'unreadable';
      return leave();
    }
    if (!entry) return leave();
    try {
      await take(level, entry, pass);
    } catch (error) {
      if (systemCode(error) !== 'ENOENT') pass.gap = 'unreadable';
    }
  };

  return {
    get current() {
      return current;
    },
    get last() {
      return last;
    },
    async advance(signal) {
      const untilMs = clock.monotonicMs() + pollMs;
      if (current === undefined) {
        await enter(root);
        current = { files: 0 };
      }
      try {
        for (let entries = 0; entries < maxEntries && clock.monotonicMs() < untilMs; entries++) {
          signal.throwIfAborted();
          const level = levels.at(-1);
          if (level === undefined) break;
          await step(level, current);
        }
      } catch (error) {
        if (!signal.aborted) await close();
        throw error;
      }
      if (levels.length > 0) return;
      last = current;
      current = undefined;
    },
    close,
  };
}
