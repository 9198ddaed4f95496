import { basename, dirname } from 'node:path';
import { startAtEnd } from './beginning.ts';
import type { Claims } from './claims.ts';
import type { Descriptors } from './descriptors.ts';
import type { Disk } from './disk.ts';
import { basesOf, byAge, rotatedFrom } from './family.ts';
import type { Generations } from './generations.ts';
import type { Likenesses } from './likeness.ts';
import { tailBytes } from './mark.ts';
import type { Reader } from './reader.ts';
import type { Found } from './scan.ts';
import type { Sibling } from './siblings.ts';
import type { Sinks } from './sinks.ts';
import { newTrail, type Trail } from './trail.ts';
import type { Trails } from './trails.ts';

/** Decides what files are that no trail knows: copies, replacements, younger generations, or new logs. */
export interface Newcomers {
  /** Sorts them so that of one lineage the older come first; `paths` is all that was found. */
  inOrder(found: readonly Found[], paths: ReadonlyMap<string, Found>): Newcomer[];
  place(newcomer: Newcomer): void;
}

export interface Newcomer extends Found {
  readonly lineage: string;
}

interface NewcomersDeps {
  disk: Disk;
  trails: Trails;
  descriptors: Descriptors;
  reader: Reader;
  sinks: Sinks;
  likenesses: Likenesses;
  generations: Generations;
  claims: () => Claims;
}

/** A copy whose original is still being read: nothing in it is new. */
interface Copy {
  readonly of: Trail;
  readonly size: number;
  readonly mtimeNs: bigint;
}

export function createNewcomers(deps: NewcomersDeps): Newcomers {
  const { disk, trails, descriptors, reader, sinks, likenesses, generations } = deps;
  const copies = new Map<string, Copy>();
  const placed = new Set<Trail>();
  const keyOf = ({ stat }: Found) => `${stat.dev}:${stat.ino}`;

  const siblingOf = ({ path, stat }: Found): Sibling => ({ ...stat, path, name: basename(path) });

  const track = (newcomer: Newcomer, original?: Trail): Trail => {
    const { path, lineage, stat } = newcomer;
    const real = disk.real(path);
    const home = path === lineage ? real : (trails.lineage(lineage).at(-1)?.home ?? lineage);
    const trail = newTrail(
      { path: lineage, home, real },
      stat,
      trails.nextGeneration(),
      deps.claims().claimants([path]),
    );
    if (path !== lineage) trail.standing = 'rotated';
    if (original) {
      trail.offset = Math.min(original.offset, stat.size);
      if (trail.offset === original.offset) trail.mark = original.mark;
      trail.size = trail.offset;
    }
    trails.add(trail);
    placed.add(trail);
    return trail;
  };

  /** Whether the file is a copy of the trail's; told once, it is believed until the file changes. */
  const isCopyOf = (newcomer: Newcomer, original: Trail): boolean => {
    const { size, mtimeNs } = newcomer.stat;
    const intact = reader.isIntact(original);
    if (intact === false) {
      generations.rewritten(original);
      return trails.get(newcomer.stat.dev, newcomer.stat.ino) !== undefined;
    }
    const file = siblingOf(newcomer);
    const likeness = likenesses.of(file, original);
    const whole = likeness === 'whole' && original.offset > 0;
    const copied =
      whole || ((likeness === 'short' || original.offset === 0) && likenesses.isCopyOnDisk(file, original));
    if (!copied) return false;
    const isLonger =
      whole && size > original.nowSize && original.offset + original.restBytes >= original.nowSize;
    if (isLonger) track(newcomer, original);
    else copies.set(keyOf(newcomer), { of: original, size, mtimeNs });
    return true;
  };

  /** Trails whose names this one extends and which somebody may still copy. */
  const originals = ({ path, lineage }: Newcomer): Trail[] => {
    const bases = new Set(basesOf(basename(path)).map((base) => `${dirname(path)}/${base}`));
    if (path !== lineage) bases.add(lineage);
    const isOriginal = (trail: Trail) => !trail.compressed && !trail.finished && !placed.has(trail);
    return [...bases].flatMap((base) => trails.lineage(base).filter(isOriginal));
  };

  /** A file that was renamed over one with the same content goes on where that one was. */
  const replacement = ({ lineage, path, stat }: Newcomer, previous: Trail): boolean => {
    if (path !== lineage || previous.standing !== 'unlinked' || previous.offset < tailBytes) return false;
    if (stat.size < previous.size) return false;
    return likenesses.of({ ...stat, path, name: basename(path) }, previous) === 'whole';
  };

  const begin = (newcomer: Newcomer) => {
    const trail = track(newcomer);
    if (newcomer.startAt === 'end') startAtEnd(trail, { disk, descriptors, sinks });
  };

  const follow = (newcomer: Newcomer, previous: Trail) => {
    if (replacement(newcomer, previous)) {
      descriptors.close(previous);
      trails.remove(previous);
      const next = track(newcomer, previous);
      Object.assign(next, { sink: previous.sink, carry: previous.carry });
      return;
    }
    const isHome = newcomer.path === newcomer.lineage;
    const known = trails.lineage(newcomer.lineage).filter((trail) => !placed.has(trail));
    if (isHome && newcomer.startAt === 'beginning') {
      generations.succeeded(known.at(-1) ?? previous, disk.real(newcomer.path));
      // It may have been rotated since it was found, and taken up under its new name in this very step.
      if (trails.get(newcomer.stat.dev, newcomer.stat.ino)) return;
    }
    begin(newcomer);
    const isSorted = trails.lineage(newcomer.lineage).every((trail) => placed.has(trail));
    if (!isSorted) generations.arrange(newcomer.lineage);
  };

  return {
    inOrder(found, paths) {
      const lineageOf = (path: string) =>
        rotatedFrom(basename(path))
          .map((base) => `${dirname(path)}/${base}`)
          .find((base) => paths.has(base) || trails.hasLineage(base)) ?? path;
      placed.clear();
      const age = ({ path, stat }: Found) => ({ name: basename(path), mtimeNs: stat.mtimeNs });
      const byLineage = new Map<string, Found[]>();
      for (const file of found) {
        const lineage = lineageOf(file.path);
        byLineage.set(lineage, [...(byLineage.get(lineage) ?? []), file]);
      }
      return [...byLineage.keys()].sort().flatMap((lineage) => {
        const members = byLineage.get(lineage)!;
        const ages = byAge(basename(lineage), members.map(age));
        members.sort((a, b) => ages(age(a), age(b)));
        return members.map((file) => ({ ...file, lineage }));
      });
    },

    place(newcomer) {
      const { dev, ino, size, mtimeNs } = newcomer.stat;
      if (trails.get(dev, ino) || !deps.claims().isWatched(newcomer.path)) return;
      const copy = copies.get(keyOf(newcomer));
      const isTracked = copy && trails.get(copy.of.dev, copy.of.ino) === copy.of;
      if (isTracked && copy.size === size && copy.mtimeNs === mtimeNs) return;
      copies.delete(keyOf(newcomer));
      const possible = originals(newcomer);
      if (size === 0 && possible.length > 0) return;
      if (possible.some((original) => isCopyOf(newcomer, original))) return;
      const previous = trails.lineage(newcomer.lineage).at(-1);
      if (copy && !isTracked) track(newcomer, copy.of);
      else if (previous) follow(newcomer, previous);
      else begin(newcomer);
    },
  };
}
