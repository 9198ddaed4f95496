import type { Kind, Labels } from './model.ts';

const firstCapacity = 256;

/**
 * Numbers side by side, handed out in runs. What holds a run reads `live` anew at each access: it is
 * replaced when it grows and when a page is swapped.
 */
export class Cells {
  live: Float64Array = new Float64Array(firstCapacity);
  /** Cells ever handed out; those beyond are unused. */
  used = 0;
  readonly #free = new Map<number, number[]>();

  /** The first of `width` cells, all 0. */
  take(width: number): number {
    const freed = this.#free.get(width)?.pop();
    if (freed !== undefined) {
      this.live.fill(0, freed, freed + width);
      return freed;
    }
    const at = this.used;
    this.used += width;
    if (this.used > this.live.length) this.#grow();
    return at;
  }

  give(at: number, width: number): void {
    const freed = this.#free.get(width);
    if (freed) freed.push(at);
    else this.#free.set(width, [at]);
  }

  /** A copy of the cells that are in use. */
  copy(): Float64Array {
    return this.live.slice(0, this.used);
  }

  #grow(): void {
    const grown = new Float64Array(Math.max(this.used, this.live.length * 2));
    grown.set(this.live);
    this.live = grown;
  }
}

/** Numbers that a view holds; they do not move until it lets go. */
export interface HeldValues {
  readonly values: Float64Array;
  release(): void;
}

/**
 * Where numbers live. Handles write `cells.live`; what views show is the store's business. Time is counted in
 * steps (freezes, pages): a series born during step n is shown once `shownStep` is past n, so a cell that is
 * reused at once is never seen through its new series in an older picture.
 */
export interface Store {
  /** Order of creation; settles who is first where all else is equal. */
  readonly id: number;
  readonly cells: Cells;
  readonly shownStep: number;
  /** Changes whenever series that exist may have come into sight or gone out of it. */
  readonly visibility: number;
  /** The step during which a series that opens now is born. */
  birth(): number;
  /** The numbers that views show now. */
  hold(): HeldValues;
  /** A sender's total fell: the series began anew. */
  restarted(series: Recordable, nowMs: number): void;
  /** What survives restarts; absent where nothing does. */
  readonly index?: SeriesIndex;
}

/** A series as the state has it. */
export interface SeriesRecord {
  readonly at: number;
  readonly family: string;
  readonly kind: Kind;
  readonly texts: readonly string[];
  readonly labels: Labels;
  readonly identity: string;
  readonly overflow: boolean;
  readonly startMs: number;
  readonly born: number;
}

/** A series as its store sees it. */
export interface Recordable {
  beginAt(nowMs: number): void;
  record(): SeriesRecord;
}

/** The identities behind durable cells. */
export interface SeriesIndex {
  /** Enters a series that has just been given cells, or whose start changed. */
  add(series: Recordable): void;
  /** Strikes a series out; its cells are free again. */
  remove(at: number, width: number): void;
  /** Keeps a series in the state without showing it, until it is adopted. */
  retain(series: Recordable): void;
  retainedOf(family: string): readonly SeriesRecord[];
  find(family: string, identity: string): SeriesRecord | undefined;
  /** Takes a retained series out of the park; its cells and entry stay. */
  reclaim(retained: SeriesRecord): void;
  /** Drops a retained series with its cells. */
  discard(retained: SeriesRecord): void;
}

let created = 0;

/** The next store's id. */
export function nextStoreId(): number {
  created += 1;
  return created;
}

/** A store whose numbers are shown as they are at the moment the view is taken. */
export function createImmediateStore(): Store {
  const cells = new Cells();
  return {
    id: nextStoreId(),
    cells,
    shownStep: 1,
    visibility: 0,
    birth: () => 0,
    hold: () => ({ values: cells.copy(), release: () => {} }),
    restarted: (series, nowMs) => series.beginAt(nowMs),
  };
}

/** A store whose owner writes what it has gathered when somebody looks, and not before. */
export interface LazyStore extends Store {
  /** `write` is called in front of each picture, in the same step: it must be quick and must not throw. */
  beforeRead(write: () => void): void;
}

/** No total in it ever begins anew: its owner adds them up itself, so that a fall is a negative observation. */
export function createLazyStore(): LazyStore {
  const store = createImmediateStore();
  let write = (): void => {};
  return {
    ...store,
    restarted() {},
    hold() {
      write();
      return store.hold();
    },
    beforeRead(next) {
      write = next;
    },
  };
}

/** A store whose numbers come page by page. */
export interface PageStore extends Store {
  /** Shows the page that has been filled, whole. Not calling it drops the page. */
  swap(): void;
  /** Shows nothing, until the next swap: the target is gone. */
  hide(): void;
}

interface Page {
  values: Float64Array;
  holders: number;
}

/**
 * Two arrays take turns: one is filled while views show the other. An array that a view still holds is left
 * to it. A page that was dropped half-way leaves its numbers behind unseen; the next page overwrites them, and
 * increases that it had added to merged series are right as they are.
 */
export function createPageStore(): PageStore {
  const cells = new Cells();
  const restarts: [Recordable, number][] = [];
  let shown: Page = { values: new Float64Array(0), holders: 0 };
  let step = 0;
  let shownStep = 0;
  let lastBirth = 0;
  let visibility = 0;

  /** An array of the shown one's size that nobody looks at. */
  const freePage = (before: Page): Float64Array => {
    const fits = before.holders === 0 && before.values.length === shown.values.length;
    return fits ? before.values : new Float64Array(shown.values.length);
  };

  return {
    id: nextStoreId(),
    cells,
    get shownStep() {
      return shownStep;
    },
    get visibility() {
      return visibility;
    },
    birth() {
      lastBirth = step;
      return step;
    },
    hold() {
      const page = shown;
      page.holders += 1;
      const release = () => {
        page.holders -= 1;
      };
      return { values: page.values, release };
    },
    restarted: (series, nowMs) => void restarts.push([series, nowMs]),
    swap() {
      const before = shown;
      shown = { values: cells.live, holders: 0 };
      const next = freePage(before);
      next.set(shown.values);
      cells.live = next;
      if (lastBirth >= shownStep) visibility += 1;
      step += 1;
      shownStep = step;
      for (const [series, nowMs] of restarts.splice(0)) series.beginAt(nowMs);
    },
    hide() {
      shownStep = 0;
      visibility += 1;
    },
  };
}
