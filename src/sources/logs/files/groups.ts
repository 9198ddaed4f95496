import { basename, dirname } from 'node:path';
import type { Picture, Sighting } from '../discovery/picture.ts';
import {
  type Aged,
  byRestartAndAge,
  isBetween,
  isRotationOf,
  rotatedFrom,
} from '../discovery/rotated-names.ts';
import { groupBy } from './decision.ts';
import type { Generation } from './generation.ts';
import type { Generations } from './generations.ts';
import type { ScanDeps } from './places.ts';

/**
 * Rotation groups. A group has the path that a pattern matches and every name that a rotation gives to what was written there. It
 * decides in which order its generations are read, and to which log a file belongs that no pattern matches.
 */
export interface Groups {
  /** The group of a file; undefined if it has none. */
  of(sighting: Sighting): string | undefined;
  /** Whether a pattern matches the file at the log's own path. */
  isHome(sighting: Sighting, group: string): boolean;
  /** Whether the file may be read: a pattern matches it, or a rotation made its name from the log's. */
  isMember(sighting: Sighting, group: string): boolean;
  /**
   * Other groups that a rotated file may belong to by its name. The file is given to a group according to the logs that exist,
   * and logs come and go, so its generation may have been given to another group before.
   */
  kinOf(sighting: Sighting, group: string): readonly string[];
  /** Groups of logs that are links and may have led to the rotated file before they were pointed elsewhere. */
  linkedTo(sighting: Sighting, group: string): readonly string[];
  /** The path from which a rotation made this path, step by step: `app.log.1.gz`, `app.log.1`, `app.log`. */
  rootOf(path: string): string;
  /**
   * The generations of a group, oldest first, with the generations after `last` put in their places; undefined if all are in
   * place already.
   */
  arranged(path: string, last: number): readonly Generation[] | undefined;
  /** Sorts files of a group, the oldest first and the log itself last. */
  byAge(group: string, files: readonly Aged[]): (a: Aged, b: Aged) => number;
}

/** The names under which known logs are written, with their groups, by directory. */
export function homesOf(generations: Generations): Map<string, Map<string, string>> {
  const homes = new Map<string, Map<string, string>>();
  const add = (path: string, group: string) => {
    const directory = dirname(path);
    homes.set(directory, (homes.get(directory) ?? new Map<string, string>()).set(basename(path), group));
  };
  for (const path of generations.groups()) add(path, path);
  for (const { home, group } of generations.open) add(home, group);
  return homes;
}

/** The names that links lead to, by directory. */
export function targetsOf(generations: Generations): Map<string, Set<string>> {
  const targets = new Map<string, Set<string>>();
  for (const { home, group, place } of generations.open) {
    if (home === group || place?.state !== 'live') continue;
    const directory = dirname(home);
    targets.set(directory, (targets.get(directory) ?? new Set()).add(basename(home)));
  }
  return targets;
}

const aged = ({ place, home, number }: Generation): Aged => ({
  name: basename(place?.real ?? home),
  mtimeNs: place ? (place.readMtimeNs > place.mtimeNs ? place.readMtimeNs : place.mtimeNs) : 0n,
  generation: number,
});

type GroupDeps = Pick<ScanDeps, 'disk' | 'generations' | 'patterns'>;

/** Finds the logs from which files were rotated, by their names. */
function createRoots({ generations, patterns }: GroupDeps, picture: Picture) {
  const isKnownPath = (path: string) => picture.found.has(path) || generations.hasGroup(path);

  const baseBeside = (path: string): string | undefined =>
    rotatedFrom(basename(path))
      .map((name) => `${dirname(path)}/${name}`)
      .find(isKnownPath);

  /** Logs by their names, for files that were moved to a directory below, or to a directory that has a pattern of its own. */
  let byName: Map<string, string[]> | undefined;
  const elsewhere = (path: string): string | undefined => {
    byName ??= groupBy([...new Set([...picture.found.keys(), ...generations.groups()])], (known) =>
      basename(known),
    );
    for (const name of rotatedFrom(basename(path))) {
      const logs = (byName.get(name) ?? []).filter((known) => baseBeside(known) === undefined);
      const above = logs.filter((known) => path.startsWith(`${dirname(known)}/`));
      if (above.length > 0) return above.reduce((a, b) => (b.length > a.length ? b : a));
      const beside = logs.filter((known) => patterns().areApart(known, path));
      // The content of the file tells later to which of these logs it belongs.
      if (beside.length > 0) return beside.length === 1 ? beside[0] : `${dirname(path)}/${name}`;
    }
    return undefined;
  };

  const rootOf = (path: string): string => {
    const base = baseBeside(path);
    if (base !== undefined) return rootOf(base);
    const log = elsewhere(path);
    return log === undefined ? path : rootOf(log);
  };
  return { isKnownPath, elsewhere, rootOf };
}

/** Puts the generations after `last` in their places among the others; undefined if all are in place already. */
function arranged(
  path: string,
  members: readonly Generation[],
  last: number,
): readonly Generation[] | undefined {
  const isNew = ({ number }: Generation) => number > last;
  const named = members.filter(({ place }) => place && place.state !== 'unlinked');
  const isNewest = (of: Generation) => isNew(of) && of.place?.state === 'live';
  if (new Set(named.map(({ home }) => home)).size > 1) {
    const sorted = [...members.filter((of) => !isNewest(of)), ...members.filter(isNewest)];
    return sorted.some((of, i) => of !== members[i]) ? sorted : undefined;
  }
  const known = named.filter((of) => !isNew(of)).map(aged);
  const all = named.map((of) => (isNew(of) ? { ...aged(of), generation: undefined } : aged(of)));
  const ages = byRestartAndAge(basename(members.at(0)?.home ?? path), known.length > 1 ? known : all);
  const sorted = named.sort(
    (a, b) => Number(a.place?.state === 'live') - Number(b.place?.state === 'live') || ages(aged(a), aged(b)),
  );
  // Generations without a name stay at their places among the others.
  for (const of of members) {
    if (sorted.includes(of)) continue;
    const next = sorted.findIndex((other) => !isNew(other) && other.number > of.number);
    const younger = next < 0 ? sorted.findIndex(isNew) : next;
    sorted.splice(younger < 0 ? sorted.length : younger, 0, of);
  }
  return sorted.some((of, i) => of !== members[i]) ? sorted : undefined;
}

interface Homes {
  /** The paths without links under which logs are written, with their groups. */
  readonly all: ReadonlyMap<string, string>;
  /** The logs that links lead to. */
  readonly linked: readonly (readonly [home: string, group: string])[];
}

function homesIn(generations: Generations, { found, files }: Picture, rootOf: Groups['rootOf']): Homes {
  const all = new Map<string, string>();
  const linked: [home: string, group: string][] = [];
  for (const { home, group } of generations.open) {
    const root = rootOf(group);
    all.set(home, root);
    if (home !== group) linked.push([home, root]);
  }
  for (const [path, key] of found) {
    for (const other of files.get(key)?.paths ?? []) if (!all.has(other)) all.set(other, rootOf(path));
  }
  return { all, linked };
}

/** Groups for the files of one scan; `picture` is the picture of that scan. */
export function createGroups(deps: GroupDeps, picture: Picture): Groups {
  const { disk, generations, patterns } = deps;
  const { isKnownPath, elsewhere, rootOf } = createRoots(deps, picture);
  let homes: Homes | undefined;
  /** Created when the first file that is not followed is looked at. */
  const homesOf = (): Homes => {
    homes ??= homesIn(generations, picture, rootOf);
    return homes;
  };

  let groupsByName: Map<string, string[]> | undefined;
  /** Groups of logs in other directories that have a name from which the file may have been rotated. */
  const apartFrom = (path: string, names: readonly string[]): string[] => {
    if (names.length === 0 || !patterns().mayBeApart) return [];
    groupsByName ??= groupBy([...generations.groups()], (known) => basename(known));
    const known = names.flatMap((name) => groupsByName!.get(name) ?? []);
    return known.filter((one) => dirname(one) === dirname(path) || patterns().areApart(one, path));
  };

  const kinOf = ({ paths: [path] }: Sighting, group: string): readonly string[] =>
    apartFrom(path!, rotatedFrom(basename(path!))).filter((one) => one !== group);

  const linkedTo = ({ paths: [path] }: Sighting, group: string): readonly string[] => {
    const bases = rotatedFrom(basename(path!));
    return homesOf().linked.flatMap(([home, own]) =>
      own !== group &&
      dirname(home) === dirname(path!) &&
      bases.some((base) => isBetween(base, basename(home)))
        ? [own]
        : [],
    );
  };

  const isHome = ({ found }: Sighting, group: string) => found.some(({ path }) => path === group);

  /** Whether a link was pointed from this file to another file since the last scan. */
  const isSwungOver = (sighting: Sighting, group: string): boolean => {
    const key = picture.found.get(group);
    if (key === undefined || !picture.files.has(key)) return false;
    const name = basename(sighting.paths[0]!);
    const to = disk.real(group);
    // The comparison begins with the oldest followed generation, because a scan that did not settle may have missed a file since.
    const from = generations.group(group).find(({ home }) => home !== to);
    if (!from) return false;
    if (name === basename(from.home)) return true;
    const mtimeNs = from.place?.readMtimeNs ?? -1n;
    return isBetween(name, basename(from.home), basename(to)) && sighting.stat.mtimeNs >= mtimeNs;
  };

  return {
    isHome,
    kinOf,
    linkedTo,
    rootOf,
    of({ found, paths }) {
      if (found.length > 0) return rootOf(found[0]!.path);
      const { all, linked } = homesOf();
      for (const path of paths) {
        const own = all.get(path);
        if (own !== undefined) return own;
        for (const name of rotatedFrom(basename(path))) {
          const base = `${dirname(path)}/${name}`;
          const group = all.get(base) ?? (isKnownPath(base) ? rootOf(base) : undefined);
          if (group !== undefined) return group;
        }
        const log = elsewhere(path);
        if (log !== undefined) return rootOf(log);
        for (const [home, group] of linked)
          if (dirname(home) === dirname(path) && isBetween(basename(path), basename(home))) return group;
      }
      return undefined;
    },
    isMember(sighting, group) {
      if (sighting.found.length > 0) return true;
      const name = basename(sighting.paths[0]!);
      return (
        isRotationOf(name, basename(group)) ||
        generations.group(group).some(({ home }) => isRotationOf(name, basename(home))) ||
        isSwungOver(sighting, group)
      );
    },
    arranged: (path, last) => arranged(path, generations.group(path), last),
    byAge(group, files) {
      const known = generations.group(group).map(aged);
      const ages = byRestartAndAge(basename(group), known.length > 1 ? known : files);
      return (a, b) => ages(a, b);
    },
  };
}
