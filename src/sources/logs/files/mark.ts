import { crc32 } from 'node:zlib';

/** Bytes before the offset that are kept to know a file again. */
export const tailBytes = 64;
/** Lengths of beginnings whose checksums are kept, as far as the file has grown. */
const headLengths = [16, 32, 64, 128, 256, 512, 1024] as const;
export const headBytes = 1024;

/**
 * What a file's bytes before its offset look like. Identity is device, inode and this: inodes are reused,
 * beginnings repeat (banners), files are rewritten in place.
 */
export interface Mark {
  /** CRC-32 of the first 16, 32, … 1024 bytes. */
  readonly head: readonly number[];
  /** The last up to 64 bytes before the offset. */
  readonly tail: Buffer;
}

export const noMark: Mark = { head: [], tail: Buffer.alloc(0) };

/** Whether the head can still grow once `length` bytes of the file are known. */
export const headGrows = ({ head }: Mark, length: number): boolean =>
  head.length < headLengths.length && headLengths[head.length]! <= length;

/** The head over `start`, the file's first bytes, of which those up to `length` are known to stay. */
export function growHead(head: readonly number[], start: Buffer, length: number): readonly number[] {
  const grown = [...head];
  let from = grown.length > 0 ? headLengths[grown.length - 1]! : 0;
  let sum = grown.at(-1) ?? 0;
  for (const to of headLengths.slice(grown.length)) {
    if (to > length || to > start.length) break;
    sum = crc32(start.subarray(from, to), sum);
    grown.push(sum);
    from = to;
  }
  return grown;
}

/** Whether the head agrees with a file's first bytes as far as both reach; undefined if they share no length. */
export function headAgrees({ head }: Mark, start: Buffer): boolean | undefined {
  for (let i = head.length - 1; i >= 0; i--) {
    const length = headLengths[i]!;
    if (length <= start.length) return crc32(start.subarray(0, length)) === head[i];
  }
  return undefined;
}

/**
 * The tail once `bytes[start, end)` have followed it; in memory of its own, for it outlives what it is cut from.
 */
export function growTail(tail: Buffer, bytes: Buffer, start: number, end: number): Buffer {
  const kept = Math.max(0, Math.min(tail.length, tailBytes - (end - start)));
  const from = Math.max(start, end - tailBytes);
  const grown = Buffer.allocUnsafeSlow(kept + end - from);
  grown.set(tail.subarray(tail.length - kept));
  grown.set(bytes.subarray(from, end), kept);
  return grown;
}
