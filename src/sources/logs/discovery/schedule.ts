import { type FSWatcher, statSync, watch } from 'node:fs';
import { errorText, systemCode } from '../../../core/errors.ts';
import type { Clock, Log } from '../../../core/ports.ts';
import { nextTurn } from '../../../core/slices.ts';

/** Cuts long work into slices, so that other tasks wait no longer than one slice. */
export interface Slices {
  spent(): boolean;
  /** Lets other tasks run, then begins a new slice. */
  turn(): Promise<void>;
  /** Runs work that is cut into slices. Only one call runs at a time. */
  run(work: () => Promise<void>): Promise<void>;
  /** Runs `other` between two slices; no slice begins before it ends. Only one call runs at a time. */
  interrupt(other: () => Promise<void>): Promise<void>;
}

export function createSlices(clock: Clock, sliceMs: number, wait = nextTurn): Slices {
  let beganMs = clock.monotonicMs();
  let isInSlice = false;
  let interruption: Promise<void> | undefined;
  let sliceEnded = () => {};

  const begin = () => {
    isInSlice = true;
    beganMs = clock.monotonicMs();
  };
  const end = () => {
    isInSlice = false;
    sliceEnded();
  };
  return {
    spent: () => clock.monotonicMs() - beganMs >= sliceMs,
    async turn() {
      end();
      await wait();
      while (interruption !== undefined) await interruption;
      begin();
    },
    async run(work) {
      while (interruption !== undefined) await interruption;
      begin();
      await work().finally(end);
    },
    async interrupt(other) {
      let over = () => {};
      interruption = new Promise((resolve) => {
        over = resolve;
      });
      if (isInSlice)
        await new Promise<void>((resolve) => {
          sliceEnded = resolve;
        });
      await other().finally(() => {
        interruption = undefined;
        over();
      });
    },
  };
}

const pollIntervalMs = 250;
const scanIntervalMs = 1_000;
/**
 * With very many files a scan is expensive. The interval then grows, up to this limit, so that scans take no more than a
 * hundredth of the time. The interval is also this long while everything that happens rings.
 */
const scanIntervalLimitMs = 2_000;
const scanCostShare = 100;
/** Events come in bursts. One scan serves all events within this time. */
const burstMs = 100;
const burstCostShare = 20;

interface ScheduleDeps {
  clock: Clock;
  log: Log;
  tailer: {
    scan(): Promise<void>;
    poll(): Promise<void>;
    readonly isActive: boolean;
    readonly scanCostMs: number;
  };
  /** Called after each scan. */
  scanned(): void;
  /** Whether every directory is watched, so that what happens there should ring. */
  isWatched(): boolean;
}

/**
 * Decides when to scan and when to poll, with one timer. A poll reads the files that changed lately; a scan finds the files. The
 * cost of a scan, without reading, decides how soon the next scan may follow; the wait between two scans is never longer than 2
 * s.
 *
 * While every directory is watched, what is written, renamed or deleted rings, and a scan follows within 0.1 s. The regular scan
 * then only finds what does not ring: a directory that appears, or a link that is swung above a directory. What a service writes
 * on another host, through a mapping of the file, or through a link from another directory does not ring either. Such a file
 * gives itself away: it has grown in a scan, and no ring follows, although the system reports an event before the timer of the
 * next poll fires. From then on the watches are not relied on.
 */
export function createSchedule({ clock, log, tailer, scanned, isWatched }: ScheduleDeps) {
  let cancel = () => {};
  let isRung = false;
  let isBusy = false;
  let isOver = false;
  let beganMs = clock.monotonicMs();
  let failure = '';
  /** Whether the last scan found a change that had not rung. */
  let isUnheard = false;
  let isReliable = true;

  const intervalMs = () => {
    const costMs = tailer.scanCostMs;
    if (isRung) return Math.min(scanIntervalLimitMs, Math.max(burstMs, burstCostShare * costMs));
    if (isReliable && isWatched()) return scanIntervalLimitMs;
    return Math.min(scanIntervalLimitMs, Math.max(scanIntervalMs, scanCostShare * costMs));
  };

  const plan = () => {
    if (isBusy || isOver) return;
    cancel();
    const dueMs = Math.max(isRung ? burstMs / 2 : 0, beganMs + intervalMs() - clock.monotonicMs());
    cancel = clock.after(tailer.isActive ? Math.min(pollIntervalMs, dueMs) : dueMs, () => void tick());
  };

  const scan = async () => {
    const isUnexpected = !isRung && !tailer.isActive && isWatched();
    isRung = false;
    beganMs = clock.monotonicMs();
    await tailer.scan();
    isUnheard = isUnexpected && tailer.isActive;
    scanned();
  };

  const tick = async () => {
    isBusy = true;
    if (isUnheard && !isRung) isReliable = false;
    isUnheard = false;
    try {
      await (clock.monotonicMs() >= beganMs + intervalMs() ? scan() : tailer.poll());
      failure = '';
    } catch (thrown) {
      if (failure !== errorText(thrown))
        log.write('error', 'log files cannot be read', { error: errorText(thrown) });
      failure = errorText(thrown);
    }
    isBusy = false;
    plan();
  };

  return {
    begin: () => void tick(),
    /** Reports an event in a directory: a scan follows soon. */
    ring(): void {
      if (isRung) return;
      isRung = true;
      plan();
    },
    end(): void {
      isOver = true;
      cancel();
    },
  };
}

/** How many directories are watched. Further directories are only scanned. */
const watchesLimit = 64;

/** Errors that say that the system has no watch left, neither for this directory nor for any other. */
const exhausted = new Set(['ENOSPC', 'EMFILE', 'ENFILE']);

interface Watched {
  readonly watcher: FSWatcher;
  /** The inode of the watched directory: another directory may have its path by now. */
  readonly ino: bigint | undefined;
}

const inodeOf = (directory: string): bigint | undefined => {
  try {
    return statSync(directory, { bigint: true, throwIfNoEntry: false })?.ino;
  } catch {
    return undefined;
  }
};

/**
 * Calls `ring` when something happens in a directory, so that the next scan comes sooner. A directory that cannot be watched, or
 * a system that reports nothing (network mounts), is left to the regular scan. One fs.watch per directory: `npm run bench --
 * doorbell` compares it with chokidar, which takes a watch per file (3 MiB for 100 files, 22 for 2,000, 75 for 10,000, against
 * less than 0.1) and reports no event after the last of two appends that are less than 50 ms apart.
 * `watchDirectory` is the system's call; tests pass a call that fails.
 */
export function createDoorbell(log: Log, ring: () => void, watchDirectory = watch) {
  const watches = new Map<string, Watched>();
  let wantedCount = 0;
  /** Directories that cannot be watched. This is logged once, and each scan tries again. */
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
    /** Watches exactly these directories. */
    watch(directories: readonly string[]): void {
      wantedCount = directories.length;
      const wanted = new Set(directories.slice(0, watchesLimit));
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
    /** Whether there are directories, and each of them is watched. */
    isComplete: (): boolean => wantedCount > 0 && watches.size === wantedCount,
    close(): void {
      for (const directory of [...watches.keys()]) end(directory);
    },
  };
}
