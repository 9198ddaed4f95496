import type { Labels } from './model.ts';

/** The start value of hashes. The seed differs in each process, so that a sender cannot prepare keys that collide. */
export const hashSeed = (Math.random() * 2 ** 32) | 0;

/** Continues a hash with one byte (FNV-1a). */
export function hashByte(hash: number, byte: number): number {
  return Math.imul(hash ^ byte, 0x01000193);
}

/** Continues a hash with a range, byte by byte: the result equals that of `hashByte`. */
export function hashBytes(hash: number, bytes: Uint8Array, from: number, to: number): number {
  let result = hash;
  for (let at = from; at < to; at++) result = hashByte(result, bytes[at]!);
  return result;
}

/** Continues a hash with a range, four bytes at a time. The result differs from that of `hashByte`: use one of the two. */
export function hashRange(hash: number, view: DataView, from: number, to: number): number {
  let result = Math.imul(hash, 31) + to - from;
  let at = from;
  if (to - from < 4) {
    for (; at < to; at++) result = hashByte(result, view.getUint8(at));
    return result;
  }
  for (; at < to - 4; at += 4)
    result = Math.imul(result ^ view.getInt32(at, true), 0x2c1b3c6d) ^ (result >>> 15);
  // The last four bytes may overlap the four before them.
  return Math.imul(result ^ view.getInt32(to - 4, true), 0x2c1b3c6d) ^ (result >>> 15);
}

/**
 * A slot for a hash in a table whose length is a power of two. The low bits of the hashes are poor, so the high ones are mixed
 * into them.
 */
export function mixedSlot(hash: number, slots: number): number {
  const mixed = Math.imul(hash ^ (hash >>> 15), 0x2c1b3c6d);
  return (mixed ^ (mixed >>> 13)) & (slots - 1);
}

/** A hash of a text. For ASCII it equals that of `hashByte` over its bytes, starting with `hashSeed`. */
export function hashText(text: string): number {
  let hash = hashSeed;
  for (let i = 0; i < text.length; i++) hash = hashByte(hash, text.charCodeAt(i));
  return hash;
}

/** A hash of a label, from the hashes of its name and value. The hash of a label set is their sum, in any order. */
export function hashLabel(nameHash: number, valueHash: number): number {
  const mixed = Math.imul(nameHash ^ Math.imul(valueHash ^ (valueHash >>> 15), 0x2c1b3c6d), 0x297a2d39);
  return mixed ^ (mixed >>> 13);
}

/** A hash of labels; equal labels have equal hashes. */
export function hashLabels(labels: Labels): number {
  let sum = 0;
  for (const [name, value] of labels) sum = (sum + hashLabel(hashText(name), hashText(value))) | 0;
  return sum;
}

/**
 * A 52-bit hash of a line's key, never 0; `view` is a view of the bytes. The key may continue in a second range. The hash does
 * not depend on where the ranges meet.
 */
export function wideHash(view: DataView, from: number, to: number, tailFrom = to, tailTo = to): number {
  let low = to - from + tailTo - tailFrom;
  let high = ~low;
  let at = from;
  for (let end = to; ; end = tailTo) {
    for (; at < end - 3; at += 4) {
      const word = view.getInt32(at, true);
      low = Math.imul(low ^ word, 0x2c1b3c6d) ^ (low >>> 15);
      high = Math.imul(high ^ word, 0x297a2d39) ^ (high >>> 13);
    }
    for (; at < end; at++) {
      const byte = view.getUint8(at);
      low = Math.imul(low ^ byte, 0x01000193) ^ (low >>> 15);
      high = Math.imul(high ^ byte, 0x85ebca6b | 0) ^ (high >>> 13);
    }
    if (end === tailTo) break;
    at = tailFrom;
  }
  return (high >>> 12) * 2 ** 32 + (low >>> 0) || 1;
}

/** The wide hash of a sequence, from the wide hashes of the part before its last element and of that element. */
export function joinHashes(before: number, last: number): number {
  const low = Math.imul(Math.imul(before | 0, 0x01000193) ^ (last | 0), 0x2c1b3c6d);
  const [highBefore, highLast] = [Math.floor(before / 2 ** 32), Math.floor(last / 2 ** 32)];
  const high = Math.imul(Math.imul(highBefore, 0x85ebca6b) ^ highLast ^ low, 0x297a2d39);
  return (high >>> 12) * 2 ** 32 + (low >>> 0) || 1;
}
