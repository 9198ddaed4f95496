import { dirname } from 'node:path';
import type { Archives } from './archives.ts';
import type { Copies } from './copies.ts';
import type { Sighting } from './discovery.ts';
import {
  checkedBytes,
  headCovers,
  identifyingBytes,
  isBeginningOf,
  type Likeness,
  likeness,
  tailBytes,
} from './fingerprint.ts';
import type { Generations } from './generations.ts';
import type { Grouped, Groups } from './groups.ts';
import { isCompressed } from './rotated-names.ts';
import type { RotationDeps, ScanState } from './scan-state.ts';
import { isUnread, knownContent, letGoContent, type TrackedFile } from './tracked-file.ts';
import type { Whereabouts } from './whereabouts.ts';

/**
 * Time between the two settled listings that a missing file is not in before it is given up. Listings of one scan follow each
 * other at once, and a rotation or a compressor may take longer than that to bring its bytes back.
 */
const missedForMs = 1_000;

function byRank(a: readonly number[], b: readonly number[]): number {
  const at = a.findIndex((part, i) => part !== b[i]);
  return at < 0 ? 0 : a[at]! - b[at]!;
}

/** A file that holds what is known of the generation, or a part of it. */
interface Alike extends Grouped {
  readonly like: Likeness;
  readonly size: number;
}

interface Parts {
  groups: Groups;
  generations: Generations;
  whereabouts: Whereabouts;
  copies: Copies;
  archives: Archives;
}

/** Finds the bytes of a generation whose file was deleted or rewritten in another file, or gives the generation up. */
export function createMissing(
  deps: RotationDeps,
  scan: ScanState,
  { groups, generations, whereabouts, copies, archives }: Parts,
) {
  const { clock, tracker, sinks, contents } = deps;
  const { isHome, inOrder } = groups;
  const { letGoWhole, giveUp, forgetBeginning, resume, followAgain } = generations;
  const { directoryOf, seesDirectory, waitForDirectory, postponeGroup } = whereabouts;
  const { keyOf, waitFor, hasPlainBeside } = copies;
  const { identifyGzip } = archives;

  /** Whether equal content is enough to identify a missing file: tiny files are alike. */
  const identifies = (file: TrackedFile, group: string, sighting: Sighting): boolean => {
    const { fingerprint, rest, offset, size, nowSize } = file;
    if (isHome(sighting, group)) return offset >= tailBytes;
    const known = Math.max(fingerprint.tail.length + rest.length, headCovers(fingerprint.head));
    if (offset > 0 || known >= identifyingBytes) return true;
    if (file.lostBy === 'truncated') return !isOthers(file, sighting);
    return sighting.stat.size === Math.max(size, nowSize);
  };

  /** Whether another generation of the group is known to have these bytes. */
  const isOthers = (file: TrackedFile, sighting: Sighting): boolean => {
    const others = [
      ...tracker
        .group(file.path)
        .filter((other) => other !== file)
        .map(knownContent),
      ...[...tracker.letGoOf(file.path)].filter(({ copyOf }) => copyOf !== file).map(letGoContent),
    ].filter(({ offset, head }) => offset >= identifyingBytes || headCovers(head) >= identifyingBytes);
    return contents.of(sighting, (own) => others.some((other) => likeness(own, other) !== 'none')) ?? true;
  };

  const isLetGoCopy = (file: TrackedFile, { stat: { dev, ino } }: Sighting) =>
    tracker.letGoAt(dev, ino)?.copyOf === file;

  /** Whether the file was found to be a copy of the generation while that was still there, and has not changed since. */
  const isCopyOf = (file: TrackedFile, sighting: Sighting): boolean => {
    if (isLetGoCopy(file, sighting)) return true;
    const { size, mtimeNs } = sighting.stat;
    const before = scan.undecided.get(keyOf(sighting));
    if (!before?.isBeginning || before.of !== file) return false;
    return before.size === size && before.mtimeNs === mtimeNs;
  };

  /** Whether the generation may be in the file at all, by its name. */
  const isEligible = (file: TrackedFile, { sighting, group }: Grouped): boolean => {
    const [path] = sighting.paths as [string];
    if (file.ruledOut?.has(path)) return false;
    if (group === file.path) return true;
    if (!isHome(sighting, file.path) && scan.undecided.get(keyOf(sighting))?.of === file) return true;
    const isSudden = file.lostBy === 'truncated' && file.offset > 0 && scan.newGroups.has(group);
    const isNeighbour = dirname(path) === dirname(file.home);
    return (
      isNeighbour && !isCompressed(path) && (file.fingerprint.tail.length >= identifyingBytes || isSudden)
    );
  };

  /** Whether a file that is like the generation may be taken for it. */
  const isAcceptable = (file: TrackedFile, sighting: Sighting, like: Likeness, size: number): boolean => {
    const isCut = file.lostBy === 'truncated' && sighting.stat.ino === file.formerIno;
    if (like === 'cut') return isCut && isHome(sighting, file.path);
    if (like !== 'short') return like !== 'none';
    // Nothing is to be done about it, and another file may be the copy that is not known yet.
    if (isLetGoCopy(file, sighting)) return false;
    // At the log's path the next generation begins with the same timestamp.
    const isCutOff = isCut && file.wasHeld && size >= identifyingBytes;
    if (file.state !== 'missing' || (isHome(sighting, file.path) && !isCutOff)) return false;
    // Only a truncation leaves a copy behind that is shorter. Other files begin the same for as long as a banner goes.
    return file.lostBy === 'truncated' || isCopyOf(file, sighting);
  };

  /**
   * Whether a file is an archive of another generation, or a copy that is made of the file at the log's path. Of a generation
   * of which nothing was counted perhaps only a banner is known, with which others begin, too.
   */
  const isOfAnother = (file: TrackedFile, { sighting, group }: Grouped, size: number): boolean => {
    if (isCompressed(sighting.paths[0]!)) {
      const { verdict, of } = identifyGzip(sighting, group);
      return verdict !== 'new' && of !== file;
    }
    const home = scan.picture.files.get(scan.picture.found.get(file.path) ?? '');
    if (!home || home === sighting || size === Math.max(file.size, file.nowSize)) return false;
    // Opened first: the one that was opened longest ago may be closed for it.
    if (contents.open(home) !== 'open') return false;
    return contents.of(sighting, (own) => contents.of(home, (other) => isBeginningOf(own, other))) ?? false;
  };

  /** The files that may be the generation, by their names and by what they hold. */
  const findAlike = (file: TrackedFile, candidates: readonly Grouped[]): Alike[] => {
    const content = knownContent(file);
    const alike: Alike[] = [];
    for (const candidate of candidates) {
      const { sighting } = candidate;
      if (!isEligible(file, candidate)) continue;
      // An archive may be unfinished.
      if (hasPlainBeside(sighting) && waitFor(sighting, file)) continue;
      const seen = contents.of(sighting, (own) => ({ like: likeness(own, content), size: own.size }));
      if (seen === undefined) {
        scan.isDisturbed = true;
        postponeGroup(file);
        continue;
      }
      const isCopy = isCopyOf(file, sighting);
      // The first few bytes have no checksum.
      const isShort = isCopy && seen.size < Math.min(checkedBytes, file.offset);
      const like = isCopy && isUnread(file) ? 'whole' : isShort ? 'short' : seen.like;
      if (like === 'whole' && !isCopy && !identifies(file, file.path, sighting)) {
        if (file.offset === 0) forgetBeginning(file);
        continue;
      }
      if (isUnread(file) && !isCopy && like !== 'none' && isOfAnother(file, candidate, seen.size)) continue;
      if (isAcceptable(file, sighting, like, seen.size)) alike.push({ ...candidate, like, size: seen.size });
    }
    return alike;
  };

  /** The best of them: `best('whole')` is the one to take of those that are like the generation in this way. */
  const ranked = (file: TrackedFile, alike: readonly Alike[]) => {
    // A file that is shorter than the generation was, or of which the depth is not compared, is taken only if nothing is better.
    const known = Math.max(file.size, file.nowSize);
    // Of a file that nothing was counted of, perhaps only a banner is known, and younger ones begin the same.
    const isOldestFirst = isUnread(file);
    const order = isOldestFirst
      ? inOrder([...new Set(alike.map(({ sighting }) => sighting))], file.path)
      : [];
    const rank = ({ like, size, sighting, group }: Alike) => {
      const isPacked = isCompressed(sighting.paths[0]!);
      const distance = isOldestFirst ? order.indexOf(sighting) : Math.abs(size - known);
      // Logs of one service begin with the same banner.
      const isOtherGroup = group !== file.path;
      const isCopy = isCopyOf(file, sighting);
      return [!isCopy, isOtherGroup, size < known, like === 'perhaps', isPacked, distance].map(Number);
    };
    return (...likes: Likeness[]) =>
      alike.filter(({ like }) => likes.includes(like)).sort((a, b) => byRank(rank(a), rank(b)))[0];
  };

  /** Finds the bytes of a missing generation among files that are not followed. */
  const findMissing = (file: TrackedFile, candidates: readonly Grouped[]): Grouped | undefined => {
    const best = ranked(file, findAlike(file, candidates));
    const next = best('whole', 'perhaps');
    if (next) {
      resume(file, next.group, next.sighting);
      // The copy was made before the unfinished line was written.
      if (next.size < file.offset + file.restBytes) sinks.cut(file);
      return next;
    }
    const cut = best('cut');
    if (cut) {
      resume(file, cut.group, cut.sighting);
      sinks.cut(file);
      return cut;
    }
    const short = best('short');
    if (!short) return undefined;
    if (isHome(short.sighting, file.path)) {
      // The file was cut off in the middle of what was read: what follows is new.
      letGoWhole(file.path, short.sighting, file.generation, { atMost: short.size });
      followAgain(tracker.letGoAt(short.sighting.stat.dev, short.sighting.stat.ino)!, short.sighting);
    } else letGoWhole(file.path, short.sighting, file.generation, { copyOf: file, atMost: short.size });
    return short;
  };

  const resolveMissing = () => {
    for (const file of [...tracker]) {
      if (file.state !== 'missing') continue;
      if (directoryOf(file)?.isSettled !== true || scan.isDisturbed) {
        if (!seesDirectory(file)) waitForDirectory(file);
        else scan.needsScan = true;
        continue;
      }
      if ([...scan.nextUndecided.values()].some(({ of }) => of === file)) continue;
      file.missedSinceMs ??= clock.monotonicMs();
      if (clock.monotonicMs() - file.missedSinceMs >= missedForMs) giveUp(file, file.lostBy);
    }
  };

  return {
    findMissing,
    resolveMissing,
  };
}

export type Missing = ReturnType<typeof createMissing>;
