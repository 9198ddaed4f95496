import { readFileSync, statSync } from 'node:fs';
import { basename, dirname } from 'node:path';
import { type FSWatcher, watch } from 'chokidar';
import type { Clock } from '../core/ports.ts';
import { digestOf } from './config/environment.ts';

/**
 * Network mounts send no events, and a directory that is removed and made again, or a link above the file that is
 * swung round, may send none that reach a watch.
 */
const compareIntervalMs = 10_000;
/** A rename and a swung link send several events; one comparison after the last is enough. */
const settleMs = 100;

/** Attributes that change with the content of a file. */
function stampOf(file: string): string {
  try {
    const { dev, ino, size, mtimeMs, ctimeMs } = statSync(file);
    return [dev, ino, size, mtimeMs, ctimeMs].join();
  } catch {
    return 'missing';
  }
}

/** The digest of a file's content; undefined for one that cannot be read. */
function contentOf(file: string): string | undefined {
  try {
    return digestOf(readFileSync(file));
  } catch {
    return undefined;
  }
}

/** Compares the files with their digests; reads only those whose stamp has changed. */
function createComparison(files: Readonly<Record<string, string | undefined>>) {
  const known = Object.entries(files).map(([file, digest]) => ({
    file,
    // The file may have changed since it was loaded: without a stamp, the first comparison reads it.
    stamp: digest === undefined ? stampOf(file) : '',
    digest: digest ?? contentOf(file),
  }));
  return (): boolean => {
    let isChanged = false;
    for (const one of known) {
      const stamp = stampOf(one.file);
      if (stamp === one.stamp) continue;
      const digest = contentOf(one.file);
      isChanged ||= digest !== one.digest;
      one.stamp = stamp;
      one.digest = digest;
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
  // The comparison covers what cannot be watched.
  return watch([...directories], options)
    .on('all', ring)
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
      compare();
      compareNext(compareIntervalMs);
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
