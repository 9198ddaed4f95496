import { basename, dirname } from 'node:path';
import { fileKey, type Sighting, startsAtEnd } from '../discovery/picture.ts';
import { firstEntryMs, isCompressed, isForeign, plainNamesOf } from '../discovery/rotated-names.ts';
import { type Content, isTar } from './chain.ts';
import { type Action, type Answer, type FileFacts, groupBy, type World } from './decision.ts';
import { type Generation, isBlank, type Known, noBytes } from './generation.ts';
import type { Generations } from './generations.ts';
import { areNamesReliable, type Observed } from './observe.ts';
import type { ScanDeps } from './places.ts';

/** How long after its last change a file may be an unfinished copy or archive. */
export const unfinishedMs = 10_000;

/** A file that waits for a decision. */
interface Waiting {
  readonly size: number;
  readonly mtimeNs: bigint;
  readonly sinceMs: number;
  readonly of?: Generation;
  readonly isPart: boolean;
}

/** Waiting files by `fileKey`. */
export type WaitingFiles = ReadonlyMap<string, Waiting>;

/** A file that is not followed and must be looked at. */
export interface Unknown {
  readonly key: string;
  readonly sighting: Sighting;
  readonly group: string;
}

/** Whether a content has a format that is not read. The content decides what is gzip, and a name does not say what is in it. */
const isForeignContent = ({ isGzip, start }: Content, paths: readonly string[]): boolean =>
  isTar(start) || (!isGzip && paths.every(isForeign));

/** Separates the groups that are new in a scan from the others. */
function createNewGroups(generations: Generations) {
  const newGroups = new Set<string>();
  /** Groups of files that were empty when they were first seen, and hold something now. */
  const blankGroups = new Set<string>();

  const isBlankGroup = (group: string): boolean =>
    generations.hasGroup(group) &&
    [...generations.ended(group)].length === 0 &&
    generations.group(group).every((of) => of.status === 'lost' && isBlank(of));

  return {
    isNew: (group: string) => newGroups.has(group),
    isBlank: (group: string) => blankGroups.has(group),
    sort(files: readonly Unknown[]): void {
      for (const { group } of files) {
        if (isBlankGroup(group)) blankGroups.add(group);
        if (blankGroups.has(group) || !generations.hasGroup(group)) newGroups.add(group);
      }
    },
    /** The rank of a file. Files of known logs come first, because others may be copies of them. */
    rankOf: ({ group }: Unknown): number => (newGroups.has(group) ? (blankGroups.has(group) ? 1 : 2) : 0),
  };
}

type NewGroups = ReturnType<typeof createNewGroups>;

/**
 * Followed generations by the directory in which their files are, or were. In each directory, the generation that changed last
 * comes first.
 */
function followedByDirectory({ open }: Generations, newGroups: NewGroups): ReadonlyMap<string, Generation[]> {
  const followed = [...open].filter(({ place, group }) => {
    if (!place || place.isGzip || (place.state !== 'live' && place.state !== 'unlinked')) return false;
    return !newGroups.isNew(group) || newGroups.isBlank(group);
  });
  followed.sort((a, b) => b.place!.changedMs - a.place!.changedMs);
  return groupBy(followed, ({ home }) => dirname(home));
}

/** Sorts the files of each log by age, so that they are numbered in that order. */
function byAge(files: readonly FileFacts[], { groups, picture }: Observed): FileFacts[] {
  return [...groupBy(files, ({ group }) => group)].flatMap(([group, members]) => {
    if (members.length === 1) return members;
    const ages = new Map(
      members.map((file) => {
        const { key, name, content } = file;
        const start = typeof content === 'string' || content.isGzip ? noBytes : content.start;
        const { mtimeNs } = picture.files.get(key)!.stat;
        return [file, { name, mtimeNs, firstEntryMs: firstEntryMs(start) }];
      }),
    );
    const compare = groups.byAge(group, [...ages.values()]);
    return members.sort((a, b) => Number(a.isHome) - Number(b.isHome) || compare(ages.get(a)!, ages.get(b)!));
  });
}

/** Whether a known file that is not read must be looked at again. */
function isToCompare(known: Known, sighting: Sighting, seen: Observed): boolean {
  const { groups } = seen;
  known.absences = 0;
  const { of } = known;
  const isUnchanged = known.size === sighting.stat.size && known.mtimeNs === sighting.stat.mtimeNs;
  if (!isUnchanged || of.status === 'lost') return true;
  // A copy that had no name of its own log is at that log's path by now.
  const isNamed = sighting.found.length > 0 && sighting.paths[0] !== known.path;
  if (isNamed && groups.of(sighting) !== of.group) return true;
  if (of.status !== 'ended') return false;
  const isBack = known.path !== of.group && groups.isHome(sighting, of.group);
  if (isBack && areNamesReliable(seen, sighting)) return true;
  return known.size > of.chain.offset && !isCompressed(known.path) && of.number > 0;
}

/** Builds the input of `match`. `answers` are given by file and generation when `match` asks for them. */
function worldOf(
  files: readonly FileFacts[],
  answers: ReadonlyMap<string, ReadonlyMap<Generation, Answer>>,
  { generations }: ScanDeps,
  { picture, unseen }: Observed,
  newGroups: NewGroups,
): World {
  let followed: ReadonlyMap<string, Generation[]> | undefined;
  return {
    files,
    generations,
    followedIn(directory) {
      followed ??= followedByDirectory(generations, newGroups);
      return followed.get(directory) ?? [];
    },
    isThere: (of, except) =>
      generations
        .copiesOf(of)
        .some((copy) => fileKey(copy) !== except.key && picture.files.has(fileKey(copy))),
    unseen,
    answer: (file, of) => answers.get(file.key)?.get(of),
  };
}

/** The files that are not followed, as one scan sees them. `waited`: the files about which the previous scan did not decide. */
export function createUnknownFiles(deps: ScanDeps, seen: Observed, waited: WaitingFiles) {
  const { clock, generations, contents } = deps;
  const { groups, picture } = seen;
  const waiting = new Map<string, Waiting>();
  /** Groups with a file that the next scan decides about. */
  const undecided = new Set<string>();
  const newGroups = createNewGroups(generations);
  /** Every listed name: the plain file of an archive may be among them. */
  let names: ReadonlySet<string> | undefined;

  const isFresh = (key: string, { stat: { size, mtimeNs } }: Sighting): boolean => {
    const before = waited.get(key);
    const isChanged = before?.size !== size || before.mtimeNs !== mtimeNs;
    return isChanged || clock.monotonicMs() - before.sinceMs < unfinishedMs;
  };

  const isListed = (path: string): boolean => {
    names ??= new Set([...picture.files.values()].flatMap(({ paths }) => paths));
    return names.has(path);
  };

  return {
    waiting,
    undecided,
    newGroups,

    /** The files that are not decided about yet; with `among`, only files of these groups. */
    left(decided: ReadonlySet<string>, among?: ReadonlySet<string>): Unknown[] {
      const files: Unknown[] = [];
      for (const [key, sighting] of picture.files) {
        if (decided.has(key) || generations.readAt(key)) continue;
        const known = generations.knownAt(key);
        if (known && !isToCompare(known, sighting, seen)) continue;
        const group = groups.of(sighting) ?? known?.of.group;
        if (group !== undefined && (among?.has(group) ?? true)) files.push({ key, sighting, group });
      }
      return files;
    },

    factsOf({ key, sighting, group }: Unknown): FileFacts {
      const { stat, paths, isOlder } = sighting;
      const content = contents.of(sighting);
      const known = generations.knownAt(key);
      const before = waited.get(key);
      const isHome = groups.isHome(sighting, group);
      const isLike = (one: { size: number; mtimeNs: bigint } | undefined) =>
        one?.size === stat.size && one.mtimeNs === stat.mtimeNs;
      return {
        key,
        group,
        kin: isHome ? [] : groups.kinOf(sighting, group),
        linked: isHome ? [] : groups.linkedTo(sighting, group),
        directory: dirname(paths[0]!),
        name: basename(paths[0]!),
        isHome,
        isMember: groups.isMember(sighting, group),
        isOlder,
        startsAtEnd: startsAtEnd(sighting),
        isSettled: areNamesReliable(seen, sighting),
        isNewGroup: newGroups.isNew(group),
        wasBlank: newGroups.isBlank(group),
        isForeign: typeof content !== 'string' && isForeignContent(content, paths),
        hasPlainBeside: plainNamesOf(paths[0]!).some(isListed),
        isFresh: isFresh(key, sighting),
        content,
        formerly: known?.of,
        isReplaced: known !== undefined && stat.size < known.size && !paths.includes(known.path),
        isUnchanged: isLike(known) || isLike(before),
        awaits: before?.of,
        isPart: before?.isPart === true,
      };
    },

    /** Sorts the files of each log by age, so that they are numbered in that order. */
    byAge: (files: readonly FileFacts[]) => byAge(files, seen),

    worldOf: (files: readonly FileFacts[], answers: Parameters<typeof worldOf>[1]) =>
      worldOf(files, answers, deps, seen, newGroups),

    /** Leaves the decision to the next scan. */
    wait({ file, of, isSoon, isPart = false }: Extract<Action, { do: 'wait' }>): void {
      const { size, mtimeNs } = picture.files.get(file.key)!.stat;
      const before = waited.get(file.key);
      const isSame = before?.size === size && before.mtimeNs === mtimeNs;
      const sinceMs = isSame ? before.sinceMs : clock.monotonicMs();
      waiting.set(file.key, { size, mtimeNs, sinceMs, of, isPart });
      if (file.content === 'moved') seen.isDisturbed = true;
      if (!isSoon) return;
      for (const group of [file.group, ...file.kin]) undecided.add(group);
      seen.needsScan = true;
      // Other files of the group may be copies of this one.
      if (file.isHome) seen.unseen.add(file.group);
    },
  };
}

export type UnknownFiles = ReturnType<typeof createUnknownFiles>;
