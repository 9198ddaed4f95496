import { basename, dirname } from 'node:path';
import { fileKey } from './discovery.ts';
import { type Disk, type FileStat, type Problems, saysAbsent } from './disk.ts';
import { isSameLog } from './rotated-names.ts';

/** A file as a scan saw it, under each of its names. */
export interface Seen {
  readonly stat: FileStat;
  readonly paths: readonly string[];
}

interface Opened {
  readonly fd: number;
  /** False once the descriptor is closed or handed over. */
  isOpen: boolean;
}

/**
 * Files that are not followed, open to be compared, a few at a time. A file must have the inode that the scan saw: while a
 * rotation renames files, a path soon leads to another one.
 */
export interface ComparedFiles {
  /** Opens a file. 'moved': its names lead to another file, or to none, by now. */
  open(file: Seen): Opened | 'moved' | 'denied';
  /** Takes over an open descriptor of the file, so that its content can be read even if the file is renamed or deleted. */
  adopt(file: Seen, fd: number): void;
  /** Hands the descriptor over to the caller, who closes it. */
  take(file: Seen): number | undefined;
  /** Closes everything. */
  release(): void;
}

export const cannotCompare = 'file cannot be compared';
/** How often one scan lists a directory again because files in it were renamed meanwhile. */
const lookupsLimit = 4;

/** Opens files for comparison, at most `openLimit` at a time. An open file can be read even if it is deleted meanwhile. */
export function createComparedFiles(disk: Disk, problems: Problems, openLimit: number): ComparedFiles {
  const opened = new Map<string, Opened>();
  /** For each directory, the current paths of its files. */
  const moved = new Map<string, Map<string, string>>();
  let lookups = lookupsLimit;

  const take = (key: string): number | undefined => {
    const own = opened.get(key);
    opened.delete(key);
    if (own) own.isOpen = false;
    return own?.fd;
  };

  const close = (key: string) => {
    const fd = take(key);
    if (fd !== undefined) disk.close(fd);
  };

  const makeRoom = () => {
    const [oldest] = opened.keys();
    if (opened.size >= openLimit && oldest !== undefined) close(oldest);
  };

  const openAt = (path: string, { stat, paths }: Seen): number | undefined => {
    const fd = disk.open(path);
    let isIt = false;
    try {
      const { dev, ino, size } = disk.fstat(fd);
      // A smaller file under a name that was not listed is a new file that was given the inode meanwhile.
      isIt = dev === stat.dev && ino === stat.ino && (size >= stat.size || paths.includes(path));
    } finally {
      if (!isIt) disk.close(fd);
    }
    return isIt ? fd : undefined;
  };

  /** The current paths of a directory's files, by inode. */
  const indexOf = (directory: string): Map<string, string> => {
    const places = new Map<string, string>();
    for (const { name, kind } of disk.list(directory)) {
      const stat = kind === 'file' ? disk.stat(`${directory}/${name}`) : undefined;
      if (stat) places.set(fileKey(stat), `${directory}/${name}`);
    }
    return places;
  };

  /** The names of the file, followed by the name that a rotation has given it since the scan listed it. */
  function* pathsOf({ stat, paths }: Seen): Generator<string> {
    yield* paths;
    const directory = dirname(paths[0]!);
    const before = moved.get(directory)?.get(fileKey(stat));
    if (before !== undefined) yield before;
    if (lookups-- <= 0) return;
    try {
      moved.set(directory, indexOf(directory));
    } catch {
      // The next scan reports a directory that cannot be listed.
    }
    const now = moved.get(directory)?.get(fileKey(stat));
    if (now !== undefined && now !== before) yield now;
  }

  return {
    open(file) {
      const known = opened.get(fileKey(file.stat));
      if (known) return known;
      let isDenied = false;
      for (const path of pathsOf(file)) {
        // Under an unrelated name, the inode may belong to a new file.
        if (!file.paths.includes(path) && !isSameLog(basename(path), basename(file.paths[0]!))) continue;
        try {
          makeRoom();
          const fd = openAt(path, file);
          if (fd === undefined) continue;
          const own = { fd, isOpen: true };
          opened.set(fileKey(file.stat), own);
          problems.resolve(path, cannotCompare);
          return own;
        } catch (thrown) {
          if (saysAbsent(thrown)) continue;
          isDenied = true;
          problems.report(path, cannotCompare, thrown, 'debug');
        }
      }
      return isDenied ? 'denied' : 'moved';
    },
    adopt({ stat }, fd) {
      close(fileKey(stat));
      makeRoom();
      opened.set(fileKey(stat), { fd, isOpen: true });
    },
    take: ({ stat }) => take(fileKey(stat)),
    release() {
      for (const key of [...opened.keys()]) close(key);
      moved.clear();
      lookups = lookupsLimit;
    },
  };
}
