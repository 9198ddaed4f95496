import { basename, dirname } from 'node:path';
import { createArchives } from './archives.ts';
import { createCopies } from './copies.ts';
import { fileKey, type Picture, type Sighting } from './discovery.ts';
import type { FileStat } from './disk.ts';
import { createGenerations } from './generations.ts';
import { createGroups, type Grouped } from './groups.ts';
import { createIdentification } from './identification.ts';
import { createMissing } from './missing-files.ts';
import { createScanState, type RotationDeps } from './scan-state.ts';
import { isStale, isUnread, noBytes, type TrackedFile, unreadBytes } from './tracked-file.ts';
import { createWhereabouts } from './whereabouts.ts';

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
 *   not found in two settled listings, 1 s apart  missing          let go (deleted)       rest; truncated or vanished
 *   read to its end, quiet                        rotated          let go                 rest
 *   read to its end, quiet                        unlinked         let go (deleted)       rest
 *   grows, or is back at its path                 let go           tracked, same offset   -
 *   other bytes in it                             let go           first seen             -
 *   its original is let go                        let go (copy)    let go, same offset    -
 *   seen, has more than its let-go original       let go           tracked, same offset   -
 *   first seen, archive of more than a given-up   -                tracked, same offset   -
 *
 * "rest" is the unfinished line, which counts as a line. A listing that did not settle proves that a file is there, but not
 * that a file is absent, and not which name is newer; see `discovery.ts`. Within a group an older generation is read to its end
 * before a younger one, unless a settled listing does not have it. Generations are ordered by the timestamps of their first
 * entries, then by names, then by times.
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
  /** Finishes the files that were read to their end and have not changed for a while. */
  settle(): void;
  /** Looks up the size of the open file. */
  refresh(file: TrackedFile): void;
  /** A file is missing or undecided, and another scan may resolve it. */
  readonly needsScan: boolean;
  /** Whether a file that was empty at first is not to be read now: it is still empty, or it looks like a copy and the next scan identifies it. */
  isCopyAfterAll(file: TrackedFile): boolean;
  /** Whether an older generation of the group is to be read first. */
  isBlocked(file: TrackedFile): boolean;
  /** Files that are not followed while it is decided whether they are copies. A snapshot includes them. */
  undecided(): TrackedFile[];
  homes(): Map<string, Set<string>>;
  targets(): Map<string, Set<string>>;
  /** The groups were restored from a snapshot that did not record what was let go. */
  restoredWithoutLetGo(): void;
}

/** How long a deleted file must be unchanged before it is closed, which frees its space. */
const unlinkedQuietMs = 1_000;
/** How long a rotated file must be unchanged before it is finished: its writer may keep it open for a while. */
const rotatedQuietMs = 10_000;
/** How long an archive that cannot be read is taken for unfinished after its last change. */
const unfinishedMs = 10_000;
/** Number of settled listings without a let-go file after which its inode is forgotten. */
const absencesLimit = 2;
/** Let-go files that were deleted are looked for once in this many scans. */
const pruneEvery = 8;

export function createRotation(deps: RotationDeps): Rotation {
  const scan = createScanState();
  const groups = createGroups(deps, scan);
  const generations = createGenerations(deps, scan, groups);
  const whereabouts = createWhereabouts(deps, scan, { groups, generations });
  const copies = createCopies(deps, scan, { groups, generations, whereabouts });
  const archives = createArchives(deps, scan, { generations, whereabouts, copies });
  const missing = createMissing(deps, scan, { groups, generations, whereabouts, copies, archives });
  const { clock, tracker, openFiles, reader, sinks, contents, slices } = deps;
  const { withGroups, homeIndex, arrange, mergeGroups, inOrder } = groups;
  const { note, statOpen, lose, letGoWhole, letGoTracked, releaseCopies, claim } = generations;
  const { areNamesReliable, recognize, findUnlisted } = whereabouts;
  const { looksCopied, isLetGo, findCopiesAmongOlder } = copies;
  const { findMissing, resolveMissing } = missing;
  const { identify } = createIdentification(deps, scan, {
    groups,
    generations,
    copies,
    archives,
  });
  let scans = 0;

  /**
   * Checks the files whose copies may be among the unknown ones, so that a rewritten file is not taken for the original. A
   * file of a new group may be a copy of any changed file in its directory.
   */
  const verifyOriginals = (grouped: readonly Grouped[], unknown: Sighting[]) => {
    const groups = new Set(grouped.map(({ group }) => group));
    const directories = new Set<string>();
    for (const { sighting, group } of grouped)
      if (scan.newGroups.has(group)) directories.add(dirname(sighting.paths[0]!));
    for (const file of [...tracker]) {
      const isInChangedDirectory =
        directories.has(dirname(file.home)) && isStale(file) && file.state === 'live';
      const isOpen = file.fd !== undefined;
      if (!isInChangedDirectory && !(isOpen && groups.has(file.path))) continue;
      if (file.compressed || (file.offset + file.restBytes === 0 && file.fingerprint.head.length === 0))
        continue;
      if (reader.isIntact(file, isOpen) !== false) continue;
      const sighting = scan.picture.files.get(fileKey(file));
      lose(file, 'truncated');
      if (sighting) unknown.push(sighting);
    }
  };

  const isUnseen = (file: TrackedFile) => file.state === 'missing' || file.absentSinceMs !== undefined;

  /** Finds the missing generations among `files`, and returns the files that are none of them. */
  const findAllMissing = async (files: readonly Grouped[]): Promise<readonly Grouped[]> => {
    let rest = files;
    const missing = [...tracker].filter(isUnseen);
    // The bytes before the offset identify a file that was read. The beginning of an unread one may be that of others, too.
    missing.sort((a, b) => Number(isUnread(a)) - Number(isUnread(b)) || a.generation - b.generation);
    for (const file of missing) {
      const known = tracker.copiesOf(file).flatMap((copy) => scan.picture.files.get(fileKey(copy)) ?? []);
      const candidates = [...rest, ...known.map((sighting) => ({ sighting, group: file.path }))];
      const used = findMissing(file, candidates);
      if (used) rest = rest.filter(({ sighting }) => sighting !== used.sighting);
      if (slices.spent()) await slices.turn();
    }
    return rest;
  };

  /** Whether a file of the group may have the bytes of another one that this scan has lost or cannot see. */
  const isUncertain = ({ sighting, group }: Grouped): boolean =>
    scan.lostGroups.has(group) ||
    scan.unseenGroups.has(group) ||
    (!areNamesReliable(sighting) && tracker.group(group).some(({ state }) => state === 'missing'));

  /** Identifies each file, those of known groups first: others may be copies of them. */
  const identifyAll = async (files: readonly Grouped[]) => {
    const byGroup = new Map<string, Sighting[]>();
    for (const { sighting, group } of files) {
      const members = byGroup.get(group);
      if (members) members.push(sighting);
      else byGroup.set(group, [sighting]);
    }
    const isNew = (group: string) => Number(scan.newGroups.has(group) && !scan.blankGroups.has(group));
    let isDeferred = false;
    for (const group of [...byGroup.keys()].sort((a, b) => isNew(a) - isNew(b) || (a < b ? -1 : 1))) {
      for (const sighting of inOrder(byGroup.get(group)!, group)) {
        // It may have been followed or let go under another name since.
        const { dev, ino } = sighting.stat;
        if (tracker.get(dev, ino) || tracker.letGoAt(dev, ino)) continue;
        // A file of a new group may be a copy of one that this scan cannot follow yet.
        const mayBeCopy = scan.newGroups.has(group) && (isDeferred || scan.lostGroups.size > 0);
        if (mayBeCopy || isUncertain({ sighting, group })) {
          isDeferred = true;
          scan.needsScan = true;
          continue;
        }
        identify(sighting, group);
        const file = tracker.get(dev, ino);
        if (file) claim(file, sighting);
        if (slices.spent()) await slices.turn();
      }
    }
  };

  /** Identifies the files that are not followed. */
  const classify = async (unknown: Sighting[]) => {
    if (unknown.length === 0 && ![...tracker].some(isUnseen)) {
      scan.lostGroups.clear();
      return;
    }
    let homes = homeIndex();
    const first = withGroups(unknown, homes);
    for (const { group } of first) if (!tracker.hasGroup(group)) scan.newGroups.add(group);
    if (scan.newGroups.size > 0) {
      mergeGroups();
      homes = homeIndex();
    }
    verifyOriginals(first, unknown);
    // Those that are lost by now are looked for here; those that a comparison finds rewritten, in the next scan.
    scan.lostGroups.clear();
    await identifyAll(await findAllMissing(withGroups(unknown, homes)));
  };

  const prune = () => {
    if (++scans % pruneEvery !== 0 || scan.nextUndecided.size > 0) return;
    for (const members of [...tracker.letGoGroups.values()]) {
      for (const file of members) {
        if (file.ino < 0n || scan.picture.files.has(fileKey(file))) continue;
        if (scan.picture.directories.get(dirname(file.path))?.isSettled !== true) continue;
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
      scan.begin(next);
      const seen = new Set<TrackedFile>();
      const unknown: Sighting[] = [];
      for (const [key, sighting] of scan.picture.files) {
        const file = recognize(key, sighting);
        if (file) seen.add(file);
        else unknown.push(sighting);
        if (slices.spent()) await slices.turn();
      }
      for (const file of [...tracker]) if (!seen.has(file) && file.state !== 'missing') findUnlisted(file);
      await classify(unknown.filter((sighting) => !isLetGo(sighting)));
      findCopiesAmongOlder();
      for (const group of scan.takenGroups) arrange(group);
      resolveMissing();
      prune();
      for (const [key, { dev, ino }] of scan.blanks)
        if (tracker.at(key) || tracker.letGoAt(dev, ino)) scan.blanks.delete(key);
      contents.release();
      if (scan.isDisturbed) scan.needsScan = true;
      scan.undecided = scan.nextUndecided;
      if (scan.unsettledScans === 0) scan.isLegacy = false;
    },

    rewritten: (file) => lose(file, 'truncated'),
    mistaken(file) {
      if (file.tailSum) {
        // Another generation that begins the same: the next scan identifies the file anew.
        scan.ruledOut.add(fileKey(file));
        openFiles.close(file);
        tracker.remove(file);
        scan.needsScan = true;
        return;
      }
      file.ruledOut = new Set([...(file.ruledOut ?? []), file.real]);
      lose(file, 'vanished');
    },
    broken(file) {
      // It may still be written.
      if (clock.monotonicMs() - file.changedMs < unfinishedMs) return false;
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
      releaseCopies(file);
      contents.release();
      return true;
    },
    unpacked(file) {
      sinks.finish(file);
      letGoTracked(file, 'read');
    },

    settle() {
      for (const file of [...tracker]) {
        if (file.state === 'live' || file.state === 'missing' || file.compressed || !isQuiet(file)) continue;
        reader.finish(file);
        letGoTracked(file, file.state === 'unlinked' ? 'deleted' : 'read');
      }
    },

    refresh(file) {
      const stat = statOpen(file);
      if (stat) note(file, stat, stat.nlink === 0 ? 'unlinked' : file.state);
    },

    get needsScan() {
      return scan.needsScan;
    },

    isCopyAfterAll(file) {
      if (!file.isBlank) return false;
      openFiles.open(file);
      const stat = statOpen(file);
      if (!stat) return true;
      const isRead = file.offset + file.restBytes > 0;
      if (stat.size === 0 && !isRead) {
        Object.assign(file, { mtimeNs: stat.mtimeNs, nowMtimeNs: stat.mtimeNs, nowSize: 0 });
        return true;
      }
      file.isBlank = false;
      if (
        isRead ||
        !looksCopied({ stat, paths: [file.real], found: [], isSettled: true, isOlder: false }, file)
      ) {
        return false;
      }
      openFiles.close(file);
      tracker.remove(file);
      return true;
    },

    isBlocked({ path, generation }) {
      for (const file of tracker.missing) {
        if (file.path !== path || file.generation >= generation || file.missedSinceMs !== undefined) continue;
        if (unreadBytes(file) + file.rest.length > 0) return true;
      }
      return false;
    },

    undecided: () =>
      [...scan.blanks.values()].filter(
        ({ dev, ino }) => !tracker.get(dev, ino) && !tracker.letGoAt(dev, ino),
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
      scan.isLegacy = true;
    },
  };
}
