import { basename, dirname } from 'node:path';
import { fileKey } from './discovery.ts';
import type { Disk, FileStat } from './disk.ts';
import type { Generations } from './generations.ts';

/** A file that was at a log's own path when something else was looked for there. */
export interface Glimpse {
  readonly path: string;
  readonly stat: FileStat;
  /** The group of the log to which the file belonged then. */
  readonly group: string;
}

/**
 * Remembers what is seen in passing between two listings. If a file is gone before it is listed or read, its size is the only
 * thing that is known of what it held. So the size of a followed file is recorded, whatever it was looked up for.
 */
export interface Glimpses {
  /** The disk, with its calls watched. */
  readonly disk: Disk;
  /** Names of logs, with their groups, by directory. */
  watch(homes: ReadonlyMap<string, ReadonlyMap<string, string>>): void;
  /** The files seen since the last call, by `fileKey`. */
  take(): ReadonlyMap<string, Glimpse>;
  readonly count: number;
}

type GlimpsesOf = Pick<Generations, 'readAt' | 'knownAt' | 'relocate'>;

export function createGlimpses(disk: Disk, generations: GlimpsesOf): Glimpses {
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
      // Under another name, a file that is not open may be a new one with the inode.
      if (stat.size > size && (fd !== undefined || path === real))
        generations.relocate(of, { size: stat.size });
      return;
    }
    const group = homes.get(dirname(path))?.get(basename(path));
    if (group !== undefined && !generations.knownAt(key)) seen.set(key, { path, stat, group });
  };

  return {
    disk: {
      ...disk,
      stat(path) {
        const stat = disk.stat(path);
        note(path, stat);
        return stat;
      },
      open(path) {
        const fd = disk.open(path);
        opened.set(fd, path);
        return fd;
      },
      fstat(fd) {
        const stat = disk.fstat(fd);
        const path = opened.get(fd);
        if (path !== undefined) {
          opened.delete(fd);
          note(path, stat);
        }
        return stat;
      },
      close(fd) {
        opened.delete(fd);
        disk.close(fd);
      },
    },
    watch(next) {
      homes = next;
    },
    take() {
      const taken = seen;
      seen = new Map();
      return taken;
    },
    get count() {
      return seen.size;
    },
  };
}
