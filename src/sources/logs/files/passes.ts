import { createParts, type PartsDeps } from './parts.ts';
import { type Found, scan } from './scan.ts';
import type { Sinks } from './sinks.ts';
import { isStale, type Trail } from './trail.ts';
import type { Troubles } from './troubles.ts';

export interface PassesDeps extends Omit<PartsDeps, 'isFound' | 'isStopped' | 'changed'> {
  /** Patterns that have been looked at before; grows. */
  patterns: Set<string>;
}

/** The ways of going over the files. One runs at a time; between two slices of it everything is consistent. */
export interface Passes {
  /** Finds out what is there and what became of what was there; reads nothing but beginnings. */
  discover(): Promise<void>;
  /** Reads every file up to the size it was last seen with. */
  drain(): Promise<void>;
  /** Looks at the files that changed lately, and no others, and reads them. */
  glance(): Promise<void>;
  /** Directories with files in them. */
  readonly directories: ReadonlySet<string>;
  /** Whether files changed lately, so that a glance is worth it. */
  readonly isActive: boolean;
  readonly sinks: Sinks;
  readonly troubles: Troubles;
  /** Closes the files of trails that are not followed any more. */
  release(trails: Iterable<Trail>): void;
  /** Ends a running pass after its slice. */
  stop(): void;
}

/** How long after its last change a file is looked at in each glance. */
const activeMs = 2_000;

export function createPasses(deps: PassesDeps): Passes {
  const { disk, clock, trails, claims, patterns } = deps;
  let look = 0;
  let isStopped = false;
  let found: ReadonlyMap<string, Found> = new Map();
  let directories: ReadonlySet<string> = new Set();
  const active = new Set<Trail>();

  const parts = createParts({
    ...deps,
    isFound: (path) => found.has(path),
    isStopped: () => isStopped,
    changed: (trail) => void active.add(trail),
  });
  const { troubles, slices, sinks, descriptors, gzip, siblings, acquaintance, newcomers, drain } = parts;

  /** Services that claim any of a file's names claim the file. */
  const claim = (trail: Trail, files: readonly Found[]) => {
    const names = files.map(({ path }) => path).join('\0');
    if (names === trail.names) return;
    trail.names = names;
    const claimants = claims().claimants([trail.path, ...files.map(({ path }) => path)]);
    if (claimants.join() === trail.claimants.join()) return;
    trail.claimants = claimants;
    sinks.reopen(trail);
  };

  /** A file with several names is met under the one that its trail has, if that is there. */
  const meet = (trail: Trail, files: readonly Found[]) => {
    acquaintance.meet(trail, files.find(({ path }) => path === trail.path) ?? files[0]!, look);
    claim(trail, files);
  };

  const meetKnown = (): Found[] => {
    const unknown: Found[] = [];
    const known = new Map<Trail, Found[]>();
    for (const file of found.values()) {
      const trail = trails.get(file.stat.dev, file.stat.ino);
      if (!trail) unknown.push(file);
      else if (known.has(trail)) known.get(trail)!.push(file);
      else known.set(trail, [file]);
    }
    for (const [trail, files] of known) meet(trail, files);
    return unknown;
  };

  const place = async (unknown: readonly Found[]) => {
    const byFile = new Map<string, Found[]>();
    for (const file of unknown) {
      const key = `${file.stat.dev}:${file.stat.ino}`;
      byFile.set(key, [...(byFile.get(key) ?? []), file]);
    }
    const firsts = [...byFile.values()].map((files) => {
      const isKnown = files.some(({ startAt }) => startAt === 'beginning');
      return { ...files[0]!, startAt: isKnown ? ('beginning' as const) : ('end' as const) };
    });
    for (const newcomer of newcomers.inOrder(firsts, found)) {
      const { dev, ino } = newcomer.stat;
      newcomers.place(newcomer);
      const trail = trails.get(dev, ino);
      if (trail) {
        meet(trail, byFile.get(`${dev}:${ino}`)!);
        active.add(trail);
      }
      if (isStopped) return;
      if (slices.spent()) await slices.turn();
    }
  };

  const settleAll = () => {
    for (const trail of [...trails]) parts.settle(trail);
  };

  const release = (released: Iterable<Trail>) => {
    for (const trail of released) {
      active.delete(trail);
      descriptors.close(trail);
      gzip.close(trail);
    }
  };

  return {
    sinks,
    troubles,
    get directories() {
      return directories;
    },
    get isActive() {
      return active.size > 0;
    },

    async discover() {
      look++;
      siblings.forget();
      const { watched } = claims();
      ({ found, directories } = await scan(watched, (pattern) => patterns.has(pattern), {
        disk,
        slices,
        troubles,
      }));
      if (isStopped) return;
      const unknown = meetKnown();
      await acquaintance.missing(look);
      await place(unknown);
      if (!isStopped) for (const { pattern } of watched) patterns.add(pattern);
    },

    async drain() {
      await drain([...trails].filter(isStale), look);
      settleAll();
    },

    async glance() {
      look++;
      const now = clock.monotonicMs();
      for (const trail of active) {
        acquaintance.glance(trail);
        if (now - trail.changedMs > activeMs) active.delete(trail);
      }
      await drain(active, look);
    },

    release,
    stop() {
      isStopped = true;
    },
  };
}
