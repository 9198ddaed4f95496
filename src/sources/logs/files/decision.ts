import { type Content, identifyingBytes, type Relation } from './chain.ts';
import type { Unreadable } from './contents.ts';
import type { Generation } from './generation.ts';
import type { Generations } from './generations.ts';

/** The data that `match` decides from, and its decisions. */

/** A file that is not followed, as one scan saw it. */
export interface FileFacts {
  readonly key: string;
  readonly group: string;
  /** Other groups that the file may belong to by its name. */
  readonly kin: readonly string[];
  /** Groups to which the file may have been given before, when a link led to it. */
  readonly linked: readonly string[];
  readonly directory: string;
  readonly name: string;
  /** Whether a pattern matches the file at the log's own path. */
  readonly isHome: boolean;
  /** Whether a pattern matches the file, or a rotation made its name from the log's. */
  readonly isMember: boolean;
  /** Whether the file was there in the first scan of its log's pattern, which does not match it. */
  readonly isOlder: boolean;
  /** Whether nothing that is in the file now is to be read. */
  readonly startsAtEnd: boolean;
  /** Whether every name of the file is in a settled listing. */
  readonly isSettled: boolean;
  /** Whether the group has no generation yet from before this scan: only its own path was seen, or nothing. */
  readonly isNewGroup: boolean;
  /** Whether the file was empty when it was first seen, and holds something now. */
  readonly wasBlank: boolean;
  /** Whether the file is an archive in a format that is not read, by its name, or by its content if that is a tar archive. */
  readonly isForeign: boolean;
  /** Whether the plain file of an archive is beside it: a compressor deletes the plain file last. */
  readonly hasPlainBeside: boolean;
  /** Whether the file may be unfinished: it has changed in the last ten seconds, as far as this agent has seen. */
  readonly isFresh: boolean;
  readonly content: Content | Unreadable;
  /** The generation that the inode held before: the file may have grown, or may be another file. */
  readonly formerly?: Generation;
  /** Whether the former file had another name and was larger. */
  readonly isReplaced: boolean;
  /** Whether neither the size nor the time of the file has changed since it was last looked at. */
  readonly isUnchanged: boolean;
  /** The generation with which the file was compared when the decision was put off. */
  readonly awaits?: Generation;
  /** Whether the file then held the beginning of that generation, or all of it. */
  readonly isPart: boolean;
}

/**
 * The answer to "compare this file with that generation". `part`: the file is an archive of a copy of the generation's first
 * bytes. If the generation is followed, the file is compared with the generation's file on disk: `prefix`: it holds the first
 * bytes of that file, or all of them; `rewritten`: the generation is not in its own file any more; `undrained`: the generation
 * must be read to its end first; `unseen`: the generation's file cannot be opened under the name that it had; `moved`: the
 * compared file cannot be opened any more.
 */
export type Answer = Relation | 'part' | 'prefix' | 'rewritten' | 'undrained' | 'moved';

export interface Ask {
  readonly file: FileFacts;
  readonly of: Generation;
}

export type Action =
  /** The file is a new generation, read from its beginning. It has everything that is known about the lost generation `of`. */
  | { readonly do: 'follow'; readonly file: FileFacts; readonly of?: Generation }
  /** The generation goes on in this file. */
  | { readonly do: 'resume'; readonly file: FileFacts; readonly of: Generation }
  /** The file is a copy: nothing in it is to be counted while it does not change. */
  | { readonly do: 'copy'; readonly file: FileFacts; readonly of: Generation }
  /** The file has the same beginning as the generation, and is a generation of its own from there on. */
  | { readonly do: 'fork'; readonly file: FileFacts; readonly of: Generation; readonly isUnsure: boolean }
  /** The file is older than its log and is not read. */
  | { readonly do: 'pass'; readonly file: FileFacts }
  /** The file was listed, but is under none of its names by now. Its content is looked for in other files. */
  | { readonly do: 'miss'; readonly file: FileFacts }
  /** The next scan decides about the file. */
  | {
      readonly do: 'wait';
      readonly file: FileFacts;
      readonly of?: Generation;
      readonly isSoon: boolean;
      readonly isPart?: boolean;
      /** Whether a lost generation may also be in the file, and is more likely. */
      readonly isUnsure?: boolean;
    }
  | { readonly do: 'lose'; readonly of: Generation };

export interface World {
  /** The files to decide about, sorted: new generations are numbered in this order. */
  readonly files: readonly FileFacts[];
  readonly generations: Pick<Generations, 'group' | 'ended' | 'lost'>;
  /**
   * The followed generations of logs that were known before this scan and whose files are, or were, in this directory. The
   * generation that changed last comes first.
   */
  followedIn(directory: string): readonly Generation[];
  /** Whether there is another file that was read as this generation or is a copy of it. */
  isThere(of: Generation, except: FileFacts): boolean;
  /** Groups with a generation that this scan could not see. Its bytes may be in any file. */
  readonly unseen: ReadonlySet<string>;
  /** The result of a comparison; undefined if the comparison must be made first. */
  answer(file: FileFacts, of: Generation): Answer | undefined;
}

/** How many files are decided about at once. Their contents are held in memory meanwhile. */
const batchFiles = 256;

/** Splits files, in the order of their rank, into batches. A batch contains all files of its groups. */
export function batchesOf<T extends { readonly group: string }>(
  files: readonly T[],
  rankOf: (file: T) => number,
): T[][] {
  const sorted = files.toSorted(
    (a, b) => rankOf(a) - rankOf(b) || (a.group < b.group ? -1 : Number(a.group > b.group)),
  );
  const batches: T[][] = [];
  for (const file of sorted) {
    const last = batches.at(-1);
    if (!last || (last.length >= batchFiles && last.at(-1)!.group !== file.group)) batches.push([file]);
    else last.push(file);
  }
  return batches;
}

export const isContent = (content: FileFacts['content']): content is Content => typeof content !== 'string';

/** Whether a file is at the path of a log that was not known before. It may be a copy of another log under an unrelated name. */
export const isUnrelated = ({ isHome, isNewGroup }: FileFacts): boolean => isHome && isNewGroup;

/** Whether a log is followed before others are decided about: it is a known log, or it was empty when it was first seen. */
const isSettling = ({ isHome, isNewGroup, wasBlank }: FileFacts) => isHome && (!isNewGroup || wasBlank);

/** Whether a log is followed before a file: known logs go first, then logs that were empty at first, one by one. */
const isFirst = (log: FileFacts, file: FileFacts) => !log.isNewGroup || !file.wasBlank || log.key < file.key;

const isPlain = ({ content }: FileFacts): boolean =>
  isContent(content) && !content.isGzip && content.size > 0;

/** Whether a rotated file may be the original of another file: it is the plain file of an archive, or it is longer. */
function mayBeOriginal(one: FileFacts, file: FileFacts): boolean {
  if (one === file || !isContent(one.content) || !isContent(file.content) || !isPlain(one)) return false;
  if (file.content.isGzip) return true;
  const longerBytes = one.content.size - file.content.size;
  return (
    file.content.size >= identifyingBytes && (longerBytes > 0 || (longerBytes === 0 && one.key < file.key))
  );
}

/** Whether a file may hold what a log holds. The log may have grown since it was looked at. */
function beginsAlike(file: FileFacts, log: FileFacts): boolean {
  if (!isContent(file.content) || !isContent(log.content)) return true;
  const [own, other] = [file.content.start, log.content.start];
  const length = Math.min(own.length, other.length);
  return own.subarray(0, length).equals(other.subarray(0, length));
}

export function groupBy<T>(items: readonly T[], keyOf: (item: T) => string): Map<string, T[]> {
  const groups = new Map<string, T[]>();
  for (const item of items) {
    const members = groups.get(keyOf(item));
    if (members) members.push(item);
    else groups.set(keyOf(item), [item]);
  }
  return groups;
}

/**
 * The order in which files are decided about: a file that may be a copy of another file, or its archive, comes after it. `others`
 * are files that are decided about already.
 */
export function createOrder(files: readonly FileFacts[], others: readonly FileFacts[]) {
  const members = groupBy([...files, ...others], ({ group }) => group);
  const settling = groupBy(files.filter(isSettling), ({ directory }) => directory);
  return {
    isAfter(file: FileFacts): boolean {
      if (isUnrelated(file))
        return !!settling.get(file.directory)?.some((log) => isFirst(log, file) && beginsAlike(file, log));
      if (file.isHome) return false;
      const own = [file.group, ...file.kin].flatMap((path) => members.get(path) ?? []);
      return own.some((one) => (one.isHome || mayBeOriginal(one, file)) && beginsAlike(file, one));
    },
  };
}
