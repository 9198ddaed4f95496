import { basename, dirname } from 'node:path';
import type { Disk, FileStat } from '../discovery/disk.ts';
import { fileKey, type Sighting } from '../discovery/picture.ts';
import { rotatedFrom } from '../discovery/rotated-names.ts';
import type { Apply } from './apply.ts';
import { type Generation, isBlank, knownBytes } from './generation.ts';
import type { Generations } from './generations.ts';
import { isListingSettled, type Observed, seesDirectory } from './observe.ts';
import type { ScanDeps } from './places.ts';

/**
 * The time between two settled listings without a lost generation after which it is given up. Listings of one scan follow each
 * other at once, and a rotation or a compressor may take longer than that until the bytes are back.
 */
const lostForMs = 1_000;
/** How long a generation is remembered whose directory does not exist, for example because it is not mounted yet. */
const absentKeptMs = 24 * 60 * 60 * 1000;
/** After this many scans with a settled listing that does not contain a known file, its inode is forgotten. */
const absencesLimit = 2;
/** Deleted files are looked for once in this many scans. */
const pruneEvery = 8;

/** Handles what is not where it was: files that are gone before they were read, and lost generations. */
export function createLosses(
  { disk, clock, generations }: Pick<ScanDeps, 'disk' | 'clock' | 'generations'>,
  apply: Pick<Apply, 'miss' | 'giveUp'>,
) {
  let scans = 0;

  /** Records a file that was at a log's path for a moment and of which nothing is known. */
  const miss = (seen: Observed, sighting: Sighting, group: string) => {
    const key = fileKey(sighting.stat);
    if (generations.readAt(key) || generations.knownAt(key)) return;
    apply.miss(sighting, { key, group, isHome: true });
    seen.needsScan = true;
  };

  const isOfLog = ({ groups }: Observed, sighting: Sighting, group: string): boolean =>
    generations.hasGroup(group) ? groups.isHome(sighting, group) : rotatedFrom(basename(group)).length === 0;

  const resolveOne = (seen: Observed, of: Generation, isUndecided: boolean) => {
    const lost = of.lost!;
    if (!seesDirectory(disk, seen, of)) {
      lost.absentSinceMs ??= clock.monotonicMs();
      if (clock.monotonicMs() - lost.absentSinceMs > absentKeptMs) apply.giveUp(of, of.lostBy!);
      return;
    }
    lost.absentSinceMs = undefined;
    if (!isListingSettled(seen, of) || seen.isDisturbed) {
      seen.needsScan = true;
      return;
    }
    lost.sinceMs ??= clock.monotonicMs();
    // The file is read as another generation, or is known as a file that is not read.
    const found = generations.readAt(lost.key) ?? generations.knownAt(lost.key)?.of;
    if (found?.group === of.group && knownBytes(of) === 0 && of.rest.length === 0) generations.remove(of);
    else if (isBlank(of)) {
      // As long as the file is there, it is undecided what it is.
      if (!seen.picture.files.has(lost.key)) generations.remove(of);
    } else if (!isUndecided && clock.monotonicMs() - lost.sinceMs >= lostForMs) apply.giveUp(of, of.lostBy!);
  };

  return {
    /** Records as missed the files that were there before a scan, or in an earlier pass of it, and that are not listed now. */
    missGone(seen: Observed, passed: ReadonlyMap<string, Glimpse>): void {
      const { files, glimpsed } = seen.picture;
      for (const sighting of glimpsed) {
        const group = seen.groups.of(sighting);
        if (group !== undefined && isOfLog(seen, sighting, group)) miss(seen, sighting, group);
      }
      for (const [key, { sighting, group }] of passed) {
        const listed = files.get(key);
        if (!listed || listed.stat.size < sighting.stat.size) miss(seen, sighting, seen.groups.rootOf(group));
      }
    },
    /**
     * Gives up the generations that two settled listings do not have. It waits for the `awaited` generations, whose bytes a
     * waiting file may have, and for the undecided groups, whose bytes any file may have.
     */
    resolve(
      seen: Observed,
      awaited: ReadonlySet<Generation | undefined>,
      undecided: ReadonlySet<string>,
    ): void {
      for (const of of [...generations.lost])
        if (!awaited.has(of)) resolveOne(seen, of, undecided.has(of.group));
    },
    /** Forgets, now and then, known files that were deleted, unless a file waits for a decision. */
    forgetDeleted({ picture }: Observed, isWaiting: boolean): void {
      if (++scans % pruneEvery !== 0 || isWaiting) return;
      for (const file of generations.known.values()) {
        if (picture.files.has(fileKey(file))) continue;
        if (picture.directories.get(dirname(file.path))?.isSettled !== true) continue;
        if (++file.absences >= absencesLimit) generations.forget(file);
      }
    },
  };
}

/** A file that was at a log's own path when something else was looked for there. */
export interface Glimpse {
  readonly sighting: Sighting;
  /** The group of the log to which the file belonged then. */
  readonly group: string;
}

/**
 * Remembers what is seen in passing between two listings. If a file is gone before it is listed or read, its size is the only
 * thing that is known about its content. Therefore each look-up of the size of a followed file records the size, whatever the
 * look-up was for.
 */
export function createGlimpses(disk: Disk, generations: Generations) {
  let homes: ReadonlyMap<string, ReadonlyMap<string, string>> = new Map();
  let seen = new Map<string, Glimpse>();
  /** Descriptors and paths of files that were opened, and whose size was not looked up yet. */
  const opened = new Map<number, string>();

  const note = (path: string, stat: FileStat | undefined) => {
    if (stat?.kind !== 'file' || stat.size === 0) return;
    const key = fileKey(stat);
    const of = generations.readAt(key);
    if (of?.place) {
      const { fd, real, size } = of.place;
      // Under another name, a file that is not open may be a new file with the same inode.
      if (stat.size > size && (fd !== undefined || path === real))
        generations.relocate(of, { size: stat.size });
      return;
    }
    const group = homes.get(dirname(path))?.get(basename(path));
    if (group === undefined || generations.knownAt(key)) return;
    seen.set(key, { group, sighting: { stat, found: [], paths: [path], isSettled: false, isOlder: false } });
  };

  return {
    /** The disk, with its calls watched. */
    disk: {
      ...disk,
      stat(path: string) {
        const stat = disk.stat(path);
        note(path, stat);
        return stat;
      },
      open(path: string) {
        const fd = disk.open(path);
        opened.set(fd, path);
        return fd;
      },
      fstat(fd: number) {
        const stat = disk.fstat(fd);
        const path = opened.get(fd);
        if (path !== undefined) {
          opened.delete(fd);
          note(path, stat);
        }
        return stat;
      },
      close(fd: number) {
        opened.delete(fd);
        disk.close(fd);
      },
    },
    /** Takes the names of logs, with their groups, by directory. */
    watch(next: typeof homes): void {
      homes = next;
    },
    /** The files seen since the last call, by `fileKey`. */
    take(): ReadonlyMap<string, Glimpse> {
      const taken = seen;
      seen = new Map();
      return taken;
    },
    get count() {
      return seen.size;
    },
  };
}

export type Glimpses = ReturnType<typeof createGlimpses>;
