import { basename, dirname } from 'node:path';
import { firstEntryMs, isSameLog } from '../discovery/rotated-names.ts';
import {
  type Content,
  identifyingBytes,
  markedBytes,
  marksAgree,
  type Relation,
  repeatsOneLine,
  tailBytes,
} from './chain.ts';
import { type Answer, type Ask, type FileFacts, isContent, type World } from './decision.ts';
import { countedBytes, type Generation, isStrong, knownBytes } from './generation.ts';

/*
 * The rules for one pair: whether a file may hold a generation that is lost or has ended, and how well it fits.
 */

/** The world. It also notes each comparison that was not made yet; such a comparison has no result meanwhile. */
export interface Asked extends World {
  ask(file: FileFacts, of: Generation): Answer;
}

/** A file, a generation that is lost or has ended, and how their contents compare. */
export interface Pair extends Ask {
  readonly content: Content;
  readonly relation: Relation | 'part';
}

/** Whether the generation was just rewritten, and the file may be its copy under an unrelated name. */
const isSudden = (of: Generation, file: FileFacts): boolean =>
  of.lostBy === 'truncated' && file.isNewGroup && dirname(of.home) === file.directory;

/**
 * Whether the name of a file allows that a generation is in it: the file belongs to the same log, or to no known log and enough
 * of the generation is known.
 */
export const isNearby = (of: Generation, file: FileFacts, bytes: number): boolean =>
  of.group === file.group ||
  file.kin.includes(of.group) ||
  ((of.lost?.key === file.key || bytes >= tailBytes) &&
    dirname(of.home) === file.directory &&
    isSameLog(file.name, basename(of.home))) ||
  isSudden(of, file) ||
  ((file.isNewGroup || file.linked.includes(of.group)) && bytes >= tailBytes);

/**
 * Whether equal content does not show that a file is a copy. A file of which nothing is to be read counts as a copy anyway, so that
 * the scan that knows this also decides about the file.
 */
export const isVague = ({ startsAtEnd }: FileFacts, content: Content): boolean =>
  !startsAtEnd && repeatsOneLine(content);

/**
 * Whether a file that ends before a generation that is gone is a copy of that generation, made before it grew, and not another
 * generation with the same banner: the bytes that the marks compare contain a time.
 */
const isEarlierCopy = ({ isHome }: FileFacts, { start, size }: Content): boolean =>
  !isHome && size > markedBytes && firstEntryMs(start.subarray(0, size - markedBytes)) !== undefined;

/** Whether the generation was in the file before, or the file was compared with it before, as a part of it. */
const isItsCopy = ({ file, of }: Pair): boolean =>
  file.formerly === of || (file.awaits === of && file.isPart);

/** Whether the file is at the log's path, where the next generation may begin with the same banner. */
const isInItsPlace = ({ file, of }: Pair): boolean => file.isHome && file.group === of.group;

const always = () => true;
const never = () => false;

type Fits = Readonly<Record<Pair['relation'], (pair: Pair, world: World) => boolean>>;

function continuesLost(pair: Pair): boolean {
  const { file, of, content } = pair;
  const isSameInode = of.lostBy === 'vanished' && file.key === of.lost?.key;
  const isTelling = of.chain.offset >= tailBytes && !isVague(file, content);
  return !isInItsPlace(pair) || isSameInode || isTelling;
}

function isPartOfLost(pair: Pair): boolean {
  const { file, of, content } = pair;
  if (isInItsPlace(pair)) return false;
  if (isItsCopy(pair) && file.isUnchanged) return true;
  if (of.group !== file.group && !file.kin.includes(of.group) && !isSudden(of, file)) return false;
  if (of.lostBy === 'vanished') return isEarlierCopy(file, content);
  return !content.isGzip || content.size >= identifyingBytes;
}

/** Whether a lost generation goes on in a file, or the file is a part of it. */
const fitsLost: Fits = {
  same: continuesLost,
  longer: continuesLost,
  shorter: isPartOfLost,
  part: always,
  cut: (pair) => pair.of.lostBy === 'truncated' && pair.file.key === pair.of.lost?.key && isInItsPlace(pair),
  unknown: (pair) => isItsCopy(pair) && pair.file.isUnchanged,
  other: never,
  unseen: never,
};

function isPartOfEnded({ file, of, content }: Pair): boolean {
  if (file.formerly === of)
    return (!file.isReplaced && !file.isHome && content.size >= identifyingBytes) || file.isUnchanged;
  if (of.lostBy !== 'truncated') return isEarlierCopy(file, content);
  return content.isGzip && content.size >= identifyingBytes;
}

/** Whether a file has all of a generation that has ended, more than the generation, or a part of it. */
const fitsEnded: Fits = {
  same: always,
  // While the ended generation is still in a whole file, another file that goes on after the same bytes, such as a banner, is a
  // new generation.
  longer: ({ file, of }, world) => isStrong(of) && (file.formerly === of || !world.isThere(of, file)),
  shorter: isPartOfEnded,
  part: always,
  cut: never,
  unknown: never,
  other: never,
  unseen: never,
};

/** Whether a file may hold a generation. */
export function mayFit(pair: Pair, world: World): boolean {
  const { file, of, content, relation } = pair;
  if (of.status === 'lost') return fitsLost[relation](pair, world);
  if (file.formerly !== of && isVague(file, content) && world.isThere(of, file)) return false;
  return fitsEnded[relation](pair, world);
}

export const isOnlyPart = (relation: Pair['relation']): boolean =>
  relation === 'shorter' || relation === 'part' || relation === 'unknown';

export const rankOf = ({ file, of, content, relation }: Pair): readonly number[] => [
  Number(isOnlyPart(relation)),
  -countedBytes(of),
  Number(file.formerly !== of && (file.awaits !== of || !file.isPart)),
  // A file that is shorter than the generation was is chosen only if no other file fits.
  Number(content.size < of.size),
  Number(of.group !== file.group),
  Number(of.status !== 'lost'),
  Number(file.isHome && file.group === of.group),
  Number(content.isGzip),
  Math.abs(content.size - of.size),
];

export function byRank(a: readonly number[], b: readonly number[]): number {
  const at = a.findIndex((part, i) => part !== b[i]);
  return at < 0 ? 0 : a[at]! - b[at]!;
}

/**
 * Sorts generations: first the generations of which most is known, then the generation that had the file's inode, then the
 * largest, then the oldest.
 */
export const byEvidence = (file: FileFacts) => (a: Generation, b: Generation) =>
  knownBytes(b) - knownBytes(a) ||
  Number(a.lost?.key !== file.key) - Number(b.lost?.key !== file.key) ||
  (knownBytes(a) === 0 ? b.size - a.size : 0) ||
  a.number - b.number;

/** Whether a generation of which nothing was counted may be in a file. A wrong answer counts nothing twice. */
export function mayHold(world: Asked, of: Generation, file: FileFacts): boolean {
  const { content } = file;
  if (!isContent(content) || content.size === 0 || content.size < of.size) return false;
  // At the log's path the next generation is more likely, even with the same inode.
  if (knownBytes(of) === 0) return !file.isHome || (of.size === 0 && file.key === of.lost?.key);
  // A different file at the path of a file that is gone is the next generation, with the same banner.
  const isNext = file.isHome && file.group === of.group && file.key !== of.lost?.key;
  if (isNext && of.lostBy === 'vanished') return false;
  if (marksAgree(of.chain, content.start) === false) return false;
  const answer = world.ask(file, of);
  return answer === 'same' || answer === 'longer';
}
