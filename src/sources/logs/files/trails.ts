import type { Clock } from '../../../core/ports.ts';
import type { Trail } from './trail.ts';

/** All trails, by file and by lineage. */
export interface Trails extends Iterable<Trail> {
  get(dev: bigint, ino: bigint): Trail | undefined;
  /** The generations that followed each other at a path, oldest first. */
  lineage(path: string): readonly Trail[];
  hasLineage(path: string): boolean;
  add(trail: Trail): void;
  remove(trail: Trail): void;
  /** The trail's file is another's now: it is a trail still, but not that file's. */
  disown(trail: Trail): void;
  /** Takes that back, unless another trail has the file by now. */
  own(trail: Trail): void;
  /** Puts a trail into another lineage. */
  move(trail: Trail, path: string): void;
  /** Numbers the generations of a lineage anew, in the order given. */
  arrange(path: string, members: readonly Trail[]): void;
  nextGeneration(): number;
  /** The number given out last; goes on from a snapshot. */
  lastGeneration: number;
  readonly count: number;
}

const keyOf = (dev: bigint, ino: bigint) => `${dev}:${ino}`;

const byGeneration = (a: Trail, b: Trail) => a.generation - b.generation;

export function createTrails(clock: Clock): Trails {
  const all = new Set<Trail>();
  const byFile = new Map<string, Trail>();
  const byPath = new Map<string, Trail[]>();

  const join = (trail: Trail) => {
    const members = byPath.get(trail.path);
    if (members) byPath.set(trail.path, [...members, trail].sort(byGeneration));
    else byPath.set(trail.path, [trail]);
  };
  const leave = (trail: Trail) => {
    const members = byPath.get(trail.path)?.filter((member) => member !== trail) ?? [];
    if (members.length > 0) byPath.set(trail.path, members);
    else byPath.delete(trail.path);
  };

  const trails: Trails = {
    lastGeneration: 0,
    get: (dev: bigint, ino: bigint) => byFile.get(keyOf(dev, ino)),
    lineage: (path: string) => byPath.get(path) ?? [],
    hasLineage: (path: string) => byPath.has(path),
    add(trail: Trail) {
      trail.changedMs = clock.monotonicMs();
      all.add(trail);
      byFile.set(keyOf(trail.dev, trail.ino), trail);
      join(trail);
    },
    own(trail: Trail) {
      const key = keyOf(trail.dev, trail.ino);
      if (!byFile.has(key)) byFile.set(key, trail);
    },
    remove(trail: Trail) {
      all.delete(trail);
      trails.disown(trail);
      leave(trail);
    },
    disown(trail: Trail) {
      const key = keyOf(trail.dev, trail.ino);
      if (byFile.get(key) === trail) byFile.delete(key);
    },
    move(trail: Trail, path: string) {
      leave(trail);
      trail.path = path;
      join(trail);
    },
    arrange(path: string, members: readonly Trail[]) {
      for (const trail of members) {
        trail.generation = trails.nextGeneration();
        trail.record = undefined;
      }
      byPath.set(path, [...members]);
    },
    nextGeneration: () => ++trails.lastGeneration,
    get count() {
      return all.size;
    },
    [Symbol.iterator]: () => all.values(),
  };
  return trails;
}
