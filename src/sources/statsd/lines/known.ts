/**
 * Lines that were met before, by their bytes without the numbers: the head in front of the first colon and the
 * tail from the bar behind the numbers. Each has an id; ids of forgotten ones are used again. Keys lie end
 * to end in one arena and are found by a hash, so that a known line costs no string and no object.
 */
export interface KnownLines {
  /** Lines held now. */
  readonly size: number;
  /** Ids run below this. */
  readonly end: number;
  /** Id of the line with this key, or -1. `hash` is of head and tail, by `hashByte`. */
  find(bytes: Uint8Array, head: number, colon: number, bar: number, end: number, hash: number): number;
  /** Adds one that `find` does not find. */
  add(bytes: Uint8Array, head: number, colon: number, bar: number, end: number, hash: number): number;
  forget(id: number): void;
  holds(id: number): boolean;
}

/** Where a hash begins: another in each process, so that nobody can prepare lines that collide. */
export const hashSeed = (Math.random() * 2 ** 32) | 0;

/** The hash of a key goes on with the next of its bytes (FNV-1a). */
export function hashByte(hash: number, byte: number): number {
  return Math.imul(hash ^ byte, 0x01000193);
}

/** The slot of a hash: FNV's low bits alone are poor. */
const slotOf = (hash: number, slots: number) => (hash ^ (hash >>> 15)) & (slots - 1);

export function createKnownLines(): KnownLines {
  let arena = Buffer.allocUnsafeSlow(4096);
  let arenaUsed = 0;
  let arenaFreed = 0;
  let keyAt = new Int32Array(64);
  let headBytes = new Int32Array(64);
  /** -1 for a forgotten line. */
  let tailBytes = new Int32Array(64).fill(-1);
  let hashes = new Int32Array(64);
  let next = new Int32Array(64);
  let heads = new Int32Array(128).fill(-1);
  const freeIds: number[] = [];
  let end = 0;

  const link = (id: number): void => {
    const slot = slotOf(hashes[id]!, heads.length);
    next[id] = heads[slot]!;
    heads[slot] = id;
  };

  const growColumns = (): void => {
    const capacity = keyAt.length * 2;
    const grown = (column: Int32Array<ArrayBuffer>): Int32Array<ArrayBuffer> => {
      const larger = new Int32Array(capacity);
      larger.set(column);
      return larger;
    };
    const held = end - 1;
    keyAt = grown(keyAt);
    headBytes = grown(headBytes);
    tailBytes = grown(tailBytes).fill(-1, held);
    hashes = grown(hashes);
    next = grown(next);
    heads = new Int32Array(capacity * 2).fill(-1);
    for (let id = 0; id < held; id++) if (tailBytes[id] !== -1) link(id);
  };

  /** Moves the keys together if that makes room, else into a larger arena. */
  const makeRoom = (needed: number): void => {
    if (arenaUsed + needed <= arena.length) return;
    const kept = arenaUsed - arenaFreed;
    const moved = Buffer.allocUnsafeSlow(Math.max(Math.ceil(kept * 1.5) + needed, 4096));
    let used = 0;
    for (let id = 0; id < end; id++) {
      if (tailBytes[id] === -1) continue;
      const length = headBytes[id]! + tailBytes[id]!;
      arena.copy(moved, used, keyAt[id]!, keyAt[id]! + length);
      keyAt[id] = used;
      used += length;
    }
    arena = moved;
    arenaUsed = used;
    arenaFreed = 0;
  };

  return {
    get size() {
      return end - freeIds.length;
    },
    get end() {
      return end;
    },
    find(bytes, head, colon, bar, stop, hash) {
      const headLength = colon - head;
      const tailLength = stop - bar;
      const keys = arena;
      let id = heads[slotOf(hash, heads.length)]!;
      search: for (; id !== -1; id = next[id]!) {
        if (hashes[id] !== hash || headBytes[id] !== headLength || tailBytes[id] !== tailLength) continue;
        let shift = keyAt[id]! - head;
        for (let i = head; i < colon; i++) if (bytes[i] !== keys[i + shift]) continue search;
        shift += colon - bar;
        for (let i = bar; i < stop; i++) if (bytes[i] !== keys[i + shift]) continue search;
        return id;
      }
      return -1;
    },
    add(bytes, head, colon, bar, stop, hash) {
      const length = colon - head + stop - bar;
      makeRoom(length);
      const id = freeIds.pop() ?? end++;
      if (id === keyAt.length) growColumns();
      arena.set(bytes.subarray(head, colon), arenaUsed);
      arena.set(bytes.subarray(bar, stop), arenaUsed + colon - head);
      keyAt[id] = arenaUsed;
      headBytes[id] = colon - head;
      tailBytes[id] = stop - bar;
      hashes[id] = hash;
      arenaUsed += length;
      link(id);
      return id;
    },
    forget(id) {
      const slot = slotOf(hashes[id]!, heads.length);
      if (heads[slot] === id) heads[slot] = next[id]!;
      else {
        let before = heads[slot]!;
        while (next[before] !== id) before = next[before]!;
        next[before] = next[id]!;
      }
      arenaFreed += headBytes[id]! + tailBytes[id]!;
      tailBytes[id] = -1;
      freeIds.push(id);
    },
    holds: (id) => id < end && tailBytes[id] !== -1,
  };
}
