import { crc32 } from 'node:zlib';
import type { Clock } from '../../../core/ports.ts';
import type { LineSink } from '../sink.ts';
import type { FileStat } from './disk.ts';
import {
  type Fingerprint,
  headCovers,
  identifyingBytes,
  type KnownContent,
  noFingerprint,
} from './fingerprint.ts';

/** Where a tracked file is; see the state machine in `rotation.ts`. */
export type FileState = 'live' | 'rotated' | 'unlinked' | 'missing';

/**
 * One generation of a log: the bytes of one file from its first to its last, whatever its name is by now. The files that
 * followed each other at one path are a rotation group.
 */
export interface TrackedFile {
  dev: bigint;
  /** Negative while the file is missing, so that no file on disk has it. */
  ino: bigint;
  /** Only a gzip file is left of the generation; offsets are those of its plain bytes. */
  compressed: boolean;
  /** The path that a pattern matched; it names the rotation group. */
  path: string;
  /** The path without links under which the file was written. */
  home: string;
  /** Where the file was last seen. */
  real: string;
  /** Orders the generations of a group: an older one is read to its end before a younger one. */
  generation: number;

  /** First byte that is not part of a counted line. */
  offset: number;
  fingerprint: Fingerprint;
  /** What is known of the bytes before the offset where the fingerprint does not have them: not read since the file was let go. */
  tailSum?: { readonly length: number; readonly sum: number };
  /** Bytes after the offset that its sink has seen and not counted: an unfinished line. */
  restBytes: number;
  /** Those bytes, if they are few enough to be kept for the case that the file loses them. */
  rest: Buffer;
  /** Largest size at which the bytes before the offset were still the same. */
  size: number;
  mtimeNs: bigint;

  claimants: readonly string[];
  /** The names by which patterns matched it when the claimants were found, NUL between them. */
  names: string;
  sink?: LineSink;
  /** State of a former sink, until the next one is opened. */
  sinkState?: Uint8Array;

  /** The file as last looked up, not yet known to be the same. */
  nowSize: number;
  nowMtimeNs: bigint;
  state: FileState;
  /** The path by which a pattern last matched it; empty if none does. */
  at: string;
  /** The pass that last compared its beginning with the fingerprint. */
  checkedBy: number;
  /** The pass that has read it to its end. */
  drainedBy: number;
  /** Monotonic ms of the first settled listing that had its bytes under no name. */
  missedSinceMs?: number;
  /** Why it is missing. */
  lostBy: 'truncated' | 'vanished';
  /** The inode that it had before it was missing. */
  formerIno?: bigint;
  /** It was open until then, so that the inode cannot be another file's. */
  wasHeld: boolean;
  /** Monotonic ms since which its directory is not there; it may come back (a mount). */
  absentSinceMs?: number;
  /** Monotonic ms of the last change. */
  changedMs: number;
  /** The content was compared since the file was opened, or since the start. */
  isVerified: boolean;
  /** The content was compared since the file was opened, and the file is still open. */
  isOwnInode: boolean;
  /** It was empty when it was first seen: it may turn out to be a copy. */
  isBlank: boolean;
  fd?: number;
  /** Its archive is read in part: closing it would begin anew. */
  isUnpacking: boolean;
  /** Gzip files that turned out not to be this generation. */
  ruledOut?: ReadonlySet<string>;
  /** Its encoding for the snapshot, until something changes. */
  record?: Buffer;
}

/**
 * A file that is not followed, and not to be read from its beginning either: it was read to its end, or it is a copy of a
 * tracked file, or it is older than its group. If it grows, it is followed again from its offset.
 */
export interface LetGo {
  readonly path: string;
  readonly dev: bigint;
  /** Negative if the file was deleted; its content is kept for a copy that appears later. */
  ino: bigint;
  generation: number;
  /** Negative if it holds more than what was counted: it is followed again when it is seen. */
  size: number;
  mtimeNs: bigint;
  readonly offset: number;
  readonly head: readonly number[];
  readonly tailLength: number;
  readonly tailSum: number;
  /** Nothing in the file counts while this one is tracked. */
  copyOf?: TrackedFile;
  /** Why its bytes were nowhere when it was given up: there may have been more of them. Undefined if it was not. */
  readonly lostBy?: TrackedFile['lostBy'];
  /** Settled listings in a row that it was not in. */
  absences: number;
}

/** Unfinished lines up to this many bytes are kept; a longer one is lost if its file is truncated. */
export const restKeptBytes = 4096;

export const noBytes = Buffer.alloc(0);

/** A generation that nothing has been read of. */
export function newTrackedFile(
  at: { path: string; home: string; real: string },
  stat: Pick<FileStat, 'dev' | 'ino' | 'size' | 'mtimeNs'>,
  generation: number,
  claimants: readonly string[],
  compressed = false,
): TrackedFile {
  return {
    dev: stat.dev,
    ino: stat.ino,
    compressed,
    ...at,
    generation,
    offset: 0,
    fingerprint: noFingerprint,
    tailSum: undefined,
    restBytes: 0,
    rest: noBytes,
    size: 0,
    mtimeNs: stat.mtimeNs,
    claimants,
    names: '',
    sink: undefined,
    sinkState: undefined,
    nowSize: stat.size,
    nowMtimeNs: stat.mtimeNs,
    state: 'live',
    at: '',
    checkedBy: 0,
    drainedBy: 0,
    missedSinceMs: undefined,
    lostBy: 'vanished',
    formerIno: undefined,
    wasHeld: false,
    absentSinceMs: undefined,
    changedMs: 0,
    isVerified: false,
    isOwnInode: false,
    isBlank: false,
    fd: undefined,
    isUnpacking: false,
    ruledOut: undefined,
    record: undefined,
  };
}

/** Whether nothing of a file was counted, and less of an unfinished line was seen than identifies it. */
export const isUnread = ({ offset, restBytes }: TrackedFile): boolean =>
  offset === 0 && restBytes < identifyingBytes;

/** Whether there may be something to read, or something else in the file than there was. */
export const isStale = (file: TrackedFile): boolean =>
  file.state !== 'missing' &&
  (file.compressed
    ? file.drainedBy >= 0
    : file.nowSize !== file.offset + file.restBytes || file.nowMtimeNs !== file.mtimeNs);

/** Bytes that are known to have been in the file and were not read, the unfinished line aside. */
export const unreadBytes = ({ size, nowSize, offset, rest, lostBy }: TrackedFile): number =>
  Math.max(0, (lostBy === 'vanished' ? Math.max(size, nowSize) : size) - offset - rest.length);

export const knownContent = ({ fingerprint, tailSum, offset, rest }: TrackedFile): KnownContent => ({
  head: fingerprint.head,
  offset,
  tailLength: tailSum?.length ?? fingerprint.tail.length,
  tailSum: tailSum?.sum ?? crc32(fingerprint.tail),
  tail: fingerprint.tail,
  rest,
});

/**
 * Whether too little is known of a closed, rotated file to recognize it by its inode, as it has changed: lines begin with the
 * same timestamps, and a rotated file rarely changes. Nothing of it was counted, so that it may as well be identified anew.
 */
export const isBarelyKnown = (
  { offset, compressed, fingerprint, restBytes, nowSize, nowMtimeNs }: TrackedFile,
  { size, mtimeNs }: Pick<FileStat, 'size' | 'mtimeNs'>,
): boolean => {
  const known = Math.max(headCovers(fingerprint.head), restBytes);
  const isChanged = size !== nowSize || mtimeNs !== nowMtimeNs;
  return offset === 0 && !compressed && known < identifyingBytes && isChanged;
};

export const letGoContent = (file: LetGo): KnownContent => ({ ...file, rest: noBytes });

/** Every tracked file by inode and by group, and what was let go. */
export interface Tracker extends Iterable<TrackedFile> {
  get(dev: bigint, ino: bigint): TrackedFile | undefined;
  /** By `fileKey`, which a scan has at hand for each file. */
  at(key: string): TrackedFile | undefined;
  has(file: TrackedFile): boolean;
  /** The generations of a group, oldest first. */
  group(path: string): readonly TrackedFile[];
  /** Whether anything is known of a group, files that were let go included. */
  hasGroup(path: string): boolean;
  add(file: TrackedFile): void;
  remove(file: TrackedFile): void;
  /** The inode no longer belongs to the file. */
  detach(file: TrackedFile): void;
  /** The tracked files without an inode. */
  readonly missing: ReadonlySet<TrackedFile>;
  /** Gives a tracked file, or one that was missing, an inode. */
  attach(file: TrackedFile, stat: Pick<FileStat, 'dev' | 'ino'>): void;
  /** Puts a file into another group. */
  move(file: TrackedFile, path: string): void;
  /** Numbers the generations of a group anew, in the order given. */
  arrange(path: string, members: readonly TrackedFile[]): void;

  letGo(file: LetGo): void;
  letGoAt(dev: bigint, ino: bigint): LetGo | undefined;
  /** Files of a group that were let go. */
  letGoOf(path: string): Iterable<LetGo>;
  forget(file: LetGo): void;
  /** Those that were let go as copies of a tracked file. */
  copiesOf(file: TrackedFile): readonly LetGo[];
  /** A file that was let go turns out to be a copy of a tracked one. */
  markCopy(file: LetGo, of: TrackedFile): void;
  /** Grows with each change of what was let go. */
  readonly letGoVersion: number;
  changedLetGo(): void;
  readonly letGoGroups: ReadonlyMap<string, ReadonlySet<LetGo>>;

  nextGeneration(): number;
  /** The number given out last; goes on from a snapshot. */
  lastGeneration: number;
}

/** Maximum number of deleted files whose content is kept, for copies that appear later. */
const deletedLimit = 128;

const keyOf = (dev: bigint, ino: bigint) => `${dev}:${ino}`;
const byGeneration = (a: TrackedFile, b: TrackedFile) => a.generation - b.generation;

/** The generations of a group. There may be thousands, which come and go one by one: they are sorted when they are asked for. */
interface Members {
  readonly files: Set<TrackedFile>;
  sorted?: TrackedFile[];
}

export function createTracker(clock: Clock): Tracker {
  const all = new Set<TrackedFile>();
  const byFile = new Map<string, TrackedFile>();
  const groups = new Map<string, Members>();
  const letGo = new Map<string, LetGo>();
  const letGoGroups = new Map<string, Set<LetGo>>();
  const missing = new Set<TrackedFile>();
  const copies = new Map<TrackedFile, Set<LetGo>>();
  let letGoVersion = 0;
  let lastDeleted = 0n;

  const join = (file: TrackedFile) => {
    const members = groups.get(file.path) ?? { files: new Set() };
    members.files.add(file);
    const newest = members.sorted?.at(-1);
    if (newest && newest.generation < file.generation) members.sorted?.push(file);
    else members.sorted = undefined;
    groups.set(file.path, members);
  };
  const leave = (file: TrackedFile) => {
    const members = groups.get(file.path);
    if (!members?.files.delete(file)) return;
    const at = members.sorted?.indexOf(file) ?? -1;
    if (at >= 0) members.sorted?.splice(at, 1);
    if (members.files.size === 0) groups.delete(file.path);
  };
  const unindex = (file: TrackedFile) => {
    const key = keyOf(file.dev, file.ino);
    if (byFile.get(key) === file) byFile.delete(key);
  };
  const deleted = new Set<LetGo>();
  const keepDeleted = (file: LetGo) => {
    deleted.add(file);
    const [oldest] = deleted;
    if (deleted.size > deletedLimit && oldest) tracker.forget(oldest);
  };

  const tracker: Tracker = {
    lastGeneration: 0,
    at: (key) => byFile.get(key),
    get: (dev, ino) => byFile.get(keyOf(dev, ino)),
    has: (file) => all.has(file),
    group(path) {
      const members = groups.get(path);
      if (!members) return [];
      members.sorted ??= [...members.files].sort(byGeneration);
      return members.sorted;
    },
    hasGroup: (path) => groups.has(path) || letGoGroups.has(path),
    add(file) {
      file.changedMs = clock.monotonicMs();
      all.add(file);
      if (file.ino >= 0n) byFile.set(keyOf(file.dev, file.ino), file);
      else missing.add(file);
      join(file);
    },
    remove(file) {
      all.delete(file);
      missing.delete(file);
      unindex(file);
      leave(file);
    },
    detach(file) {
      unindex(file);
      missing.add(file);
      file.ino = BigInt(-file.generation);
      file.record = undefined;
    },
    attach(file, { dev, ino }) {
      unindex(file);
      missing.delete(file);
      Object.assign(file, { dev, ino, record: undefined });
      byFile.set(keyOf(dev, ino), file);
    },
    move(file, path) {
      leave(file);
      file.path = path;
      file.record = undefined;
      join(file);
    },
    arrange(path, members) {
      for (const file of members) {
        file.generation = tracker.nextGeneration();
        file.record = undefined;
      }
      // Copies are recorded with the generation of their original.
      if (letGoGroups.has(path)) letGoVersion++;
      groups.set(path, { files: new Set(members), sorted: [...members] });
    },

    letGo(file) {
      if (file.ino < 0n) file.ino = --lastDeleted;
      const known = letGo.get(keyOf(file.dev, file.ino));
      if (known) tracker.forget(known);
      letGo.set(keyOf(file.dev, file.ino), file);
      const members = letGoGroups.get(file.path) ?? new Set();
      letGoGroups.set(file.path, members.add(file));
      letGoVersion++;
      if (file.copyOf) tracker.markCopy(file, file.copyOf);
      if (file.ino < 0n) keepDeleted(file);
    },
    letGoAt: (dev, ino) => letGo.get(keyOf(dev, ino)),
    letGoOf: (path) => letGoGroups.get(path) ?? [],
    forget(file) {
      deleted.delete(file);
      letGo.delete(keyOf(file.dev, file.ino));
      if (file.copyOf && copies.get(file.copyOf)?.delete(file) && copies.get(file.copyOf)?.size === 0)
        copies.delete(file.copyOf);
      const members = letGoGroups.get(file.path);
      members?.delete(file);
      if (members?.size === 0) letGoGroups.delete(file.path);
      letGoVersion++;
    },
    copiesOf: (file) => [...(copies.get(file) ?? [])],
    markCopy(file, of) {
      file.copyOf = of;
      copies.set(of, (copies.get(of) ?? new Set()).add(file));
    },
    missing,
    get letGoVersion() {
      return letGoVersion;
    },
    changedLetGo() {
      letGoVersion++;
    },
    letGoGroups,

    nextGeneration: () => ++tracker.lastGeneration,
    [Symbol.iterator]: () => all.values(),
  };
  return tracker;
}
