import { mixedSlot } from './hashes.ts';

/**
 * An interning table for byte keys: scraped lines, statsd lines, combinations of label values. Each key has a number, its id,
 * which indexes the caller's own columns. Keys are stored end to end in one arena and are found by a hash. A known key costs its
 * bytes and 16 more, and finding it allocates nothing.
 *
 * A key may consist of several ranges, for example of the head and the tail of a line. The caller computes the hash over all of
 * them (`hashByte` while it reads, or `hashRange` afterwards), walks the candidates with `firstKey` and `nextKey` and compares
 * range by range with `isKeyAt`. If the bounds between the ranges matter, the caller stores their lengths in a column or in the
 * key.
 *
 * It is a record with functions rather than an object with methods, so that hot loops stay monomorphic.
 */
export interface ByteTable {
  /** The present number of keys. */
  size: number;
  /** All ids are below this. Ids of removed keys are used again. */
  end: number;
  arena: Buffer;
  /** A view of the bytes of `arena`. */
  arenaView: DataView;
  arenaUsed: number;
  /** The number of bytes in the arena that belong to removed keys. */
  arenaFreed: number;
  /** The position in the arena of each key's first byte. */
  keyAt: Int32Array;
  /** The length of each key in bytes; -1 for an id that is not in use. */
  keyLength: Int32Array;
  hash: Int32Array;
  /** The next id with the same hash slot, or -1. */
  next: Int32Array;
  /** The first id of each hash slot, or -1; the length is a power of two. */
  heads: Int32Array;
  freeIds: IdList;
}

/** A list of ids outside the heap, in the first `count` elements. */
interface IdList {
  ids: Int32Array;
  count: number;
}

const noIds = (): IdList => ({ ids: new Int32Array(0), count: 0 });

function pushId(list: IdList, id: number): void {
  if (list.count === list.ids.length)
    list.ids = grownColumn(list.ids, Math.max(firstCapacity, list.count * 2));
  list.ids[list.count++] = id;
}

const firstCapacity = 64;
const smallestArena = 4096;

export function createByteTable(): ByteTable {
  const arena = Buffer.allocUnsafeSlow(smallestArena);
  return {
    size: 0,
    end: 0,
    arena,
    arenaView: new DataView(arena.buffer),
    arenaUsed: 0,
    arenaFreed: 0,
    keyAt: new Int32Array(firstCapacity),
    keyLength: new Int32Array(firstCapacity).fill(-1),
    hash: new Int32Array(firstCapacity),
    next: new Int32Array(firstCapacity),
    heads: new Int32Array(firstCapacity).fill(-1),
    freeIds: noIds(),
  };
}

/** The first id whose key may have this hash, or -1. */
export function firstKey(table: ByteTable, hash: number): number {
  const id = table.heads[mixedSlot(hash, table.heads.length)]!;
  return id === -1 || table.hash[id] === hash ? id : nextKey(table, id, hash);
}

/** The next id whose key may have this hash, or -1. */
export function nextKey({ next, hash: hashes }: ByteTable, id: number, hash: number): number {
  let candidate = next[id]!;
  while (candidate !== -1 && hashes[candidate] !== hash) candidate = next[candidate]!;
  return candidate;
}

/** Whether the key of `id` has the bytes from `from` to `to` at its `offset`. */
export function isKeyAt(
  table: ByteTable,
  id: number,
  offset: number,
  view: DataView,
  from: number,
  to: number,
): boolean {
  const { arenaView } = table;
  if (offset + to - from > table.keyLength[id]!) return false;
  return isSame(view, from, arenaView, table.keyAt[id]! + offset, to - from);
}

/** Whether two ranges of `length` bytes are equal. */
export function isSame(
  view: DataView,
  from: number,
  other: DataView,
  otherFrom: number,
  length: number,
): boolean {
  const to = from + length;
  const shift = otherFrom - from;
  let at = from;
  // The loop compares eight bytes at a time as one double. Only NaN patterns differ from themselves, and only 0 and -0 are equal:
  // these are compared as integers below. Text contains neither.
  for (const words = to - 7; at < words; at += 8) {
    const word = view.getFloat64(at, true);
    if (word !== other.getFloat64(at + shift, true) || word === 0) break;
  }
  for (const words = to - 3; at < words; at += 4) {
    if (view.getInt32(at, true) !== other.getInt32(at + shift, true)) return false;
  }
  for (; at < to; at++) if (view.getUint8(at) !== other.getUint8(at + shift)) return false;
  return true;
}

/** The id of the key with exactly these bytes and this hash, or -1. */
export function findKey(table: ByteTable, view: DataView, from: number, to: number, hash: number): number {
  let id = firstKey(table, hash);
  while (id !== -1) {
    if (table.keyLength[id] === to - from && isKeyAt(table, id, 0, view, from, to)) return id;
    id = nextKey(table, id, hash);
  }
  return -1;
}

/**
 * Adds a key of `length` bytes that the table does not contain, and returns its id. The caller writes the bytes with `writeKey`,
 * range by range, before it adds another one.
 */
export function addKey(table: ByteTable, hash: number, length: number): number {
  makeRoom(table, length);
  const { freeIds } = table;
  const id = freeIds.count > 0 ? freeIds.ids[--freeIds.count]! : table.end++;
  if (id === table.keyAt.length) growColumns(table);
  table.keyAt[id] = table.arenaUsed;
  table.keyLength[id] = length;
  table.hash[id] = hash;
  table.arenaUsed += length;
  table.size += 1;
  link(table, id);
  return id;
}

/** Writes a range of bytes into the key of `id` at `offset`. */
export function writeKey(
  table: ByteTable,
  id: number,
  offset: number,
  bytes: Uint8Array,
  from: number,
  to: number,
): void {
  table.arena.set(bytes.subarray(from, to), table.keyAt[id]! + offset);
}

/** Removes a key; its id may be given to another key. */
export function removeKey(table: ByteTable, id: number): void {
  const { heads, next } = table;
  const slot = mixedSlot(table.hash[id]!, heads.length);
  if (heads[slot] === id) heads[slot] = next[id]!;
  else {
    let before = heads[slot]!;
    while (next[before] !== id) before = next[before]!;
    next[before] = next[id]!;
  }
  table.arenaFreed += table.keyLength[id]!;
  table.keyLength[id] = -1;
  table.size -= 1;
  pushId(table.freeIds, id);
}

function link(table: ByteTable, id: number): void {
  const slot = mixedSlot(table.hash[id]!, table.heads.length);
  table.next[id] = table.heads[slot]!;
  table.heads[slot] = id;
}

/** A copy of a column with another capacity, larger or smaller. */
export function grownColumn<T extends Int32Array | Float64Array | Uint8Array>(
  column: T,
  capacity: number,
): T {
  const grown = new (column.constructor as new (length: number) => T)(capacity);
  grown.set(capacity < column.length ? column.subarray(0, capacity) : column);
  return grown;
}

/** From this capacity on columns grow by a quarter, because the columns of a page may be several megabytes. */
const largeCapacity = 65_536;

/** The length of columns that have room for this number of keys. */
function capacityOf(keys: number): number {
  let capacity = firstCapacity;
  while (capacity < keys) capacity += capacity < largeCapacity ? capacity : capacity >> 2;
  return capacity;
}

function growColumns(table: ByteTable): void {
  const held = table.keyAt.length;
  const capacity = capacityOf(held + 1);
  table.keyAt = grownColumn(table.keyAt, capacity);
  table.keyLength = grownColumn(table.keyLength, capacity).fill(-1, held);
  table.hash = grownColumn(table.hash, capacity);
  if (capacity > table.heads.length) linkAll(table, capacity);
  else table.next = grownColumn(table.next, capacity);
}

/** Links all ids below the end again, for columns of another capacity. */
function linkAll(table: ByteTable, capacity: number): void {
  let slots = firstCapacity;
  while (slots < capacity) slots *= 2;
  table.next = new Int32Array(capacity);
  table.heads = new Int32Array(slots).fill(-1);
  for (let id = 0; id < table.end; id++) if (table.keyLength[id] !== -1) link(table, id);
}

/**
 * Releases memory after many keys were removed: removes ids above the last one in use, and shrinks the arena to its contents.
 * Returns whether the columns are shorter; the caller then resizes its own columns.
 */
export function trimTable(table: ByteTable): boolean {
  let end = table.end;
  while (end > 0 && table.keyLength[end - 1] === -1) end--;
  table.end = end;
  const ids = table.freeIds.ids.subarray(0, table.freeIds.count).filter((id) => id < end);
  table.freeIds = { ids, count: ids.length };
  const capacity = capacityOf(end);
  const isShorter = capacity < table.keyAt.length;
  if (isShorter) {
    table.keyAt = grownColumn(table.keyAt, capacity);
    table.keyLength = grownColumn(table.keyLength, capacity);
    table.hash = grownColumn(table.hash, capacity);
    linkAll(table, capacity);
  }
  moveKeys(table, table.arenaUsed - table.arenaFreed);
  return isShorter;
}

/** Whether `packTable` would make the columns shorter even with room for a quarter more keys. */
export const isSparse = ({ size, keyAt }: ByteTable): boolean => capacityOf(1.25 * size) < keyAt.length;

/**
 * Gives the keys the lowest ids, in the order of their present ids, if the table is sparse. A few keys that stay among many
 * removed ones would otherwise make the columns stay long. Returns the new id for each old one, -1 for an id that is not in use;
 * undefined if the ids are the same. The caller moves its own columns with `packColumn`, and resizes them.
 */
export function packTable(table: ByteTable): Int32Array | undefined {
  if (!isSparse(table)) return undefined;
  const newIds = new Int32Array(table.end);
  let size = 0;
  for (let id = 0; id < table.end; id++) newIds[id] = table.keyLength[id] === -1 ? -1 : size++;
  for (const column of [table.keyAt, table.keyLength, table.hash]) packColumn(column, newIds);
  table.keyLength.fill(-1, size, table.end);
  table.freeIds = noIds();
  trimTable(table);
  return newIds;
}

/**
 * Moves the elements of a column to the ids that `packTable` assigned. A column may end before the last id: its missing elements
 * are undefined, or the value into which a typed array converts undefined. The elements behind the new end are not changed.
 */
export function packColumn<T>(
  column: { readonly length: number; [id: number]: T },
  newIds: Int32Array,
): void {
  const { length } = column;
  for (let id = 0; id < newIds.length; id++) {
    // No id is higher than before.
    const to = newIds[id]!;
    if (to >= length) break;
    if (to !== -1) column[to] = id < length ? column[id]! : (undefined as T);
  }
}

/** Makes room for `needed` bytes in an arena without the removed keys. */
function makeRoom(table: ByteTable, needed: number): void {
  if (table.arenaUsed + needed <= table.arena.length) return;
  moveKeys(table, Math.ceil((table.arenaUsed - table.arenaFreed) * 1.25) + needed);
}

/** Moves the keys into a new arena of at least `size` bytes. */
function moveKeys(table: ByteTable, size: number): void {
  const { keyAt, keyLength } = table;
  const arena = Buffer.allocUnsafeSlow(Math.max(size, smallestArena));
  let used = 0;
  // Most keys are stored in the order of their ids: keys without a gap between them are copied at once.
  let [from, to] = [0, 0];
  const copyRun = () => table.arena.copy(arena, used - (to - from), from, to);
  for (let id = 0; id < table.end; id++) {
    const length = keyLength[id]!;
    if (length < 0) continue;
    if (keyAt[id] !== to) {
      copyRun();
      from = to = keyAt[id]!;
    }
    keyAt[id] = used;
    used += length;
    to += length;
  }
  copyRun();
  table.arenaUsed = used;
  table.arenaFreed = 0;
  table.arena = arena;
  table.arenaView = new DataView(arena.buffer);
}
