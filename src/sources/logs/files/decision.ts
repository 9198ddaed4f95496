import type { Content, Relation } from './chain.ts';
import type { Unreadable } from './contents.ts';
import type { Generation } from './generations.ts';

/** What `match` decides from, and what it decides. */

/** A file that is not followed, as one scan saw it. */
export interface FileFacts {
  readonly key: string;
  readonly group: string;
  /** Other groups that it may belong to by its name. */
  readonly kin: readonly string[];
  /** Groups to which it may have been given before, when a link led to it. */
  readonly linked: readonly string[];
  readonly directory: string;
  readonly name: string;
  /** A pattern matches it at the log's own path. */
  readonly isHome: boolean;
  /** A pattern matches it, or a rotation made its name from the log's. */
  readonly isMember: boolean;
  /** It was there in the first scan of its log's pattern, which does not match it. */
  readonly isOlder: boolean;
  /** Every name of it is in a settled listing. */
  readonly isSettled: boolean;
  /** Only its group's own path was seen before this scan, or nothing. */
  readonly isNewGroup: boolean;
  /** It was empty when it was first seen, and holds something now. */
  readonly wasBlank: boolean;
  /** The plain file of an archive is beside it: a compressor deletes it last. */
  readonly hasPlainBeside: boolean;
  /** It may be unfinished: it has changed in the last ten seconds, as far as this agent has seen. */
  readonly isFresh: boolean;
  readonly content: Content | Unreadable;
  /** What the inode held before: the file may have grown, or may be another one. */
  readonly formerly?: Generation;
  /** That had another name and was larger. */
  readonly isReplaced: boolean;
  /** Neither size nor time have changed since. */
  readonly isUnchanged: boolean;
  /** The generation that it was compared with when the decision was put off. */
  readonly awaits?: Generation;
  /** It held the beginning of that one, or all of it. */
  readonly isPart: boolean;
}

/**
 * The answer to "compare this file with that generation". `part`: it is an archive of a copy of its first bytes. Of a generation
 * that is followed, the file on disk is compared:
 * `prefix`: the file holds its first bytes, or all of them; `rewritten`: the generation is not in its own file any more;
 * `undrained`: it is to be read to its end first; `unseen`: its file cannot be opened under the name that it had; `moved`: the
 * compared file cannot be opened any more.
 */
export type Answer = Relation | 'part' | 'prefix' | 'rewritten' | 'undrained' | 'moved';

export interface Ask {
  readonly file: FileFacts;
  readonly of: Generation;
}

export type Action =
  /** A generation that is read from its beginning. */
  | { readonly do: 'follow'; readonly file: FileFacts }
  /** A generation goes on in this file. */
  | { readonly do: 'resume'; readonly file: FileFacts; readonly of: Generation }
  /** Nothing in the file is to be counted while it does not change. */
  | { readonly do: 'copy'; readonly file: FileFacts; readonly of: Generation }
  /** Another file with the same beginning: a generation of its own from there on. */
  | { readonly do: 'fork'; readonly file: FileFacts; readonly of: Generation; readonly isUnsure: boolean }
  /** Older than its log: not read. */
  | { readonly do: 'pass'; readonly file: FileFacts }
  /** It was listed, and is under none of its names by now: what it held is looked for. */
  | { readonly do: 'miss'; readonly file: FileFacts }
  /** The next scan decides. */
  | {
      readonly do: 'wait';
      readonly file: FileFacts;
      readonly of?: Generation;
      readonly isSoon: boolean;
      readonly isPart?: boolean;
      /** A lost generation may be in it as well, and is more likely. */
      readonly isUnsure?: boolean;
    }
  | { readonly do: 'lose'; readonly of: Generation };

export interface World {
  /** Sorted: the order in which new generations are numbered. */
  readonly files: readonly FileFacts[];
  /** Followed and lost generations of a group. */
  group(path: string): readonly Generation[];
  ended(path: string): Iterable<Generation>;
  readonly lost: Iterable<Generation>;
  /** Followed generations of logs that were known before this scan, by the directory in which they are written. */
  livesIn(directory: string): readonly Generation[];
  /** Whether a file that was read as this generation, or is a copy of it, is there. */
  isThere(of: Generation, except: FileFacts): boolean;
  /** Groups with a generation that this scan could not see: its bytes may be in any file. */
  readonly unseen: ReadonlySet<string>;
  answer(file: FileFacts, of: Generation): Answer | undefined;
}

/** Files that are decided about at once: what is held of each takes memory. */
const batchFiles = 256;

/** Files by their rank, in batches, none of which parts a group. */
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
