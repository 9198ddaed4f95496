import type { LineSink } from '../sink.ts';
import { type Chain, covered, identifyingBytes, noChain, type Part } from './chain.ts';
import { fileKey } from './discovery.ts';

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
  /** The path by which a pattern last matched it; empty if none does. */
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

/** Unfinished lines of up to this many bytes are stored. A longer one is lost if its file is truncated. */
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

/** How many deleted files have their content remembered, for copies that appear later. */
const deletedLimit = 128;

type Changes = Partial<Omit<Generation, 'place' | 'record' | 'group' | 'status'>>;

/** Every generation, by the files that hold it and by its group. Nothing else changes a generation. */
export interface Generations {
  /** By `fileKey`, the generation that is read from the file, or what is known of a file that is not read. */
  readAt(key: string): Generation | undefined;
  knownAt(key: string): Known | undefined;
  /** The generations that are followed or lost. */
  readonly open: ReadonlySet<Generation>;
  readonly lost: ReadonlySet<Generation>;
  readonly known: ReadonlyMap<string, Known>;
  /** The followed and lost generations of a group, oldest first. */
  group(path: string): readonly Generation[];
  /** The ended generations of a group. */
  ended(path: string): Iterable<Generation>;
  hasGroup(path: string): boolean;
  all(): Iterable<Generation>;
  readonly groups: Iterable<string>;
  /** Changes whenever a group is added. */
  readonly groupsAdded: number;
  copiesOf(generation: Generation): readonly Known[];

  add(generation: Generation, place?: Place): void;
  remove(generation: Generation): void;
  update(generation: Generation, changes: Changes): void;
  /** Changes what is recorded of a generation's place. */
  relocate(generation: Generation, changes: Partial<Place>): void;
  move(generation: Generation, group: string): void;
  /** Gives new numbers to the followed and lost generations of a group. */
  arrange(path: string, members: readonly Generation[]): void;
  /** Marks a generation as lost: another file has its place by now, or the file is gone. */
  lose(generation: Generation, by: LostBy): void;
  /** From now on the generation is read from this file. */
  settle(generation: Generation, place: Place): void;
  /** From now on the generation is not read any more. */
  end(generation: Generation, lostBy?: LostBy): void;
  know(file: Omit<Known, 'absences'>): void;
  forget(file: Known): void;

  nextNumber(): number;
  /** The last number that was given to a generation. It continues from a snapshot. */
  lastNumber: number;
}

type Mutable<T> = { -readonly [K in keyof T]: T[K] };

interface Members {
  readonly all: Set<Generation>;
  /** Those that are followed or lost, oldest first; undefined after a change. */
  sorted: readonly Generation[] | undefined;
}

const byNumber = (a: Generation, b: Generation) => a.number - b.number;

export function createGenerations(): Generations {
  const open = new Set<Generation>();
  const lost = new Set<Generation>();
  const reads = new Map<string, Generation>();
  const known = new Map<string, Known>();
  const copies = new Map<Generation, Set<Known>>();
  const groups = new Map<string, Members>();
  let groupsAdded = 0;
  /** Ended generations that are in no file any more. */
  const deleted = new Set<Generation>();

  const change = (generation: Generation, changes: Partial<Generation>) => {
    Object.assign(generation as Mutable<Generation>, changes, { record: undefined });
  };
  const enter = (generation: Generation) => {
    const { group } = generation;
    const members = groups.get(group) ?? { all: new Set(), sorted: undefined };
    if (members.all.size === 0) groupsAdded++;
    groups.set(group, members);
    members.all.add(generation);
    members.sorted = undefined;
  };
  const leave = (generation: Generation) => {
    const { group } = generation;
    const members = groups.get(group);
    members?.all.delete(generation);
    if (members) members.sorted = undefined;
    if (members?.all.size === 0) groups.delete(group);
  };
  /** Puts a generation, after changes, at the end of its group. */
  const replace = (generation: Generation, changes: Partial<Generation>) => {
    leave(generation);
    change(generation, changes);
    enter(generation);
  };
  const vacate = (generation: Generation) => {
    const { place } = generation;
    if (place && reads.get(fileKey(place)) === generation) reads.delete(fileKey(place));
  };
  const keepDeleted = (generation: Generation) => {
    if (generation.status !== 'ended' || copies.has(generation)) return;
    deleted.add(generation);
    const [oldest] = deleted;
    if (deleted.size > deletedLimit && oldest) all.remove(oldest);
  };

  const all: Generations = {
    lastNumber: 0,
    nextNumber: () => ++all.lastNumber,
    open,
    lost,
    known,
    readAt: (key) => reads.get(key),
    knownAt: (key) => known.get(key),
    group(path) {
      const members = groups.get(path);
      if (!members) return [];
      members.sorted ??= [...members.all].filter(({ status }) => status !== 'ended').sort(byNumber);
      return members.sorted;
    },
    ended: (path) => [...(groups.get(path)?.all ?? [])].filter(({ status }) => status === 'ended'),
    hasGroup: (path) => groups.has(path),
    *all() {
      yield* open;
      for (const path of groups.keys()) yield* all.ended(path);
    },
    get groups() {
      return groups.keys();
    },
    get groupsAdded() {
      return groupsAdded;
    },
    copiesOf: (generation) => [...(copies.get(generation) ?? [])],

    add(generation, place) {
      change(generation, { place, status: place ? 'followed' : generation.status });
      if (place) reads.set(fileKey(place), generation);
      if (generation.status === 'lost') lost.add(generation);
      if (generation.status !== 'ended') open.add(generation);
      enter(generation);
      keepDeleted(generation);
    },
    remove(generation) {
      for (const file of all.copiesOf(generation)) known.delete(fileKey(file));
      copies.delete(generation);
      deleted.delete(generation);
      open.delete(generation);
      lost.delete(generation);
      vacate(generation);
      leave(generation);
    },
    update: change,
    relocate(generation, changes) {
      Object.assign(generation.place as Mutable<Place>, changes);
      generation.record = undefined;
    },
    move: (generation, group) => replace(generation, { group }),
    arrange(path, members) {
      for (const generation of members) change(generation, { number: all.nextNumber() });
      groups.get(path)!.sorted = undefined;
    },
    lose(generation, lostBy) {
      const { place, size } = generation;
      vacate(generation);
      const key = place ? fileKey(place) : '';
      // The size of an archive says nothing about its generation, and neither does the size of what was written in its place.
      const isItsOwn = place && !place.isGzip && lostBy === 'vanished';
      const told = isItsOwn ? Math.max(size, place.size) : size;
      change(generation, { status: 'lost', lostBy, place: undefined, size: told });
      generation.lost = { key, dev: place?.dev, wasLive: place?.state === 'live' };
      lost.add(generation);
    },
    settle(generation, place) {
      const before = known.get(fileKey(place));
      if (before) all.forget(before);
      vacate(generation);
      lost.delete(generation);
      deleted.delete(generation);
      replace(generation, { status: 'followed', place, lostBy: undefined, lost: undefined });
      open.add(generation);
      reads.set(fileKey(place), generation);
    },
    end(generation, lostBy) {
      vacate(generation);
      open.delete(generation);
      lost.delete(generation);
      const restBytes = generation.rest.length;
      const none = { place: undefined, lost: undefined, names: '' };
      replace(generation, { ...none, status: 'ended', lostBy, restBytes });
      keepDeleted(generation);
    },
    know(file) {
      const key = fileKey(file);
      const before = known.get(key);
      if (before) all.forget(before);
      const { dev, ino, size, mtimeNs, path, isGzip, of } = file;
      const next = { dev, ino, size, mtimeNs, path, isGzip, of, absences: 0 };
      known.set(key, next);
      const files = copies.get(of);
      if (files) files.add(next);
      else copies.set(of, new Set([next]));
      deleted.delete(of);
      of.record = undefined;
    },
    forget(file) {
      known.delete(fileKey(file));
      const files = copies.get(file.of);
      files?.delete(file);
      if (files?.size === 0) copies.delete(file.of);
      file.of.record = undefined;
      keepDeleted(file.of);
    },
  };
  return all;
}
