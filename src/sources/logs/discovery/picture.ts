import type { Disk, FileStat } from './disk.ts';
import { byOrder, type Found, type Meaning, type PassedOver } from './patterns.ts';

/** A file with all the names under which a scan saw it. */
export interface Sighting {
  readonly stat: FileStat;
  readonly found: readonly Found[];
  /** Every name of the file, including names that no pattern matches. */
  readonly paths: readonly string[];
  /** Whether all names of the file are in settled listings. */
  readonly isSettled: boolean;
  /** Whether no pattern matches the file, and it was there in the first scan of its log's pattern. */
  readonly isOlder: boolean;
}

export interface DirectoryPicture {
  readonly isSettled: boolean;
  /** Whether the directory exists and could be listed. */
  readonly isListed: boolean;
}

export interface Picture {
  /** The files by device and inode; see `fileKey`. */
  readonly files: ReadonlyMap<string, Sighting>;
  /** Paths that a pattern matches, with the key of the file there. */
  readonly found: ReadonlyMap<string, string>;
  readonly directories: ReadonlyMap<string, DirectoryPicture>;
  /** Files that were seen in one pass, and not in the last pass. */
  readonly glimpsed: readonly Sighting[];
  /** Files that a pattern matches and that are not read. */
  readonly passedOver: readonly PassedOver[];
}

/** The picture before the first scan. */
export const noPicture: Picture = {
  files: new Map(),
  found: new Map(),
  directories: new Map(),
  glimpsed: [],
  passedOver: [],
};

/** Whether only what is written to the file from now on is read. */
export const startsAtEnd = ({ found }: Sighting): boolean =>
  found.length > 0 && found.every(({ startAt }) => startAt === 'end');

export const fileKey = ({ dev, ino }: Pick<FileStat, 'dev' | 'ino'>): string => `${dev}:${ino}`;

/** Whether a path leads to the file with this key. False if the path cannot be looked up. */
export function isFileAt(disk: Disk, path: string, key: string): boolean {
  try {
    const stat = disk.stat(path);
    return stat !== undefined && fileKey(stat) === key;
  } catch {
    return false;
  }
}

/** Collects the files of all directories. A file may have several names. */
export function createSightings() {
  const files = new Map<
    string,
    { -readonly [K in keyof Sighting]: Sighting[K] } & { found: Found[]; paths: string[] }
  >();
  const found = new Map<string, string>();
  const passedOver: PassedOver[] = [];
  /** Files that looked different under two of their names: they changed in between, or another file has the inode by then. */
  const unlike = new Set<string>();
  const glimpsed = new Map<string, Sighting>();
  return {
    gathered: () => ({
      files,
      found,
      passedOver,
      glimpsed: [...glimpsed].flatMap(([key, sighting]) => (files.has(key) ? [] : [sighting])),
    }),

    glimpse({ path, found: match }: Meaning, stat: FileStat): void {
      if (!match) return;
      glimpsed.set(fileKey(stat), { stat, found: [match], paths: [path], isSettled: false, isOlder: false });
    },

    add(meaning: Meaning, stat: FileStat, isSettled: boolean): void {
      const { path, found: match, file } = meaning;
      if (meaning.passedOver) passedOver.push(meaning.passedOver);
      const isSame = file?.stat.ino === stat.ino && file.stat.dev === stat.dev;
      const key = isSame ? file.key : fileKey(stat);
      if (!isSame) meaning.file = { stat, key };
      let sighting = files.get(key);
      if (sighting === undefined) {
        const isOlder = match === undefined && meaning.isFirst;
        sighting = { stat, found: [], paths: [], isSettled: true, isOlder };
        files.set(key, sighting);
      } else if (sighting.stat.size !== stat.size || sighting.stat.mtimeNs !== stat.mtimeNs) {
        unlike.add(key);
        sighting.stat = stat;
      }
      sighting.paths.push(path);
      sighting.isSettled &&= isSettled;
      if (match === undefined) return;
      sighting.isOlder = false;
      found.set(path, key);
      sighting.found.push(match);
      if (sighting.found.length > 1) sighting.found.sort(byOrder);
    },

    /**
     * Looks up again the names of each file that did not look alike or whose listings did not settle, and removes the names that
     * are no longer its own.
     */
    recheck(isAt: (path: string, key: string) => boolean): void {
      for (const [key, sighting] of files) {
        if (sighting.paths.length === 1 || (sighting.isSettled && !unlike.has(key))) continue;
        // The inode may have been given to another file during the scan, so only the names that lead to the file now count. If no
        // name leads to it, the name that was looked up last counts.
        const present = sighting.paths.filter((path) => isAt(path, key));
        const paths = present.length > 0 ? present : sighting.paths.slice(-1);
        if (paths.length === sighting.paths.length) continue;
        for (const { path } of sighting.found) if (!paths.includes(path)) found.delete(path);
        Object.assign(sighting, { paths, found: sighting.found.filter(({ path }) => paths.includes(path)) });
      }
    },
  };
}
