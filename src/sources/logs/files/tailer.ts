import type { Clock, Durable, Log } from '../../../core/ports.ts';
import { createDiscovery } from '../discovery/discovery.ts';
import { createProblems, type Disk, type Problems, systemDisk } from '../discovery/disk.ts';
import { compilePatterns, type PassedOver, type Patterns } from '../discovery/patterns.ts';
import { noPicture } from '../discovery/picture.ts';
import { createSlices, type Slices } from '../discovery/schedule.ts';
import type { LogsOptions } from '../options.ts';
import type { OpenSink, OpenSinks } from '../sink.ts';
import { createComparedFiles, createContents } from './contents.ts';
import { createDrain } from './drain.ts';
import { type Generation, isStale } from './generation.ts';
import { createGenerations, type Generations } from './generations.ts';
import { homesOf, targetsOf } from './groups.ts';
import { createGlimpses } from './losses.ts';
import { createOpenFiles } from './open-files.ts';
import type { ScanDeps } from './places.ts';
import { createPositions } from './positions.ts';
import { createReader } from './reader.ts';
import { createScan } from './scan.ts';
import { createSinks } from './sinks.ts';

interface TailerOptions {
  /** Services in the configuration's order, including those that are not selected. */
  services: Readonly<Record<string, LogsOptions>>;
  selected: ReadonlySet<string>;
  /** Longest slice of work before other tasks of the process run; default 10 ms. */
  sliceMs?: number;
  /** Maximum number of open files, which is lowered if the system allows fewer. Default 512. */
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

/**
 * Called with the number of bytes of a service that are written and not yet counted; `unknown` stands for files that several
 * services claim.
 */
export type ReportLag = (service: string, bytes: number) => void;

interface TailerDeps {
  openSink: OpenSink;
  clock: Clock;
  log: Log;
  lag: ReportLag;
  disk?: Disk;
  /** Waits between two slices of work; default `setImmediate`. */
  turn?: () => Promise<void>;
}

/**
 * Follows files through rotation, truncation and restarts, and presents each of their bytes once. Its section of the snapshot
 * moves in the same step as what its sinks count. `restore` must be called before the first scan.
 */
export interface Tailer extends Durable {
  /** Finds the files without reading them. Afterwards every file has its position. */
  discover(): Promise<void>;
  /** Finds the files and reads them. When it resolves, everything that was written before the call is counted. */
  scan(): Promise<void>;
  /** Reads the files that changed lately. */
  poll(): Promise<void>;
  /**
   * Compiles other patterns; throws `config_invalid` and changes nothing. The result replaces the patterns between two lines: it
   * closes the sinks, waits for `open`, which returns the new sinks, and hands them the state of the old sinks. Nothing is
   * read meanwhile.
   */
  prepare(options: Pick<TailerOptions, 'services' | 'selected'>): (open: OpenSinks) => Promise<void>;
  /** Every file that is followed. */
  files(): FollowedFile[];
  /** Files that a pattern matches and that were not read in the last scan. */
  readonly passedOver: readonly PassedOver[];
  /** Directories that the last scan listed. */
  readonly directories: readonly string[];
  /** Whether files changed lately, so that polling them is worthwhile. */
  readonly isActive: boolean;
  /** How long the last scan took without reading, in milliseconds. */
  readonly scanCostMs: number;
  /** Ends after the current slice. The positions stay readable. */
  close(): Promise<void>;
}

/** How long after its last change a file is polled. */
const activeMs = 2_000;
/** One in this many open files is reserved for files that are compared and not followed. */
const comparedShare = 64;
/** The maximum number of listings in one scan while something is missing. */
const roundsLimit = 3;

const lagOf = ({ place, chain }: Generation): number =>
  !place || place.isGzip ? 0 : Math.max(0, place.size - chain.offset);

/** Reports the lag of each service once per change; after `forget`, all lags are reported again. */
function createLagReport(generations: Generations, reportLag: ReportLag) {
  const reported = new Map<string, number>();
  return {
    report(services: readonly string[]): void {
      const next = new Map<string, number>();
      for (const service of [...services, ...reported.keys()]) next.set(service, 0);
      for (const file of generations.open) {
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

/** Calls that arrive while a call waits share the next call, which begins after all of them. */
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

/** The files that are followed or missing, and those that are not read. */
const filesOf = (generations: Generations, problems: Problems, passedOver: readonly PassedOver[]) => [
  ...[...generations.open].map((of): FollowedFile => {
    const path = of.place?.real ?? of.home;
    return {
      path,
      services: of.claimants,
      offset: of.chain.offset,
      lagBytes: lagOf(of),
      state: problems.of(path) ?? (of.place ? 'following' : 'missing'),
    };
  }),
  ...passedOver.map(({ path, service, reason }): FollowedFile => {
    return { path, services: [service], offset: 0, lagBytes: 0, state: `not read: ${reason}` };
  }),
];

interface Variables
  extends Pick<TailerOptions, 'sliceMs' | 'maxOpenFiles'>,
    Pick<ScanDeps, 'patterns' | 'changed'> {
  openSink(): OpenSink;
}

/** Creates what a scan works with. */
function createParts(
  deps: TailerDeps,
  { sliceMs = 10, maxOpenFiles = 512, openSink, patterns, changed }: Variables,
) {
  const { clock } = deps;
  const generations = createGenerations();
  const listed = deps.disk ?? systemDisk;
  const glimpses = createGlimpses(listed, generations);
  const { disk } = glimpses;
  const problems = createProblems(deps.log);
  const slices = createSlices(clock, sliceMs, deps.turn);
  const sinks = createSinks(generations, openSink);
  const openFiles = createOpenFiles({ disk, problems, log: deps.log, maxOpen: maxOpenFiles });
  const reader = createReader({ clock, disk, generations, openFiles, sinks, problems });
  const compared = createComparedFiles(disk, problems, Math.ceil(maxOpenFiles / comparedShare));
  const discovery = createDiscovery({ disk: listed, slices, problems });
  const scanDeps: ScanDeps = {
    disk,
    clock,
    log: deps.log,
    generations,
    openFiles,
    reader,
    sinks,
    compared,
    contents: createContents({ disk, compared, problems, slices }),
    slices,
    patterns,
    changed,
  };
  return { scanDeps, glimpses, discovery, problems, positions: createPositions(scanDeps) };
}

/** The rounds of a tailer. Each looks for files, decides what they are, and reads what is new. */
function createRounds(
  { scanDeps, glimpses, discovery, positions }: ReturnType<typeof createParts>,
  /** The generations that changed a short time ago. */
  active: Set<Generation>,
  reportLags: () => void,
) {
  const { clock, generations, patterns } = scanDeps;
  const scanner = createScan(scanDeps, glimpses);
  const drain = createDrain(scanDeps, scanner);
  let picture = noPicture;
  let scanCostMs = 0;
  let isStopped = false;

  const discover = async () => {
    const beganMs = clock.monotonicMs();
    const used = patterns();
    const homes = homesOf(generations);
    glimpses.watch(homes);
    const passed = glimpses.take();
    picture = await discovery.scan({
      patterns: used,
      isRemembered: (pattern) => positions.remembered.has(pattern),
      homes,
      targets: targetsOf(generations),
    });
    if (isStopped) return;
    await scanner.reconcile(picture, passed);
    if (!isStopped) for (const { pattern } of used.watched) positions.remembered.add(pattern);
    scanCostMs = clock.monotonicMs() - beganMs;
  };

  const scan = async () => {
    for (let round = 0; round < roundsLimit && !isStopped; round++) {
      await discover();
      if (isStopped) return;
      await drain([...generations.open].filter(isStale), () => isStopped);
      if (!scanner.needsScan) break;
    }
    scanner.settle();
    reportLags();
  };

  const poll = async () => {
    const nowMs = clock.monotonicMs();
    for (const of of active) {
      if (of.place) scanner.refresh(of);
      if (!of.place || nowMs - of.place.changedMs > activeMs) active.delete(of);
    }
    await drain(active, () => isStopped);
    if (scanner.needsScan && !isStopped) await scan();
    else reportLags();
  };

  return {
    async discover() {
      await discover();
      if (!isStopped) scanner.verify();
    },
    scan,
    poll,
    get picture() {
      return picture;
    },
    get scanCostMs() {
      return scanCostMs;
    },
    stop() {
      isStopped = true;
    },
  };
}

export function createTailer(options: TailerOptions, deps: TailerDeps): Tailer {
  let { openSink } = deps;
  let patterns: Patterns = compilePatterns(options.services, options.selected);
  let services: readonly string[] = [...options.selected];
  const active = new Set<Generation>();

  const parts = createParts(deps, {
    ...options,
    openSink: () => openSink,
    patterns: () => patterns,
    changed: (of) => void active.add(of),
  });
  const { problems, positions } = parts;
  const { generations, openFiles, reader, sinks, slices } = parts.scanDeps;
  const lags = createLagReport(generations, deps.lag);
  const turns = createTurns(slices);
  const rounds = createRounds(parts, active, () => lags.report(services));

  const release = (all: Iterable<Generation>) => {
    for (const of of all) {
      active.delete(of);
      reader.close(of);
      if (of.place) openFiles.close(of.place);
    }
  };

  return {
    name: 'logs',
    discover: turns.shared(rounds.discover),
    scan: turns.shared(rounds.scan),
    poll: turns.shared(rounds.poll),
    get directories() {
      const listed = [...rounds.picture.directories].filter(([, { isListed }]) => isListed);
      return listed.map(([directory]) => directory);
    },
    get passedOver() {
      return rounds.picture.passedOver;
    },
    get isActive() {
      return active.size > 0;
    },
    get scanCostMs() {
      return rounds.scanCostMs;
    },

    freeze: positions.freeze,
    restore: positions.restore,

    prepare(next) {
      const nextPatterns = compilePatterns(next.services, next.selected);
      const nextServices = [...next.selected];
      return (open) =>
        slices.interrupt(async () => {
          const all = positions.all();
          for (const { of } of all) sinks.reopen(of);
          openSink = await open();
          patterns = nextPatterns;
          services = nextServices;
          release(positions.readmit(all));
          lags.forget();
        });
    },

    files: () => filesOf(generations, problems, rounds.picture.passedOver),

    async close() {
      rounds.stop();
      await turns.ended();
      release(generations.open);
    },
  };
}
