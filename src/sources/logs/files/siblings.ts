import { basename, dirname } from 'node:path';
import { type Disk, type FileStat, saysAbsent } from './disk.ts';
import { byAge, byRestartAndAge, extendsName, isCompressed, isRotationOf, restartNumber } from './family.ts';
import type { Trail } from './trail.ts';
import type { Troubles } from './troubles.ts';

/** A regular file beside a trail's own. */
export interface Sibling extends FileStat {
  readonly name: string;
  readonly path: string;
}

/** What stands in the directories of trails; each is listed at most once between two `forget`s. */
export interface Siblings {
  /** Files with the trail's inode number in the directory where it was written. */
  withInode(trail: Trail): readonly Sibling[];
  /** The file under the trail's own name, and those whose names say that they come from there. */
  family(trail: Trail): Sibling[];
  /** Generations that came after `trail` (which is `anchor` by now, if it is still there), oldest first. */
  younger(trail: Trail, anchor: Sibling | undefined, newHome: string): Sibling[];
  /** Whether the trail's directory is there, can be read and is on the trail's device. */
  sees(trail: Trail): boolean;
  forget(): void;
}

export function createSiblings({ disk, troubles }: { disk: Disk; troubles: Troubles }): Siblings {
  const listings = new Map<string, readonly string[] | undefined>();
  const looks = new Map<string, Sibling | undefined>();
  const inodes = new Map<string, Map<bigint, Sibling[]>>();

  const stat = (path: string, name: string): Sibling | undefined => {
    try {
      const stat = disk.stat(path);
      return stat?.kind === 'file' ? { ...stat, name, path } : undefined;
    } catch (thrown) {
      troubles.tell(path, 'file cannot be looked at', thrown);
      return undefined;
    }
  };

  const look = (path: string, name: string): Sibling | undefined => {
    if (!looks.has(path)) looks.set(path, stat(path, name));
    return looks.get(path);
  };

  const list = (directory: string): readonly string[] | undefined => {
    if (listings.has(directory)) return listings.get(directory);
    let names: readonly string[] | undefined;
    try {
      names = disk.list(directory).flatMap(({ name, kind }) => (kind === 'file' ? [name] : []));
    } catch (thrown) {
      if (!saysAbsent(thrown)) troubles.tell(directory, 'directory cannot be read', thrown);
    }
    listings.set(directory, names);
    return names;
  };

  const matching = (trail: Trail, takes: (name: string) => boolean): Sibling[] => {
    const directory = dirname(trail.home);
    return (list(directory) ?? []).flatMap((name) => {
      const found = takes(name) ? look(`${directory}/${name}`, name) : undefined;
      return found ? [found] : [];
    });
  };

  const inodesOf = (trail: Trail): Map<bigint, Sibling[]> => {
    const directory = dirname(trail.home);
    const known = inodes.get(directory);
    if (known) return known;
    const byInode = new Map<bigint, Sibling[]>();
    for (const sibling of matching(trail, () => true)) {
      byInode.set(sibling.ino, [...(byInode.get(sibling.ino) ?? []), sibling]);
    }
    inodes.set(directory, byInode);
    return byInode;
  };

  return {
    withInode: (trail) => inodesOf(trail).get(trail.ino) ?? [],
    family(trail) {
      const base = basename(trail.home);
      return matching(
        trail,
        (name) => name === base || (name.startsWith(stemOf(base)) && extendsName(name, base)),
      );
    },
    younger(trail, anchor, newHome) {
      const [base, newBase] = [basename(trail.home), basename(newHome)];
      const isRotated = (name: string) => name.startsWith(stemOf(base)) && isRotationOf(name, base);
      const relatives = matching(trail, isRotated);
      const ages = byAge(base, relatives);
      const rotated = relatives.filter((sibling) =>
        anchor ? ages(anchor, sibling) < 0 : sibling.mtimeNs > trail.mtimeNs,
      );
      const names = new Set(rotated.map(({ name }) => name));
      const isDoubled = (name: string) =>
        isCompressed(name) && names.has(name.slice(0, name.lastIndexOf('.')));
      const passedOver = matching(trail, (name) => isBetween(name, base, newBase, anchor?.name));
      return [...rotated.filter(({ name }) => !isDoubled(name)), ...passedOver].sort(
        byRestartAndAge(base, relatives),
      );
    },
    sees(trail) {
      const directory = dirname(trail.home);
      return list(directory) !== undefined && disk.stat(directory)?.dev === trail.dev;
    },
    forget() {
      listings.clear();
      looks.clear();
      inodes.clear();
    },
  };
}

/** What every name of the family begins with, to pass over all others cheaply. */
const stemOf = (base: string) => base.replace(/\.[^.]*$/, '');

/**
 * Whether a link that went from `from` to `to` has passed over a file: the log of a container that started and
 * ended in between, or `from` itself if it was written anew after its rotation to `anchor`.
 */
function isBetween(name: string, from: string, to: string, anchor: string | undefined): boolean {
  if (from === to) return false;
  if (name === from) return anchor !== from;
  const [first, at, last] = [from, name, to].map(restartNumber);
  return first !== undefined && at !== undefined && last !== undefined && first < at && at < last;
}
