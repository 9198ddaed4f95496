import type { Clock, Durable, Log } from '../../../core/ports.ts';
import type { LogsOptions } from '../options.ts';
import type { OpenSink, OpenSinks } from '../sink.ts';
import { createPositionsEncoder, decodePositions } from './checkpoint.ts';
import { createDiscovery, type PassedOver, type Picture } from './discovery.ts';
import { type Disk, systemDisk } from './disk.ts';
import { createDrain } from './drain.ts';
import { createContents } from './fingerprint.ts';
import { createGzipReader } from './gzip.ts';
import { createOpenFiles } from './open-files.ts';
import { compilePatterns, type Patterns } from './patterns.ts';
import { createProblems } from './problems.ts';
import { createReader, createSinks } from './reader.ts';
import { createRotation } from './rotation.ts';
import { createSlices, type Slices } from './schedule.ts';
import { createTracker, isStale, type TrackedFile, type Tracker } from './tracked-file.ts';

export interface TailerOptions {
  /** Services in the configuration's order, those that are not selected included. */
  services: Readonly<Record<string, LogsOptions>>;
  selected: ReadonlySet<string>;
  /** Longest slice of work before other tasks of the process run; default 10 ms. */
  sliceMs?: number;
  /** Files held open at most; fewer if the system allows fewer. Default 512. */
  maxOpenFiles?: number;
}

export interface FollowedFile {
  path: string;
  services: readonly string[];
  offset: number;
  lagBytes: number;
  /** `following`, or what prevents it. */
  state: string;
}

/** Called with the bytes of a service that are written and not yet counted; `unknown` stands for files that several services claim. */
export type ReportLag = (service: string, bytes: number) => void;

export interface TailerDeps {
  openSink: OpenSink;
  clock: Clock;
  log: Log;
  lag: ReportLag;
  disk?: Disk;
  /** Waits between two slices of work; default `setImmediate`. */
  turn?: () => Promise<void>;
}

/**
 * Follows files through rotation, truncation and restarts, and presents each byte of them once. Its section of the
 * snapshot moves in the same step as what its sinks count. `restore` comes before the first scan.
 */
export interface Tailer extends Durable {
  /** Finds the files without reading them; afterwards every file has its position. */
  discover(): Promise<void>;
  /** Finds the files and reads them: what was written before the call is counted when it resolves. */
  scan(): Promise<void>;
  /** Reads the files that changed lately. */
  poll(): Promise<void>;
  /**
   * Compiles other patterns; throws `config_invalid` and changes nothing. The result swaps them in between two lines: it
   * closes the sinks, waits for `open`, which gives those that follow, and hands their state on. Nothing is read meanwhile.
   */
  prepare(options: Pick<TailerOptions, 'services' | 'selected'>): (open: OpenSinks) => Promise<void>;
  /** Every file that is followed. */
  files(): FollowedFile[];
  /** Files that a pattern matches and that are not read, as of the last scan. */
  readonly passedOver: readonly PassedOver[];
  /** Directories that the last scan listed. */
  readonly directories: readonly string[];
  /** Whether files changed lately, so that polling them is worth it. */
  readonly isActive: boolean;
  /** What the last scan took, reading aside. */
  readonly scanCostMs: number;
  /** Ends after the current slice; the positions stay readable. */
  close(): Promise<void>;
}

/** How long after its last change a file is polled. */
const activeMs = 2_000;
/** Listings in one scan while something is missing. */
const roundsLimit = 3;

export const lagOf = ({ compressed, nowSize, offset, state }: TrackedFile): number =>
  compressed || state === 'missing' ? 0 : Math.max(0, nowSize - offset);

/** Reports the lag of each service once per change; `forget` has all of them reported again. */
function createLagReport(tracker: Tracker, reportLag: ReportLag) {
  const reported = new Map<string, number>();
  return {
    report(services: readonly string[]): void {
      const next = new Map<string, number>();
      for (const service of [...services, ...reported.keys()]) next.set(service, 0);
      for (const file of tracker) {
        const service = file.claimants.length === 1 ? file.claimants[0]! : 'unknown';
        next.set(service, (next.get(service) ?? 0) + lagOf(file));
      }
      for (const [service, bytes] of next) {
        if (reported.get(service) === bytes) continue;
        reported.set(service, bytes);
        reportLag(service, bytes);
      }
    },
    forget: () => reported.clear(),
  };
}

/** Calls that come while one waits share it: it begins after all of them. */
function createTurns(slices: Slices) {
  let last: Promise<void> = Promise.resolve();
  return {
    shared(work: () => Promise<void>): () => Promise<void> {
      let waiting: Promise<void> | undefined;
      const run = () =>
        slices.run(() => {
          waiting = undefined;
          return work();
        });
      return () => {
        if (!waiting) {
          last = last.then(run, run);
          waiting = last;
        }
        return waiting;
      };
    },
    ended: () => last.catch(() => {}),
  };
}

const noPicture: Picture = { files: new Map(), found: new Map(), directories: new Map(), passedOver: [] };

export function createTailer(options: TailerOptions, deps: TailerDeps): Tailer {
  const { clock, disk = systemDisk } = deps;
  let { openSink } = deps;
  let patterns: Patterns = compilePatterns(options.services, options.selected);
  let services: readonly string[] = [...options.selected];
  /** Files that no selected service claims keep their position. */
  let parked: TrackedFile[] = [];
  const remembered = new Set<string>();
  const active = new Set<TrackedFile>();
  let picture = noPicture;
  let pass = 0;
  let scanCostMs = 0;
  let isStopped = false;

  const tracker = createTracker(clock);
  const problems = createProblems(deps.log);
  const slices = createSlices(clock, options.sliceMs ?? 10, deps.turn);
  const sinks = createSinks(() => openSink);
  const openFiles = createOpenFiles({ disk, problems }, options.maxOpenFiles ?? 512);
  const reader = createReader({ disk, openFiles, sinks, problems });
  const gzip = createGzipReader({ disk, openFiles, sinks, problems });
  const discovery = createDiscovery({ disk, slices, problems });
  const rotation = createRotation({
    disk,
    clock,
    log: deps.log,
    tracker,
    openFiles,
    reader,
    sinks,
    contents: createContents({ disk, problems }),
    problems,
    slices,
    patterns: () => patterns,
    changed: (file) => void active.add(file),
  });
  const drain = createDrain({ tracker, reader, gzip, rotation, slices });
  const lags = createLagReport(tracker, deps.lag);
  const turns = createTurns(slices);
  const encode = createPositionsEncoder(tracker);

  const discover = async () => {
    pass++;
    const beganMs = clock.monotonicMs();
    const { watched } = patterns;
    picture = await discovery.scan({
      patterns,
      isRemembered: (pattern) => remembered.has(pattern),
      homes: rotation.homes(),
      targets: rotation.targets(),
    });
    if (isStopped) return;
    await rotation.reconcile(picture);
    if (!isStopped) for (const { pattern } of watched) remembered.add(pattern);
    scanCostMs = clock.monotonicMs() - beganMs;
  };

  const scan = async () => {
    for (let round = 0; round < roundsLimit && !isStopped; round++) {
      await discover();
      if (isStopped) return;
      await drain([...tracker].filter(isStale), pass, () => isStopped);
      if (!rotation.needsScan) break;
    }
    rotation.settle();
    lags.report(services);
  };

  const poll = async () => {
    pass++;
    const nowMs = clock.monotonicMs();
    for (const file of active) {
      rotation.refresh(file);
      if (nowMs - file.changedMs > activeMs || file.state === 'missing') active.delete(file);
    }
    await drain(active, pass, () => isStopped);
    if (rotation.needsScan && !isStopped) await scan();
    else lags.report(services);
  };

  const isStillThere = ({ real, ino }: TrackedFile): boolean => {
    try {
      return disk.stat(real)?.ino === ino;
    } catch {
      return true;
    }
  };

  const admit = (file: TrackedFile) => {
    file.names = '';
    file.claimants = patterns.claimants([file.path]);
    if (patterns.isWatched(file.path)) tracker.add(file);
    else if (file.claimants.length > 0 || isStillThere(file)) parked.push(file);
  };

  const release = (files: Iterable<TrackedFile>) => {
    for (const file of files) {
      active.delete(file);
      openFiles.close(file);
      gzip.close(file);
    }
  };

  return {
    name: 'logs',
    discover: turns.shared(discover),
    scan: turns.shared(scan),
    poll: turns.shared(poll),
    get directories() {
      const listed = [...picture.directories].filter(([, { isListed }]) => isListed);
      return listed.map(([directory]) => directory);
    },
    get passedOver() {
      return picture.passedOver;
    },
    get isActive() {
      return active.size > 0;
    },
    get scanCostMs() {
      return scanCostMs;
    },

    freeze: () => encode([...remembered], [...tracker, ...rotation.undecided(), ...parked]),

    restore(section) {
      const positions = decodePositions(section);
      for (const pattern of positions.patterns) remembered.add(pattern);
      tracker.lastGeneration = positions.lastGeneration;
      for (const file of positions.files) admit(file);
      for (const file of positions.letGo) tracker.letGo(file);
      if (!positions.hasLetGo) rotation.restoredWithoutLetGo();
    },

    prepare(next) {
      const nextPatterns = compilePatterns(next.services, next.selected);
      const nextServices = [...next.selected];
      return (open) =>
        slices.interrupt(async () => {
          const all = [...tracker, ...parked];
          for (const file of all) sinks.reopen(file);
          openSink = await open();
          patterns = nextPatterns;
          services = nextServices;
          parked = [];
          for (const file of all) {
            tracker.remove(file);
            admit(file);
          }
          release(parked);
          lags.forget();
        });
    },

    files: () => [
      ...[...tracker].map((file) => ({
        path: file.real,
        services: file.claimants,
        offset: file.offset,
        lagBytes: lagOf(file),
        state: problems.of(file.real) ?? (file.state === 'missing' ? 'missing' : 'following'),
      })),
      ...picture.passedOver.map(({ path, service, reason }) => ({
        path,
        services: [service],
        offset: 0,
        lagBytes: 0,
        state: `not read: ${reason}`,
      })),
    ],

    async close() {
      isStopped = true;
      await turns.ended();
      release(tracker);
    },
  };
}
