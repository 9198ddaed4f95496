import { dirname } from 'node:path';
import { type Content, identifyingBytes, markedBytes, marksAgree, tailBytes } from './chain.ts';
import {
  type Action,
  type Answer,
  type Ask,
  createOrder,
  type FileFacts,
  isContent,
  isUnrelated,
  type World,
} from './decision.ts';
import {
  type Asked,
  byEvidence,
  byRank,
  isNearby,
  isOnlyPart,
  isVague,
  mayFit,
  mayHold,
  type Pair,
  rankOf,
} from './fit.ts';
import { countedBytes, type Generation, isStale, isUnread, knownBytes } from './generation.ts';

/** Actions, or the comparisons that must be made first. `again`: the decisions about other files depend on these actions. */
interface Plan {
  readonly asks: readonly Ask[];
  readonly actions: readonly Action[];
  readonly again: boolean;
}

/** How many followed files of its directory a file with an unrelated name is compared with. */
const neighboursLimit = 16;

/*
 * Decides what each file is that is not followed. The rules are here and, for one file and one generation, in `fit.ts`. Neither
 * reads a file or changes anything.
 *
 *   the file                                        counts as
 *   older than its log, or an archive in another    passed over
 *   format than gzip
 *   beginning, or all, of a followed generation     a copy; at a log's own path under an unrelated name after ten quiet seconds
 *                                                   a log of its own, unless it is an archive of all of a rotated file
 *   all of a lost or ended generation, and more     that generation, which goes on in it
 *   all of an ended generation                      a copy
 *   equal to one of these, but only one line again  a copy while it may be unfinished, and then a new generation
 *   and again
 *   a part of a truncated generation, or, if it     a copy
 *   has a time, of a generation that is gone
 *   an archive that may be unfinished, an empty     undecided: the next scan decides
 *   file that is not at a log's path, a file that
 *   goes on after a live file, a file of a group
 *   with a generation that cannot be seen
 *   anything else                                   a new generation, read from its beginning
 */
export function match(given: World): Plan {
  const asks: Ask[] = [];
  const ask = (file: FileFacts, of: Generation): Answer => {
    const known = given.answer(file, of);
    if (known === undefined) asks.push({ file, of });
    return known ?? 'unknown';
  };
  const world = { ...given, ask };
  const actions: Action[] = [];
  const left: FileFacts[] = [];
  const pairs: Pair[] = [];
  for (const file of world.files) {
    const action = decideAlone(file) ?? decideByFollowed(world, file);
    const isSure = action !== undefined && !('isUnsure' in action && action.isUnsure);
    const own =
      !isSure && isContent(file.content) && !isPassed(file) ? pairsOf(world, file, file.content) : [];
    if (own.some(({ relation }) => relation === 'unseen')) actions.push({ do: 'wait', file, isSoon: true });
    else if (action && (isSure || !mayBeLost(world, file, own))) actions.push(action);
    else {
      left.push(file);
      pairs.push(...own);
    }
  }
  if (asks.length > 0) return { asks, actions: [], again: false };
  // The content of these generations may be in the other files.
  const losses = actions.filter((action) => action.do === 'lose' || action.do === 'miss');
  if (losses.length > 0) return { asks, actions: losses, again: true };
  const { taken, later } = assign(pairs, actions);
  const rest = left.filter(({ key }) => !taken.has(key));
  const isLater = ({ key }: FileFacts) => later.has(key);
  const again =
    decideRest(
      world,
      rest.filter((file) => !isLater(file)),
      actions,
    ) || rest.some(isLater);
  return asks.length > 0 ? { asks, actions: [], again: false } : { asks, actions, again };
}

/** Whether the file was there before its log was looked at. */
const isPassed = ({ isOlder, formerly }: FileFacts): boolean => isOlder && !formerly;

function decideAlone(file: FileFacts): Action | undefined {
  const { content } = file;
  if (isPassed(file) && (!isContent(content) || content.isGzip)) return { do: 'pass', file };
  if (content === 'moved') {
    // If the file is gone, another file may be a copy of it, or an archive may contain it by now.
    const isMissed = file.isHome && !file.isNewGroup && !file.formerly;
    return { do: isMissed ? 'miss' : 'wait', file, isSoon: true };
  }
  if (content === 'denied' && !file.isMember) return { do: 'wait', file, isSoon: false };
  if (content === 'unfinished') return file.isFresh ? { do: 'wait', file, isSoon: true } : undefined;
  // The archive is passed over once it is whole, because its size counts as skipped.
  if (file.isForeign)
    return file.isFresh && !isPassed(file) ? { do: 'wait', file, isSoon: false } : { do: 'pass', file };
  // The file is being written. An empty file has the same beginning as every file.
  if (isContent(content) && content.size === 0 && !file.isHome) return { do: 'wait', file, isSoon: false };
  return undefined;
}

/** Compares a file with the generations that are read. The file may be a copy of one of them, finished or not. */
function decideByFollowed(world: Asked, file: FileFacts): Action | undefined {
  const { content, isHome, isFresh } = file;
  if (!isContent(content) || content.size === 0) return undefined;
  const own = [file.group, ...file.kin].flatMap((path) => world.generations.group(path));
  const isStranger = isUnrelated(file);
  const isTelling = !isVague(file, content);
  const neighbours = isStranger ? world.followedIn(file.directory) : [];
  const compared = { alike: 0, different: 0 };
  /** What the file may be unless it has all of another generation. */
  let doubt: Action | undefined;
  for (const of of [...own, ...neighbours]) {
    const { place } = of;
    if (!place || (isHome && !isStranger && place.state !== 'unlinked')) continue;
    // If a log was rewritten after it was looked at, the file may be a copy of what it holds now.
    const isDifferent = marksAgree(of.chain, content.start) === false;
    if (isDifferent && (place.state !== 'live' || place.isGzip)) continue;
    const isHeld = place.fd !== undefined && place.size > 0;
    const isSeen = knownBytes(of) > 0 || place.state === 'live' || place.isGzip || isHeld;
    if (!isSeen) continue;
    if (isStranger && ++compared[isDifferent ? 'different' : 'alike'] > neighboursLimit) continue;
    const answer = world.ask(file, of);
    if (answer === 'rewritten') return { do: 'lose', of };
    if (isPassed(file) && answer !== 'prefix') continue;
    if (answer === 'undrained' || answer === 'moved' || (answer === 'unseen' && isFresh))
      return { do: 'wait', file, of, isSoon: true };
    if (answer === 'unseen') return { do: 'copy', file, of };
    if (isStranger) {
      if (answer === 'prefix' && isArchiveOf(content, of)) return { do: 'copy', file, of };
      if (answer === 'prefix' && isFresh) return { do: 'wait', file, of, isSoon: false, isPart: true };
    } else if (isHome) {
      // Another file with the same content was renamed over the log.
      const isAlike = answer === 'prefix' || answer === 'longer';
      const isReplaced = isAlike && isTelling && of.chain.offset >= tailBytes && content.size >= of.size;
      // The bytes that are not read yet distinguish the generation from a file that begins with the same banner.
      if (isReplaced && isStale(of)) return { do: 'wait', file, of, isSoon: true };
      if (isReplaced) return { do: 'resume', file, of };
    } else if (
      answer === 'prefix' &&
      ((isTelling && content.size >= identifyingBytes) || isArchiveOf(content, of))
    )
      return { do: 'copy', file, of };
    else if (answer === 'prefix' && isFresh) return { do: 'wait', file, of, isSoon: false, isPart: true };
    else if (
      answer === 'longer' &&
      (place.state === 'live' || content.isGzip || knownBytes(of) >= markedBytes)
    ) {
      // Either the log was truncated and written again, or the archive is unfinished, or one of the two files is a copy that is
      // still being written.
      if (isFresh || (place.state !== 'live' && isStale(of)))
        doubt ??= { do: 'wait', file, of, isSoon: true, isUnsure: true };
      else if (!content.isGzip && isTelling) doubt ??= { do: 'fork', file, of, isUnsure: true };
    }
  }
  return doubt;
}

/** Whether an archive has exactly the content of a rotated file, however little that is. */
const isArchiveOf = ({ isGzip, size }: Content, { place, size: own }: Generation): boolean =>
  isGzip && place !== undefined && place.state !== 'live' && !place.isGzip && size === own;

/** Whether a lost generation is, or may be, in a file that is not at a log's path. */
function mayBeLost(world: Asked, file: FileFacts, pairs: readonly Pair[]): boolean {
  if (pairs.length > 0) return true;
  for (const of of world.generations.lost) {
    const isKnown = isUnread(of) && knownBytes(of) > 0;
    if (isKnown && isNearby(of, file, knownBytes(of)) && mayHold(world, of, file)) return true;
  }
  return false;
}

/** The lost and ended generations that may be in a file. */
function pairsOf(world: Asked, file: FileFacts, content: Content): Pair[] {
  const pairs: Pair[] = [];
  const consider = (of: Generation) => {
    if (marksAgree(of.chain, content.start) === false) return;
    const relation = world.ask(file, of) as Pair['relation'];
    const pair = { file, of, content, relation };
    if (mayFit(pair, world) || relation === 'unseen') pairs.push(pair);
  };
  for (const of of world.generations.lost) {
    if (isUnread(of) && (file.awaits !== of || !file.isPart) && file.formerly !== of) continue;
    const isNear = file.awaits === of || file.formerly === of;
    if (isNear || isNearby(of, file, countedBytes(of))) consider(of);
  }
  if (file.formerly?.status === 'ended') consider(file.formerly);
  const groups = file.isHome ? [] : [file.group, ...file.kin];
  for (const group of groups)
    for (const of of world.generations.ended(group)) if (of !== file.formerly && !isUnread(of)) consider(of);
  return pairs;
}

/** Groups with a file that cannot be decided about now. */
const waitingGroups = (actions: readonly Action[]): Set<string> =>
  new Set(
    actions.flatMap((action) =>
      action.do === 'miss' || (action.do === 'wait' && action.isSoon) ? [action.file.group] : [],
    ),
  );

/** Assigns each file to the generation that it fits best. A generation goes on in one file; the other files are copies of it. */
function assign(pairs: readonly Pair[], actions: Action[]) {
  const taken = new Set<string>();
  const later = new Set<string>();
  const waiting = waitingGroups(actions);
  const resumed = new Set<Generation>();
  const ranked = pairs.map((pair) => ({ pair, rank: rankOf(pair) })).sort((a, b) => byRank(a.rank, b.rank));
  for (const { pair } of ranked) {
    const { file, of, content, relation } = pair;
    if (taken.has(file.key)) continue;
    const isPart = isOnlyPart(relation);
    const isBack = file.formerly === of && file.isHome;
    const goesOn =
      (!isPart || (isUnread(of) && of.status === 'lost')) &&
      (of.status === 'lost' || relation === 'longer' || isBack);
    // The file is compared with the file in which the generation goes on. It is a copy of that file, or another file with the
    // same beginning.
    if (goesOn && resumed.has(of)) {
      if (!file.isHome) later.add(file.key);
      continue;
    }
    taken.add(file.key);
    // The file lacks bytes of the generation. A file that cannot be looked at now may have all of them. The wait for such a file
    // lasts no longer than a rotation takes, because that file may itself wait for a generation that is read after this one.
    const isDoubtful =
      goesOn && content.size < of.size && file.isFresh && (!file.isSettled || waiting.has(of.group));
    if (isDoubtful) actions.push({ do: 'wait', file, of, isSoon: true });
    else if (goesOn) {
      resumed.add(of);
      actions.push({ do: 'resume', file, of });
    } else actions.push({ do: 'copy', file, of });
  }
  return { taken, later };
}

/**
 * Makes new generations, in their order, from the files that fit no known generation, unless something of their group cannot be
 * seen.
 */
function decideRest(world: Asked, files: readonly FileFacts[], actions: Action[]): boolean {
  const forked = actions.flatMap((action) => (action.do === 'fork' ? [action.file] : []));
  const order = createOrder(files, forked);
  const unseen = new Set([...world.unseen].map((path) => dirname(path)));
  const resumed = new Set(actions.flatMap((action) => (action.do === 'resume' ? [action.of] : [])));
  const waiting = waitingGroups(actions);
  let again = false;
  for (const file of files) {
    const { group, content } = file;
    const isArchive = isContent(content) && content.isGzip;
    const isAfter = order.isAfter(file);
    if (isPassed(file)) {
      if (!isAfter) actions.push({ do: 'pass', file });
      again ||= isAfter;
      continue;
    }
    if (!file.isMember) continue;
    const lost = [...world.generations.lost].filter(
      (of) => !resumed.has(of) && isNearby(of, file, knownBytes(of)),
    );
    const isUncertain =
      lost.some((of) => !isUnread(of)) && (!file.isSettled || waiting.has(group) || content === 'denied');
    // The file may be a copy of a log that cannot be seen.
    if (world.unseen.has(group) || isUncertain || (isUnrelated(file) && unseen.has(file.directory))) {
      actions.push({ do: 'wait', file, isSoon: true });
      continue;
    }
    if (isArchive && file.isFresh && (file.hasPlainBeside || !file.isSettled)) {
      actions.push({ do: 'wait', file, isSoon: true });
      continue;
    }
    if (isAfter) {
      again = true;
      continue;
    }
    const of = lost.sort(byEvidence(file)).find((one) => isUnread(one) && mayHold(world, one, file));
    if (of) resumed.add(of);
    // Another log may have the same banner. It stays a log of its own: nothing of the lost generation was counted.
    const isOthers = isUnrelated(file) && of?.group !== group;
    actions.push(of && !isOthers ? { do: 'resume', file, of } : { do: 'follow', file, of });
  }
  return again;
}
