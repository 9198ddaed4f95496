import type { LineSink } from '../sink.ts';
import { type Chain, covered, identifyingBytes, noChain, type Part } from './chain.ts';

/** Why the bytes of a generation are in no known file: something else is in its file, or the file is gone. */
export type LostBy = 'truncated' | 'vanished';

/** `followed`: it has a place and is read; `lost`: its bytes are looked for; `ended`: it is remembered, and not read. */
export type Status = 'followed' | 'lost' | 'ended';

/**
 * One generation of a log: the bytes of one file from the first to the last, whatever the name of the file is by now. A snapshot
 * stores generations. Only the functions of `Generations` change a generation; they drop its record in the same step.
 */
export interface Generation {
  /** Orders the generations of a group. An older generation is read before a younger one. */
  readonly number: number;
  /** The path of the log that the generation belongs to. */
  readonly group: string;
  /** The path without links under which the generation was written. */
  readonly home: string;
  readonly chain: Chain;
  /** The number of bytes after the offset that the sink has seen and not counted: an unfinished line. */
  readonly restBytes: number;
  /** The bytes of the unfinished line, if they are few enough to be stored in case the file loses them. */
  readonly rest: Buffer;
  /** The number of plain bytes that were certainly in the file. */
  readonly size: number;
  readonly status: Status;
  readonly lostBy?: LostBy;
  /** Copies of the generation's first few bytes, which are too few to be recognized by marks. */
  readonly parts: readonly Part[];
  readonly claimants: readonly string[];
  /** The names by which patterns matched the file when `claimants` was determined, with NUL between them. */
  readonly names: string;
  /** State of a former sink, until the next sink is opened. */
  readonly sinkState?: Uint8Array;
  readonly place?: Place;

  sink?: LineSink;
  /**
   * Set while the generation is lost: the inode that it had, whether it was at its log's path, the monotonic time in ms of the
   * first settled listing without its bytes, and the monotonic time in ms since which its directory has been missing.
   */
  lost?: {
    readonly key: string;
    readonly dev?: bigint;
    readonly wasLive?: boolean;
    sinceMs?: number;
    absentSinceMs?: number;
  };
  /** The encoding for the snapshot; undefined after a change. */
  record?: Buffer;
}

type PlaceState = 'live' | 'rotated' | 'unlinked';

/** Where a followed generation is now. */
export interface Place {
  readonly dev: bigint;
  readonly ino: bigint;
  /** The path without links where the file was last seen. */
  readonly real: string;
  /** The path by which a pattern last matched it; empty if no pattern matches it. */
  readonly at: string;
  readonly state: PlaceState;
  readonly isGzip: boolean;
  /** The size and time that the last look-up found. */
  readonly size: number;
  readonly mtimeNs: bigint;

  fd?: number;
  /** The modification time of the file when it was read to its end. */
  readMtimeNs: bigint;
  /** Monotonic time of the last change, ms. */
  changedMs: number;
  /** Whether the content was compared since the file was opened, or since the start. */
  isVerified: boolean;
  /** Whether the file was empty when it was first seen. Such a file may turn out to be a copy. */
  isBlank: boolean;
  /** Whether the archive is read in part. If it were closed, it would have to be unpacked from its beginning. */
  isUnpacking: boolean;
}

/** A file that is not read: a copy of a generation, or a generation that has ended. */
export interface Known {
  readonly dev: bigint;
  readonly ino: bigint;
  readonly path: string;
  readonly isGzip: boolean;
  size: number;
  mtimeNs: bigint;
  readonly of: Generation;
  /** The number of scans with a settled listing that did not contain the file. */
  absences: number;
}

/** Unfinished lines of up to this many bytes are stored. A longer line is lost if its file is truncated. */
export const restKeptBytes = 4096;
export const noBytes = Buffer.alloc(0);
const noParts: readonly Part[] = [];

export const countedBytes = ({ chain, rest }: Generation): number => chain.offset + rest.length;
export const seenBytes = ({ chain, restBytes }: Generation): number => chain.offset + restBytes;
/** The number of bytes that can be compared. */
export const knownBytes = ({ chain, rest }: Generation): number =>
  Math.max(covered(chain), chain.offset + rest.length);
/** Whether nothing of the generation was counted. Then reading other bytes in its place counts nothing twice. */
export const isUnread = ({ chain }: Generation): boolean => chain.offset === 0;
/** Whether nothing was ever seen in the generation. */
export const isBlank = (generation: Generation): boolean =>
  generation.size === 0 && knownBytes(generation) + generation.restBytes === 0;
export const isStrong = (generation: Generation): boolean => countedBytes(generation) >= identifyingBytes;

/** Whether there may be something to read, or the file may have been replaced or rewritten. */
export const isStale = (generation: Generation): boolean => {
  const { place } = generation;
  if (!place) return false;
  return place.isGzip || place.size !== seenBytes(generation) || place.mtimeNs !== place.readMtimeNs;
};

/** The number of bytes that are known to have been in the generation and were not read, apart from the unfinished line. */
export const unreadBytes = (generation: Generation): number =>
  Math.max(0, generation.size - countedBytes(generation));

type Located = Pick<Place, 'dev' | 'ino' | 'real' | 'at' | 'state' | 'isGzip' | 'size' | 'mtimeNs'>;

/** A new place. Every property is written out: an object that gets properties later takes several times the memory. */
export const newPlace = ({ dev, ino, real, at, state, isGzip, size, mtimeNs }: Located): Place => ({
  dev,
  ino,
  real,
  at,
  state,
  isGzip,
  size,
  mtimeNs,
  fd: undefined,
  readMtimeNs: -1n,
  changedMs: 0,
  isVerified: false,
  isBlank: false,
  isUnpacking: false,
});

export const newGeneration = (
  of: Pick<Generation, 'number' | 'group' | 'home' | 'claimants'> & Partial<Generation>,
): Generation => ({
  number: of.number,
  group: of.group,
  home: of.home,
  claimants: of.claimants,
  chain: of.chain ?? noChain,
  restBytes: of.restBytes ?? 0,
  rest: of.rest ?? noBytes,
  size: of.size ?? 0,
  status: of.status ?? 'lost',
  lostBy: of.lostBy,
  parts: of.parts ?? noParts,
  names: of.names ?? '',
  sinkState: of.sinkState,
  place: of.place,
  sink: of.sink,
  lost: of.lost,
  record: undefined,
});
