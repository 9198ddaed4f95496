import type { Content, Relation } from './chain.ts';
import type { Unreadable } from './contents.ts';
import type { Generation, Generations } from './generations.ts';

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
  /** The generation that the inode held before: the file may have grown, or may be another one. */
  readonly formerly?: Generation;
  /** Whether the former file had another name and was larger. */
  readonly isReplaced: boolean;
  /** Neither size nor time have changed since. */
  readonly isUnchanged: boolean;
  /** The generation that it was compared with when the decision was put off. */
  readonly awaits?: Generation;
  /** It held the beginning of that one, or all of it. */
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
  /** The file is a new generation, read from its beginning. It has everything that is known of the lost generation `of`. */
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
   * The followed generations of logs that were known before this scan and whose files are, or were, in this directory, those that
   * changed last first.
   */
  followedIn(directory: string): readonly Generation[];
  /** Whether there is another file that was read as this generation or is a copy of it. */
  isThere(of: Generation, except: FileFacts): boolean;
  /** Groups with a generation that this scan could not see. Its bytes may be in any file. */
  readonly unseen: ReadonlySet<string>;
  /** Undefined if the comparison must be made first. */
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
