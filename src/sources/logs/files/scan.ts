import { basename, dirname } from 'node:path';
import { createApply, type ScanDeps } from './apply.ts';
import { type Action, type Answer, batchesOf, type FileFacts, type World } from './decision.ts';
import { fileKey, noPicture, type Picture, type Sighting } from './discovery.ts';
import {
  type Generation,
  isBlank,
  isStale,
  type Known,
  knownBytes,
  noBytes,
  seenBytes,
  unreadBytes,
} from './generations.ts';
import type { Glimpse } from './glimpses.ts';
import { createGroups } from './groups.ts';
import { createLosses } from './losses.ts';
import { groupBy, match } from './match.ts';
import { areNamesReliable, createObserve, type Observed } from './observe.ts';
import { createPlaces } from './places.ts';
import { firstEntryMs, isCompressed, plainNamesOf } from './rotated-names.ts';

/** Compares pictures of the directories with what is known, and says what is to be read. */
export interface Scan {
  /** Reads nothing but what comparisons need. */
  reconcile(picture: Picture, passed: ReadonlyMap<string, Glimpse>): Promise<void>;
  /** Makes sure of the sizes that were looked up, where nothing is read afterwards. */
  verify(): void;
  /** The bytes before the offset are not those that were read. */
  rewritten(of: Generation): void;
  /** A gzip file cannot be read any further. False if it may be unfinished: the next scan tries again. */
  broken(of: Generation): boolean;
  /** A gzip file was read to its end. */
  unpacked(of: Generation): void;
  /** Finishes the files that were read to their end and have not changed for a while. */
  settle(): void;
  /** Looks up the size of the open file. */
  refresh(of: Generation): void;
  /**
   * Not to be read now: it was empty at first and is still to be compared, as it may be a copy; or an older generation of its
   * log is to be read first, and was not looked for in a settled listing yet.
   */
  isBlocked(of: Generation): boolean;
  /** Something is lost or undecided, and another scan may resolve it. */
  readonly needsScan: boolean;
}

/** How long a deleted file must be unchanged before it is closed, which frees its space. */
const unlinkedQuietMs = 1_000;
/** How long a rotated file must be unchanged before it is finished: its writer may keep it open for a while. */
const rotatedQuietMs = 10_000;
/** How long after its last change a file may be an unfinished copy or archive. */
const unfinishedMs = 10_000;
/** Rounds of decisions about one picture. */
const roundsLimit = 20;

/** A file that is not decided about. */
interface Waiting {
  readonly size: number;
  readonly mtimeNs: bigint;
  readonly sinceMs: number;
  readonly of?: Generation;
  readonly isPart: boolean;
}

interface Unknown {
  readonly key: string;
  readonly sighting: Sighting;
  readonly group: string;
}

export function createScan(deps: ScanDeps): Scan {
  const { clock, generations, glimpses, reader, sinks, compared, contents, slices } = deps;
  const places = createPlaces(deps);
  const apply = createApply(deps, places);
  const observe = createObserve(deps, places, apply);
  const losses = createLosses(deps, apply);
  const observed = (picture: Picture, unsettledScans: number): Observed => ({
    picture,
    groups: createGroups(deps, picture),
    met: new Set(),
    unseen: new Set(),
    unsettledScans,
    isDisturbed: false,
    needsScan: false,
  });
  let seen = observed(noPicture, 0);
  let waiting = new Map<string, Waiting>();
  let nextWaiting = new Map<string, Waiting>();
  /** Groups with a file that the next scan decides about. */
  let undecided = new Set<string>();
  let newGroups = new Set<string>();
  /** Those of a file that was empty when it was first seen, and holds something now. */
  let blankGroups = new Set<string>();
  /** Groups that were there when they were merged last. */
  let merged = 0;

  const begin = (picture: Picture) => {
    const isUnsettled = [...picture.directories.values()].some(
      ({ isSettled, isListed }) => isListed && !isSettled,
    );
    seen = observed(picture, isUnsettled ? seen.unsettledScans + 1 : 0);
    nextWaiting = new Map();
    undecided = new Set();
    newGroups = new Set();
    blankGroups = new Set();
  };

  /** Logs that were first seen under rotated names belong to the log that is known by now. */
  const mergeGroups = () => {
    merged = generations.groupsAdded;
    for (const path of [...generations.groups]) {
      const root = seen.groups.rootOf(path);
      if (root === path) continue;
      if (seen.unseen.has(path)) seen.unseen.add(root);
      for (const of of [...generations.group(path), ...generations.ended(path)]) {
        generations.move(of, root);
        if (of.status !== 'ended') generations.update(of, { home: root });
        if (of.place?.state === 'live') generations.relocate(of, { state: 'rotated' });
      }
    }
  };

  /** What is known of a file that is not read, if it has to be looked at. */
  const isToCompare = (known: Known, sighting: Sighting): boolean => {
    known.absences = 0;
    const { of } = known;
    const isUnchanged = known.size === sighting.stat.size && known.mtimeNs === sighting.stat.mtimeNs;
    if (!isUnchanged || of.status === 'lost') return true;
    const isBack = of.status === 'ended' && known.path !== of.group && seen.groups.isHome(sighting, of.group);
    if (isBack && areNamesReliable(seen, sighting)) return true;
    return (
      of.status === 'ended' && known.size > of.chain.offset && !isCompressed(known.path) && of.number > 0
    );
  };

  /** The files that nobody reads and that have to be looked at, with their groups. */
  const unknownFiles = (decided: ReadonlySet<string>, among?: ReadonlySet<string>): Unknown[] => {
    const files: Unknown[] = [];
    for (const [key, sighting] of seen.picture.files) {
      if (decided.has(key) || generations.readAt(key)) continue;
      const known = generations.knownAt(key);
      if (known && !isToCompare(known, sighting)) continue;
      const group = seen.groups.of(sighting) ?? known?.of.group;
      if (group !== undefined && (among?.has(group) ?? true)) files.push({ key, sighting, group });
    }
    return files;
  };

  const isFresh = (key: string, { stat: { size, mtimeNs } }: Sighting): boolean => {
    const before = waiting.get(key);
    const isChanged = before?.size !== size || before.mtimeNs !== mtimeNs;
    return isChanged || clock.monotonicMs() - before.sinceMs < unfinishedMs;
  };

  const factsOf = (
    key: string,
    sighting: Sighting,
    group: string,
    plainNames: ReadonlySet<string>,
  ): FileFacts => {
    const { stat, paths, isOlder } = sighting;
    const known = generations.knownAt(key);
    const before = waiting.get(key);
    const isHome = seen.groups.isHome(sighting, group);
    const isUnchanged = known?.size === stat.size && known.mtimeNs === stat.mtimeNs;
    return {
      key,
      group,
      kin: isHome ? [] : seen.groups.kinOf(sighting, group),
      linked: isHome ? [] : seen.groups.linkedTo(sighting, group),
      directory: dirname(paths[0]!),
      name: basename(paths[0]!),
      isHome,
      isMember: seen.groups.isMember(sighting, group),
      isOlder,
      isSettled: areNamesReliable(seen, sighting),
      isNewGroup: newGroups.has(group),
      wasBlank: blankGroups.has(group),
      hasPlainBeside: plainNamesOf(paths[0]!).some((path) => plainNames.has(path)),
      isFresh: isFresh(key, sighting),
      content: contents.of(sighting),
      formerly: known?.of,
      isReplaced: known !== undefined && stat.size < known.size && !paths.includes(known.path),
      isUnchanged: isUnchanged || (before?.size === stat.size && before.mtimeNs === stat.mtimeNs),
      awaits: before?.of,
      isPart: before?.isPart === true,
    };
  };

  /** Those of one log in the order of their age, so that they are numbered in it. */
  const byAge = (files: FileFacts[]): FileFacts[] => {
    const groups = groupBy(files, ({ group }) => group);
    return [...groups].flatMap(([group, members]) => {
      if (members.length === 1) return members;
      const ages = new Map(
        members.map((file) => {
          const { stat, paths } = seen.picture.files.get(file.key)!;
          const { content } = file;
          const start = typeof content === 'string' || content.isGzip ? noBytes : content.start;
          return [
            file,
            { name: basename(paths[0]!), mtimeNs: stat.mtimeNs, firstEntryMs: firstEntryMs(start) },
          ];
        }),
      );
      const compare = seen.groups.byAge(group, [...ages.values()]);
      return members.sort(
        (a, b) => Number(a.isHome) - Number(b.isHome) || compare(ages.get(a)!, ages.get(b)!),
      );
    });
  };

  const worldOf = (
    files: readonly FileFacts[],
    answers: ReadonlyMap<string, Map<Generation, Answer>>,
  ): World => {
    let lives: Map<string, Generation[]> | undefined;
    const livesIn = (directory: string) => {
      if (!lives) {
        lives = new Map();
        for (const of of generations.open) {
          const { place, group } = of;
          if (place?.state !== 'live' || place.isGzip) continue;
          if (newGroups.has(group) && !blankGroups.has(group)) continue;
          const home = dirname(of.home);
          lives.set(home, [...(lives.get(home) ?? []), of]);
        }
      }
      return lives.get(directory) ?? [];
    };
    return {
      files,
      group: generations.group,
      ended: generations.ended,
      lost: generations.lost,
      livesIn,
      isThere: (of, except) =>
        generations
          .copiesOf(of)
          .some((copy) => fileKey(copy) !== except.key && seen.picture.files.has(fileKey(copy))),
      unseen: seen.unseen,
      answer: (file, of) => answers.get(file.key)?.get(of),
    };
  };

  const wait = ({ file, of, isSoon, isPart = false }: Extract<Action, { do: 'wait' }>) => {
    const { size, mtimeNs } = seen.picture.files.get(file.key)!.stat;
    const before = waiting.get(file.key);
    const isSame = before?.size === size && before.mtimeNs === mtimeNs;
    const sinceMs = isSame ? before.sinceMs : clock.monotonicMs();
    nextWaiting.set(file.key, { size, mtimeNs, sinceMs, of, isPart });
    if (isSoon) for (const group of [file.group, ...file.kin]) undecided.add(group);
    if (of && isPart && typeof file.content !== 'string') apply.rememberPart(of, file.content);
    if (isSoon) seen.needsScan = true;
    // Other files of its group may be copies of it.
    if (isSoon && file.isHome) seen.unseen.add(file.group);
    if (file.content === 'moved') seen.isDisturbed = true;
  };

  /**
   * Checks the logs whose copies may be among the unknown files, so that a rewritten one is not taken for the original. A
   * file of a new log may be a copy of any changed one in its directory.
   */
  const verifyOriginals = (unknown: readonly Unknown[]) => {
    const groups = new Set(unknown.map(({ group }) => group));
    const directories = new Set(
      unknown.flatMap(({ sighting, group }) => (newGroups.has(group) ? [dirname(sighting.paths[0]!)] : [])),
    );
    for (const of of [...generations.open]) {
      const { place } = of;
      if (place?.state !== 'live' || place.isGzip || knownBytes(of) === 0) continue;
      const isOpen = place.fd !== undefined;
      if (
        !((isOpen || isStale(of)) && groups.has(of.group)) &&
        !(isStale(of) && directories.has(dirname(of.home)))
      )
        continue;
      if (reader.isIntact(of, isOpen) === false) apply.lose(of, 'truncated');
    }
  };

  /** Asks for comparisons until `match` can decide. */
  const planFor = async (facts: readonly FileFacts[]) => {
    const answers = new Map<string, Map<Generation, Answer>>();
    const world = worldOf(facts, answers);
    for (;;) {
      const plan = match(world);
      if (plan.asks.length === 0) return plan;
      for (const ask of plan.asks) {
        const answer = await observe.answer(ask, seen.picture.files.get(ask.file.key)!);
        const own = answers.get(ask.file.key) ?? new Map<Generation, Answer>();
        answers.set(ask.file.key, own.set(ask.of, answer));
        if (slices.spent()) await slices.turn();
      }
    }
  };

  /** Decides about some files, all of their groups among them; returns whether others of them depend on that. */
  const decideAbout = async (
    unknown: readonly Unknown[],
    plainNames: ReadonlySet<string>,
    decided: Set<string>,
  ) => {
    const facts: FileFacts[] = [];
    for (const { key, sighting, group } of unknown) {
      facts.push(factsOf(key, sighting, group, plainNames));
      if (slices.spent()) await slices.turn();
    }
    const plan = await planFor(byAge(facts));
    let hasLost = false;
    for (const action of plan.actions) {
      if (action.do === 'wait') wait(action);
      else await apply.apply(action, seen.picture.files);
      if (action.do === 'miss') seen.isDisturbed = true;
      if (action.do === 'lose') seen.unseen.add(action.of.group);
      if (action.do === 'miss' || action.do === 'lose') {
        seen.needsScan = true;
        hasLost = true;
      }
      if (action.do !== 'lose') decided.add(action.file.key);
      if (slices.spent()) await slices.turn();
    }
    return plan.again || hasLost;
  };

  /** Files of known logs first: others may be copies of them. */
  const rankOf = ({ group }: Unknown) => (newGroups.has(group) ? (blankGroups.has(group) ? 1 : 2) : 0);

  const isBlankGroup = (group: string): boolean =>
    generations.hasGroup(group) &&
    [...generations.ended(group)].length === 0 &&
    generations.group(group).every((of) => of.status === 'lost' && isBlank(of));

  /** Decides about the files that nobody reads: compares what `match` asks for, and applies what it decides. */
  const decide = async () => {
    const first = unknownFiles(new Set());
    if (first.length === 0) return;
    for (const { group } of first) {
      if (isBlankGroup(group)) blankGroups.add(group);
      if (blankGroups.has(group) || !generations.hasGroup(group)) newGroups.add(group);
    }
    if (newGroups.size > 0 || generations.groupsAdded > merged) mergeGroups();
    verifyOriginals(first);
    const plainNames = new Set<string>();
    for (const { paths } of seen.picture.files.values()) for (const path of paths) plainNames.add(path);
    const decided = new Set<string>();
    for (const batch of batchesOf(unknownFiles(decided), rankOf)) {
      for (let round = 0; round < roundsLimit; round++) {
        const left = round === 0 ? batch : unknownFiles(decided, new Set(batch.map(({ group }) => group)));
        if (left.length === 0 || !(await decideAbout(left, plainNames, decided))) break;
      }
    }
  };

  /** Groups with a generation that is followed since this scan. */
  const followedGroups = (last: number): Set<string> => {
    const groups = new Set<string>();
    if (generations.lastNumber > last)
      for (const { number, group } of generations.open) if (number > last) groups.add(group);
    return groups;
  };

  const isQuiet = (of: Generation) => {
    const { state, changedMs } = of.place!;
    const quietMs = state === 'unlinked' ? unlinkedQuietMs : rotatedQuietMs;
    return !isStale(of) && clock.monotonicMs() - changedMs >= quietMs;
  };

  return {
    async reconcile(picture, passed) {
      begin(picture);
      for (const [key, sighting] of picture.files) {
        const of = generations.readAt(key);
        const comparing = of && observe.recognize(seen, of, sighting);
        if (comparing instanceof Promise) await comparing;
        if (slices.spent()) await slices.turn();
      }
      for (const of of [...generations.open])
        if (of.place && !seen.met.has(of)) await observe.findUnlisted(seen, of);
      const last = generations.lastNumber;
      // Before what they held is found in another file.
      losses.missGone(seen, passed);
      await decide();
      for (const group of followedGroups(last)) {
        const members = seen.groups.arranged(group, last);
        if (members) generations.arrange(group, members);
      }
      const awaited = new Set([...nextWaiting.values()].map(({ of }) => of));
      losses.resolve(seen, awaited, undecided);
      losses.forgetDeleted(seen, nextWaiting.size > 0);
      compared.release();
      if (seen.isDisturbed) seen.needsScan = true;
      waiting = nextWaiting;
    },

    verify() {
      for (const of of [...generations.open]) {
        const { place } = of;
        if (place?.fd === undefined || place.isGzip || place.isBlank || place.size <= of.size) continue;
        if (reader.isIntact(of, true) === false) apply.lose(of, 'truncated');
      }
    },
    rewritten(of) {
      apply.lose(of, 'truncated');
      seen.needsScan = true;
    },
    broken(of) {
      const place = of.place!;
      // It may still be written.
      if (clock.monotonicMs() - place.changedMs < unfinishedMs) return false;
      const missing = Math.max(of.restBytes, of.size - of.chain.offset);
      generations.update(of, { rest: noBytes, restBytes: 0 });
      sinks.finish(of);
      sinks.skip(of, 'unreadable', missing);
      apply.end(of);
      return true;
    },
    unpacked(of) {
      sinks.finish(of);
      apply.end(of);
    },
    settle() {
      for (const of of [...generations.open]) {
        if (!of.place || of.place.state === 'live' || of.place.isGzip || !isQuiet(of)) continue;
        reader.finish(of);
        apply.end(of);
      }
    },
    refresh(of) {
      const stat = places.stat(of);
      if (stat) places.note(of, stat, stat.nlink === 0 ? 'unlinked' : of.place!.state);
    },
    isBlocked(of) {
      for (const other of generations.lost) {
        const isOlder =
          other.group === of.group && other.number < of.number && other.lost?.sinceMs === undefined;
        if (isOlder && unreadBytes(other) + other.rest.length > 0) return true;
      }
      const place = of.place!;
      if (!place.isBlank || seenBytes(of) > 0) return false;
      deps.openFiles.open(place);
      const stat = places.stat(of);
      if (stat && stat.size > 0) seen.needsScan = true;
      else if (stat) place.readMtimeNs = place.mtimeNs;
      return true;
    },
    get needsScan() {
      return seen.needsScan || glimpses.count > 0;
    },
  };
}
