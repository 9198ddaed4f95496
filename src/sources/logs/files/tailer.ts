import type { Clock, Durable, Log } from '../../../core/ports.ts';
import type { LogsOptions } from '../options.ts';
import type { OpenSink, OpenSinks } from '../sink.ts';
import { createLetGoEncoder, decodePositions, encodePositions, recordOf } from './checkpoint.ts';
import { createDiscovery, type PassedOver, type Picture } from './discovery.ts';
import { type Disk, systemDisk } from './disk.ts';
import { createContents } from './fingerprint.ts';
import { createGzipReader } from './gzip.ts';
import { createOpenFiles } from './open-files.ts';
import { compilePatterns, type Patterns } from './patterns.ts';
import { createProblems } from './problems.ts';
import { createReader, createSinks } from './reader.ts';
import { createRotation } from './rotation.ts';
import { createSlices } from './schedule.ts';
import { createTracker, isStale, type TrackedFile } from './tracked-file.ts';

export interface TailerOptions {
  /** Services in the configuration's order, those that are not selected included. */
  services: Readonly<Record<string, LogsOptions>>;
  selected: ReadonlySet<string>;
  /** Longest stretch of work before everything else has its turn; 10 ms unless told. */
  sliceMs?: number;
  /** Files held open at most; fewer if the system allows fewer. 512 unless told. */
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

/** Called with the bytes of a service that are written and not yet counted; `unknown` is what several claim. */
export type HearLag = (service: string, bytes: number) => void;

export interface TailerDeps {
  openSink: OpenSink;
  clock: Clock;
  log: Log;
  lag: HearLag;
  disk?: Disk;
  /** Waits between two slices of work; `setImmediate` unless told. */
  turn?: () => Promise<void>;
}

/**
 * Follows files through rotation, truncation and restarts, and presents each byte of them once. Its section of the
 * snapshot moves in the same step as what its sinks count. `restore` comes before the first scan.
 */
export interface Tailer extends Durable {
  /** Finds out what is there; afterwards every file has its position. */
  discover(): Promise<void>;
  /** A scan, and everything read: what was written before the call is counted when it resolves. */
  look(): Promise<void>;
  /** Reads the files that changed lately. */
  glance(): Promise<void>;
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
/** Scans in one look while something is missing. */
const roundsLimit = 3;

const noPicture: Picture = { files: new Map(), found: new Map(), directories: new Map(), passedOver: [] };

export const lagOf = ({ compressed, nowSize, offset, state }: TrackedFile): number =>
  compressed || state === 'missing' ? 0 : Math.max(0, nowSize - offset);

export function createTailer(options: TailerOptions, deps: TailerDeps): Tailer {
  const { clock, disk = systemDisk } = deps;
  let { openSink } = deps;
  let patterns: Patterns = compilePatterns(options.services, options.selected);
  let services: readonly string[] = [...options.selected];
  /** Files that no selected service claims keep their position. */
  let parked: TrackedFile[] = [];
  const remembered = new Set<string>();
  const active = new Set<TrackedFile>();
  const lags = new Map<string, number>();
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
  const encodeLetGo = createLetGoEncoder(tracker);

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

  // Reading: groups take turns, chunk by chunk; in a group the oldest generation with something to read goes first.

  const turnPlain = (file: TrackedFile) => {
    const turn = reader.turn(file, pass);
    if (turn === 'changed') rotation.rewritten(file);
    else if (turn !== 'more') file.drainedBy = pass;
    // Encoded here, in a slice, so that a freeze of many files has next to nothing to encode.
    if (turn === 'end') recordOf(file);
  };

  /** Returns false if the file is to be tried again in the next scan. */
  const turnGzip = async (file: TrackedFile): Promise<boolean> => {
    const turn = await gzip.turn(file);
    if (turn === 'changed') rotation.mistaken(file);
    else if (turn === 'end') rotation.unpacked(file);
    else if (turn === 'broken' && rotation.broken(file)) return true;
    return turn !== 'closed' && turn !== 'broken';
  };

  const drain = async (stale: Iterable<TrackedFile>) => {
    const groups = new Set<string>();
    for (const file of stale) groups.add(file.path);
    /** Archives are unpacked one after the other: each one begun stays open. */
    let unpacked: TrackedFile | undefined;
    while (groups.size > 0) {
      for (const path of groups) {
        const next = tracker.group(path).find((file) => isStale(file) && file.drainedBy !== pass);
        if (!next || rotation.isBlocked(next)) groups.delete(path);
        else if (rotation.isCopyAfterAll(next)) groups.delete(path);
        else if (next.compressed) {
          if (unpacked?.isUnpacking && unpacked.path !== path && groups.has(unpacked.path)) continue;
          unpacked = next;
          if (!(await turnGzip(next))) groups.delete(path);
        } else turnPlain(next);
        if (isStopped) return;
        if (slices.spent()) await slices.turn();
      }
    }
  };

  const reportLag = () => {
    const next = new Map<string, number>();
    for (const service of [...services, ...lags.keys()]) next.set(service, 0);
    for (const file of tracker) {
      const service = file.claimants.length === 1 ? file.claimants[0]! : 'unknown';
      next.set(service, (next.get(service) ?? 0) + lagOf(file));
    }
    for (const [service, bytes] of next) {
      if (lags.get(service) === bytes) continue;
      lags.set(service, bytes);
      deps.lag(service, bytes);
    }
  };

  const look = async () => {
    for (let round = 0; round < roundsLimit && !isStopped; round++) {
      await discover();
      if (isStopped) return;
      await drain([...tracker].filter(isStale));
      if (!rotation.wantsScan) break;
    }
    rotation.settle();
    reportLag();
  };

  const glance = async () => {
    pass++;
    const nowMs = clock.monotonicMs();
    for (const file of active) {
      rotation.glance(file);
      if (nowMs - file.changedMs > activeMs || file.state === 'missing') active.delete(file);
    }
    await drain(active);
    if (rotation.wantsScan && !isStopped) await look();
    else reportLag();
  };

  let last: Promise<void> = Promise.resolve();
  const inTurn = (work: () => Promise<void>): Promise<void> => {
    const run = () => slices.run(work);
    last = last.then(run, run);
    return last;
  };

  /** Calls that come while one waits share it: it begins after all of them. */
  const shared = (work: () => Promise<void>) => {
    let waiting: Promise<void> | undefined;
    return () => {
      waiting ??= inTurn(() => {
        waiting = undefined;
        return work();
      });
      return waiting;
    };
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

  let frozen: { bytes: Uint8Array; parts: readonly unknown[] } | undefined;

  return {
    name: 'logs',
    discover: shared(discover),
    look: shared(look),
    glance: shared(glance),
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

    freeze() {
      const files = [...tracker, ...rotation.undecided(), ...parked];
      const letGo = encodeLetGo();
      const known = frozen?.parts;
      const isSame =
        known?.length === files.length + 2 &&
        known[0] === letGo &&
        known[1] === remembered.size &&
        files.every(({ record }, i) => record !== undefined && record === known[i + 2]);
      if (frozen && isSame) return frozen.bytes;
      const { lastGeneration } = tracker;
      const bytes = encodePositions({ patterns: [...remembered], lastGeneration, files }, letGo);
      frozen = { bytes, parts: [letGo, remembered.size, ...files.map(({ record }) => record)] };
      return bytes;
    },

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
          lags.clear();
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
      await last.catch(() => {});
      release(tracker);
    },
  };
}
