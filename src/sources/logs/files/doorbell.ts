import { type FSWatcher, statSync, watch } from 'node:fs';
import { errorText, systemCode } from '../../../core/errors.ts';
import type { Log } from '../../../core/ports.ts';

/**
 * Calls when something happens in a directory, so that the next scan comes sooner. A directory that cannot be watched, or a
 * system that reports nothing (network mounts), is left to the regular scan. One fs.watch per directory: `npm run bench --
 * doorbell` compares it with chokidar, which takes a watch per file (3 MiB for 100 files, 22 for 2,000, 75 for 10,000,
 * against less than 0.1) and reports no event after the last of two appends that are less than 50 ms apart.
 */
interface Doorbell {
  /** Watches these directories and no others. */
  watch(directories: Iterable<string>): void;
  close(): void;
}

/** Directories beyond these are only scanned. */
const watchesLimit = 64;

/** The system has no watch left: neither for this directory nor for any other. */
const exhausted = new Set(['ENOSPC', 'EMFILE', 'ENFILE']);

interface Watched {
  readonly watcher: FSWatcher;
  /** The directory that is watched: another one may have its path by now. */
  readonly ino: bigint | undefined;
}

const inodeOf = (directory: string): bigint | undefined => {
  try {
    return statSync(directory, { bigint: true, throwIfNoEntry: false })?.ino;
  } catch {
    return undefined;
  }
};

/** `watchDirectory` is the system's call, unless a test plays a fault of it. */
export function createDoorbell(log: Log, ring: () => void, watchDirectory = watch): Doorbell {
  const watches = new Map<string, Watched>();
  /** Directories that cannot be watched, which is logged once; each scan tries again. */
  const refused = new Set<string>();
  let isExhausted = false;

  const end = (directory: string) => {
    watches.get(directory)?.watcher.close();
    watches.delete(directory);
  };

  const fail = (directory: string, thrown: unknown) => {
    end(directory);
    const code = systemCode(thrown) ?? '';
    if (isExhausted || code === 'ENOENT' || code === 'ENOTDIR') return;
    const error = errorText(thrown);
    if (exhausted.has(code)) {
      isExhausted = true;
      log.write('warn', 'directories cannot be watched, and are only scanned', { path: directory, error });
    } else if (!refused.has(directory)) {
      refused.add(directory);
      log.write('warn', 'directory cannot be watched, and is only scanned', { path: directory, error });
    }
  };

  const begin = (directory: string, ino: bigint | undefined) => {
    try {
      const watcher = watchDirectory(directory, { persistent: false }, ring);
      watches.set(directory, { watcher, ino });
      watcher.on('error', (error) => fail(directory, error));
      refused.delete(directory);
    } catch (thrown) {
      fail(directory, thrown);
    }
  };

  return {
    watch(directories) {
      const wanted = new Set([...directories].slice(0, watchesLimit));
      for (const directory of watches.keys()) if (!wanted.has(directory)) end(directory);
      for (const directory of refused) if (!wanted.has(directory)) refused.delete(directory);
      let isNew = false;
      for (const directory of wanted) {
        const ino = inodeOf(directory);
        const known = watches.get(directory);
        if (isExhausted || (known && known.ino === ino)) continue;
        end(directory);
        begin(directory, ino);
        isNew ||= watches.has(directory);
      }
      // Something may have happened between the scan and the first event of a new watch.
      if (isNew) ring();
    },
    close() {
      for (const directory of [...watches.keys()]) end(directory);
    },
  };
}
