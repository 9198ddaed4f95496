import { type Disk, type Entry, type FileStat, type Problems, saysAbsent } from './disk.ts';
import {
  anyDepth,
  type Interest,
  type LogPattern,
  literalNames,
  type Meaning,
  meaningIn,
  type Patterns,
  type Step,
} from './patterns.ts';
import { createSightings, type DirectoryPicture, isFileAt, type Picture } from './picture.ts';
import { isBetween } from './rotated-names.ts';
import type { Slices } from './schedule.ts';

interface ScanRequest {
  patterns: Patterns;
  /** Whether an earlier scan included the pattern. New files of such a pattern are read from their beginning. */
  isRemembered(pattern: string): boolean;
  /** Names under which known logs are written, with their groups, by directory. Files rotated from them are looked up, too. */
  homes: ReadonlyMap<string, ReadonlyMap<string, string>>;
  /** Names that links point to, by directory. Files with names of the same form are looked up, too. */
  targets: ReadonlyMap<string, ReadonlySet<string>>;
}

/** Maximum depth of `**`. It does not follow links, so only unusually deep trees reach it. */
const depthLimit = 64;
/** The maximum number of passes over a directory that keeps changing. */
const passesLimit = 6;

interface Meanings {
  readonly wants: readonly Interest[];
  readonly names: ReadonlyMap<string, Meaning>;
  of(name: string): Meaning;
}

interface Listing extends DirectoryPicture {
  readonly files: ReadonlyMap<string, FileStat>;
  /** What the earlier passes saw. */
  readonly earlier: readonly ReadonlyMap<string, FileStat>[];
}

interface DiscoveryDeps {
  disk: Disk;
  slices: Pick<Slices, 'spent' | 'turn'>;
  problems: Problems;
}

/** The properties that decide how a name is treated, apart from the name itself. */
const decisive = ['pattern', 'steps', 'startAt', 'namesGzip', 'isFirst'] as const;
const notRegular = 'not a regular file, not followed';
const noFiles: ReadonlyMap<string, FileStat> = new Map();

/** Files by name. */
type Files = ReadonlyMap<string, FileStat>;
/** The settled listings of a scan: the files of each directory by name. */
type Settled = ReadonlyMap<string, Files>;

const agree = (a: Files, b: Files) => {
  if (a.size !== b.size) return false;
  for (const [name, { dev, ino }] of a) {
    const other = b.get(name);
    if (!other || other.ino !== ino || other.dev !== dev) return false;
  }
  return true;
};

/** A directory in a scan. */
interface Visit {
  readonly directory: string;
  /** The first listing, if it was made already. */
  readonly first: readonly Entry[] | undefined;
  /** The files in the listing of the last scan, if it was settled. */
  readonly last: ReadonlyMap<string, FileStat> | undefined;
  readonly known: Meanings;
  /** Whether a name in the directory is looked up. */
  isRelevant(name: string, meaning: Meaning): boolean;
  /** The names that are looked up if the directory cannot be listed. */
  readonly literals: readonly string[];
}

/** Lists directories, and looks up the files in them. */
function createListings({ disk, slices, problems }: DiscoveryDeps) {
  const list = (directory: string): readonly Entry[] | undefined => {
    try {
      const entries = disk.list(directory || '/');
      problems.resolve(directory, 'directory cannot be read');
      return entries;
    } catch (thrown) {
      if (!saysAbsent(thrown)) problems.report(directory, 'directory cannot be read', thrown);
      return undefined;
    }
  };

  const lookUp = ({ path, isMatched }: Meaning, kind: Entry['kind']): FileStat | undefined => {
    if (kind === 'file' || kind === 'unknown') {
      try {
        const stat = disk.stat(path);
        if (!stat || stat.kind === 'file') {
          problems.resolve(path, 'file cannot be looked up');
          return stat;
        }
      } catch (thrown) {
        problems.report(path, 'file cannot be looked up', thrown);
        return undefined;
      }
    }
    if (isMatched) problems.report(path, notRegular);
    return undefined;
  };

  /**
   * Makes one pass over a directory and returns its relevant files by name. In a directory that cannot be listed, only the
   * literal names are looked up.
   */
  const pass = async (
    entries: readonly Entry[],
    known: Meanings,
    isRelevant: Visit['isRelevant'],
  ): Promise<Map<string, FileStat>> => {
    const files = new Map<string, FileStat>();
    for (const { name, kind } of entries) {
      const meaning = known.of(name);
      if (!isRelevant(name, meaning)) continue;
      const stat = lookUp(meaning, kind);
      if (stat) files.set(name, stat);
      if (slices.spent()) await slices.turn();
    }
    return files;
  };

  /** Makes passes over a directory until two in a row agree. */
  const settle = async ({ directory, first, last, known, isRelevant, literals }: Visit): Promise<Listing> => {
    let before = last;
    let entries = first;
    const earlier: ReadonlyMap<string, FileStat>[] = [];
    for (let n = 0; n < passesLimit; n++) {
      entries ??= n === 0 ? list(directory) : undefined;
      if (!entries) break;
      const files = await pass(entries, known, isRelevant);
      if (before && agree(before, files)) return { files, earlier, isSettled: true, isListed: true };
      if (n > 0 && before) earlier.push(before);
      before = files;
      entries = list(directory);
    }
    if (before && entries) return { files: before, earlier, isSettled: false, isListed: true };
    const named = literals.map((name): Entry => ({ name, kind: 'unknown' }));
    const files = named.length > 0 ? await pass(named, known, isRelevant) : noFiles;
    return { files, earlier, isSettled: false, isListed: false };
  };

  return { list, settle };
}

/** The test of the names that the last step of a pattern matches. */
const testOf = (step: Step): ((name: string) => boolean) => {
  if (step === anyDepth) return (name) => !name.startsWith('.');
  return typeof step === 'string' ? (name) => name === step : step;
};

/** The directories that the patterns lead to, with what each pattern matches there. */
async function walk(
  request: ScanRequest,
  list: (directory: string) => readonly Entry[] | undefined,
  slices: DiscoveryDeps['slices'],
) {
  const entries = new Map<string, readonly Entry[] | undefined>();
  const interests = new Map<string, Interest[]>();
  const entriesOf = (directory: string) => {
    if (!entries.has(directory)) entries.set(directory, list(directory));
    return entries.get(directory) ?? [];
  };
  const want = (directory: string, interest: Interest) => {
    const known = interests.get(directory);
    if (known) known.push(interest);
    else interests.set(directory, [interest]);
  };
  const descend = async (pattern: LogPattern, steps: readonly Step[], namesGzip: boolean) => {
    const isFirst = !request.isRemembered(pattern.pattern);
    const startAt = isFirst ? pattern.startAt : 'beginning';
    const visited = new Set<string>();
    const go = async (directory: string, s: number, depth: number): Promise<void> => {
      const step = steps[s]!;
      const isLast = s === steps.length - 1;
      if (isLast) want(directory, { pattern, steps, startAt, namesGzip, isFirst, test: testOf(step) });
      if (typeof step === 'string') return isLast ? undefined : go(`${directory}/${step}`, s + 1, depth);
      const visit = `${s} ${directory}`;
      if ((isLast && step !== anyDepth) || visited.has(visit)) return;
      visited.add(visit);
      if (slices.spent()) await slices.turn();
      if (step === anyDepth && !isLast) await go(directory, s + 1, depth);
      for (const { name, kind } of entriesOf(directory)) {
        const path = `${directory}/${name}`;
        if (step === anyDepth) {
          if (kind === 'directory' && depth < depthLimit && !name.startsWith('.'))
            await go(path, s, depth + 1);
        } else if (step(name) && (kind === 'directory' || kind === 'unknown')) await go(path, s + 1, depth);
      }
    };
    await go('', 0, 0);
  };
  for (const pattern of request.patterns.watched) {
    for (const { steps, namesGzip } of pattern.globs) await descend(pattern, steps, namesGzip);
  }
  return { entries, interests };
}

/**
 * How the patterns treat the names in a directory. The meanings of the last scan are used again if the patterns match the same
 * there.
 */
const meaningsIn = (
  directory: string,
  last: Meanings | undefined,
  wants: readonly Interest[],
  patterns: Patterns,
): Meanings => {
  const isSame = (one: Interest, i: number) => decisive.every((key) => one[key] === wants[i]![key]);
  if (last?.wants.length === wants.length && last.wants.every(isSame)) return last;
  const names = new Map<string, Meaning>();
  return {
    wants,
    names,
    of(name) {
      let meaning = names.get(name);
      if (meaning === undefined) {
        meaning = meaningIn(directory, name, wants, patterns);
        names.set(name, meaning);
      }
      return meaning;
    },
  };
};

/** Returns the function that tells whether a name in a directory is looked up. */
const relevanceIn = (directory: string, { homes, targets }: ScanRequest) => {
  const written = homes.get(directory);
  const linked = [...(targets.get(directory) ?? [])];
  return (name: string, { isMatched, isRotated, bases }: Meaning): boolean =>
    isMatched ||
    isRotated ||
    written?.has(name) === true ||
    (written !== undefined && bases.some((base) => written.has(base))) ||
    linked.some((target) => isBetween(name, target));
};

/**
 * Finds the log files. A directory is listed and each relevant name is looked up; that is one pass. While a rotation renames a
 * chain of files, a single pass may miss a file: its old name was looked up after the rename, its new name before it. Therefore a
 * listing is settled only if two passes in a row saw the same files under the same names; the settled listing of the previous
 * scan counts as one of them. A listing that does not settle proves that a file is there, but not that a file is absent.
 */
export function createDiscovery(deps: DiscoveryDeps) {
  const listings = createListings(deps);
  let settled: Settled = new Map();
  let meanings: ReadonlyMap<string, Meanings> = new Map();

  return {
    async scan(request: ScanRequest): Promise<Picture> {
      const { entries, interests } = await walk(request, listings.list, deps.slices);
      const sightings = createSightings();
      const directories = new Map<string, DirectoryPicture>();
      const nextSettled = new Map<string, ReadonlyMap<string, FileStat>>();
      const nextMeanings = new Map<string, Meanings>();
      for (const directory of new Set([...interests.keys(), ...request.homes.keys()])) {
        const wants = interests.get(directory) ?? [];
        const known = meaningsIn(directory, meanings.get(directory), wants, request.patterns);
        const listing = await listings.settle({
          directory,
          first: entries.get(directory),
          last: settled.get(directory),
          known,
          isRelevant: relevanceIn(directory, request),
          literals: [
            ...(request.homes.get(directory)?.keys() ?? []),
            ...wants.flatMap(({ pattern }) => literalNames(pattern, directory)),
          ],
        });
        directories.set(directory, listing);
        if (listing.isSettled) nextSettled.set(directory, listing.files);
        for (const [name, stat] of listing.files) sightings.add(known.of(name), stat, listing.isSettled);
        for (const files of listing.earlier)
          for (const [name, stat] of files)
            if (stat !== listing.files.get(name)) sightings.glimpse(known.of(name), stat);
        // Meanings of names of deleted files, such as dated names, do not accumulate.
        if (known.names.size <= 2 * listing.files.size + 1000) nextMeanings.set(directory, known);
      }
      sightings.recheck((path, key) => isFileAt(deps.disk, path, key));
      settled = nextSettled;
      meanings = nextMeanings;
      return { ...sightings.gathered(), directories };
    },
  };
}
