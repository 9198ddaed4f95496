import {
  addKey,
  type ByteTable,
  createByteTable,
  firstKey,
  grownColumn,
  isSame,
  nextKey,
  removeKey,
  trimTable,
  writeKey,
} from '../../../core/byte-table.ts';
import { hashRange, hashSeed, joinHashes, wideHash } from '../../../core/hashes.ts';
import { absent, type Fields, other } from '../lines/fields.ts';

/**
 * Maps combinations of field values to items, by the bytes of the values: a known combination costs no string. It is a record and
 * not a closure, so that V8 compiles one `findIn` for all caches.
 */
interface LabelCache<T> {
  readonly slots: readonly number[];
  readonly most: number;
  /** The bytes of the values of each combination, end to end. */
  readonly keys: ByteTable;
  /** The kind and the length of each value: those of a combination are at its id, times the number of slots. */
  shapes: Int32Array;
  /** The items by id. */
  readonly things: (T | undefined)[];
}

export function createLabelCache<T>(slots: readonly number[], most = Infinity): LabelCache<T> {
  const keys = createByteTable();
  return { slots, most, keys, shapes: new Int32Array(keys.keyAt.length * slots.length), things: [] };
}

/** The kind and the length of a value as one number; 0 if it cannot become a label. */
function shapeOf({ kind, from, to }: Fields, slot: number): number {
  const kindHere = kind[slot]!;
  return kindHere === absent || kindHere === other ? 0 : kindHere + 8 * (to[slot]! - from[slot]!);
}

function hashOf(fields: Fields, slots: readonly number[]): number {
  const { view, from } = fields;
  let hash = hashSeed;
  for (let n = 0; n < slots.length; n++) {
    const slot = slots[n]!;
    const start = from[slot]!;
    hash = hashRange(hash, view, start, start + (shapeOf(fields, slot) >> 3));
  }
  return hash;
}

/** Whether the combination `id` has the values that the fields have now. */
function hasValues<T>({ keys, shapes, slots }: LabelCache<T>, id: number, fields: Fields): boolean {
  const { view, from } = fields;
  const { arenaView } = keys;
  const first = id * slots.length;
  let at = keys.keyAt[id]!;
  for (let n = 0; n < slots.length; n++) {
    const slot = slots[n]!;
    const shape = shapeOf(fields, slot);
    if (shapes[first + n] !== shape) return false;
    if (!isSame(view, from[slot]!, arenaView, at, shape >> 3)) return false;
    at += shape >> 3;
  }
  return true;
}

/** The item for the values that the fields have now. */
export function findIn<T>(cache: LabelCache<T>, fields: Fields): T | undefined {
  const { keys, slots } = cache;
  const hash = hashOf(fields, slots);
  let id = firstKey(keys, hash);
  while (id !== -1 && !hasValues(cache, id, fields)) id = nextKey(keys, id, hash);
  return id === -1 ? undefined : cache.things[id];
}

/** Adds an item for values that `findIn` did not find; false if the cache is full. */
export function keepIn<T>(cache: LabelCache<T>, fields: Fields, thing: T): boolean {
  const { keys, slots, things } = cache;
  if (keys.size >= cache.most) return false;
  const lengths = slots.map((slot) => shapeOf(fields, slot) >> 3);
  const id = addKey(
    keys,
    hashOf(fields, slots),
    lengths.reduce((sum, length) => sum + length, 0),
  );
  const shapeCount = keys.keyAt.length * slots.length;
  if (shapeCount > cache.shapes.length) cache.shapes = grownColumn(cache.shapes, shapeCount);
  let offset = 0;
  for (const [n, slot] of slots.entries()) {
    const from = fields.from[slot]!;
    writeKey(keys, id, offset, fields.bytes, from, from + lengths[n]!);
    cache.shapes[id * slots.length + n] = shapeOf(fields, slot);
    offset += lengths[n]!;
  }
  things[id] = thing;
  return true;
}

/** A 52-bit hash of the fields' values, never 0, for combinations that the cache does not store. */
export function keyHash<T>({ slots }: LabelCache<T>, fields: Fields): number {
  const { view } = fields;
  let hash = 1;
  for (const slot of slots) {
    const from = fields.from[slot]!;
    const shape = shapeOf(fields, slot);
    hash = joinHashes(hash + (shape & 7), wideHash(view, from, from + (shape >> 3)));
  }
  return hash;
}

/** Removes the items whose series were released. */
export function sweepIn<T>(cache: LabelCache<T>, isGone: (thing: T) => boolean): void {
  const { keys, slots, things } = cache;
  const { size } = keys;
  for (const [id, thing] of things.entries()) {
    if (thing === undefined || !isGone(thing)) continue;
    things[id] = undefined;
    removeKey(keys, id);
  }
  if (keys.size === size) return;
  if (trimTable(keys)) cache.shapes = grownColumn(cache.shapes, keys.keyAt.length * slots.length);
  things.length = keys.end;
}
