import { crc32 } from 'node:zlib';

/**
 * The identity of a generation: checksums over its prefixes. They cover every byte that was counted, with marks on the way,
 * so that one comparison tells whether other content is the same, goes on after it, or ends before.
 */
export interface Chain {
  /** CRC-32 of the first bytes, for each of `markLengths` that is known. They may reach beyond the offset. */
  readonly marks: readonly number[];
  /** Position of the first byte that was not counted. */
  readonly offset: number;
  /** CRC-32 of all bytes before the offset; undefined if they were passed over unread. */
  readonly sum: number | undefined;
  /** The last bytes before the offset, at most 64, one character each. */
  readonly tail: string;
}

export const headBytes = 4096;
export const tailBytes = 64;
/** With fewer known bytes a content cannot be identified: a timestamp alone is as long. */
export const identifyingBytes = 32;
/** The distance of the marks before `headBytes`, at most. */
export const markedBytes = 256;

const fromTo = (count: number, at: (i: number) => number) => Array.from({ length: count }, (_, i) => at(i));

/** The prefix lengths that have a mark: 16, 32, 64, 96, … 256, 512, 768, … 4096, 8192, 16384, … bytes. */
const markLengths: readonly number[] = [
  16,
  ...fromTo(8, (i) => 32 * (i + 1)),
  ...fromTo(15, (i) => 256 * (i + 2)),
  ...fromTo(36, (i) => headBytes * 2 ** (i + 1)),
];
export const marksLimit = markLengths.length;

export const noChain: Chain = { marks: [], offset: 0, sum: 0, tail: '' };

/** The number of bytes that the marks cover. */
export const covered = ({ marks }: Chain): number => markLengths[marks.length - 1] ?? 0;

const known = ({ chain, rest }: Counted): number => Math.max(covered(chain), chain.offset + rest.length);

/** The chain with marks over `start`, the first bytes of the content. */
export function learn(chain: Chain, start: Buffer): Chain {
  if (!(markLengths[chain.marks.length]! <= Math.min(start.length, headBytes))) return chain;
  const marks = [...chain.marks];
  let from = covered(chain);
  let sum = marks.at(-1) ?? 0;
  for (;;) {
    const to = markLengths[marks.length]!;
    if (to > start.length || to > headBytes) break;
    sum = crc32(start.subarray(from, to), sum);
    marks.push(sum);
    from = to;
  }
  return { ...chain, marks };
}

/** The chain after `bytes[from, to)` were counted. The bytes of its tail must be before `from` in the buffer. */
export function append(chain: Chain, bytes: Buffer, from: number, to: number): Chain {
  if (to === from) return chain;
  const offset = chain.offset + to - from;
  const tail = bytes.toString('latin1', to - Math.min(tailBytes, offset), to);
  if (chain.sum === undefined) return { marks: chain.marks, offset, sum: undefined, tail };
  let { marks, sum } = chain;
  let at = from;
  // A chain of bytes that were passed over may lack the mark before its offset. Then it gets no marks after the offset.
  while (markLengths[marks.length]! > chain.offset && markLengths[marks.length]! <= offset) {
    const next = from + markLengths[marks.length]! - chain.offset;
    sum = crc32(bytes.subarray(at, next), sum);
    if (marks === chain.marks) marks = [...marks];
    (marks as number[]).push(sum);
    at = next;
  }
  return { marks, offset, sum: crc32(bytes.subarray(at, to), sum), tail };
}

/** The chain without the marks that reach beyond its offset, for a file that has other bytes there now. */
export function cutOff(chain: Chain): Chain {
  const marks = chain.marks.filter((_, i) => markLengths[i]! <= chain.offset);
  return { ...chain, marks };
}

/** The chain after the bytes that follow its offset were counted, for a caller whose buffer does not hold its tail. */
export function appendRest(chain: Chain, rest: Buffer): Chain {
  const bytes = Buffer.concat([Buffer.from(chain.tail, 'latin1'), rest]);
  return append(chain, bytes, bytes.length - rest.length, bytes.length);
}

/** Whether the marks agree with a content's first bytes as far as both reach; undefined if they share no length. */
export function marksAgree({ marks }: Pick<Chain, 'marks'>, start: Buffer): boolean | undefined {
  for (let i = marks.length - 1; i >= 0; i--) {
    const length = markLengths[i]!;
    if (length <= start.length) return crc32(start.subarray(0, length)) === marks[i];
  }
  return undefined;
}

/** What a comparison needs from a content on disk, plain or inflated. */
export interface Content {
  /** Size in plain bytes. */
  readonly size: number;
  /** The first 4096 bytes, or all of them if there are fewer. */
  readonly start: Buffer;
  readonly isGzip: boolean;
  /**
   * The CRC-32 of the first `length` bytes and the last 64 of these bytes, as far as they can be read at a reasonable cost;
   * undefined if the file cannot be read any more.
   */
  prefix(length: number): Promise<{ readonly sum?: number; readonly tail?: string } | undefined>;
}

/** The magic bytes of a tar archive, and where they are (POSIX.1-2024, pax, "ustar Interchange Format"). */
const tarMagic = 'ustar';
const tarMagicAt = 257;

/** Whether a content is a tar archive, packed or not: its lines are between headers of binary data. */
export const isTar = (start: Buffer): boolean =>
  start.toString('latin1', tarMagicAt, tarMagicAt + tarMagic.length) === tarMagic;

/**
 * Whether a content repeats one line, as far as its start shows. Such contents are equal although neither is a copy of
 * the other.
 */
export function repeatsOneLine({ start }: Content): boolean {
  const line = start.indexOf(0x0a) + 1;
  return line > 0 && start.length >= 2 * line && start.subarray(line).equals(start.subarray(0, -line));
}

/** Size and CRC-32 of a whole content. */
export interface Part {
  readonly size: number;
  readonly sum: number;
}

/** What is known about a generation's content: its chain, and the unfinished line that was seen after the offset. */
interface Counted {
  readonly chain: Chain;
  readonly rest: Buffer;
}

/**
 * How a content relates to what is known about a generation. `same`: it ends where the generation ends, or within the unfinished
 * line; `longer`: it goes on after that; `cut`: it has the counted bytes, and another line after them; `shorter`: it ends before
 * the offset, and agrees as far as it goes; `other`: it differs; `unknown`: there is too little to compare; `unseen`: the file
 * cannot be read now.
 */
export type Relation = 'same' | 'longer' | 'cut' | 'shorter' | 'other' | 'unknown' | 'unseen';

async function hasPrefix(content: Content, { offset, sum, tail }: Chain): Promise<boolean | undefined> {
  const own = await content.prefix(offset);
  if (own === undefined) return undefined;
  if (own.tail !== undefined && own.tail !== tail) return false;
  return own.sum === undefined || sum === undefined || own.sum === sum;
}

/** How a content that ends before the offset relates to the generation, as far as the marks tell. */
async function compareShorter(content: Content, { marks, offset, tail }: Chain): Promise<Relation> {
  const { size, start } = content;
  if (offset <= tail.length) return tail.startsWith(start.toString('latin1', 0, size)) ? 'shorter' : 'other';
  const last = markLengths.findLastIndex((length, i) => i < marks.length && length <= size);
  if (last < 0) return 'unknown';
  if (markLengths[last]! <= start.length) return 'shorter';
  const own = await content.prefix(markLengths[last]!);
  if (own === undefined) return 'unseen';
  return own.sum === undefined || own.sum === marks[last] ? 'shorter' : 'other';
}

/** Compares a content with a generation. */
export async function compare(content: Content, counted: Counted): Promise<Relation> {
  const { chain, rest } = counted;
  if (known(counted) === 0) return 'unknown';
  const alike = marksAgree(chain, content.start);
  if (alike === false) return 'other';
  const { size } = content;
  if (size < chain.offset) return compareShorter(content, chain);
  const restBytes = Math.min(rest.length, size - chain.offset);
  if (chain.offset === 0) {
    if (!content.start.subarray(0, restBytes).equals(rest.subarray(0, Math.min(restBytes, headBytes))))
      return 'other';
    if (size < known(counted)) return size > 0 ? 'shorter' : 'unknown';
    return size > known(counted) ? 'longer' : 'same';
  }
  const hasRest = restBytes > 0 && (await hasPrefix(content, appendRest(chain, rest.subarray(0, restBytes))));
  if (hasRest === undefined) return 'unseen';
  if (hasRest) return size > chain.offset + rest.length ? 'longer' : 'same';
  const isAlike = await hasPrefix(content, chain);
  if (!isAlike) return isAlike === undefined ? 'unseen' : 'other';
  if (restBytes > 0) return 'cut';
  return size > chain.offset ? 'longer' : 'same';
}
