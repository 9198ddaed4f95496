import { type FSWatcher, watch } from 'node:fs';
import { errorText } from '../../../core/errors.ts';
import type { Log } from '../../../core/ports.ts';

/**
 * Calls when something happens in a directory, so that the next scan comes sooner. A directory that cannot be watched, or a
 * system that reports nothing (network mounts), is left to the regular scan. One fs.watch per directory: `npm run bench --
 * doorbell` compares it with chokidar, which takes a watch per file (28 MiB for 2,000 files against 0.3) and reports no
 * event after the last of two appends that are less than 50 ms apart.
 */
export interface Doorbell {
  /** Watches these directories and no others. */
  watch(directories: Iterable<string>): void;
  close(): void;
}

/** Directories beyond these are only looked at. */
const watchesLimit = 64;

/** `watchDirectory` is the system's call, unless a test plays a fault of it. */
export function createDoorbell(log: Log, ring: () => void, watchDirectory = watch): Doorbell {
  const bells = new Map<string, FSWatcher>();
  let isBroken = false;

  const unhang = (directory: string) => {
    bells.get(directory)?.close();
    bells.delete(directory);
  };

  const fail = (directory: string, thrown: unknown) => {
    unhang(directory);
    const code = (thrown as NodeJS.ErrnoException).code;
    if (isBroken || code === 'ENOENT' || code === 'ENOTDIR') return;
    isBroken = true;
    log.write('warn', 'directories cannot be watched, files are only looked at in intervals', {
      path: directory,
      error: errorText(thrown),
    });
  };

  const hang = (directory: string) => {
    try {
      const bell = watchDirectory(directory, { persistent: false }, (event, name) => {
        if (event === 'rename' && name === null) unhang(directory);
        ring();
      });
      bells.set(
        directory,
        bell.on('error', (error) => fail(directory, error)),
      );
    } catch (thrown) {
      fail(directory, thrown);
    }
  };

  return {
    watch(directories) {
      const wanted = new Set([...directories].slice(0, watchesLimit));
      for (const directory of bells.keys()) if (!wanted.has(directory)) unhang(directory);
      let isNew = false;
      for (const directory of wanted) {
        if (isBroken || bells.has(directory)) continue;
        hang(directory);
        isNew ||= bells.has(directory);
      }
      // Something may have happened between the scan and the first event of a new watch.
      if (isNew) ring();
    },
    close() {
      for (const directory of [...bells.keys()]) unhang(directory);
    },
  };
}
