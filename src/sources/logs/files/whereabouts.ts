import { basename, dirname } from 'node:path';
import { fileKey, type Sighting } from './discovery.ts';
import { type FileStat, saysAbsent } from './disk.ts';
import { headCovers, likeness, type Seen, tailBytes } from './fingerprint.ts';
import type { Generations } from './generations.ts';
import type { Groups } from './groups.ts';
import { isCompressed, isRotationOf, isSameLog } from './rotated-names.ts';
import type { RotationDeps, ScanState } from './scan-state.ts';
import { isBarelyKnown, knownContent, type TrackedFile } from './tracked-file.ts';

/** How long a file is kept whose directory does not exist, for example because it is not mounted yet. */
const absentKeptMs = 24 * 60 * 60 * 1000;
/** After this many scans in a row with an unsettled listing, the names in it are used. */
const unsettledLimit = 5;

/** Finds the tracked files again: under which name each is now, and whether it is still the same file. */
export function createWhereabouts(
  deps: RotationDeps,
  scan: ScanState,
  { groups, generations }: { groups: Groups; generations: Generations },
) {
  const { disk, clock, tracker, openFiles, reader, contents } = deps;
  const { rootOf } = groups;
  const { learn, note, statOpen, lose, forgetBeginning, giveUp, claim, realOf } = generations;

  /** The file where it was last seen; 'hidden' if the path cannot be looked up. */
  const statReal = (file: TrackedFile): FileStat | 'hidden' | undefined => {
    try {
      const stat = disk.stat(file.real);
      return stat && stat.dev === file.dev && stat.ino === file.ino ? stat : undefined;
    } catch (thrown) {
      return saysAbsent(thrown) ? undefined : 'hidden';
    }
  };

  const locate = (file: TrackedFile, sighting: Sighting) => {
    const at = sighting.found.find(({ path }) => path === file.path)?.path ?? sighting.found[0]?.path ?? '';
    if (at !== '' && at === file.at && file.state !== 'missing')
      return file.state === 'unlinked' ? 'live' : file.state;
    const isElsewhere =
      scan.picture.found.has(file.path) && scan.picture.found.get(file.path) !== fileKey(file);
    if (at !== '') {
      file.record = undefined;
      file.at = at;
      file.real = realOf(at, sighting);
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

  const areNamesReliable = (sighting: Sighting) =>
    sighting.isSettled || scan.unsettledScans >= unsettledLimit;

  const meet = (file: TrackedFile, sighting: Sighting, stat: FileStat) => {
    const state = areNamesReliable(sighting) ? locate(file, sighting) : file.state;
    if (file.fd === undefined && !sighting.paths.includes(file.real)) file.real = sighting.paths[0]!;
    note(file, stat, state);
    claim(file, sighting);
    openFiles.hold(file);
    learn(file);
  };

  /** Whether the inode is still that of the tracked file, as it is while the file is open. Undefined if that cannot be checked now. */
  const isSame = (file: TrackedFile, { stat, paths }: Seen): boolean | undefined => {
    if (file.fd !== undefined) return true;
    if (isCompressed(paths[0]!) !== file.compressed) return false;
    const isUnchanged = stat.size === file.nowSize && stat.mtimeNs === file.nowMtimeNs;
    if (file.isVerified && isUnchanged) return true;
    const known = knownContent(file);
    const isKnown = known.head.length > 0 || known.offset + known.rest.length > 0;
    // Under an unrelated name, a few equal bytes such as a banner do not identify a file: the inode may have been reused.
    const isWell = Math.max(headCovers(known.head), known.tailLength + known.rest.length) >= tailBytes;
    // Until the log's own path is seen, its rotated files are groups of their own. A rotation changes neither size nor time;
    // a snapshot has no time of a file that was not read.
    const isUntouched = isUnchanged || (stat.size === file.nowSize && file.nowMtimeNs < 0n);
    const isRenamed = (path: string) =>
      isUntouched && dirname(path) === dirname(file.path) && isSameLog(basename(path), basename(file.path));
    const isOwnName = (path: string) => path === file.home || rootOf(path) === file.path || isRenamed(path);
    // Logs of one service begin with the same banner, and the next file of one may get the inode of a deleted file of another.
    const isOthersName = (path: string) => tracker.hasGroup(rootOf(path));
    if (!paths.some(isOwnName) && (!isWell || paths.some(isOthersName))) return false;
    if (file.compressed) {
      const isAlike = contents.of({ stat, paths }, (content) => likeness(content, known) !== 'none');
      return isKnown ? isAlike : true;
    }
    const { real, nowSize, nowMtimeNs } = file;
    if (!paths.includes(real)) file.real = paths[0]!;
    // By the descriptor that was compared: while a chain of files is renamed, a path soon leads to another one.
    if (contents.open({ stat, paths }) === 'open') openFiles.hold(file, contents.take({ stat, paths }));
    const isIntact = reader.isIntact(file, false);
    if (isIntact === false) {
      Object.assign(file, { real, nowSize, nowMtimeNs });
      return false;
    }
    if (isIntact) file.isVerified = true;
    else Object.assign(file, { real, nowSize, nowMtimeNs });
    return isIntact;
  };

  /** The tracked file of a sighting, updated from it; undefined if the file is not followed. */
  const recognize = (key: string, sighting: Sighting): TrackedFile | undefined => {
    const file = tracker.at(key);
    if (!file) return undefined;
    // The link at its path points to another file now, so this file is no copy. It bounds the names that the link had in between.
    if (file.isBlank && sighting.found.length === 0 && sighting.paths.includes(file.home)) {
      file.isBlank = false;
      file.record = undefined;
    }
    if (file.isBlank && sighting.stat.size > 0 && file.offset + file.restBytes === 0) {
      scan.blankGroups.add(file.path);
      scan.blanks.set(key, file);
      openFiles.close(file);
      tracker.remove(file);
      return undefined;
    }
    const isElsewhere = file.fd === undefined && !sighting.paths.includes(file.home);
    if (isElsewhere && isBarelyKnown(file, sighting.stat)) {
      const content = knownContent(file);
      const isUnknown = content.head.length + content.rest.length === 0;
      if (isUnknown || contents.of(sighting, (own) => likeness(own, content) !== 'none'))
        forgetBeginning(file);
      lose(file, 'vanished');
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
      scan.isDisturbed = true;
      if (contents.open(sighting) !== 'denied') scan.unseenGroups.add(file.path);
    }
    return file;
  };

  const directoryOf = (file: TrackedFile) => scan.picture.directories.get(dirname(file.home));

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

  /** This scan could not locate the file: no new file of its group is followed before the next one. */
  const postponeGroup = (file: TrackedFile) => {
    scan.unseenGroups.add(file.path);
    scan.needsScan = true;
  };

  /** Looks for a file that the picture does not have: it was renamed to a name that no scan looks up, deleted, or is not accessible. */
  const findUnlisted = (file: TrackedFile) => {
    const isSettled = directoryOf(file)?.isSettled === true;
    const open = statOpen(file);
    if (open) {
      if (open.nlink === 0) {
        file.at = '';
        note(file, open, 'unlinked');
        return;
      }
      const isThere = statReal(file) !== undefined;
      const isRotated = scan.picture.found.has(file.path) || !isThere;
      if (isSettled && isRotated) file.at = '';
      note(file, open, isSettled && isRotated ? 'rotated' : file.state);
      return;
    }
    const real = statReal(file);
    if (real === 'hidden') return;
    if (real) {
      const isOwn = isSame(file, { stat: real, paths: [file.real] });
      // What was looked up is older than the comparison.
      if (isOwn) note(file, statOpen(file) ?? real, file.state);
      else if (isOwn === false) lose(file, 'truncated');
      else postponeGroup(file);
      return;
    }
    if (!seesDirectory(file)) {
      waitForDirectory(file);
      return;
    }
    if (!isSettled && scan.unsettledScans < unsettledLimit) {
      postponeGroup(file);
      return;
    }
    const elsewhere = findByInode(file);
    if (elsewhere) {
      file.real = elsewhere.path;
      file.at = '';
      file.record = undefined;
      const isOwn = isSame(file, { stat: elsewhere.stat, paths: [elsewhere.path] });
      const state = elsewhere.path === file.home ? 'live' : 'rotated';
      if (isOwn) note(file, statOpen(file) ?? elsewhere.stat, state);
      else if (isOwn === undefined) postponeGroup(file);
      if (isOwn !== false) return;
    }
    lose(file, 'vanished');
  };

  return {
    areNamesReliable,
    statReal,
    recognize,
    directoryOf,
    seesDirectory,
    waitForDirectory,
    postponeGroup,
    findUnlisted,
  };
}

export type Whereabouts = ReturnType<typeof createWhereabouts>;
