import { basename, dirname } from 'node:path';
import { crc32 } from 'node:zlib';
import { type Disk, type FileStat, statReal } from '../discovery/disk.ts';
import type { DirectoryPicture, Picture, Sighting } from '../discovery/picture.ts';
import { isRotationOf, isSameLog } from '../discovery/rotated-names.ts';
import type { Apply } from './apply.ts';
import { type Content, compare, identifyingBytes, learn, marksAgree, tailBytes } from './chain.ts';
import type { Seen } from './contents.ts';
import type { Answer, Ask } from './decision.ts';
import { type Generation, isStale, isUnread, knownBytes, type Place, seenBytes } from './generation.ts';
import type { Groups } from './groups.ts';
import type { Places, ScanDeps } from './places.ts';

/** What one scan has seen. */
export interface Observed {
  readonly picture: Picture;
  readonly groups: Groups;
  /** Generations whose file is in the picture. */
  readonly met: Set<Generation>;
  /** Groups with a generation that could not be seen. */
  readonly unseen: Set<string>;
  /** The number of scans in a row with a listing that did not settle. */
  readonly unsettledScans: number;
  /** Whether something was renamed or deleted between the listing and a comparison. */
  isDisturbed: boolean;
  /** Whether another scan may resolve what this scan cannot resolve. */
  needsScan: boolean;
}

/** After this many scans in a row with an unsettled listing, the names in that listing are used. */
const unsettledLimit = 5;

export const areNamesReliable = ({ unsettledScans }: Observed, { isSettled }: { isSettled: boolean }) =>
  isSettled || unsettledScans >= unsettledLimit;

const directoryOf = ({ picture }: Observed, of: Generation): DirectoryPicture | undefined =>
  picture.directories.get(dirname(of.home));

/** Whether the listing of a generation's directory proves that a file is absent. */
export const isListingSettled = (seen: Observed, of: Generation): boolean =>
  directoryOf(seen, of)?.isSettled === true;

/** Whether the directory of a generation is there, can be read and is on the file's device. */
export function seesDirectory(disk: Disk, seen: Observed, of: Generation): boolean {
  if (directoryOf(seen, of)?.isListed !== true) return false;
  const dev = of.place?.dev ?? of.lost?.dev;
  try {
    const stat = disk.stat(dirname(of.home));
    return stat !== undefined && (dev === undefined || stat.dev === dev);
  } catch {
    return false;
  }
}

/** Finds the file under any name in its directory. A file of which nothing was read must have a name of its log. */
function findByInode(disk: Disk, of: Generation): Seen | undefined {
  const directory = dirname(of.home);
  const base = basename(of.home);
  const { dev, ino } = of.place!;
  try {
    for (const { name, kind } of disk.list(directory)) {
      if (kind !== 'file') continue;
      if (seenBytes(of) === 0 && name !== base && !isRotationOf(name, base)) continue;
      const path = `${directory}/${name}`;
      const stat = disk.stat(path);
      if (stat?.kind === 'file' && stat.dev === dev && stat.ino === ino) return { stat, paths: [path] };
    }
  } catch {
    // The next scan reports a directory that cannot be listed.
  }
  return undefined;
}

/** Whether the names of a file may be names of the generation that has its inode. */
function hasItsName({ groups }: Observed, of: Generation, { stat, paths }: Seen): boolean {
  const place = of.place!;
  const isUnchanged = stat.size === place.size && (stat.mtimeNs === place.mtimeNs || place.mtimeNs < 0n);
  const isOwn = (path: string) => path === of.home || groups.rootOf(path) === of.group;
  const isRenamed = (path: string) =>
    isUnchanged && dirname(path) === dirname(of.group) && isSameLog(basename(path), basename(of.group));
  return paths.some((path) => isOwn(path) || isRenamed(path));
}

const isUntouched = ({ fd, isVerified, size, mtimeNs }: Place, stat: FileStat): boolean =>
  fd !== undefined || (isVerified && stat.size === size && stat.mtimeNs === mtimeNs);

/** Whether a closed file has changed and nothing of it was counted. Such a file is identified anew. */
function isAnyones(of: Generation, { stat, paths }: Seen): boolean {
  const { fd, isGzip, size, mtimeNs } = of.place!;
  const isChanged = stat.size !== size || stat.mtimeNs !== mtimeNs;
  return fd === undefined && !isGzip && isUnread(of) && isChanged && !paths.includes(of.home);
}

/** Notes that this scan could not locate a generation. No new file of its group is followed before the next scan. */
export function postpone(seen: Observed, of: Generation): void {
  seen.unseen.add(of.group);
  seen.needsScan = true;
}

/** Returns the function that compares a file with a generation, for `match`. It reads no more than the comparison needs. */
function createAnswer({ openFiles, reader, generations, contents }: ScanDeps, { note, stat }: Places) {
  /** Compares two contents of which at least one is packed. */
  const answerPacked = async (content: Content, of: Generation): Promise<Answer> => {
    const place = of.place!;
    if (content.isGzip && place.isGzip) return 'other';
    // The file may have grown since it was listed, and then been rotated and packed.
    const now = place.isGzip ? undefined : stat(of);
    if (now) note(of, now, place.state);
    if (isStale(of)) return openFiles.open(place) === undefined ? 'unseen' : 'undrained';
    const relation = await compare(content, of);
    if (place.isGzip) return relation === 'same' || relation === 'shorter' ? 'prefix' : 'other';
    if (reader.isIntact(of, place.fd !== undefined) === false) return 'rewritten';
    if (relation === 'same' && content.size === of.size) return 'prefix';
    // The archive may have been made before the file grew.
    const isPart = relation === 'same' || relation === 'shorter';
    const fd = isPart && content.size >= identifyingBytes ? openFiles.open(place) : undefined;
    if (fd !== undefined && (await contents.beginsWith(fd, content))) return 'prefix';
    if (relation === 'unseen') return 'unseen';
    return relation === 'unknown' || relation === 'other' ? 'other' : 'longer';
  };

  /**
   * Compares a file with a followed generation: with the content of the generation's file, not only with the bytes that were
   * read.
   */
  const answerFollowed = async (sighting: Sighting, content: Content, of: Generation): Promise<Answer> => {
    const place = of.place!;
    if (marksAgree(of.chain, content.start) === false)
      return reader.isIntact(of, place.fd !== undefined) === false ? 'rewritten' : 'other';
    if (content.isGzip || place.isGzip) return answerPacked(content, of);
    const wasOpen = place.fd !== undefined;
    const fd = openFiles.open(place);
    if (fd === undefined) {
      const relation = await compare(content, of);
      return relation === 'other' || relation === 'unknown' ? 'other' : 'unseen';
    }
    const isPrefix = contents.isPrefixOf(sighting, fd);
    // The bytes that the copy holds were in the file. If the file changes before they are read, they can be found in the copy.
    if (isPrefix && isUnread(of) && !place.isBlank)
      generations.update(of, { chain: learn(of.chain, content.start) });
    // This is checked after the comparison: the file may have been rewritten before it, and then the compared file is a copy of
    // the new content.
    if (reader.isIntact(of, wasOpen) === false) return 'rewritten';
    if (isPrefix === undefined) return 'moved';
    if (isPrefix) return 'prefix';
    const relation = await compare(content, of);
    return relation === 'other' || relation === 'unknown' || content.size <= place.size ? 'other' : 'longer';
  };

  return async ({ file, of }: Ask, sighting: Sighting): Promise<Answer> => {
    const { content } = file;
    if (typeof content === 'string') return 'unknown';
    if (of.place) return answerFollowed(sighting, content, of);
    const { size, start, isGzip } = content;
    const relation = await compare(content, of);
    if (!isGzip || relation === 'same' || relation === 'longer') return relation;
    const isPart = of.parts.some((part) => part.size === size && part.sum === crc32(start));
    return isPart ? 'part' : relation;
  };
}

/**
 * Returns the function that tells whether an inode still belongs to a generation, which is certain while the file is open. Its
 * result is undefined if the file cannot be looked at now.
 */
function createIsSame({ generations, contents, compared, openFiles, reader }: ScanDeps) {
  return async (seen: Observed, of: Generation, file: Seen): Promise<boolean | undefined> => {
    if (isUntouched(of.place!, file.stat)) return true;
    const place = of.place!;
    const { paths } = file;
    // Whether a path belongs to another log, which may be a new log. The file of that log may have the inode, and the same
    // banner.
    const isOthersName = (path: string) => {
      const root = seen.groups.rootOf(path);
      return generations.hasGroup(root) || (root !== of.group && seen.picture.found.has(path));
    };
    const isWell = knownBytes(of) >= tailBytes && !paths.some(isOthersName);
    if (!isWell && !hasItsName(seen, of, file)) return false;
    if (place.isGzip) {
      const content = contents.of(file);
      if (typeof content === 'string') return content === 'unfinished' ? knownBytes(of) === 0 : undefined;
      if (!content.isGzip) return false;
      return knownBytes(of) === 0 || (await compare(content, of)) !== 'other';
    }
    const { real, size, mtimeNs } = place;
    if (!paths.includes(real)) generations.relocate(of, { real: paths[0]! });
    // The descriptor that was compared is used: while a chain of files is renamed, a path soon leads to another file.
    const content = contents.of(file);
    if (typeof content !== 'string' && !content.isGzip) openFiles.hold(place, compared.take(file));
    if (typeof content !== 'string' && content.isGzip && content.size > 0) return false;
    const isIntact = reader.isIntact(of, false);
    if (isIntact) place.isVerified = true;
    else generations.relocate(of, { real, size, mtimeNs });
    return isIntact;
  };
}

/** Finds the followed generations again, and answers comparisons. */
export function createObserve(deps: ScanDeps, places: Places, { lose }: Pick<Apply, 'lose'>) {
  const { disk, generations, openFiles, compared, contents } = deps;
  const { note, locate, claim } = places;
  const isSame = createIsSame(deps);

  const meet = (seen: Observed, of: Generation, sighting: Sighting, stat: FileStat) => {
    const place = of.place!;
    const { found } = seen.picture;
    const state = areNamesReliable(seen, sighting) ? locate(of, sighting, found) : place.state;
    if (place.fd === undefined && !sighting.paths.includes(place.real))
      generations.relocate(of, { real: sighting.paths[0]! });
    note(of, stat, state);
    claim(of, sighting);
    openFiles.hold(place);
    places.learn(of);
  };

  /** Compares a closed file that has changed, or that was not compared yet. */
  const identify = async (seen: Observed, of: Generation, sighting: Sighting): Promise<void> => {
    const place = of.place!;
    const isOwn = await isSame(seen, of, sighting);
    if (isOwn === false) return lose(of, sighting.paths.includes(place.real) ? 'truncated' : 'vanished');
    seen.met.add(of);
    // The listing is older than the comparison that was just made.
    if (isOwn) return meet(seen, of, sighting, places.stat(of) ?? sighting.stat);
    seen.isDisturbed = true;
    if (contents.of(sighting) === 'denied') return;
    seen.unseen.add(of.group);
    // The file is gone again; this was its last known size.
    const isAtHome = place.state === 'live' && sighting.paths.includes(of.home);
    if (isAtHome && sighting.stat.size > place.size) generations.relocate(of, { size: sighting.stat.size });
  };

  /** Updates the generation that is read from a listed file, or marks it as lost. Waits only if something must be compared. */
  const recognize = (seen: Observed, of: Generation, sighting: Sighting): Promise<void> | undefined => {
    const place = of.place!;
    // The link at the log's path leads to another file now, so this file is no copy. This file bounds the names that the link has
    // had since.
    if (sighting.found.length === 0 && sighting.paths.includes(of.home)) place.isBlank = false;
    if (place.isBlank && sighting.stat.size > 0 && seenBytes(of) === 0) {
      const fd = openFiles.release(place);
      if (fd !== undefined) compared.adopt(sighting, fd);
      generations.relocate(of, { size: 0 });
      generations.lose(of, 'vanished');
    } else if (isAnyones(of, sighting)) lose(of, 'vanished');
    else if (!isUntouched(place, sighting.stat)) return identify(seen, of, sighting);
    else {
      seen.met.add(of);
      meet(seen, of, sighting, sighting.stat);
    }
    return undefined;
  };

  /** Handles an open file that is not in the picture. */
  const findOpen = (seen: Observed, of: Generation, stat: FileStat, isSettled: boolean) => {
    const place = of.place!;
    if (stat.nlink === 0) {
      if (place.at !== '') generations.relocate(of, { at: '' });
      return note(of, stat, 'unlinked');
    }
    const isRotated = isSettled && (seen.picture.found.has(of.group) || statReal(disk, place) === undefined);
    if (isRotated && place.at !== '') generations.relocate(of, { at: '' });
    note(of, stat, isRotated ? 'rotated' : place.state);
  };

  /**
   * Looks for a file that is not in the picture: it was renamed to a name that no scan looks up, was deleted, or is not
   * accessible.
   */
  const findUnlisted = async (seen: Observed, of: Generation): Promise<void> => {
    const isSettled = isListingSettled(seen, of);
    const open = places.stat(of);
    of.place!.isBlank = false;
    if (open) return findOpen(seen, of, open, isSettled);
    const place = of.place!;
    const real = statReal(disk, place);
    if (real === 'hidden') return;
    if (real) {
      const isOwn = await isSame(seen, of, { stat: real, paths: [place.real] });
      // The look-up is older than the comparison.
      if (isOwn) note(of, places.stat(of) ?? real, place.state);
      else if (isOwn === false) lose(of, 'truncated');
      else postpone(seen, of);
      return;
    }
    // The file may be on a file system that is not mounted now, or that is mounted as another device.
    if (!seesDirectory(disk, seen, of)) return lose(of, 'vanished');
    if (!isSettled && seen.unsettledScans < unsettledLimit) return postpone(seen, of);
    const elsewhere = findByInode(disk, of);
    if (!elsewhere) return lose(of, 'vanished');
    const path = elsewhere.paths[0]!;
    generations.relocate(of, { real: path, at: '' });
    const isOwn = await isSame(seen, of, elsewhere);
    if (isOwn) note(of, places.stat(of) ?? elsewhere.stat, path === of.home ? 'live' : 'rotated');
    else if (isOwn === undefined) postpone(seen, of);
    else lose(of, 'vanished');
  };

  return { recognize, findUnlisted, answer: createAnswer(deps, places) };
}

export type Observe = ReturnType<typeof createObserve>;
