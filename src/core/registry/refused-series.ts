import type { Handle } from './handles.ts';

/**
 * What a scrape source stores for lines whose series the registry refused, so that limits bound memory and not only output: a
 * 52-bit hash, the last value and the number of the overflow series that the line's increases go into. A line costs 21 bytes of
 * table at a load of at most 0.85.
 *
 * Two lines with one hash are treated as one; with a million lines the chance of any such pair is 1 in 9,000. Beyond `most`
 * lines, lines that were not on the last page are removed. If there are none, only the sum of the page's further lines is tracked
 * for each overflow series, and its increases count (a fall adds 0).
 */
export interface RefusedLines {
  readonly size: number;
  /**
   * Sets the value of a refused line. False for an unknown hash: then request the series from the intake and, if it is refused,
   * call `add`. Values that are not finite are ignored.
   */
  set(hash: number, value: number): boolean;
  /** Whether the last line that was passed to `set` is only known as refused, so that its value counts nowhere. */
  readonly countedNowhere: boolean;
  /**
   * Adds a line with its first value. `target` is the overflow handle that `OpenIntake.overflowOf` returned, and
   * `index` the line's number in the series; without a target the line is only known as refused.
   */
  add(hash: number, value: number, target: Handle | undefined, index: number): void;
  /** Ends a page that was accepted. A page that is discarded before its new lines were added needs no end. */
  endPage(): void;
  /** Forgets all lines and releases the overflow handles. */
  clear(): void;
}

interface OverflowTarget {
  handle: Handle;
  index: number;
  /** The sum over the lines of this page that are not in the table, and the same sum for the last page. */
  rest: number;
  lastRest: number;
}

const firstSlots = 1024;
const fullest = 0.85;
/** The number of a target for which no number is left. */
const noTarget = 0xffff;
/** The number for a line that counts nowhere. */
const nowhere = 0xfffe;

/** The slot of a hash in a table with open addressing, or the empty slot for it. */
function slotOf(hashes: Float64Array, hash: number): number {
  const mask = hashes.length - 1;
  let slot = (hash ^ Math.floor(hash / 2 ** 32)) & mask;
  while (hashes[slot] !== 0 && hashes[slot] !== hash) slot = (slot + 1) & mask;
  return slot;
}

/** A table by hashes. */
interface Slots {
  readonly hashes: Float64Array;
  /** The number of what counts for each hash. */
  readonly targetOf: Uint16Array;
  /** The last value of each line, and the page on which it was last seen, modulo 256; empty in a table of keys. */
  readonly values: Float64Array;
  readonly pages: Uint8Array;
}

const emptySlots = (slots: number, lines = 0): Slots => ({
  hashes: new Float64Array(slots),
  targetOf: new Uint16Array(slots),
  values: new Float64Array(lines),
  pages: new Uint8Array(lines),
});

/** Moves the entries for which `keeps` is true into an empty table; returns their number. */
function moveEntries(from: Slots, to: Slots, keeps: (slot: number) => boolean): number {
  let size = 0;
  for (let old = 0; old < from.hashes.length; old++) {
    if (from.hashes[old] === 0 || !keeps(old)) continue;
    const slot = slotOf(to.hashes, from.hashes[old]!);
    to.hashes[slot] = from.hashes[old]!;
    to.targetOf[slot] = from.targetOf[old]!;
    if (to.values.length > 0) {
      to.values[slot] = from.values[old]!;
      to.pages[slot] = from.pages[old]!;
    }
    size += 1;
  }
  return size;
}

export function createRefusedLines(most: number): RefusedLines {
  let lines = emptySlots(firstSlots, firstSlots);
  let size = 0;
  let page = 1;
  /** Whether lines had to be forgotten: then the first value of a new line may have been counted before. */
  let forgot = false;
  /** Whether the table was full of lines that are on the page, so that another search for old lines would find none. */
  let isFull = false;
  let countedNowhere = false;
  const targets = createOverflowTargets();

  const rebuild = (slots: number, keeps: (slot: number) => boolean) => {
    const next = emptySlots(slots, slots);
    size = moveEntries(lines, next, keeps);
    lines = next;
  };

  /** Whether there is room for one more line, after growing or forgetting lines that are no longer sent. */
  const makeRoom = (): boolean => {
    const slots = lines.hashes.length;
    if (size < most && size + 1 <= slots * fullest) return true;
    if (size < most) {
      rebuild(slots * 2, () => true);
      return true;
    }
    const [now, before] = [page & 255, (page - 1) & 255];
    const { hashes, pages } = lines;
    if (!pages.some((seen, slot) => hashes[slot] !== 0 && seen !== now && seen !== before)) return false;
    rebuild(slots, (slot) => pages[slot] === now || pages[slot] === before);
    forgot = true;
    return true;
  };

  return {
    get size() {
      return size;
    },
    get countedNowhere() {
      return countedNowhere;
    },
    set(hash, value) {
      const { hashes, values, targetOf, pages } = lines;
      const slot = slotOf(hashes, hash);
      if (hashes[slot] === 0) return false;
      pages[slot] = page & 255;
      countedNowhere = targetOf[slot] === nowhere;
      if (!Number.isFinite(value)) return true;
      targets.count(targetOf[slot]!, values[slot]!, value);
      values[slot] = value;
      return true;
    },
    add(hash, value, handle, index) {
      const number = targets.numberOf(handle, index);
      if (isFull || !makeRoom()) {
        isFull = true;
        if (Number.isFinite(value)) targets.addRest(number, value);
        return;
      }
      const { hashes, values, targetOf, pages } = lines;
      const slot = slotOf(hashes, hash);
      hashes[slot] = hash;
      targetOf[slot] = number;
      pages[slot] = page & 255;
      size += 1;
      const first = Number.isFinite(value) ? value : Number.NaN;
      targets.count(number, forgot ? Number.NaN : 0, first);
      values[slot] = first;
    },
    endPage() {
      page += 1;
      isFull = false;
      targets.endPage();
    },
    clear() {
      rebuild(firstSlots, () => false);
      targets.clear();
      forgot = false;
      isFull = false;
    },
  };
}

/** The overflow series in which refused lines count, by small numbers. */
interface OverflowTargets {
  /** Returns a number for the handle, and takes over one of its owners. */
  numberOf(handle: Handle | undefined, index: number): number;
  /** Adds the increase since the value before; a fall of a counter is a restart from 0. */
  count(number: number, before: number, value: number): void;
  /** Adds the value of a line for which the table has no room. */
  addRest(number: number, value: number): void;
  endPage(): void;
  clear(): void;
}

function createOverflowTargets(): OverflowTargets {
  let targets: OverflowTarget[] = [];
  let byHandle = new Map<Handle, Map<number, number>>();
  return {
    numberOf(handle, index) {
      if (!handle) return nowhere;
      const numbers = byHandle.get(handle) ?? new Map<number, number>();
      // One owner of the handle stands for all its lines.
      if (byHandle.has(handle)) handle.release();
      else byHandle.set(handle, numbers);
      const known = numbers.get(index);
      if (known !== undefined) return known;
      if (targets.length >= nowhere) return noTarget;
      numbers.set(index, targets.length);
      return targets.push({ handle, index, rest: 0, lastRest: 0 }) - 1;
    },
    count(number, before, value) {
      const target = targets[number];
      if (!target || Number.isNaN(before)) return;
      const { handle, index } = target;
      if (value >= before || !handle.grows(index)) handle.addIncrease(index, value - before);
      else if (value >= 0) handle.addIncrease(index, value);
    },
    addRest(number, value) {
      const target = targets[number];
      if (target) target.rest += value;
    },
    endPage() {
      for (const target of targets) {
        const increase = target.rest - target.lastRest;
        if (increase > 0) target.handle.addIncrease(target.index, increase);
        target.lastRest = target.rest;
        target.rest = 0;
      }
    },
    clear() {
      for (const handle of byHandle.keys()) handle.release();
      targets = [];
      byHandle = new Map();
    },
  };
}

/**
 * What a source of increases (statsd, logs) stores for series that the registry refused: a 52-bit hash of the raw series and the
 * number of what counts for it, 10 bytes at a load of at most 0.85. `wideHash` computes the hash.
 *
 * Nothing is counted here, so entries may be forgotten: when the table is full, it starts again, and the source asks the intake
 * again for series that still arrive.
 */
interface RefusedKeys<T> {
  readonly size: number;
  /** What counts for this raw series, or undefined if it is not known as refused. */
  find(hash: number): T | undefined;
  add(hash: number, target: T): void;
  clear(): void;
}

const mostTargets = 0xffff;
/** Each step leaves the smaller tables to the garbage collector, so there are few steps. */
const growth = 4;

export function createRefusedKeys<T>(most: number): RefusedKeys<T> {
  let slots = emptySlots(firstSlots);
  let size = 0;
  let targets: T[] = [];
  let numbers = new Map<T, number>();

  const grow = () => {
    const next = emptySlots(slots.hashes.length * growth);
    moveEntries(slots, next, () => true);
    slots = next;
  };
  const forgetAll = () => {
    size = 0;
    targets = [];
    numbers = new Map();
  };

  return {
    get size() {
      return size;
    },
    find(hash) {
      const { hashes, targetOf } = slots;
      const slot = slotOf(hashes, hash);
      return hashes[slot] === 0 ? undefined : targets[targetOf[slot]!];
    },
    add(hash, target) {
      if (size >= most || targets.length >= mostTargets) {
        // The tables fill again soon, and new tables would leave the old ones to the garbage collector.
        slots.hashes.fill(0);
        forgetAll();
      }
      if (size + 1 > slots.hashes.length * fullest) grow();
      let number = numbers.get(target);
      if (number === undefined) {
        number = targets.push(target) - 1;
        numbers.set(target, number);
      }
      const { hashes, targetOf } = slots;
      const slot = slotOf(hashes, hash);
      if (hashes[slot] === 0) size += 1;
      hashes[slot] = hash;
      targetOf[slot] = number;
    },
    clear() {
      slots = emptySlots(firstSlots);
      forgetAll();
    },
  };
}
