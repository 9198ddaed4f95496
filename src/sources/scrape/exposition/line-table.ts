/**
 * The lines of a target's pages, known by their keys: all bytes in front of a sample's value, or a whole
 * comment. Each known line has a number, its id, which indexes the columns below. Keys lie end to end in one
 * arena and are found by a hash; no string is kept, so 100,000 series cost little more than their text.
 */
export interface LineTable {
  /** Ids run below this; those of freed lines are used again. */
  size: number;
  arena: Buffer;
  arenaView: DataView;
  arenaUsed: number;
  /** Bytes in the arena that belong to freed lines. */
  arenaFreed: number;
  keyAt: Int32Array;
  keyLength: Int32Array;
  hash: Int32Array;
  /** The next id with the same hash slot, or -1. */
  next: Int32Array;
  /** First id of each hash slot, or -1; its length is a power of two. */
  heads: Int32Array;
  freeIds: number[];
  /** The page (by number) in which the line was met last. */
  seen: Int32Array;
  /** Where on that page it stood, counted in known lines. */
  position: Int32Array;
  /** 1 for a comment, which has no value. */
  comment: Uint8Array;
  /** Values as the page being read has them. */
  incoming: Float64Array;
  /** Values of the last page that was taken. */
  taken: Float64Array;
}

export function createLineTable(): LineTable {
  const arena = Buffer.allocUnsafeSlow(4096);
  return {
    size: 0,
    arena,
    arenaView: new DataView(arena.buffer),
    arenaUsed: 0,
    arenaFreed: 0,
    keyAt: new Int32Array(64),
    keyLength: new Int32Array(64),
    hash: new Int32Array(64),
    next: new Int32Array(64),
    heads: new Int32Array(128).fill(-1),
    freeIds: [],
    seen: new Int32Array(64),
    position: new Int32Array(64),
    comment: new Uint8Array(64),
    incoming: new Float64Array(64),
    taken: new Float64Array(64),
  };
}

function hashOf(bytes: Uint8Array, start: number, end: number): number {
  let hash = end - start;
  for (let i = start; i < end; i++) hash = Math.imul(hash ^ bytes[i]!, 0x01000193);
  return hash ^ (hash >>> 15);
}

/** Whether the bytes at `at` are the key of line `id`; `view` is over `bytes`, which end at `end`. */
export function hasKey(
  table: LineTable,
  id: number,
  view: DataView,
  bytes: Uint8Array,
  at: number,
  end: number,
): boolean {
  const length = table.keyLength[id]!;
  // A freed line has no key (-1).
  if (length < 0 || at + length > end) return false;
  const { arena, arenaView } = table;
  const key = table.keyAt[id]!;
  let i = 0;
  for (const whole = length - 3; i < whole; i += 4) {
    if (view.getInt32(at + i, true) !== arenaView.getInt32(key + i, true)) return false;
  }
  for (; i < length; i++) if (bytes[at + i] !== arena[key + i]) return false;
  return true;
}

/** The id of the line with this key, or -1. */
export function findLine(table: LineTable, bytes: Buffer, start: number, end: number): number {
  const hash = hashOf(bytes, start, end);
  let id = table.heads[hash & (table.heads.length - 1)]!;
  while (id !== -1) {
    const key = table.keyAt[id]!;
    const length = table.keyLength[id]!;
    const isLike = table.hash[id] === hash && length === end - start;
    if (isLike && bytes.compare(table.arena, key, key + length, start, end) === 0) return id;
    id = table.next[id]!;
  }
  return -1;
}

/** Adds a line that `findLine` does not find; returns its id. */
export function addLine(
  table: LineTable,
  bytes: Buffer,
  start: number,
  end: number,
  comment: boolean,
): number {
  const id = table.freeIds.pop() ?? table.size++;
  if (id === table.keyAt.length) growColumns(table);
  makeRoom(table, end - start);
  bytes.copy(table.arena, table.arenaUsed, start, end);
  table.keyAt[id] = table.arenaUsed;
  table.keyLength[id] = end - start;
  table.hash[id] = hashOf(bytes, start, end);
  table.arenaUsed += end - start;
  table.seen[id] = 0;
  table.position[id] = -1;
  table.comment[id] = comment ? 1 : 0;
  table.taken[id] = Number.NaN;
  link(table, id);
  return id;
}

/** Forgets a line; its id may come back for another one. */
export function freeLine(table: LineTable, id: number): void {
  const { heads, next } = table;
  const slot = table.hash[id]! & (heads.length - 1);
  if (heads[slot] === id) heads[slot] = next[id]!;
  else {
    let before = heads[slot]!;
    while (next[before] !== id) before = next[before]!;
    next[before] = next[id]!;
  }
  table.arenaFreed += table.keyLength[id]!;
  table.keyLength[id] = -1;
  table.freeIds.push(id);
}

function link(table: LineTable, id: number): void {
  const slot = table.hash[id]! & (table.heads.length - 1);
  table.next[id] = table.heads[slot]!;
  table.heads[slot] = id;
}

function growColumns(table: LineTable): void {
  const capacity = table.keyAt.length * 2;
  const grown = <T extends Int32Array | Float64Array | Uint8Array>(column: T, larger: T): T => {
    larger.set(column);
    return larger;
  };
  table.keyAt = grown(table.keyAt, new Int32Array(capacity));
  table.keyLength = grown(table.keyLength, new Int32Array(capacity));
  table.hash = grown(table.hash, new Int32Array(capacity));
  table.next = grown(table.next, new Int32Array(capacity));
  table.seen = grown(table.seen, new Int32Array(capacity));
  table.position = grown(table.position, new Int32Array(capacity));
  table.comment = grown(table.comment, new Uint8Array(capacity));
  table.incoming = grown(table.incoming, new Float64Array(capacity));
  table.taken = grown(table.taken, new Float64Array(capacity));
  const last = table.size - 1;
  table.keyLength[last] = -1;
  table.heads = new Int32Array(capacity * 2).fill(-1);
  for (let id = 0; id < last; id++) if (table.keyLength[id] !== -1) link(table, id);
}

/** Makes room for `needed` bytes of key in a larger arena, without the keys of freed lines. */
function makeRoom(table: LineTable, needed: number): void {
  if (table.arenaUsed + needed <= table.arena.length) return;
  const kept = table.arenaUsed - table.arenaFreed;
  const size = Math.max(Math.ceil(kept * 1.5) + needed, 4096);
  const arena = Buffer.allocUnsafeSlow(size);
  if (table.arenaFreed === 0) table.arena.copy(arena, 0, 0, table.arenaUsed);
  else moveTogether(table, arena);
  table.arena = arena;
  table.arenaView = new DataView(arena.buffer);
}

function moveTogether(table: LineTable, arena: Buffer): void {
  let used = 0;
  for (let id = 0; id < table.size; id++) {
    const length = table.keyLength[id]!;
    const at = table.keyAt[id]!;
    if (length < 0) continue;
    table.arena.copy(arena, used, at, at + length);
    table.keyAt[id] = used;
    used += length;
  }
  table.arenaUsed = used;
  table.arenaFreed = 0;
}
