import { basename, dirname } from 'node:path';
import type { Sighting } from './discovery.ts';
import { firstEntryMs } from './fingerprint.ts';
import { type Aged, byRestartAndAge, isBetween, isCompressed, rotatedFrom } from './rotated-names.ts';
import type { RotationDeps, ScanState } from './scan-state.ts';
import type { TrackedFile } from './tracked-file.ts';

/** A file with the path that names its group. */
export interface Grouped {
  readonly sighting: Sighting;
  readonly group: string;
}

/**
 * Rotation groups: the path that a pattern matches and every name that a rotation gives to what was written there. A group has
 * its generations in order, the oldest first.
 */
export function createGroups(deps: Pick<RotationDeps, 'disk' | 'tracker' | 'contents'>, scan: ScanState) {
  const { disk, tracker, contents } = deps;

  const isKnownPath = (path: string) => scan.picture.found.has(path) || tracker.hasGroup(path);

  /** The path that a rotation made this one from, step by step: `app.log.1.gz`, `app.log.1`, `app.log`. */
  const rootOf = (path: string): string => {
    const bases = rotatedFrom(basename(path)).map((name) => `${dirname(path)}/${name}`);
    const base = bases.find(isKnownPath);
    return base === undefined ? path : rootOf(base);
  };

  /** The group of a file; undefined if it has none. */
  const groupOf = ({ found, paths }: Sighting, homes: ReadonlyMap<string, string>): string | undefined => {
    if (found.length > 0) return rootOf(found[0]!.path);
    for (const path of paths) {
      const own = homes.get(path);
      if (own !== undefined) return own;
      for (const name of rotatedFrom(basename(path))) {
        const base = `${dirname(path)}/${name}`;
        const group = homes.get(base) ?? (isKnownPath(base) ? rootOf(base) : undefined);
        if (group !== undefined) return group;
      }
      for (const [home, group] of homes) {
        if (home === group || dirname(home) !== dirname(path)) continue;
        if (isBetween(basename(path), basename(home))) return group;
      }
    }
    return undefined;
  };

  /** The files that have a group. */
  const withGroups = (sightings: readonly Sighting[], homes: ReadonlyMap<string, string>): Grouped[] =>
    sightings.flatMap((sighting) => {
      const group = groupOf(sighting, homes);
      return group === undefined ? [] : [{ sighting, group }];
    });

  const homeIndex = (): Map<string, string> => {
    const homes = new Map<string, string>();
    for (const file of tracker) homes.set(file.home, rootOf(file.path));
    for (const [path, key] of scan.picture.found) {
      const sighting = scan.picture.files.get(key);
      if (!sighting) continue;
      for (const other of sighting.paths) if (!homes.has(other)) homes.set(other, rootOf(path));
    }
    return homes;
  };

  const isHome = ({ found }: Sighting, group: string) => found.some(({ path }) => path === group);

  const aged = (file: TrackedFile): Aged => ({
    name: basename(file.real),
    mtimeNs: file.mtimeNs > file.nowMtimeNs ? file.mtimeNs : file.nowMtimeNs,
    generation: file.generation,
  });

  /** Numbers a group's generations anew; files without a name keep their place among the others by their times. */
  const arrange = (path: string) => {
    const members = tracker.group(path);
    const hasName = ({ state }: TrackedFile) => state === 'live' || state === 'rotated';
    const named = members.filter(hasName);
    if (new Set(named.map(({ home }) => home)).size > 1) {
      const isNewest = (file: TrackedFile) => scan.taken.has(file) && file.state === 'live';
      if (members.some((file, i) => isNewest(file) && i < members.length - 1)) {
        tracker.arrange(path, [...members.filter((file) => !isNewest(file)), ...members.filter(isNewest)]);
      }
      return;
    }
    const known = named.filter((file) => !scan.taken.has(file)).map(aged);
    const all = named.map((file) =>
      scan.taken.has(file) ? { ...aged(file), generation: undefined } : aged(file),
    );
    const ages = byRestartAndAge(basename(members.at(0)?.home ?? path), known.length > 1 ? known : all);
    const sorted = named.sort(
      (a, b) => Number(a.state === 'live') - Number(b.state === 'live') || ages(aged(a), aged(b)),
    );
    for (const file of members) {
      if (hasName(file)) continue;
      const next = sorted.findIndex((other) => !scan.taken.has(other) && other.generation > file.generation);
      const younger = next < 0 ? sorted.findIndex((other) => scan.taken.has(other)) : next;
      sorted.splice(younger < 0 ? sorted.length : younger, 0, file);
    }
    if (sorted.some((file, i) => file !== members[i])) tracker.arrange(path, sorted);
  };

  /** Files that were first seen under rotated names belong to the group of the path that is known by now. */
  const mergeGroups = () => {
    const paths = new Set([...tracker].map(({ path }) => path));
    for (const path of tracker.letGoGroups.keys()) paths.add(path);
    for (const path of paths) {
      const directory = dirname(path);
      const base = rotatedFrom(basename(path)).find((name) => scan.newGroups.has(`${directory}/${name}`));
      if (base === undefined) continue;
      const root = `${directory}/${base}`;
      for (const set of [scan.unseenGroups, scan.lostGroups]) if (set.has(path)) set.add(root);
      for (const file of [...tracker.group(path)]) {
        tracker.move(file, root);
        file.home = root;
        if (file.state === 'live') file.state = 'rotated';
      }
      for (const file of [...tracker.letGoOf(path)]) {
        tracker.forget(file);
        tracker.letGo({ ...file, path: root });
      }
    }
  };

  /** The file at the group's own path first, for others may be copies of it; then plain files, the oldest first. */
  const inOrder = (sightings: readonly Sighting[], group: string): Sighting[] => {
    if (sightings.length === 1) return [...sightings];
    const ages = new Map<Sighting, Aged>();
    for (const sighting of sightings) {
      const { stat, paths } = sighting;
      const start = isCompressed(paths[0]!) ? undefined : contents.of(sighting, (content) => content.start);
      ages.set(sighting, {
        name: basename(paths[0]!),
        mtimeNs: stat.mtimeNs,
        firstEntryMs: start && firstEntryMs(start),
      });
    }
    const known = tracker.group(group).map(aged);
    const compare = byRestartAndAge(basename(group), known.length > 1 ? known : [...ages.values()]);
    return [...sightings].sort(
      (a, b) =>
        Number(isHome(b, group)) - Number(isHome(a, group)) ||
        Number(isCompressed(a.paths[0]!)) - Number(isCompressed(b.paths[0]!)) ||
        compare(ages.get(a)!, ages.get(b)!),
    );
  };

  /** Names between which a link was swung since the last scan. */
  const isSwungOver = (sighting: Sighting, group: string): boolean => {
    const key = scan.picture.found.get(group);
    const target = key === undefined ? undefined : scan.picture.files.get(key);
    if (!target) return false;
    const name = basename(sighting.paths[0]!);
    const to = disk.real(group);
    const members = tracker.group(group);
    // The oldest one that is followed: a scan that did not settle may have missed a file since.
    const from = members.find(({ home }) => home !== to);
    if (!from) return false;
    if (name === basename(from.home)) return true;
    return isBetween(name, basename(from.home), basename(to)) && sighting.stat.mtimeNs >= from.mtimeNs;
  };

  return {
    isKnownPath,
    rootOf,
    withGroups,
    homeIndex,
    isHome,
    arrange,
    mergeGroups,
    inOrder,
    isSwungOver,
  };
}

export type Groups = ReturnType<typeof createGroups>;
