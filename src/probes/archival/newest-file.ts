import type { Stats } from 'node:fs';
import { join } from 'node:path';
import { systemCode } from '../../core/errors.ts';
import type { Clock } from '../../core/ports.ts';
import type { Disk } from './disk.ts';

/** How much of a directory is looked through. */
export interface WalkBounds {
  maxEntries: number;
  /** Levels of directories below the first. */
  maxDepth: number;
  /** Monotonic. */
  untilMs: number;
}

/** Why a walk left something out. */
export type WalkCut = 'entries' | 'depth' | 'time' | 'unreadable';

export interface NewestFile {
  files: number;
  /** Time of the last change of the newest file seen, ms since the epoch; none without a file. */
  newestMs?: number;
  /** Not everything was seen, so that another file may be newer. */
  cut?: WalkCut;
}

export interface WalkDeps {
  disk: Disk;
  clock: Clock;
  signal: AbortSignal;
}

/**
 * The newest file below a directory; links are not followed, and what goes away meanwhile is passed over. One
 * call to the file system at a time, so that a hanging one holds a single thread. Throws when the directory
 * itself cannot be read, and when `signal` aborts.
 */
export async function newestFile(
  directory: string,
  bounds: WalkBounds,
  { disk, clock, signal }: WalkDeps,
): Promise<NewestFile> {
  const found: NewestFile = { files: 0 };
  const waiting = [{ path: directory, depth: 0 }];
  let entries = 0;
  const isSpent = (): boolean => {
    signal.throwIfAborted();
    if (entries++ >= bounds.maxEntries) found.cut = 'entries';
    else if (clock.monotonicMs() >= bounds.untilMs) found.cut = 'time';
    else return false;
    return true;
  };
  for (let next = waiting.pop(); next; next = waiting.pop()) {
    const { path, depth } = next;
    try {
      for await (const entry of await disk.opendir(path, { bufferSize: 256 })) {
        if (isSpent()) return found;
        const below = join(path, entry.name);
        if (entry.isFile()) take(found, await statOf(disk, below));
        else if (!entry.isDirectory()) continue;
        else if (depth < bounds.maxDepth) waiting.push({ path: below, depth: depth + 1 });
        else found.cut = 'depth';
      }
    } catch (error) {
      if (signal.aborted || path === directory) throw error;
      if (!isGone(error)) found.cut = 'unreadable';
    }
  }
  return found;
}

function take(found: NewestFile, stats: Stats | undefined): void {
  if (!stats) return;
  found.files++;
  if (found.newestMs === undefined || stats.mtimeMs > found.newestMs) found.newestMs = stats.mtimeMs;
}

async function statOf(disk: Disk, path: string): Promise<Stats | undefined> {
  return disk.lstat(path).catch((error: unknown) => {
    if (isGone(error)) return undefined;
    throw error;
  });
}

const isGone = (error: unknown): boolean => systemCode(error) === 'ENOENT';
