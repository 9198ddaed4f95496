import { basename, dirname } from 'node:path';
import { crc32 } from 'node:zlib';
import type { Clock, Log } from '../../../core/ports.ts';
import type { SkipReason } from '../../../core/reasons.ts';
import { fileKey, type Picture, type Sighting } from './discovery.ts';
import { type Disk, type FileStat, saysAbsent } from './disk.ts';
import {
  type Contents,
  firstEntryMs,
  growHead,
  headAgrees,
  headCovers,
  identifyingBytes,
  type KnownContent,
  type Likeness,
  likeness,
  type Seen,
  tailBytes,
} from './fingerprint.ts';
import type { OpenFiles } from './open-files.ts';
import type { Patterns } from './patterns.ts';
import type { Problems } from './problems.ts';
import type { Reader, Sinks } from './reader.ts';
import {
  type Aged,
  byRestartAndAge,
  isBetween,
  isCompressed,
  isGzip,
  isRotationOf,
  plainName,
  rotatedFrom,
} from './rotated-names.ts';
import type { Slices } from './schedule.ts';
import {
  isStale,
  knownContent,
  type LetGo,
  letGoContent,
  newTrackedFile,
  noBytes,
  type TrackedFile,
  type Tracker,
  unreadBytes,
} from './tracked-file.ts';

/*
 * The rotation state machine
 *
 * A rotation group is a path that a pattern matches and every file that was, or may have been, written there: the file
 * itself and the names that a rotation gives it. At every scan a stable picture of the directories is compared with what is
 * known, so that it does not matter which events were missed in between. Each file of a group is exactly one of:
 *
 *   tracked    read from its offset on (TrackedFile), in one of four states:
 *     live       under its own path
 *     rotated    under another name, or out of sight but open
 *     unlinked   deleted, still open
 *     missing    its bytes are nowhere: not open and not listed, or overwritten
 *   let go     not read, and never read from 0 (LetGo): read to its end, a copy of a tracked file, or older than its group
 *   undecided  an unfinished copy or archive; looked at again in the next scan
 *   ignored    no pattern matches it, and no group has it
 *
 *   event                                         from             to                     counted
 *   first seen, first scan of its pattern         -                tracked, or let go     start_at_end, if passed over
 *   first seen, any later scan                    -                tracked, at 0          -
 *   first seen, same bytes as a tracked file      -                let go (copy)          -
 *   first seen, same bytes as a missing file      missing          tracked, same offset   -
 *   other name, same inode                        live             rotated                -
 *   no name left                                  live, rotated    unlinked               -
 *   not in a settled listing, not open            live, rotated    missing                -
 *   bytes before the offset differ                live, rotated    missing                -
 *   not found in two settled listings             missing          let go (gone)          rest; truncated or vanished
 *   read to its end, quiet                        rotated          let go                 rest
 *   read to its end, quiet                        unlinked         let go (gone)          rest
 *   grows, or is back at its path                 let go           tracked, same offset   -
 *   other bytes in it                             let go           first seen             -
 *   its original is let go                        let go (copy)    let go                 -
 *
 * "rest" is the unfinished line, which counts as a line. A listing that did not settle proves that a file is there, but not
 * that a file is gone, and not which name is newer; see `discovery.ts`. Within a group an older generation is read to its end
 * before a younger one. Generations are ordered by the timestamps of their first entries, then by names, then by times.
 */
export interface Rotation {
  /** Compares a picture with what is known. Reads nothing but what comparisons need. */
  reconcile(picture: Picture): Promise<void>;
  /** The bytes before the file's offset are not those that were read. */
  rewritten(file: TrackedFile): void;
  /** A gzip file is not the generation that it was taken for. */
  mistaken(file: TrackedFile): void;
  /** A gzip file cannot be read any further. False if it may be unfinished: the next scan tries again. */
  broken(file: TrackedFile): boolean;
  /** A gzip file was read to its end. */
  unpacked(file: TrackedFile): void;
  /** Ends what is read to its end and quiet. */
  settle(): void;
  /** Looks at the open file alone. */
  glance(file: TrackedFile): void;
  /** Something is missing or undecided, and another scan may tell. */
  readonly wantsScan: boolean;
  /** Whether a file that was empty at first is not to be read now: it still is, or it looks like a copy and is decided anew. */
  isCopyAfterAll(file: TrackedFile): boolean;
  /** Whether an older generation of the group may still turn up. */
  isBlocked(file: TrackedFile): boolean;
  homes(): Map<string, Set<string>>;
  targets(): Map<string, Set<string>>;
  /** The groups were restored from a snapshot that did not record what was let go. */
  restoredWithoutLetGo(): void;
}

export interface RotationDeps {
  disk: Disk;
  clock: Clock;
  log: Log;
  tracker: Tracker;
  openFiles: OpenFiles;
  reader: Reader;
  sinks: Sinks;
  contents: Contents;
  problems: Problems;
  slices: Slices;
  patterns: () => Patterns;
  /** Called for each file that changed. */
  changed(file: TrackedFile): void;
}

/** How long a deleted file must have been quiet before its space is given back. */
const unlinkedQuietMs = 1_000;
/** How long a rotated file must have been quiet: its writer may keep it open for a while. */
const rotatedQuietMs = 10_000;
/** How long a file that looks like an unfinished copy or archive is left alone after its last change. */
const undecidedMs = 10_000;
/** How long a file in a directory that is not there (a mount to come) is waited for. */
const absentKeptMs = 24 * 60 * 60 * 1000;
/** Settled listings that a missing file is not in before it is given up. */
const absencesLimit = 2;
/** Listings that do not settle are believed after so many in a row, as far as names go. */
const unsettledLimit = 5;
/** Scans between two in which files that were let go and are gone are forgotten. */
const pruneEvery = 8;

function byRank(a: readonly number[], b: readonly number[]): number {
  const at = a.findIndex((part, i) => part !== b[i]);
  return at < 0 ? 0 : a[at]! - b[at]!;
}

interface Undecided {
  size: number;
  mtimeNs: bigint;
  sinceMs: number;
  of?: TrackedFile;
}

export function createRotation(deps: RotationDeps): Rotation {
  const { disk, clock, tracker, openFiles, reader, sinks, contents, slices } = deps;
  let picture: Picture = { files: new Map(), found: new Map(), directories: new Map(), passedOver: [] };
  let wantsScan = false;
  let isLegacy = false;
  /** A file was renamed or deleted between the listing and a comparison. */
  let isDisturbed = false;
  let scans = 0;
  let unsettledScans = 0;
  let undecided = new Map<string, Undecided>();
  let nextUndecided = new Map<string, Undecided>();
  /** Files that were taken up in this scan: nobody has copied them yet. */
  const taken = new Set<TrackedFile>();
  const takenGroups = new Set<string>();
  /** Groups of which nothing was known before this scan. */
  const newGroups = new Set<string>();
  /** Groups whose file was empty in the last scan. */
  const blankGroups = new Set<string>();
  /** Groups with a file that is not open and was not in a listing that did not settle. */
  const unseenGroups = new Set<string>();
  /** Groups that lost a file while others were compared with it: the next scan looks for its bytes first. */
  const lostGroups = new Set<string>();

  const tell = (msg: string, path: string, { generation, offset }: { generation: number; offset: number }) =>
    deps.log.write('debug', msg, { path, generation, offset });

  // What is known of a file

  /** A file that is not read yet is known by its beginning, should it have to be found again. */
  const learn = (file: TrackedFile) => {
    const isUnread = file.offset + file.restBytes === 0 && file.fingerprint.head.length === 0;
    if (isUnread && file.fd !== undefined && file.nowSize > 0 && !file.compressed) reader.learn(file);
  };

  const note = (file: TrackedFile, stat: FileStat, state: TrackedFile['state']) => {
    file.absentSinceMs = undefined;
    file.absences = 0;
    if (stat.size === file.nowSize && stat.mtimeNs === file.nowMtimeNs && state === file.state) return;
    if (stat.size < file.nowSize) file.size = Math.max(file.size, file.nowSize);
    if (stat.size !== file.nowSize) file.record = undefined;
    Object.assign(file, { nowSize: stat.size, nowMtimeNs: stat.mtimeNs, state });
    file.changedMs = clock.monotonicMs();
    learn(file);
    deps.changed(file);
  };

  const statOpen = (file: TrackedFile): FileStat | undefined => {
    if (file.fd === undefined) return undefined;
    try {
      return disk.fstat(file.fd);
    } catch {
      openFiles.close(file);
      return undefined;
    }
  };

  /** The file where it was last seen; 'hidden' if it is not to be told whether it is there. */
  const statReal = (file: TrackedFile): FileStat | 'hidden' | undefined => {
    try {
      const stat = disk.stat(file.real);
      return stat && stat.dev === file.dev && stat.ino === file.ino ? stat : undefined;
    } catch (thrown) {
      return saysAbsent(thrown) ? undefined : 'hidden';
    }
  };

  /** The inode is another file's by now, or the file has other bytes: the generation is to be found elsewhere, or lost. */
  const lose = (file: TrackedFile, by: 'truncated' | 'vanished') => {
    tell(by === 'truncated' ? 'file was rewritten' : 'file is not found', file.real, file);
    openFiles.close(file);
    file.formerIno = file.ino;
    tracker.detach(file);
    Object.assign(file, { state: 'missing', lostBy: by, at: '', absences: 0, isVerified: false });
    file.compressed = false;
    lostGroups.add(file.path);
    wantsScan = true;
  };

  /** What a let-go file must be known by, should it grow or be copied. */
  const letGo = (
    path: string,
    stat: FileStat,
    content: KnownContent | undefined,
    generation: number,
    copyOf?: TrackedFile,
  ) => {
    const { dev, ino, size, mtimeNs } = stat;
    const { offset, head, tailLength, tailSum } = content ?? {
      offset: size,
      head: [],
      tailLength: 0,
      tailSum: 0,
    };
    tracker.letGo({
      path,
      dev,
      ino,
      generation,
      size,
      mtimeNs,
      offset,
      head,
      tailLength,
      tailSum,
      copyOf,
      absences: 0,
    });
  };

  /** Lets a file go with all that is in it. */
  const letGoWhole = (group: string, sighting: Seen, generation: number, copyOf?: TrackedFile) => {
    const content = contents.of(sighting, (own): KnownContent => {
      const tailLength = Math.min(tailBytes, own.size);
      const tail = own.at(own.size - tailLength, tailLength) ?? own.start.subarray(0, 0);
      return {
        offset: own.size,
        head: growHead([], own.start, own.start.length),
        tailLength: tail.length,
        tailSum: crc32(tail),
        rest: own.start.subarray(0, 0),
      };
    });
    letGo(group, sighting.stat, content, generation, copyOf);
    tell(copyOf ? 'file is a copy' : 'file is not read', sighting.paths[0]!, {
      generation,
      offset: content?.offset ?? 0,
    });
  };

  const letGoTracked = (file: TrackedFile, isGone: boolean) => {
    tell('file is finished', file.real, file);
    openFiles.close(file);
    tracker.remove(file);
    const stat = {
      dev: file.dev,
      ino: isGone ? -1n : file.ino,
      size: file.nowSize,
      mtimeNs: file.nowMtimeNs,
    };
    const content = knownContent(file);
    letGo(file.path, { ...stat, nlink: 1, kind: 'file' }, content, file.generation);
    for (const copy of tracker.letGoOf(file.path)) if (copy.copyOf === file) copy.copyOf = undefined;
    tracker.changedLetGo();
  };

  /** The generation is over: its unfinished line counts, and what was never read is counted as skipped. */
  const giveUp = (file: TrackedFile, reason: SkipReason) => {
    const missing = unreadBytes(file);
    tell('file is given up', file.real, file);
    sinks.finish(file);
    sinks.skip(file, reason, missing);
    letGoTracked(file, true);
  };

  // Where a file is

  const locate = (file: TrackedFile, sighting: Sighting) => {
    const at = sighting.found.find(({ path }) => path === file.path)?.path ?? sighting.found[0]?.path ?? '';
    const isElsewhere = picture.found.has(file.path) && picture.found.get(file.path) !== fileKey(file);
    if (at !== '') {
      if (at === file.at && file.state !== 'missing') return file.state === 'unlinked' ? 'live' : file.state;
      file.record = undefined;
      file.at = at;
      file.real = disk.real(at);
      if (at !== file.path && (isRotationOf(basename(at), basename(file.path)) || isElsewhere))
        return 'rotated';
      if (at !== file.path) tracker.move(file, at);
      file.home = file.real;
      return 'live';
    }
    const { paths } = sighting;
    const real = paths.includes(file.real) ? file.real : paths.includes(file.home) ? file.home : paths[0]!;
    if (real !== file.real || file.at !== '') file.record = undefined;
    Object.assign(file, { at: '', real });
    if (real !== file.home || isElsewhere) return 'rotated';
    return file.state === 'rotated' ? 'rotated' : 'live';
  };

  const claim = (file: TrackedFile, { found }: Sighting) => {
    const names = found.map(({ path }) => path).join('\0');
    if (names === file.names) return;
    file.names = names;
    const claimants = deps.patterns().claimants([file.path, ...found.map(({ path }) => path)]);
    if (claimants.join() === file.claimants.join()) return;
    file.claimants = claimants;
    sinks.reopen(file);
  };

  const trustsNames = (sighting: Sighting) => sighting.isSettled || unsettledScans >= unsettledLimit;

  const meet = (file: TrackedFile, sighting: Sighting, stat: FileStat) => {
    const state = trustsNames(sighting) ? locate(file, sighting) : file.state;
    if (file.fd === undefined && !sighting.paths.includes(file.real)) file.real = sighting.paths[0]!;
    note(file, stat, state);
    claim(file, sighting);
    openFiles.hold(file);
    learn(file);
  };

  /** Whether a tracked file's inode is still its own. An open file's is. Undefined if that cannot be told now. */
  const isSame = (file: TrackedFile, { stat, paths }: Seen): boolean | undefined => {
    if (file.fd !== undefined) return true;
    if (isCompressed(paths[0]!) !== file.compressed) return false;
    if (file.isVerified && stat.size === file.nowSize && stat.mtimeNs === file.nowMtimeNs) return true;
    const known = knownContent(file);
    const isKnown = known.head.length > 0 || known.offset + known.rest.length > 0;
    // A few bytes, such as a banner, and an inode that was given to another file are not enough under an unrelated name.
    const isWell = Math.max(headCovers(known.head), known.tailLength + known.rest.length) >= tailBytes;
    if (!isWell && !paths.some((path) => path === file.home || rootOf(path) === file.path)) return false;
    if (file.compressed) {
      const isAlike = contents.of({ stat, paths }, (content) => likeness(content, known) !== 'none');
      return isKnown ? isAlike : true;
    }
    const { real, nowSize, nowMtimeNs } = file;
    if (!paths.includes(real)) file.real = paths[0]!;
    const isIntact = reader.isIntact(file);
    if (isIntact === false) {
      Object.assign(file, { real, nowSize, nowMtimeNs });
      return false;
    }
    if (isIntact) file.isVerified = true;
    else Object.assign(file, { real, nowSize, nowMtimeNs });
    return isIntact;
  };

  /** The tracked file that was sighted, brought up to date; undefined if nobody follows what was sighted. */
  const recognize = (sighting: Sighting): TrackedFile | undefined => {
    const file = tracker.get(sighting.stat.dev, sighting.stat.ino);
    if (!file) return undefined;
    if (file.isBlank && sighting.stat.size > 0 && file.offset + file.restBytes === 0) {
      blankGroups.add(file.path);
      openFiles.close(file);
      tracker.remove(file);
      return undefined;
    }
    const wasOpen = file.fd !== undefined;
    const isOwn = isSame(file, sighting);
    if (isOwn === false) {
      lose(file, sighting.paths.includes(file.real) ? 'truncated' : 'vanished');
      return undefined;
    }
    // The listing is older than a comparison that was made just now.
    if (isOwn) meet(file, sighting, (wasOpen ? undefined : statOpen(file)) ?? sighting.stat);
    else {
      isDisturbed = true;
      if (contents.open(sighting) === 'moved') unseenGroups.add(file.path);
    }
    return file;
  };

  const directoryOf = (file: TrackedFile) => picture.directories.get(dirname(file.home));

  /** Whether the file's directory is there, can be read and is on the file's device. */
  const seesDirectory = (file: TrackedFile): boolean => {
    if (directoryOf(file)?.isListed !== true) return false;
    try {
      return disk.stat(dirname(file.home))?.dev === file.dev;
    } catch {
      return false;
    }
  };

  /** The file under any name in its directory. A file of which nothing was read must have a name of its group. */
  const findByInode = (file: TrackedFile): { path: string; stat: FileStat } | undefined => {
    const directory = dirname(file.home);
    const base = basename(file.home);
    const isKnown = file.offset + file.restBytes > 0;
    try {
      for (const { name, kind } of disk.list(directory)) {
        if (kind !== 'file' || isCompressed(name) !== file.compressed) continue;
        if (!isKnown && name !== base && !isRotationOf(name, base)) continue;
        const path = `${directory}/${name}`;
        const stat = disk.stat(path);
        if (stat?.kind === 'file' && stat.dev === file.dev && stat.ino === file.ino) return { path, stat };
      }
    } catch {
      // The next scan reports it.
    }
    return undefined;
  };

  const waitForDirectory = (file: TrackedFile) => {
    file.absentSinceMs ??= clock.monotonicMs();
    if (clock.monotonicMs() - file.absentSinceMs > absentKeptMs) giveUp(file, 'vanished');
  };

  /** Where the file is was not told by this scan: nothing of its group is taken up before the next one. */
  const cannotTell = (file: TrackedFile) => {
    unseenGroups.add(file.path);
    wantsScan = true;
  };

  /** The picture does not have the file: it was renamed out of sight, deleted, or cannot be seen now. */
  const lostSight = (file: TrackedFile) => {
    const isSettled = directoryOf(file)?.isSettled === true;
    const open = statOpen(file);
    if (open) {
      if (open.nlink === 0) {
        file.at = '';
        note(file, open, 'unlinked');
        return;
      }
      const isThere = statReal(file) !== undefined;
      const isRotated = picture.found.has(file.path) || !isThere;
      if (isSettled && isRotated) file.at = '';
      note(file, open, isSettled && isRotated ? 'rotated' : file.state);
      return;
    }
    const real = statReal(file);
    if (real === 'hidden') return;
    if (real) {
      const isOwn = isSame(file, { stat: real, paths: [file.real] });
      if (isOwn) note(file, real, file.state);
      else if (isOwn === false) lose(file, 'truncated');
      else cannotTell(file);
      return;
    }
    if (!seesDirectory(file)) {
      waitForDirectory(file);
      return;
    }
    if (!isSettled && unsettledScans < unsettledLimit) {
      cannotTell(file);
      return;
    }
    const elsewhere = findByInode(file);
    if (elsewhere) {
      file.real = elsewhere.path;
      file.at = '';
      file.record = undefined;
      const isOwn = isSame(file, { stat: elsewhere.stat, paths: [elsewhere.path] });
      if (isOwn) note(file, elsewhere.stat, elsewhere.path === file.home ? 'live' : 'rotated');
      else if (isOwn === undefined) cannotTell(file);
      if (isOwn !== false) return;
    }
    lose(file, 'vanished');
  };

  // Groups

  const isKnownPath = (path: string) => picture.found.has(path) || tracker.hasGroup(path);

  /** The path that a rotation made this one from, step by step: `app.log.1.gz`, `app.log.1`, `app.log`. */
  const rootOf = (path: string): string => {
    const bases = rotatedFrom(basename(path)).map((name) => `${dirname(path)}/${name}`);
    const base = bases.find(isKnownPath);
    return base === undefined ? path : rootOf(base);
  };

  /** The group of a file; undefined if it has none. */
  const groupOf = ({ found, paths }: Sighting, homes: ReadonlyMap<string, string>): string | undefined => {
    if (found.length > 0) return rootOf(found[0]!.path);
    for (const path of paths) {
      const own = homes.get(path);
      if (own !== undefined) return own;
      for (const name of rotatedFrom(basename(path))) {
        const base = `${dirname(path)}/${name}`;
        const group = homes.get(base) ?? (isKnownPath(base) ? rootOf(base) : undefined);
        if (group !== undefined) return group;
      }
      for (const [home, group] of homes) {
        if (home === group || dirname(home) !== dirname(path)) continue;
        if (isBetween(basename(path), basename(home))) return group;
      }
    }
    return undefined;
  };

  const homeIndex = (): Map<string, string> => {
    const homes = new Map<string, string>();
    for (const file of tracker) homes.set(file.home, rootOf(file.path));
    for (const [path, key] of picture.found) {
      const sighting = picture.files.get(key);
      if (!sighting) continue;
      for (const other of sighting.paths) if (!homes.has(other)) homes.set(other, rootOf(path));
    }
    return homes;
  };

  const isHome = ({ found }: Sighting, group: string) => found.some(({ path }) => path === group);

  const aged = (file: TrackedFile): Aged => ({
    name: basename(file.real),
    mtimeNs: file.mtimeNs > file.nowMtimeNs ? file.mtimeNs : file.nowMtimeNs,
    generation: file.generation,
  });

  /** Numbers a group's generations anew; files without a name keep their place among the others by their times. */
  const arrange = (path: string) => {
    const members = tracker.group(path);
    const hasName = ({ state }: TrackedFile) => state === 'live' || state === 'rotated';
    const named = members.filter(hasName);
    if (new Set(named.map(({ home }) => home)).size > 1) {
      const isNewest = (file: TrackedFile) => taken.has(file) && file.state === 'live';
      if (members.some((file, i) => isNewest(file) && i < members.length - 1)) {
        tracker.arrange(path, [...members.filter((file) => !isNewest(file)), ...members.filter(isNewest)]);
      }
      return;
    }
    const known = named.filter((file) => !taken.has(file)).map(aged);
    const all = named.map((file) =>
      taken.has(file) ? { ...aged(file), generation: undefined } : aged(file),
    );
    const ages = byRestartAndAge(basename(members.at(0)?.home ?? path), known.length > 1 ? known : all);
    const sorted = named.sort(
      (a, b) => Number(a.state === 'live') - Number(b.state === 'live') || ages(aged(a), aged(b)),
    );
    for (const file of members) {
      if (hasName(file)) continue;
      const next = sorted.findIndex((other) => !taken.has(other) && other.generation > file.generation);
      const younger = next < 0 ? sorted.findIndex((other) => taken.has(other)) : next;
      sorted.splice(younger < 0 ? sorted.length : younger, 0, file);
    }
    if (sorted.some((file, i) => file !== members[i])) tracker.arrange(path, sorted);
  };

  // First sight

  const track = (group: string, sighting: Sighting, startAt: 'end' | 'beginning'): TrackedFile => {
    const { stat, found, paths } = sighting;
    const at = found.find(({ path }) => path === group)?.path ?? found[0]?.path ?? '';
    const real = at === '' ? paths[0]! : disk.real(at);
    const isOwn = isHome(sighting, group);
    const last = tracker.group(group).at(-1)?.home ?? group;
    const isLinked = last !== group && isBetween(basename(real), basename(last));
    const home = isOwn || isLinked ? real : last;
    const file = newTrackedFile(
      { path: group, home, real },
      stat,
      tracker.nextGeneration(),
      deps.patterns().claimants(found.length > 0 ? found.map(({ path }) => path) : [group]),
      isCompressed(real),
    );
    file.at = at;
    file.state = isOwn ? 'live' : 'rotated';
    file.nowMtimeNs = stat.mtimeNs;
    file.mtimeNs = -1n;
    tracker.add(file);
    tell('file is followed', real, file);
    taken.add(file);
    takenGroups.add(group);
    deps.changed(file);
    if (file.compressed) {
      if (startAt === 'end') {
        sinks.skip(file, 'start_at_end', contents.of(sighting, ({ size }) => size) ?? stat.size);
        tracker.remove(file);
        letGoWhole(group, sighting, file.generation);
      } else openFiles.hold(file, contents.take(sighting));
      return file;
    }
    openFiles.hold(file, contents.take(sighting));
    // It may have been truncated since it was listed.
    const now = statOpen(file);
    if (now) Object.assign(file, { nowSize: now.size, nowMtimeNs: now.mtimeNs });
    if (startAt === 'end') reader.startAtEnd(file);
    else reader.learn(file);
    return file;
  };

  /** Goes on with a generation in another file. */
  const resume = (old: TrackedFile, group: string, sighting: Sighting) => {
    const { stat, paths, found } = sighting;
    tracker.attach(old, stat);
    tell('file goes on in another one', paths[0]!, old);
    const real = paths[0]!;
    const state = isHome(sighting, group) ? 'live' : 'rotated';
    const size = isCompressed(real)
      ? stat.size
      : (contents.of(sighting, (content) => content.size) ?? stat.size);
    Object.assign(old, {
      real,
      at: found[0]?.path ?? '',
      state,
      compressed: isCompressed(real),
      nowSize: size,
      nowMtimeNs: -1n,
      isVerified: false,
      absences: 0,
      absentSinceMs: undefined,
    });
    old.changedMs = clock.monotonicMs();
    const known = tracker.letGoAt(stat.dev, stat.ino);
    if (known) tracker.forget(known);
    deps.changed(old);
    openFiles.hold(old, contents.take(sighting));
  };

  /** Follows a file again that was let go. */
  const revive = (file: LetGo, sighting: Sighting) => {
    tell('file is followed again', sighting.paths[0]!, file);
    tracker.forget(file);
    const next = track(file.path, sighting, 'beginning');
    const tail = contents.of(sighting, ({ at }) => {
      const bytes = at(file.offset - file.tailLength, file.tailLength);
      return bytes && Buffer.from(bytes);
    });
    next.offset = file.offset;
    next.size = file.offset;
    next.fingerprint = { head: file.head, tail: tail ?? Buffer.alloc(0) };
    taken.delete(next);
  };

  /** Whether a file that was let go is still that one, with nothing new in it. */
  const isLetGo = (sighting: Sighting): boolean => {
    const { stat, paths } = sighting;
    const file = tracker.letGoAt(stat.dev, stat.ino);
    if (!file) return false;
    file.absences = 0;
    const isBack = isHome(sighting, file.path) && trustsNames(sighting);
    const isUnchanged = file.size === stat.size && file.mtimeNs === stat.mtimeNs;
    if (isUnchanged && !isBack) return true;
    const isSameFile = contents.of(sighting, (content) => likeness(content, letGoContent(file)) === 'whole');
    if (file.copyOf && isSameFile !== false) {
      tracker.forget(file);
      return false;
    }
    const isCompressedFile = isCompressed(paths[0]!);
    if (isSameFile === undefined) {
      // Another file may have its inode by now, one that holds what is missing.
      isDisturbed = true;
      return true;
    }
    if (!isSameFile) {
      tracker.forget(file);
      // Its content is remembered: it may have been moved into an archive.
      tracker.letGo({ ...file, ino: -1n, absences: 0 });
      return false;
    }
    if (!isCompressedFile && (stat.size > file.offset || isBack)) {
      revive(file, sighting);
      return true;
    }
    Object.assign(file, { size: stat.size, mtimeNs: stat.mtimeNs });
    tracker.changedLetGo();
    return true;
  };

  const keyOf = ({ stat }: Sighting) => fileKey(stat);

  /** Leaves a file alone as long as it changes, and for a while after. Returns false once that is over. */
  const waitFor = (sighting: Sighting, of?: TrackedFile): boolean => {
    const { size, mtimeNs } = sighting.stat;
    const before = undecided.get(keyOf(sighting));
    const isChanged = before?.size !== size || before.mtimeNs !== mtimeNs;
    const sinceMs = before && !isChanged ? before.sinceMs : clock.monotonicMs();
    nextUndecided.set(keyOf(sighting), { size, mtimeNs, sinceMs, of });
    if (clock.monotonicMs() - sinceMs >= undecidedMs) return false;
    return true;
  };

  /** A compressor deletes the plain file last: until then the archive may be unfinished. */
  const hasPlainBeside = ({ paths: [path] }: Sighting): boolean => {
    if (!isCompressed(path!)) return false;
    const plain = plainName(path!);
    return [...picture.files.values()].some(({ paths }) => paths.includes(plain));
  };

  /** Whether equal content is enough to identify a missing file: tiny files are alike. */
  const identifies = (file: TrackedFile, group: string, sighting: Sighting): boolean => {
    const { fingerprint, rest, offset, size, nowSize } = file;
    if (isHome(sighting, group)) return offset >= tailBytes;
    const known = Math.max(fingerprint.tail.length + rest.length, headCovers(fingerprint.head));
    if (offset > 0 || known >= identifyingBytes) return true;
    if (file.lostBy === 'truncated') return !isOthers(file, sighting);
    return sighting.stat.size === Math.max(size, nowSize);
  };

  /** Whether another generation of the group is known to have these bytes. */
  const isOthers = (file: TrackedFile, sighting: Sighting): boolean => {
    const others = [
      ...tracker
        .group(file.path)
        .filter((other) => other !== file)
        .map(knownContent),
      ...[...tracker.letGoOf(file.path)].filter(({ copyOf }) => copyOf !== file).map(letGoContent),
    ].filter(({ offset, head }) => offset >= identifyingBytes || headCovers(head) >= identifyingBytes);
    return contents.of(sighting, (own) => others.some((other) => likeness(own, other) !== 'none')) ?? true;
  };

  /** Finds the bytes of a missing generation among the files that nobody follows. */
  const findMissing = (
    file: TrackedFile,
    candidates: readonly { sighting: Sighting; group: string }[],
  ): { sighting: Sighting; group: string } | undefined => {
    const content = knownContent(file);
    const alike: { sighting: Sighting; group: string; like: Likeness; size: number }[] = [];
    for (const candidate of candidates) {
      const { sighting, group } = candidate;
      const isRelated = group === file.path;
      if (!isRelated && (isHome(sighting, file.path) || undecided.get(keyOf(sighting))?.of !== file)) {
        const isSudden = file.lostBy === 'truncated' && file.offset > 0 && newGroups.has(group);
        const isNeighbour = dirname(sighting.paths[0]!) === dirname(file.home);
        if (
          !isNeighbour ||
          isCompressed(sighting.paths[0]!) ||
          (file.fingerprint.tail.length < identifyingBytes && !isSudden)
        )
          continue;
      }
      if (file.ruledOut?.has(sighting.paths[0]!)) continue;
      // An archive may be unfinished.
      if (hasPlainBeside(sighting) && waitFor(sighting, file)) continue;
      const seen = contents.of(sighting, (own) => ({ like: likeness(own, content), size: own.size }));
      if (seen === undefined) {
        isDisturbed = true;
        cannotTell(file);
        continue;
      }
      const { like, size } = seen;
      if (like === 'whole' && !identifies(file, file.path, sighting)) {
        // Nothing of it was counted, and the other file, which begins the same, is read from its beginning.
        if (file.offset === 0) Object.assign(file, { rest: noBytes, restBytes: 0, size: 0, nowSize: 0 });
        continue;
      }
      const isCut = file.lostBy === 'truncated' && sighting.stat.ino === file.formerIno;
      if (like === 'short' && isHome(sighting, file.path) && !isCut) continue;
      if (like === 'cut' && !(isCut && isHome(sighting, file.path))) continue;
      if (like === 'short' && file.state !== 'missing') continue;
      if (like !== 'none') alike.push({ ...candidate, like, size });
    }
    // A file that is shorter than the generation was, or of which the depth is not compared, is taken only if nothing is better.
    const known = Math.max(file.size, file.nowSize);
    const best = (...likes: Likeness[]) => {
      const rank = ({ like, size, sighting }: (typeof alike)[number]) => {
        const { dev, ino } = sighting.stat;
        const isKnownCopy = tracker.letGoAt(dev, ino)?.copyOf === file;
        const isPacked = isCompressed(sighting.paths[0]!);
        return [!isKnownCopy, size < known, like === 'perhaps', isPacked, Math.abs(size - known)].map(Number);
      };
      return alike.filter(({ like }) => likes.includes(like)).sort((a, b) => byRank(rank(a), rank(b)))[0];
    };
    const next = best('whole', 'perhaps');
    if (next) {
      resume(file, next.group, next.sighting);
      return next;
    }
    const cut = best('cut');
    if (cut) {
      resume(file, cut.group, cut.sighting);
      sinks.cut(file);
      return cut;
    }
    const short = best('short');
    if (!short) return undefined;
    if (isHome(short.sighting, file.path)) {
      // The file was cut off in the middle of what was read: what follows is new.
      letGoWhole(file.path, short.sighting, file.generation);
      revive(tracker.letGoAt(short.sighting.stat.dev, short.sighting.stat.ino)!, short.sighting);
    } else letGoWhole(file.path, short.sighting, file.generation, file);
    return short;
  };

  type Verdict = 'copy' | 'wait' | 'new';

  /** Compares a plain file that nobody follows with a tracked one. */
  const compareWith = (sighting: Sighting, group: string, original: TrackedFile): Verdict => {
    const seen = contents.of(sighting, (content) => ({
      like: likeness(content, knownContent(original)),
      size: content.size,
    }));
    if (!seen) return 'wait';
    const { like, size } = seen;
    if (isHome(sighting, group)) {
      if (like !== 'whole' || original.offset < tailBytes || original.state !== 'unlinked') return 'new';
      if (size < original.size) return 'new';
      // Another file with the same content was renamed over this one.
      openFiles.close(original);
      resume(original, group, sighting);
      return 'copy';
    }
    const fd = openFiles.open(original);
    if (fd === undefined) return like === 'whole' || like === 'short' ? 'copy' : 'new';
    if (size <= disk.fstat(fd).size && contents.isPrefixOf(sighting, size, fd)) return 'copy';
    // Checked after the comparison: the original may have been rewritten before it.
    if (reader.isIntact(original) === false) {
      lose(original, 'truncated');
      return 'wait';
    }
    if (like !== 'whole' || size <= original.nowSize) return 'new';
    // A longer copy: either the original was truncated and written again, or somebody appends to the copy.
    if (waitFor(sighting, original)) return 'wait';
    const next = track(group, sighting, 'beginning');
    next.offset = original.offset;
    next.size = next.offset;
    next.fingerprint = original.fingerprint;
    return 'copy';
  };

  /** Compares a plain file that nobody follows with a gzip file that is read. */
  const compareWithArchive = (sighting: Sighting, original: TrackedFile): Verdict => {
    const { dev, ino, nowSize, nowMtimeNs, real } = original;
    const stat: FileStat = { dev, ino, size: nowSize, mtimeNs: nowMtimeNs, nlink: 1, kind: 'file' };
    const archive = contents.of({ stat, paths: [real] }, ({ size, sum }) => ({ size, sum: sum() }));
    if (!archive) return 'new';
    const plain = contents.of(sighting, ({ size, sum }) => size === archive.size && sum() === archive.sum);
    return plain ? 'copy' : 'new';
  };

  const copyOfLetGo = (sighting: Sighting, group: string): Verdict => {
    const { stat } = sighting;
    const found = contents.of(sighting, (content) => {
      for (const file of tracker.letGoOf(group)) {
        if (file.copyOf || file.offset === 0 || content.size < file.offset) continue;
        if (headAgrees(file.head, content.start) === false) continue;
        if (likeness(content, letGoContent(file)) !== 'whole') continue;
        const isWeak = file.offset < identifyingBytes || file.tailLength < Math.min(tailBytes, file.offset);
        if (isWeak && content.size !== file.offset) continue;
        return { file, size: content.size };
      }
      return undefined;
    });
    if (!found) return 'new';
    const { file, size } = found;
    letGo(group, stat, letGoContent(file), file.generation);
    if (size > file.offset) revive(tracker.letGoAt(stat.dev, stat.ino)!, sighting);
    return 'copy';
  };

  /**
   * Decides about a gzip file: it has the content of a known file, or it is a generation that was never seen plain. While the
   * plain file stands beside it, it may be unfinished; a compressor deletes the plain file last.
   */
  const judgeGzip = (sighting: Sighting, group: string): { verdict: Verdict; of?: TrackedFile } => {
    if (!trustsNames(sighting) || (hasPlainBeside(sighting) && waitFor(sighting))) return { verdict: 'wait' };
    const result = contents.of(sighting, (content): { verdict: Verdict; of?: TrackedFile } => {
      if (content.size === 0) return { verdict: 'wait' };
      const agrees = ({ head, offset, tailLength, tailSum }: KnownContent) => {
        if (headAgrees(head, content.start) === false) return false;
        // Of a file of which nothing was read the beginning is known; without one it is tiny, and its size decides.
        if (offset === 0 || offset > content.start.length) return head.length > 0 || content.size < 16;
        return crc32(content.start.subarray(offset - tailLength, offset)) === tailSum;
      };
      for (const file of tracker.letGoOf(group)) {
        if (content.size === file.offset && agrees(letGoContent(file)))
          return { verdict: 'copy', of: file.copyOf };
        if (content.size < file.offset && likeness(content, letGoContent(file)) === 'short')
          return { verdict: 'copy', of: file.copyOf };
      }
      for (const file of tracker.group(group)) {
        if (file.state === 'missing' || file.compressed) continue;
        const fd = openFiles.open(file);
        if (fd === undefined) {
          if (content.size === Math.max(file.size, file.nowSize) && agrees(knownContent(file)))
            return { verdict: 'copy', of: file };
        } else if (contents.beginsWith(fd, content.start)) {
          const { size } = disk.fstat(fd);
          // Its writer may have gone on after it was compressed.
          if (
            content.size === size ||
            (content.size < size && contents.sumOf(fd, content.size) === content.sum())
          )
            return { verdict: 'copy', of: file };
        }
      }
      return { verdict: 'new' };
    });
    if (result && result.verdict !== 'wait') return result;
    return { verdict: waitFor(sighting) ? 'wait' : 'new' };
  };

  /** A compressed file in a format that is not read. */
  const passOver = (sighting: Sighting, group: string) => {
    if (waitFor(sighting)) return;
    const { mtimeNs, size } = sighting.stat;
    const known = [...tracker.letGoOf(group)];
    const isKnown = known.some((file) => file.mtimeNs === mtimeNs || file.absences > 0 || file.ino < 0n);
    const last = tracker.group(group).at(-1);
    letGoWhole(group, sighting, last?.generation ?? 0);
    if (!isKnown && last) sinks.skip(last, 'unreadable', size);
  };

  const isOriginalNew = (group: string) => newGroups.has(group) && !blankGroups.has(group);

  /** A file under an unrelated name with the bytes of a tracked one may be a copy that is followed by a truncation. */
  const looksCopied = (sighting: Sighting, self?: TrackedFile): boolean => {
    const { stat, paths } = sighting;
    if (stat.size === 0) return false;
    const directory = dirname(paths[0]!);
    const start = contents.of(sighting, (content) => content.start);
    if (start === undefined || start.length === 0) return false;
    let compared = 0;
    for (const file of tracker) {
      if (file === self || isOriginalNew(file.path) || file.compressed || dirname(file.home) !== directory)
        continue;
      if (file.state !== 'live' || headAgrees(file.fingerprint.head, start) === false) continue;
      if (++compared > 16) continue;
      const fd = openFiles.open(file);
      if (fd === undefined) continue;
      if (stat.size <= disk.fstat(fd).size && contents.isPrefixOf(sighting, stat.size, fd)) {
        return waitFor(sighting, file);
      }
      if (reader.isIntact(file) === false) {
        lose(file, 'truncated');
        return true;
      }
    }
    return false;
  };

  /** Names between which a link was swung since the last scan. */
  const isSwungOver = (sighting: Sighting, group: string): boolean => {
    const key = picture.found.get(group);
    const target = key === undefined ? undefined : picture.files.get(key);
    if (!target) return false;
    const name = basename(sighting.paths[0]!);
    const to = disk.real(group);
    const members = tracker.group(group);
    // The oldest one that is followed: a scan that did not settle may have missed a file since.
    const from = members.find(({ home }) => home !== to);
    if (!from) return false;
    if (name === basename(from.home)) return true;
    return isBetween(name, basename(from.home), basename(to)) && sighting.stat.mtimeNs >= from.mtimeNs;
  };

  /** Decides what a file is that nobody follows. */
  const judge = (sighting: Sighting, group: string): void => {
    const { stat, found, paths, isOlder } = sighting;
    const name = basename(paths[0]!);
    const members = tracker.group(group);
    if (isOlder) {
      letGoWhole(group, sighting, 0);
      return;
    }
    if (isLegacy && found.length === 0) {
      const newest = members.reduce((ns, file) => (file.mtimeNs > ns ? file.mtimeNs : ns), 0n);
      if (stat.mtimeNs <= newest) {
        letGoWhole(group, sighting, 0);
        return;
      }
    }
    const isFromStart = found.length === 0 || found.some((one) => one.startAt === 'beginning');
    const startAt = isFromStart ? 'beginning' : 'end';
    const isOwn = isHome(sighting, group);
    const isMember =
      isOwn ||
      isRotationOf(name, basename(group)) ||
      members.some(({ home }) => isRotationOf(name, basename(home)));
    if (found.length === 0 && !isMember && !isSwungOver(sighting, group)) return;
    if (stat.size === 0 && !isOwn) return;
    const access = contents.open(sighting);
    if (access === 'moved') {
      isDisturbed = true;
      return;
    }
    if (access === 'denied') {
      // It is followed, so that the problem shows.
      track(group, sighting, startAt);
      return;
    }
    if (isCompressed(name)) {
      if (!isGzip(name)) {
        passOver(sighting, group);
        return;
      }
      const { verdict, of } = judgeGzip(sighting, group);
      if (verdict === 'wait') return;
      if (verdict === 'copy') {
        letGoWhole(group, sighting, members.at(-1)?.generation ?? 0, of);
        return;
      }
    } else {
      for (const original of members) {
        if (original.state === 'missing') continue;
        if (!original.compressed && taken.has(original) && original.state !== 'live') continue;
        const verdict = original.compressed
          ? compareWithArchive(sighting, original)
          : compareWith(sighting, group, original);
        if (verdict === 'wait') {
          wantsScan = true;
          return;
        }
        if (verdict === 'copy') {
          const isFollowed = tracker.get(stat.dev, stat.ino) !== undefined;
          if (!isFollowed) letGoWhole(group, sighting, original.generation, original);
          return;
        }
      }
      if (!isOwn && copyOfLetGo(sighting, group) === 'copy') return;
      if (isOwn && newGroups.has(group) && looksCopied(sighting)) return;
    }
    const file = track(group, sighting, startAt);
    file.isBlank = stat.size === 0 && newGroups.has(group);
  };

  /**
   * Files whose copies may be among those that nobody follows: a rewritten one is told apart first. Copies of a new group's
   * own path may be of any file in the directory that changed.
   */
  const verifyOriginals = (
    grouped: readonly { sighting: Sighting; group: string }[],
    unknown: Sighting[],
  ) => {
    const groups = new Set(grouped.map(({ group }) => group));
    const directories = new Set<string>();
    for (const { sighting, group } of grouped)
      if (newGroups.has(group)) directories.add(dirname(sighting.paths[0]!));
    for (const file of [...tracker]) {
      const isStranger = directories.has(dirname(file.home)) && isStale(file);
      if (!groups.has(file.path) && !isStranger) continue;
      if (file.compressed || file.fd === undefined || file.offset + file.restBytes === 0) continue;
      if (reader.isIntact(file) !== false) continue;
      const sighting = picture.files.get(fileKey(file));
      lose(file, 'truncated');
      if (sighting) unknown.push(sighting);
    }
  };

  /** Files that were first seen under rotated names belong to the group of the path that is known by now. */
  const mergeGroups = () => {
    const paths = new Set([...tracker].map(({ path }) => path));
    for (const path of tracker.letGoGroups.keys()) paths.add(path);
    for (const path of paths) {
      const directory = dirname(path);
      const base = rotatedFrom(basename(path)).find((name) => newGroups.has(`${directory}/${name}`));
      if (base === undefined) continue;
      const root = `${directory}/${base}`;
      for (const file of [...tracker.group(path)]) {
        tracker.move(file, root);
        file.home = root;
        if (file.state === 'live') file.state = 'rotated';
      }
      for (const file of [...tracker.letGoOf(path)]) {
        tracker.forget(file);
        tracker.letGo({ ...file, path: root });
      }
    }
  };

  const classify = async (unknown: Sighting[]) => {
    let homes = homeIndex();
    const grouped = (sightings: readonly Sighting[]) =>
      sightings.flatMap((sighting) => {
        const group = groupOf(sighting, homes);
        return group === undefined ? [] : [{ sighting, group }];
      });
    const first = grouped(unknown);
    for (const { group } of first) if (!tracker.hasGroup(group)) newGroups.add(group);
    if (newGroups.size > 0) {
      mergeGroups();
      homes = homeIndex();
    }
    verifyOriginals(first, unknown);
    let rest = grouped(unknown);
    const isUnseen = (file: TrackedFile) => file.state === 'missing' || file.absentSinceMs !== undefined;
    const missing = [...tracker].filter(isUnseen);
    missing.sort((a, b) => a.generation - b.generation);
    for (const file of missing) {
      const copies = [...tracker.letGoOf(file.path)].filter(({ copyOf }) => copyOf === file);
      const known = copies.flatMap((copy) => picture.files.get(fileKey(copy)) ?? []);
      const candidates = [...rest, ...known.map((sighting) => ({ sighting, group: file.path }))];
      const used = findMissing(file, candidates);
      if (used) rest = rest.filter(({ sighting }) => sighting !== used.sighting);
      if (slices.spent()) await slices.turn();
    }
    lostGroups.clear();
    const byGroup = new Map<string, Sighting[]>();
    for (const { sighting, group } of rest) byGroup.set(group, [...(byGroup.get(group) ?? []), sighting]);
    const isNew = (group: string) => Number(newGroups.has(group) && !blankGroups.has(group));
    for (const group of [...byGroup.keys()].sort((a, b) => isNew(a) - isNew(b) || (a < b ? -1 : 1))) {
      const sightings = byGroup.get(group)!;
      for (const sighting of inOrder(sightings, group)) {
        // It may have been taken up under another name, or after a reload nobody wants it.
        const { dev, ino } = sighting.stat;
        if (tracker.get(dev, ino) || tracker.letGoAt(dev, ino)) continue;
        const isMissing = tracker.group(group).some(({ state }) => state === 'missing');
        const isLost =
          lostGroups.has(group) || unseenGroups.has(group) || (lostGroups.size > 0 && newGroups.has(group));
        if (isLost || (isMissing && !trustsNames(sighting))) {
          wantsScan = true;
          continue;
        }
        judge(sighting, group);
        const file = tracker.get(dev, ino);
        if (file) claim(file, sighting);
        if (slices.spent()) await slices.turn();
      }
    }
  };

  /** The file at the group's own path first, for others may be copies of it; then plain files, the oldest first. */
  const inOrder = (sightings: readonly Sighting[], group: string): Sighting[] => {
    if (sightings.length === 1) return [...sightings];
    const ages = new Map<Sighting, Aged>();
    for (const sighting of sightings) {
      const { stat, paths } = sighting;
      const start = isCompressed(paths[0]!) ? undefined : contents.of(sighting, (content) => content.start);
      ages.set(sighting, {
        name: basename(paths[0]!),
        mtimeNs: stat.mtimeNs,
        firstEntryMs: start && firstEntryMs(start),
      });
    }
    const known = tracker.group(group).map(aged);
    const compare = byRestartAndAge(basename(group), known.length > 1 ? known : [...ages.values()]);
    return [...sightings].sort(
      (a, b) =>
        Number(isHome(b, group)) - Number(isHome(a, group)) ||
        Number(isCompressed(a.paths[0]!)) - Number(isCompressed(b.paths[0]!)) ||
        compare(ages.get(a)!, ages.get(b)!),
    );
  };

  /** The first scan of a pattern may have met a copy that was being written: it is older than nothing. */
  const findCopiesAmongOlder = () => {
    for (const file of taken) {
      if (file.compressed || file.state !== 'live' || file.fingerprint.head.length === 0) continue;
      for (const older of tracker.letGoOf(file.path)) {
        const sighting = picture.files.get(fileKey(older));
        if (!sighting || older.copyOf || older.generation !== 0 || older.size > file.nowSize) continue;
        const shared = Math.min(older.head.length, file.fingerprint.head.length);
        if (shared > 0 && older.head[shared - 1] !== file.fingerprint.head[shared - 1]) continue;
        const fd = openFiles.open(file);
        if (fd !== undefined && contents.isPrefixOf(sighting, older.size, fd)) older.copyOf = file;
      }
    }
  };

  const resolveMissing = () => {
    for (const file of [...tracker]) {
      if (file.state !== 'missing') continue;
      if (directoryOf(file)?.isSettled !== true || isDisturbed) {
        if (!seesDirectory(file)) waitForDirectory(file);
        else wantsScan = true;
        continue;
      }
      if ([...nextUndecided.values()].some(({ of }) => of === file)) continue;
      file.absences++;
      if (file.absences >= absencesLimit) giveUp(file, file.lostBy);
      else wantsScan = true;
    }
  };

  const prune = () => {
    if (++scans % pruneEvery !== 0 || nextUndecided.size > 0) return;
    for (const members of [...tracker.letGoGroups.values()]) {
      for (const file of members) {
        if (file.ino < 0n || picture.files.has(fileKey(file))) continue;
        if (picture.directories.get(dirname(file.path))?.isSettled !== true) continue;
        if (++file.absences < absencesLimit) continue;
        tracker.forget(file);
        tracker.letGo({ ...file, ino: -1n });
      }
    }
  };

  const isQuiet = (file: TrackedFile) => {
    const quietMs = file.state === 'unlinked' ? unlinkedQuietMs : rotatedQuietMs;
    return !isStale(file) && clock.monotonicMs() - file.changedMs >= quietMs;
  };

  return {
    async reconcile(next) {
      picture = next;
      wantsScan = false;
      isDisturbed = false;
      taken.clear();
      takenGroups.clear();
      newGroups.clear();
      unseenGroups.clear();
      blankGroups.clear();
      nextUndecided = new Map();
      const isUnsettled = [...picture.directories.values()].some(
        ({ isSettled, isListed }) => isListed && !isSettled,
      );
      unsettledScans = isUnsettled ? unsettledScans + 1 : 0;
      const sighted = new Set<TrackedFile>();
      const unknown: Sighting[] = [];
      for (const sighting of picture.files.values()) {
        const file = recognize(sighting);
        if (file) sighted.add(file);
        else unknown.push(sighting);
        if (slices.spent()) await slices.turn();
      }
      for (const file of [...tracker]) if (!sighted.has(file) && file.state !== 'missing') lostSight(file);
      await classify(unknown.filter((sighting) => !isLetGo(sighting)));
      findCopiesAmongOlder();
      for (const group of takenGroups) arrange(group);
      resolveMissing();
      prune();
      contents.release();
      if (isDisturbed) wantsScan = true;
      undecided = nextUndecided;
      if (!isUnsettled) isLegacy = false;
    },

    rewritten: (file) => lose(file, 'truncated'),
    mistaken(file) {
      file.ruledOut = new Set([...(file.ruledOut ?? []), file.real]);
      lose(file, 'vanished');
    },
    broken(file) {
      // It may still be written.
      if (clock.monotonicMs() - file.changedMs < undecidedMs) return false;
      const stat: FileStat = {
        dev: file.dev,
        ino: file.ino,
        size: file.nowSize,
        mtimeNs: file.nowMtimeNs,
        nlink: 1,
        kind: 'file',
      };
      const missing = Math.max(file.restBytes, file.size - file.offset);
      Object.assign(file, { rest: noBytes, restBytes: 0 });
      sinks.finish(file);
      sinks.skip(file, 'unreadable', missing);
      tracker.remove(file);
      letGoWhole(file.path, { stat, paths: [file.real] }, file.generation);
      contents.release();
      return true;
    },
    unpacked(file) {
      sinks.finish(file);
      letGoTracked(file, false);
    },

    settle() {
      for (const file of [...tracker]) {
        if (file.state === 'live' || file.state === 'missing' || file.compressed || !isQuiet(file)) continue;
        reader.finish(file);
        letGoTracked(file, file.state === 'unlinked');
      }
    },

    glance(file) {
      const stat = statOpen(file);
      if (stat) note(file, stat, stat.nlink === 0 ? 'unlinked' : file.state);
    },

    get wantsScan() {
      return wantsScan;
    },

    isCopyAfterAll(file) {
      if (!file.isBlank) return false;
      const stat = statOpen(file);
      const isRead = file.offset + file.restBytes > 0;
      if (stat?.size === 0 && !isRead) {
        Object.assign(file, { mtimeNs: stat.mtimeNs, nowMtimeNs: stat.mtimeNs, nowSize: 0 });
        return true;
      }
      file.isBlank = false;
      if (
        !stat ||
        isRead ||
        !looksCopied({ stat, paths: [file.real], found: [], isSettled: true, isOlder: false }, file)
      ) {
        return false;
      }
      openFiles.close(file);
      tracker.remove(file);
      return true;
    },

    isBlocked: ({ path, generation }) =>
      tracker
        .group(path)
        .some(
          (file) =>
            file.state === 'missing' &&
            file.generation < generation &&
            unreadBytes(file) + file.rest.length > 0,
        ),

    homes() {
      const homes = new Map<string, Set<string>>();
      const add = (path: string) => {
        const directory = dirname(path);
        const names = homes.get(directory) ?? new Set();
        homes.set(directory, names.add(basename(path)));
      };
      for (const file of tracker) add(file.home);
      for (const path of tracker.letGoGroups.keys()) add(path);
      return homes;
    },

    targets() {
      const targets = new Map<string, Set<string>>();
      for (const file of tracker) {
        if (file.home === file.path || file.state !== 'live') continue;
        const directory = dirname(file.home);
        targets.set(directory, (targets.get(directory) ?? new Set()).add(basename(file.home)));
      }
      return targets;
    },

    restoredWithoutLetGo() {
      isLegacy = true;
    },
  };
}
