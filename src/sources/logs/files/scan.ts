import { dirname } from 'node:path';
import { noPicture, type Picture } from '../discovery/picture.ts';
import { type Apply, createApply } from './apply.ts';
import { type Answer, batchesOf, type FileFacts } from './decision.ts';
import { type Generation, isStale, knownBytes, noBytes, seenBytes, unreadBytes } from './generation.ts';
import type { Generations } from './generations.ts';
import { createGroups, type Groups } from './groups.ts';
import { createLosses, type Glimpse, type Glimpses } from './losses.ts';
import { match } from './match.ts';
import { createObserve, type Observe, type Observed, postpone } from './observe.ts';
import { createPlaces, type ScanDeps } from './places.ts';
import {
  createUnknownFiles,
  type Unknown,
  type UnknownFiles,
  unfinishedMs,
  type WaitingFiles,
} from './unknown-files.ts';

/** Compares pictures of the directories with what is known, and decides what is read. */
export interface Scan {
  /** Compares a picture with the known files. It reads only what comparisons need. */
  reconcile(picture: Picture, passed: ReadonlyMap<string, Glimpse>): Promise<void>;
  /** Looks up again the sizes that were looked up in the scan, for files that are not read after it. */
  verify(): void;
  /** Handles a file in which the bytes before the offset differ from the bytes that were read. */
  rewritten(of: Generation): void;
  /** Handles a gzip file that cannot be read any further. False if the file may be unfinished: then the next scan tries again. */
  broken(of: Generation): boolean;
  /** Handles a gzip file that was read to its end. */
  unpacked(of: Generation): void;
  /** Finishes the files that were read to their end and have not changed for a while. */
  settle(): void;
  /** Looks up the size of the open file. */
  refresh(of: Generation): void;
  /**
   * Whether a generation must not be read now: it was empty at first and is still to be compared, as it may be a copy; or an
   * older generation of its log must be read first, and was not yet looked for in a settled listing.
   */
  isBlocked(of: Generation): boolean;
  /** Whether a generation is lost or a file is undecided, and another scan may resolve it. */
  readonly needsScan: boolean;
}

/** How long a deleted file must be unchanged before it is closed, which frees its space. */
const unlinkedQuietMs = 1_000;
/** How long a rotated file must be unchanged before it is finished: its writer may keep it open for a while. */
const rotatedQuietMs = 10_000;
/** The maximum number of rounds of decisions about one picture. */
const roundsLimit = 20;

const observed = (picture: Picture, groups: Groups, unsettledScans: number): Observed => ({
  picture,
  groups,
  met: new Set(),
  unseen: new Set(),
  unsettledScans,
  isDisturbed: false,
  needsScan: false,
});

/** Merges logs that were first seen under rotated names into the log that is known by now. */
function mergeGroups(generations: Generations, seen: Observed): void {
  for (const path of [...generations.groups()]) {
    const root = seen.groups.rootOf(path);
    if (root === path) continue;
    if (seen.unseen.has(path)) seen.unseen.add(root);
    for (const of of [...generations.group(path), ...generations.ended(path)]) {
      generations.move(of, root);
      if (of.status !== 'ended') generations.update(of, { home: root });
      if (of.place?.state === 'live') generations.relocate(of, { state: 'rotated' });
    }
  }
}

/** What one scan has seen, and the files in it that are not followed. */
interface Round {
  readonly seen: Observed;
  readonly unknown: UnknownFiles;
}

/**
 * Returns the function that decides about the files that are not followed: it makes the comparisons that `match` asks for, and
 * applies its decisions.
 */
function createDecide({ generations, reader, slices }: ScanDeps, apply: Apply, observe: Observe) {
  /** The number of groups that had been added when groups were last merged. */
  let merged = 0;

  /**
   * Checks the logs whose copies may be among the unknown files, so that a rewritten log is not taken for the original. A file of
   * a new log may be a copy of any changed log in its directory.
   */
  const verifyOriginals = (unknown: UnknownFiles, files: readonly Unknown[]) => {
    const groups = new Set(files.map(({ group }) => group));
    const directories = new Set(
      files.flatMap(({ sighting, group }) =>
        unknown.newGroups.isNew(group) ? [dirname(sighting.paths[0]!)] : [],
      ),
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
  const planFor = async ({ seen, unknown }: Round, facts: readonly FileFacts[]) => {
    const answers = new Map<string, Map<Generation, Answer>>();
    const world = unknown.worldOf(facts, answers);
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

  /**
   * Decides about some files, which include all files of their groups. Returns whether the decisions about other files depend on
   * these decisions.
   */
  const decideAbout = async (round: Round, files: readonly Unknown[], decided: Set<string>) => {
    const { seen, unknown } = round;
    const facts: FileFacts[] = [];
    // Logs are read after the other files, so that what is read of a log includes all of its present content that the other files
    // have.
    const isLog = ({ sighting, group }: Unknown) => seen.groups.isHome(sighting, group);
    for (const file of [...files.filter((one) => !isLog(one)), ...files.filter(isLog)]) {
      facts.push(unknown.factsOf(file));
      if (slices.spent()) await slices.turn();
    }
    const plan = await planFor(round, unknown.byAge(facts));
    for (const action of plan.actions) {
      if (action.do === 'wait') unknown.wait(action);
      await apply.apply(action, seen.picture.files);
      if (action.do === 'miss') seen.isDisturbed = true;
      if (action.do === 'lose') postpone(seen, action.of);
      else decided.add(action.file.key);
      if (slices.spent()) await slices.turn();
    }
    return plan.again;
  };

  return async (round: Round): Promise<void> => {
    const { seen, unknown } = round;
    const first = unknown.left(new Set());
    if (first.length === 0) return;
    unknown.newGroups.sort(first);
    if (generations.groupsAdded() > merged || first.some(({ group }) => unknown.newGroups.isNew(group))) {
      merged = generations.groupsAdded();
      mergeGroups(generations, seen);
    }
    verifyOriginals(unknown, first);
    const decided = new Set<string>();
    for (const batch of batchesOf(unknown.left(decided), unknown.newGroups.rankOf)) {
      for (let n = 0; n < roundsLimit; n++) {
        const left = n === 0 ? batch : unknown.left(decided, new Set(batch.map(({ group }) => group)));
        if (left.length === 0 || !(await decideAbout(round, left, decided))) break;
      }
    }
  };
}

/** Whether an older generation of the same log must be read first, and was not yet looked for in a settled listing. */
function isAfterLost({ lost }: Generations, { group, number }: Generation): boolean {
  for (const other of lost) {
    const isOlder = other.group === group && other.number < number && other.lost?.sinceMs === undefined;
    if (isOlder && unreadBytes(other) + other.rest.length > 0) return true;
  }
  return false;
}

/** Whether a file that is not at its log's path any more has not changed for long enough to be finished. */
function isQuiet(of: Generation, nowMs: number): boolean {
  const { state, changedMs } = of.place!;
  return !isStale(of) && nowMs - changedMs >= (state === 'unlinked' ? unlinkedQuietMs : rotatedQuietMs);
}

/** Puts the generations that were found after the number `last` in their order among those of their groups. */
function arrangeAfter(last: number, generations: Generations, { groups }: Observed): void {
  const found = [...generations.open].filter(({ number }) => number > last);
  for (const group of new Set(found.map(({ group }) => group))) {
    const members = groups.arranged(group, last);
    if (members) generations.arrange(group, members);
  }
}

export function createScan(deps: ScanDeps, glimpses: Pick<Glimpses, 'count'>): Scan {
  const { clock, generations, reader, sinks, compared, slices } = deps;
  const places = createPlaces(deps);
  const apply = createApply(deps, places);
  const observe = createObserve(deps, places, apply);
  const losses = createLosses(deps, apply);
  let seen = observed(noPicture, createGroups(deps, noPicture), 0);
  let waited: WaitingFiles = new Map();
  let unknown = createUnknownFiles(deps, seen, waited);
  const decide = createDecide(deps, apply, observe);

  const begin = (picture: Picture) => {
    const isUnsettled = [...picture.directories.values()].some(
      ({ isSettled, isListed }) => isListed && !isSettled,
    );
    const groups = createGroups(deps, picture);
    seen = observed(picture, groups, isUnsettled ? seen.unsettledScans + 1 : 0);
    unknown = createUnknownFiles(deps, seen, waited);
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
      // This must come before the content of the missed files is found in another file.
      losses.missGone(seen, passed);
      await decide({ seen, unknown });
      if (generations.lastNumber > last) arrangeAfter(last, generations, seen);
      const awaited = new Set([...unknown.waiting.values()].map(({ of }) => of));
      losses.resolve(seen, awaited, unknown.undecided);
      losses.forgetDeleted(seen, unknown.waiting.size > 0);
      compared.release();
      if (seen.isDisturbed) seen.needsScan = true;
      waited = unknown.waiting;
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
      // The file may still be written.
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
      const nowMs = clock.monotonicMs();
      for (const of of [...generations.open]) {
        if (!of.place || of.place.state === 'live' || of.place.isGzip || !isQuiet(of, nowMs)) continue;
        reader.finish(of);
        apply.end(of);
      }
    },
    refresh(of) {
      const stat = places.stat(of);
      if (stat) places.note(of, stat, stat.nlink === 0 ? 'unlinked' : of.place!.state);
    },
    isBlocked(of) {
      if (isAfterLost(generations, of)) return true;
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
