import type { Claim } from './claims.ts';
import { type Disk, type Entry, type FileStat, saysAbsent } from './disk.ts';
import { isCompressed } from './family.ts';
import { anyDepth, type Step } from './glob.ts';
import type { Slices } from './slices.ts';
import type { Troubles } from './troubles.ts';

/** A regular file that a pattern leads to. */
export interface Found {
  readonly path: string;
  readonly stat: FileStat;
  /** The end only if every pattern that leads here is looked at for the first time ever and says so. */
  startAt: 'end' | 'beginning';
}

export interface Scanned {
  readonly found: ReadonlyMap<string, Found>;
  readonly directories: ReadonlySet<string>;
}

/** Levels that `**` goes down; links are not followed by it, so this only bounds absurd trees. */
const depthLimit = 64;

interface Walk {
  readonly claim: Claim;
  readonly startAt: 'end' | 'beginning';
  readonly steps: readonly Step[];
  readonly visited: Set<string>;
}

interface ScanDeps {
  disk: Disk;
  slices: Slices;
  troubles: Troubles;
}

/**
 * Looks at what is there: reads the directories that the patterns need, each once, and every file that matches.
 * What cannot be seen is told once and left out.
 */
export async function scan(
  claims: readonly Claim[],
  isRemembered: (pattern: string) => boolean,
  deps: ScanDeps,
): Promise<Scanned> {
  const found = new Map<string, Found>();
  const listings = new Map<string, readonly Entry[]>();
  const rejected = new Set<string>();

  const list = (directory: string): readonly Entry[] => {
    const known = listings.get(directory);
    if (known) return known;
    const entries = listOrTell(directory, deps);
    listings.set(directory, entries);
    return entries;
  };

  const take = async (path: string, kind: Entry['kind'], walk: Walk) => {
    if (walk.claim.excludes(path) || rejected.has(path)) return;
    const known = found.get(path);
    if (known) {
      if (walk.startAt === 'beginning') known.startAt = 'beginning';
      return;
    }
    const stat = regularFile(path, kind, deps);
    if (stat) found.set(path, { path, stat, startAt: walk.startAt });
    else rejected.add(path);
    if (deps.slices.spent()) await deps.slices.turn();
  };

  const go = async (directory: string, s: number, depth: number, walk: Walk): Promise<void> => {
    const step = walk.steps[s];
    const last = s === walk.steps.length - 1;
    if (step === undefined) return;
    if (typeof step === 'string') {
      const path = `${directory}/${step}`;
      return last ? take(path, 'unknown', walk) : go(path, s + 1, depth, walk);
    }
    const visit = `${s} ${directory}`;
    if (walk.visited.has(visit)) return;
    walk.visited.add(visit);
    if (deps.slices.spent()) await deps.slices.turn();
    if (step === anyDepth && !last) await go(directory, s + 1, depth, walk);
    for (const { name, kind } of list(directory || '/')) {
      const path = `${directory}/${name}`;
      if (step === anyDepth) {
        if (name.startsWith('.')) continue;
        if (kind === 'directory' && depth < depthLimit) await go(path, s, depth + 1, walk);
        else if (last && kind !== 'directory') await take(path, kind, walk);
      } else if (step.test(name)) {
        if (last) await take(path, kind, walk);
        else if (kind === 'directory' || kind === 'unknown') await go(path, s + 1, depth, walk);
      }
    }
  };

  for (const claim of claims) {
    const startAt = isRemembered(claim.pattern) ? 'beginning' : claim.startAt;
    for (const { steps } of claim.globs) await go('', 0, 0, { claim, startAt, steps, visited: new Set() });
  }
  return { found, directories: new Set(listings.keys()) };
}

function listOrTell(directory: string, { disk, troubles }: ScanDeps): readonly Entry[] {
  try {
    const entries = disk.list(directory);
    troubles.over(directory);
    return entries;
  } catch (thrown) {
    if (!saysAbsent(thrown)) troubles.tell(directory, 'directory cannot be read', thrown);
    return [];
  }
}

function regularFile(path: string, kind: Entry['kind'], { disk, troubles }: ScanDeps): FileStat | undefined {
  if (isCompressed(path)) {
    troubles.tell(path, 'compressed file is not followed', undefined, 'debug');
    return undefined;
  }
  if (kind === 'file' || kind === 'unknown') {
    try {
      const stat = disk.stat(path);
      if (!stat || stat.kind === 'file') return stat;
    } catch (thrown) {
      troubles.tell(path, 'file cannot be looked at', thrown);
      return undefined;
    }
  }
  troubles.tell(path, 'not a regular file, not followed');
  return undefined;
}
