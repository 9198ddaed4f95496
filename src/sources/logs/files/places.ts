import { basename, dirname } from 'node:path';
import type { Clock, Log } from '../../../core/ports.ts';
import { type Disk, type FileStat, statReal } from '../discovery/disk.ts';
import type { Patterns } from '../discovery/patterns.ts';
import { fileKey, isFileAt, type Sighting } from '../discovery/picture.ts';
import { isBetween, isRotationOf } from '../discovery/rotated-names.ts';
import type { Slices } from '../discovery/schedule.ts';
import type { ComparedFiles, Contents } from './contents.ts';
import { type Generation, isUnread, newPlace, type Place } from './generation.ts';
import type { Generations } from './generations.ts';
import type { OpenFiles } from './open-files.ts';
import type { Reader } from './reader.ts';
import type { Sinks } from './sinks.ts';

/** What the stages of a scan are built from. */
export interface ScanDeps {
  disk: Disk;
  clock: Clock;
  log: Log;
  generations: Generations;
  openFiles: OpenFiles;
  reader: Reader;
  sinks: Sinks;
  compared: ComparedFiles;
  contents: Contents;
  slices: Slices;
  patterns: () => Patterns;
  /** Called for each generation with something new to read. */
  changed(of: Generation): void;
}

/**
 * The path by which patterns match a file: the path of its log if that is among the matched paths; empty if no pattern matches.
 */
const matchedPath = (found: Sighting['found'], group: string): string =>
  found.find(({ path }) => path === group)?.path ?? found[0]?.path ?? '';

function namesIn(disk: Disk, directory: string): string[] {
  try {
    return disk.list(directory).map(({ name }) => `${directory}/${name}`);
  } catch {
    return [];
  }
}

/**
 * The present location of a file that was found at `at`, with the path without links. A link in `at` may have been pointed
 * elsewhere since, even more than once. With the name to which the link leads by now, the next scan would not look for the files
 * in between. If the file is not there, `at` is empty, and the next scan looks again.
 */
function whereabouts(disk: Disk, at: string, { stat, found }: Sighting): Pick<Place, 'at' | 'real'> {
  const isAt = (path: string) => isFileAt(disk, path, fileKey(stat));
  const real = disk.real(at);
  if (isAt(real)) return { at, real };
  if (real === at) return { at: '', real };
  const isLink = (path: string) => found.some((match) => match.path === path);
  return { at, real: namesIn(disk, dirname(real)).find((path) => !isLink(path) && isAt(path)) ?? real };
}

/** Maintains where the file of a generation is, under which names, and how large it is. */
export function createPlaces(deps: ScanDeps) {
  const { disk, clock, generations, openFiles, reader, sinks } = deps;

  /** Marks the beginning of a file that is not read yet, so that the file can be found again. */
  const learn = (of: Generation) => {
    const { place, chain } = of;
    if (!place || place.isGzip || place.isBlank || place.fd === undefined || place.size === 0) return;
    if (isUnread(of) && chain.marks.length === 0) reader.learn(of);
  };

  /** Looks up the open file; undefined if it is not open. */
  const stat = ({ place }: Generation): FileStat | undefined => {
    if (place?.fd === undefined) return undefined;
    try {
      return disk.fstat(place.fd);
    } catch {
      openFiles.close(place);
      return undefined;
    }
  };

  return {
    learn,
    stat,

    /** A place for a generation whose file was listed. */
    of(sighting: Sighting, group: string, isGzip: boolean, isHome: boolean): Place {
      const { stat, found, paths } = sighting;
      const at = matchedPath(found, group);
      const where = at === '' ? { at, real: paths[0]! } : whereabouts(disk, at, sighting);
      const place = newPlace({ ...stat, ...where, isGzip, state: isHome ? 'live' : 'rotated' });
      place.changedMs = clock.monotonicMs();
      return place;
    },

    /** The path under which a generation that was found at `real` is written. */
    homeOf(group: string, real: string, isHome: boolean): string {
      const last = generations.group(group).at(-1)?.home ?? group;
      const isLinked = last !== group && isBetween(basename(real), basename(last));
      return isHome || isLinked ? real : last;
    },

    /** Records the size and time of a followed file, and the state that its names give it. */
    note(of: Generation, { size, mtimeNs }: FileStat, state: Place['state']): void {
      const place = of.place!;
      if (size === place.size && mtimeNs === place.mtimeNs && state === place.state) return;
      // A file that was looked up again after it was listed may have grown in between, and has lost nothing.
      const now = size < place.size ? (stat(of) ?? statReal(disk, place)) : undefined;
      const hasGrown = typeof now === 'object' && now.size >= place.size;
      if (size < place.size && !hasGrown) generations.update(of, { size: Math.max(of.size, place.size) });
      generations.relocate(of, { size, mtimeNs, state });
      place.changedMs = clock.monotonicMs();
      learn(of);
      deps.changed(of);
    },

    /** Looks up the size of the open file, which may have grown or been truncated since it was listed. */
    refresh(of: Generation): void {
      const now = stat(of);
      if (now) generations.relocate(of, { size: now.size, mtimeNs: now.mtimeNs });
    },

    /** Records which services claim the generation by its names. */
    claim(of: Generation, { found }: Sighting): void {
      const names = found.map(({ path }) => path).join('\0');
      if (names === of.names) return;
      const claimants = deps.patterns().claimants([of.group, ...found.map(({ path }) => path)]);
      const isSame = claimants.join() === of.claimants.join();
      generations.update(of, { names, claimants });
      if (!isSame) sinks.reopen(of);
    },

    /** Records where a followed file is by its names, and the state that they give it. */
    locate(of: Generation, sighting: Sighting, found: ReadonlyMap<string, string>): Place['state'] {
      const place = of.place!;
      const at = matchedPath(sighting.found, of.group);
      if (at !== '' && at === place.at) return place.state === 'unlinked' ? 'live' : place.state;
      const isElsewhere = found.has(of.group) && found.get(of.group) !== fileKey(place);
      if (at !== '') {
        generations.relocate(of, whereabouts(disk, at, sighting));
        if (at !== of.group && (isRotationOf(basename(at), basename(of.group)) || isElsewhere))
          return 'rotated';
        if (at !== of.group) generations.move(of, at);
        generations.update(of, { home: place.real });
        return 'live';
      }
      const { paths } = sighting;
      const real = paths.includes(place.real) ? place.real : paths.includes(of.home) ? of.home : paths[0]!;
      if (real !== place.real || place.at !== '') generations.relocate(of, { at: '', real });
      if (real !== of.home || isElsewhere) return 'rotated';
      return place.state === 'rotated' ? 'rotated' : 'live';
    },
  };
}

export type Places = ReturnType<typeof createPlaces>;
