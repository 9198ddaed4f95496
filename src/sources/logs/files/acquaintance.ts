import { basename } from 'node:path';
import type { Clock } from '../../../core/ports.ts';
import type { Descriptors } from './descriptors.ts';
import { type Disk, type FileStat, saysAbsent } from './disk.ts';
import { isCompressed, isRotationOf } from './family.ts';
import type { Generations } from './generations.ts';
import type { Reader } from './reader.ts';
import type { Found } from './scan.ts';
import type { Siblings } from './siblings.ts';
import type { Slices } from './slices.ts';
import { isStale, type Standing, type Trail } from './trail.ts';
import type { Trails } from './trails.ts';

/** Keeps what is known of each trail's file up to date: size, name, standing. */
export interface Acquaintance {
  /** A pattern led to the trail's file. */
  meet(trail: Trail, found: Found, look: number): void;
  /** Looks at the open file alone. */
  glance(trail: Trail): void;
  /** Looks for the files that no pattern led to: renamed, deleted, or not to be seen now. */
  missing(look: number): Promise<void>;
}

interface AcquaintanceDeps {
  disk: Disk;
  clock: Clock;
  trails: Trails;
  descriptors: Descriptors;
  siblings: Siblings;
  generations: Generations;
  reader: Reader;
  slices: Slices;
  isFound(path: string): boolean;
  /** Called for each trail whose file changed. */
  changed(trail: Trail): void;
}

/** How long a file in a directory that is not there (a mount to come) is waited for. */
const absentKeptMs = 24 * 60 * 60 * 1000;

export function createAcquaintance(deps: AcquaintanceDeps): Acquaintance {
  const { disk, clock, trails, descriptors, siblings, generations, reader, slices } = deps;

  const note = (trail: Trail, stat: FileStat, standing: Standing) => {
    trail.absentSinceMs = undefined;
    const isSame =
      stat.size === trail.nowSize && stat.mtimeNs === trail.nowMtimeNs && standing === trail.standing;
    if (isSame) return;
    if (stat.size < trail.nowSize) trail.size = Math.max(trail.size, trail.nowSize);
    Object.assign(trail, { nowSize: stat.size, nowMtimeNs: stat.mtimeNs, standing });
    trail.changedMs = clock.monotonicMs();
    deps.changed(trail);
  };

  const rename = (trail: Trail, path: string): Standing => {
    trail.record = undefined;
    trail.at = path;
    trail.real = disk.real(path);
    const isRotated = isRotationOf(basename(path), basename(trail.path)) || deps.isFound(trail.path);
    if (path !== trail.path && isRotated) return 'rotated';
    if (path !== trail.path) trails.move(trail, path);
    trail.home = trail.real;
    return 'live';
  };

  const statOpen = (trail: Trail): FileStat | undefined => {
    if (trail.fd === undefined) return undefined;
    try {
      return disk.fstat(trail.fd);
    } catch {
      descriptors.close(trail);
      return undefined;
    }
  };

  /** The file where it was last seen; 'hidden' if it is not to be told whether it is there. */
  const statReal = (trail: Trail): FileStat | 'hidden' | undefined => {
    try {
      const stat = disk.stat(trail.real);
      return stat && stat.dev === trail.dev && stat.ino === trail.ino ? stat : undefined;
    } catch (thrown) {
      return saysAbsent(thrown) ? undefined : 'hidden';
    }
  };

  /** A file of which nothing was read has but its inode and its name to be known by. */
  const renamed = (trail: Trail) =>
    siblings.withInode(trail).find(({ dev, name }) => {
      if (dev !== trail.dev || isCompressed(name) !== trail.compressed) return false;
      const isRead = trail.offset + trail.restBytes > 0;
      return isRead || name === basename(trail.home) || isRotationOf(name, basename(trail.home));
    });

  /** Finds the new name of an open file; once it was not found beside its old one, it is not sought again. */
  const relocate = (trail: Trail) => {
    if (trail.standing === 'rotated' && trail.real === trail.home) return;
    trail.real = renamed(trail)?.path ?? trail.home;
    trail.record = undefined;
  };

  /** Whether the file is still to be had, under whatever name. */
  const isThere = (trail: Trail): boolean => {
    trail.at = '';
    const open = statOpen(trail);
    const real = statReal(trail);
    if (open) {
      if (real === undefined && open.nlink > 0) relocate(trail);
      const isElsewhere = real === undefined || deps.isFound(trail.path);
      note(trail, open, open.nlink === 0 ? 'unlinked' : isElsewhere ? 'rotated' : trail.standing);
      return true;
    }
    if (real === undefined || real === 'hidden') return real === 'hidden';
    note(trail, real, deps.isFound(trail.path) ? 'rotated' : trail.standing);
    return true;
  };

  /** Finds the file by its identity under another name in its directory. */
  const isRenamed = (trail: Trail): boolean => {
    const found = renamed(trail);
    if (!found) return false;
    trail.real = found.path;
    trail.record = undefined;
    if (!trail.compressed && reader.isIntact(trail) === false) return false;
    note(trail, found, found.path === trail.home ? 'live' : 'rotated');
    return true;
  };

  const isHopeless = (trail: Trail): boolean => {
    if (siblings.sees(trail)) return true;
    trail.absentSinceMs ??= clock.monotonicMs();
    return clock.monotonicMs() - trail.absentSinceMs > absentKeptMs;
  };

  const seek = (trail: Trail) => {
    const isRead = trail.finished && !isStale(trail);
    if (!isRead && generations.moved(trail)) return;
    if (!isHopeless(trail)) trails.own(trail);
    else if (isRead) trails.remove(trail);
    else generations.vanished(trail);
  };

  return {
    meet(trail, found, look) {
      trail.seenBy = look;
      const standing = trail.at === found.path ? trail.standing : rename(trail, found.path);
      note(trail, found.stat, standing);
      if (!trail.finished) descriptors.hold(trail);
    },

    glance(trail) {
      const stat = statOpen(trail);
      if (stat) note(trail, stat, stat.nlink === 0 ? 'unlinked' : trail.standing);
    },

    async missing(look) {
      const lost: Trail[] = [];
      for (const trail of trails) if (trail.seenBy !== look && !isThere(trail)) lost.push(trail);
      if (lost.length > 0) siblings.forget();
      const moved = lost.filter((trail) => !isRenamed(trail));
      for (const trail of moved) trails.disown(trail);
      for (const trail of moved) {
        // It may have been parked by a reload between two slices.
        if (trails.lineage(trail.path).includes(trail)) seek(trail);
        if (slices.spent()) await slices.turn();
      }
    },
  };
}
