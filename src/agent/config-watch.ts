import { readFileSync, statSync } from 'node:fs';
import { basename, dirname } from 'node:path';
import { type FSWatcher, watch } from 'chokidar';
import type { Clock } from '../core/ports.ts';
import { digestOf, unreadDigest } from './config/environment.ts';

/**
 * Network mounts send no events, and a directory that is removed and made again, or a link above the file that is
 * swung round, may send none that reach a watch.
 */
const compareIntervalMs = 10_000;
/** A rename and a swung link send several events; one comparison after the last is enough. */
const settleMs = 100;

/** The digest of a file's content. */
function contentOf(file: string): string {
  try {
    // A pipe would not be read to its end.
    return statSync(file).isFile() ? digestOf(readFileSync(file)) : unreadDigest;
  } catch {
    return unreadDigest;
  }
}

/**
 * Compares the files with what is known of them. It always reads them, as they are few: two changes of the same size in one
 * tick of the file system's clock, with a comparison between them, leave the same times.
 */
function createComparison(files: Readonly<Record<string, string | undefined>>) {
  const known = new Map(Object.entries(files).map(([file, digest]) => [file, digest ?? contentOf(file)]));
  return (): boolean => {
    let isChanged = false;
    for (const [file, before] of known) {
      const digest = contentOf(file);
      isChanged ||= digest !== before;
      known.set(file, digest);
    }
    return isChanged;
  };
}

/** Calls back on any event of one of the files, or of a link of a mounted volume in their directories. */
function doorbell(files: readonly string[], ring: () => void): FSWatcher {
  const directories = new Set(files.map(dirname));
  const names = new Set(files.map((file) => basename(file)));
  const ignored = (path: string) => {
    const name = basename(path);
    return !directories.has(path) && !names.has(name) && !name.startsWith('..data');
  };
  const options = { depth: 0, ignoreInitial: true, followSymlinks: false, persistent: false, ignored };
  // The comparison covers what cannot be watched. What happened before the watch was ready sent no event.
  return watch([...directories], options)
    .on('all', ring)
    .on('ready', ring)
    .on('error', () => {});
}

/**
 * Calls `changed` when the content behind any of the files differs from what was loaded: edited in place, renamed
 * over, or reached through a link that was swung round (a mounted ConfigMap's `..data`). chokidar says when to
 * compare; a comparison at an interval finds what it misses.
 */
export function watchConfiguration(
  files: Readonly<Record<string, string | undefined>>,
  clock: Clock,
  changed: () => void,
): () => void {
  const isChanged = createComparison(files);
  const compare = () => {
    if (isChanged()) changed();
  };
  let cancelSettle = () => {};
  const ring = () => {
    cancelSettle();
    cancelSettle = clock.after(settleMs, compare);
  };
  let cancelNext = () => {};
  const compareNext = (afterMs: number) => {
    cancelNext = clock.after(afterMs, () => {
      // First, as `changed` may end this watch.
      compareNext(compareIntervalMs);
      compare();
    });
  };
  // The first soon: a file may have changed between its loading and this watch.
  compareNext(settleMs);
  const bell = doorbell(Object.keys(files), ring);
  return () => {
    cancelSettle();
    cancelNext();
    void bell.close();
  };
}
