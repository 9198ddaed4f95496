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
  /** The kind and the length of each value. The values of a combination begin at its id times the number of slots. */
  shapes: Int32Array;
  /** The kinds and lengths of the values that were looked up last. */
  readonly sought: Int32Array;
  /** The items by id. */
  readonly things: (T | undefined)[];
}

export function createLabelCache<T>(slots: readonly number[], most = Infinity): LabelCache<T> {
  const keys = createByteTable();
  const shapes = new Int32Array(keys.keyAt.length * slots.length);
  return { slots, most, keys, shapes, sought: new Int32Array(slots.length), things: [] };
}

/** The kind and the length of a value as one number; 0 if it cannot become a label. */
function shapeOf({ kind, from, to }: Fields, slot: number): number {
  const kindHere = kind[slot]!;
  return kindHere === absent || kindHere === other ? 0 : kindHere + 8 * (to[slot]! - from[slot]!);
}

/** Sets `sought` for these fields; returns the hash of their values. */
function seek<T>({ slots, sought }: LabelCache<T>, fields: Fields): number {
  const { view, from } = fields;
  let hash = hashSeed;
  for (let n = 0; n < slots.length; n++) {
    const slot = slots[n]!;
    const start = from[slot]!;
    const shape = shapeOf(fields, slot);
    sought[n] = shape;
    hash = hashRange(hash, view, start, start + (shape >> 3));
  }
  return hash;
}

/** Whether the combination `id` has the values that were looked up last. */
function hasSought<T>({ keys, shapes, sought, slots }: LabelCache<T>, id: number, fields: Fields): boolean {
  const { view, from } = fields;
  const { arenaView } = keys;
  const first = id * slots.length;
  let at = keys.keyAt[id]!;
  for (let n = 0; n < slots.length; n++) {
    const shape = sought[n]!;
    if (shapes[first + n] !== shape) return false;
    if (!isSame(view, from[slots[n]!]!, arenaView, at, shape >> 3)) return false;
    at += shape >> 3;
  }
  return true;
}

/** The item for the values that the fields have now. */
export function findIn<T>(cache: LabelCache<T>, fields: Fields): T | undefined {
  const { keys } = cache;
  const hash = seek(cache, fields);
  let id = firstKey(keys, hash);
  while (id !== -1 && !hasSought(cache, id, fields)) id = nextKey(keys, id, hash);
  return id === -1 ? undefined : cache.things[id];
}

/** Adds an item for values that `findIn` did not find; false if the cache is full. */
export function keepIn<T>(cache: LabelCache<T>, fields: Fields, thing: T): boolean {
  const { keys, slots, sought, things } = cache;
  if (keys.size >= cache.most) return false;
  const hash = seek(cache, fields);
  const bytes = sought.reduce((sum, shape) => sum + (shape >> 3), 0);
  const id = addKey(keys, hash, bytes);
  const capacity = keys.keyAt.length * slots.length;
  if (capacity > cache.shapes.length) cache.shapes = grownColumn(cache.shapes, capacity);
  cache.shapes.set(sought, id * slots.length);
  let offset = 0;
  for (const [n, slot] of slots.entries()) {
    const from = fields.from[slot]!;
    const length = sought[n]! >> 3;
    writeKey(keys, id, offset, fields.bytes, from, from + length);
    offset += length;
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
