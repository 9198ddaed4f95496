import type { Clock, Durable, Log } from '../../../core/ports.ts';
import type { LogsOptions } from '../options.ts';
import type { OpenSink } from '../sink.ts';
import { type Claims, createClaims } from './claims.ts';
import { type Disk, systemDisk } from './disk.ts';
import { createLag, type HearLag, lagOf } from './lag.ts';
import { createPasses } from './passes.ts';
import { decodePositions, encodePositions } from './positions.ts';
import type { Trail } from './trail.ts';
import { createTrails } from './trails.ts';

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
  /** `following`, or what stands in the way. */
  state: string;
}

export interface TailerDeps {
  openSink: OpenSink;
  clock: Clock;
  log: Log;
  lag: HearLag;
  disk?: Disk;
}

/**
 * Follows files through rotation, truncation and restarts, and presents each byte of theirs once. Its section of
 * the snapshot moves in the same step as what its sinks count. `restore` comes before the first look.
 */
export interface Tailer extends Durable {
  /** Finds out what is there; afterwards every file has its position. */
  discover(): Promise<void>;
  /** A whole pass: what was written before the call is counted when it resolves. */
  look(): Promise<void>;
  /** A quick pass over the files that changed lately. */
  glance(): Promise<void>;
  /**
   * Goes on with other patterns or rules, in one synchronous step; what the sinks held is handed to those that
   * follow.
   */
  configure(options: Pick<TailerOptions, 'services' | 'selected'>, openSink: OpenSink): void;
  /** Every file that is followed. */
  files(): FollowedFile[];
  readonly directories: ReadonlySet<string>;
  readonly isActive: boolean;
  /** Ends after the current slice; the positions stay readable. */
  close(): Promise<void>;
}

interface Frozen {
  readonly bytes: Uint8Array;
  /** The records that the bytes were put together from. */
  readonly records: readonly (Buffer | undefined)[];
  readonly patternCount: number;
}

export function createTailer(options: TailerOptions, deps: TailerDeps): Tailer {
  const { clock, log, disk = systemDisk } = deps;
  let { openSink } = deps;
  let claims: Claims = createClaims(options.services, options.selected);
  let watched: readonly string[] = [...options.selected];
  let parked: Trail[] = [];
  let frozen: Frozen | undefined;
  const trails = createTrails(clock);
  const patterns = new Set<string>();
  const lag = createLag(deps.lag);
  const passes = createPasses({
    disk,
    clock,
    log,
    trails,
    patterns,
    claims: () => claims,
    openSink: () => openSink,
    sliceMs: options.sliceMs ?? 10,
    maxOpenFiles: options.maxOpenFiles ?? 512,
  });

  let last: Promise<void> = Promise.resolve();
  const inTurn = (work: () => Promise<void>): Promise<void> => {
    last = last.then(work, work);
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

  const tell = () => lag.tell(trails, watched);

  /** A file that no selected service claims keeps its position and is left alone. */
  const admit = (trail: Trail) => {
    trail.names = '';
    trail.claimants = claims.claimants([trail.path]);
    if (claims.isWatched(trail.path)) trails.add(trail);
    else if (trail.claimants.length > 0 || isStillThere(trail, disk)) parked.push(trail);
  };

  /** The last section still holds if every record that it was made of does. */
  const holds = ({ records, patternCount }: Frozen, all: readonly Trail[]) =>
    patternCount === patterns.size &&
    records.length === all.length &&
    all.every(({ record }, i) => record !== undefined && record === records[i]);

  return {
    name: 'logs',
    discover: shared(passes.discover),
    look: shared(async () => {
      await passes.discover();
      await passes.drain();
      tell();
    }),
    glance: shared(async () => {
      await passes.glance();
      tell();
    }),
    get directories() {
      return passes.directories;
    },
    get isActive() {
      return passes.isActive;
    },

    freeze() {
      const all = [...trails, ...parked];
      if (frozen && holds(frozen, all)) return frozen.bytes;
      const { lastGeneration } = trails;
      const bytes = encodePositions({ patterns, lastGeneration, trails: all, count: all.length });
      frozen = { bytes, records: all.map(({ record }) => record), patternCount: patterns.size };
      return bytes;
    },

    restore(section) {
      const positions = decodePositions(section);
      for (const pattern of positions.patterns) patterns.add(pattern);
      trails.lastGeneration = positions.lastGeneration;
      for (const trail of positions.trails) admit(trail);
    },

    configure(next, nextSink) {
      const all = [...trails, ...parked];
      for (const trail of all) passes.sinks.reopen(trail);
      claims = createClaims(next.services, next.selected);
      watched = [...next.selected];
      openSink = nextSink;
      parked = [];
      for (const trail of all) {
        trails.remove(trail);
        admit(trail);
      }
      passes.release(parked);
      lag.forget();
    },

    files: () =>
      [...trails].map((trail) => ({
        path: trail.real,
        services: trail.claimants,
        offset: trail.offset,
        lagBytes: lagOf(trail),
        state: passes.troubles.of(trail.real) ?? 'following',
      })),

    async close() {
      passes.stop();
      await last.catch(() => {});
      passes.release(trails);
    },
  };
}

function isStillThere({ real, ino }: Trail, disk: Disk): boolean {
  try {
    return disk.stat(real)?.ino === ino;
  } catch {
    return true;
  }
}
