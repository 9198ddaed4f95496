import { lineHash } from '../../../core/refused-series.ts';
import { absent, type BytePattern, createPattern, type Fields, isPatternAt, other } from '../lines/fields.ts';

/**
 * Maps combinations of field values to items, by the bytes of the values: a known combination costs no string. A hash table with
 * open addressing that is at most half full. It is a record and not a closure, so that V8 compiles one `findIn` for all caches.
 */
interface LabelCache<T> {
  readonly slots: readonly number[];
  readonly most: number;
  table: (Kept<T> | undefined)[];
  size: number;
}

interface Kept<T> {
  hash: number;
  /** The kinds of the fields, in the order of the cache's slots. */
  kinds: Uint8Array;
  patterns: readonly BytePattern[];
  thing: T;
}

const noPattern = createPattern(Buffer.alloc(0));

const isValue = (kind: number) => kind !== absent && kind !== other;

/** The hash of the values. The final mix matters, because the low bits index the table. */
function hashOf(fields: Fields, slots: readonly number[]): number {
  const { view, bytes, kind } = fields;
  let hash = 0;
  for (let n = 0; n < slots.length; n++) {
    const slot = slots[n]!;
    if (!isValue(kind[slot]!)) {
      hash = Math.imul(hash, 31) - 1;
      continue;
    }
    let i = fields.from[slot]!;
    const to = fields.to[slot]!;
    hash = (Math.imul(hash, 31) + to - i) | 0;
    if (to - i >= 4) {
      for (; i < to - 4; i += 4) hash = (Math.imul(hash, 0x01000193) + view.getInt32(i, true)) | 0;
      hash = (Math.imul(hash, 0x01000193) + view.getInt32(to - 4, true)) | 0;
    } else for (; i < to; i++) hash = (Math.imul(hash, 31) + bytes[i]!) | 0;
  }
  hash = Math.imul(hash ^ (hash >>> 15), 0x2c1b3c6d);
  return hash ^ (hash >>> 13);
}

function isKeptFor<T>(kept: Kept<T>, fields: Fields, slots: readonly number[]): boolean {
  for (let n = 0; n < slots.length; n++) {
    const slot = slots[n]!;
    const kind = fields.kind[slot]!;
    if (!isValue(kind)) {
      if (isValue(kept.kinds[n]!)) return false;
      continue;
    }
    const from = fields.from[slot]!;
    const pattern = kept.patterns[n]!;
    if (kind !== kept.kinds[n] || pattern.length !== fields.to[slot]! - from) return false;
    if (!isPatternAt(pattern, fields.bytes, fields.view, from)) return false;
  }
  return true;
}

function put<T>(cache: LabelCache<T>, kept: Kept<T>): void {
  const mask = cache.table.length - 1;
  let i = kept.hash & mask;
  while (cache.table[i] !== undefined) i = (i + 1) & mask;
  cache.table[i] = kept;
}

function rebuild<T>(cache: LabelCache<T>, length: number, all: readonly Kept<T>[]): void {
  cache.table = new Array(length).fill(undefined);
  cache.size = all.length;
  for (const kept of all) put(cache, kept);
}

const everythingIn = <T>(cache: LabelCache<T>) => cache.table.filter((kept) => kept !== undefined);

export function createLabelCache<T>(slots: readonly number[], most = Infinity): LabelCache<T> {
  return { slots, most, table: new Array(16).fill(undefined), size: 0 };
}

/** The item for the values that the fields have now. */
export function findIn<T>(cache: LabelCache<T>, fields: Fields): T | undefined {
  const { table, slots } = cache;
  const hash = hashOf(fields, slots);
  const mask = table.length - 1;
  for (let i = hash & mask; ; i = (i + 1) & mask) {
    const kept = table[i];
    if (kept === undefined) return undefined;
    if (kept.hash === hash && isKeptFor(kept, fields, slots)) return kept.thing;
  }
}

/** Adds an item for values that `findIn` did not find; false if the cache is full. */
export function keepIn<T>(cache: LabelCache<T>, fields: Fields, thing: T): boolean {
  if (cache.size >= cache.most) return false;
  if (2 * (cache.size + 1) > cache.table.length) rebuild(cache, 2 * cache.table.length, everythingIn(cache));
  const { slots } = cache;
  const kinds = Uint8Array.from(slots, (slot) => fields.kind[slot]!);
  const patterns = slots.map((slot) =>
    isValue(fields.kind[slot]!) ? createPattern(fields.bytes, fields.from[slot], fields.to[slot]) : noPattern,
  );
  put(cache, { hash: hashOf(fields, slots), kinds, patterns, thing });
  cache.size++;
  return true;
}

/** A 52-bit hash of the fields' values, never 0, for combinations that the cache does not store. */
export function keyHash<T>({ slots }: LabelCache<T>, fields: Fields): number {
  const { view, kind } = fields;
  let low = 0;
  let high = 0;
  for (let n = 0; n < slots.length; n++) {
    const slot = slots[n]!;
    const isKept = isValue(kind[slot]!);
    const hash = isKept ? lineHash(view, fields.from[slot]!, fields.to[slot]!) : 1;
    const salt = kind[slot]! + n + 1;
    low = Math.imul(low ^ (hash | 0), 0x2c1b3c6d) + salt;
    high = Math.imul(high ^ Math.floor(hash / 2 ** 32), 0x297a2d39) + salt;
  }
  return (high >>> 12) * 2 ** 32 + (low >>> 0) || 1;
}

/** Removes the items whose series were released. */
export function sweepIn<T>(cache: LabelCache<T>, isGone: (thing: T) => boolean): void {
  const stay = everythingIn(cache).filter(({ thing }) => !isGone(thing));
  if (stay.length < cache.size) rebuild(cache, cache.table.length, stay);
}
