import { formatDecimal } from '../decimal.ts';
import type { Kind, Labels, Shape } from '../model.ts';

/** The spec's buckets for latencies, in seconds (Metrics configuration). */
export const defaultBounds: readonly number[] = [0.001, 0.005, 0.01, 0.05, 0.1, 0.5, 1, 5, 10];

/** The order of a series' numbers in its cells. */
export interface Layout {
  readonly width: number;
  /** For a histogram, the upper bounds, ascending, without +Inf; otherwise empty. */
  readonly bounds: readonly number[];
  /** The texts of `le` or `quantile`, in order; empty for single numbers. */
  readonly texts: readonly string[];
  /** Whether the sender has a sum and a count. Their cells exist either way; reporters leave missing ones out. */
  readonly hasSum: boolean;
  readonly hasCount: boolean;
}

const singleLayout: Layout = { width: 1, bounds: [], texts: [], hasSum: false, hasCount: false };

/** The layout of a histogram: cumulative buckets with +Inf last, then sum, then count. */
function histogramLayout(
  bounds: readonly number[],
  texts: readonly string[] = bounds.map(formatDecimal),
  { hasSum = true, hasCount = true }: Pick<Shape, 'hasSum' | 'hasCount'> = {},
): Layout {
  return { width: bounds.length + 3, bounds, texts, hasSum, hasCount };
}

/** The layout of a summary: quantiles, then sum, then count. */
function summaryLayout(
  quantiles: readonly string[],
  { hasSum = true, hasCount = true }: Pick<Shape, 'hasSum' | 'hasCount'> = {},
): Layout {
  return { width: quantiles.length + 2, bounds: [], texts: quantiles, hasSum, hasCount };
}

/** Whether two histograms can be added up. The spelling of a bound makes no difference. */
export function sameLayout(a: Layout, b: Layout): boolean {
  if (a === b) return true;
  const isSameShape = a.width === b.width && a.hasSum === b.hasSum && a.hasCount === b.hasCount;
  return isSameShape && a.bounds.every((bound, i) => bound === b.bounds[i]);
}

/**
 * Adds an observation to cumulative buckets, sum and count. Writing cumulative counts costs a few additions per observation and
 * lets readers copy the cells as they are. `weight` is the number of observations that it represents.
 */
export function observeInto(
  live: Float64Array,
  at: number,
  bounds: readonly number[],
  observed: number,
  weight = 1,
): void {
  const infinite = at + bounds.length;
  let cell = at;
  while (cell < infinite && bounds[cell - at]! < observed) cell++;
  for (; cell <= infinite; cell++) live[cell]! += weight;
  live[infinite + 1]! += observed * weight;
  live[infinite + 2]! += weight;
}

/** The layout of a kind as its sender describes it. The sender's bounds are divided by `divisor`. */
export function layoutOf(kind: Kind, shape: Shape, divisor = 1): Layout {
  const { bounds, boundTexts, quantiles } = shape;
  if (kind === 'summary') return summaryLayout(quantiles ?? [], shape);
  if (kind !== 'histogram') return singleLayout;
  if (!bounds) return histogramLayout(defaultBounds, undefined, shape);
  return divisor === 1
    ? histogramLayout(bounds, boundTexts, shape)
    : histogramLayout(
        bounds.map((bound) => bound / divisor),
        undefined,
        shape,
      );
}

const firstCapacity = 256;

/**
 * An array of numbers that is allocated in runs. Read `live` again at each access: it is replaced when it grows and when a page
 * is swapped.
 */
export class Cells {
  live: Float64Array = new Float64Array(firstCapacity);
  /** The number of cells that were ever allocated; the cells after them are unused. */
  used = 0;
  readonly #free = new Map<number, number[]>();

  /** Allocates `width` cells, all 0; returns the index of the first. */
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

/** Numbers that a view holds. They do not change until it releases them. */
export interface HeldValues {
  readonly values: Float64Array;
  release(): void;
}

/**
 * A store of the numbers of series. Handles write `cells.live`; the store decides which numbers views show. It counts steps
 * (freezes, pages): a series that opened in step n is visible once `shownStep` is greater than n. Therefore a view of older
 * numbers never shows a new series with the cells of a removed one.
 */
export interface Store {
  /** Order of creation, for comparing sources that are otherwise equal. */
  readonly id: number;
  readonly cells: Cells;
  readonly shownStep: number;
  /** Changes whenever existing series may have become visible or invisible. */
  readonly visibility: number;
  /** Records that a series opens now, and returns the step. */
  noteOpening(): number;
  /** The numbers that views show now. */
  hold(): HeldValues;
  /** Must be called when a sender's total fell, because the series started again. */
  restarted(series: Recordable, nowMs: number): void;
  /** The series that survive restarts; absent in other stores. */
  readonly index?: SeriesIndex;
}

/** A series in the state. */
export interface SeriesRecord {
  readonly at: number;
  readonly family: string;
  readonly kind: Kind;
  readonly texts: readonly string[];
  readonly labels: Labels;
  readonly identity: string;
  readonly overflow: boolean;
  readonly startMs: number;
  readonly openedStep: number;
  /** See `SeriesSpec`. Undefined, too, in a snapshot of an earlier version. */
  readonly tagNames: string | undefined;
}

/** The part of a series that its store uses. */
export interface Recordable {
  beginAt(nowMs: number): void;
  record(): SeriesRecord;
}

/** The identities of the series in a durable store. A retained series is in the state, but not open. */
export interface SeriesIndex {
  /** Adds a series with new cells, or with a new start time. */
  add(series: Recordable): void;
  /** Removes a series and frees its cells. */
  remove(at: number, width: number): void;
  /** Retains a series that closes, until it is reclaimed or discarded. */
  retain(series: Recordable): void;
  retainedOf(family: string): readonly SeriesRecord[];
  retained(): readonly SeriesRecord[];
  /** Gives a retained series other labels; its cells and its start stay. No series with these labels may exist. */
  relabel(retained: SeriesRecord, labels: Labels): SeriesRecord;
  find(family: string, identity: string): SeriesRecord | undefined;
  /** Opens a retained series again; its cells and its line stay. */
  reclaim(retained: SeriesRecord): void;
  /** Removes a retained series and frees its cells. */
  discard(retained: SeriesRecord): void;
}

let created = 0;

export function nextStoreId(): number {
  created += 1;
  return created;
}

/** A store whose views show the numbers of the moment when they are taken. */
export function createImmediateStore(): Store {
  const cells = new Cells();
  return {
    id: nextStoreId(),
    cells,
    shownStep: 1,
    visibility: 0,
    noteOpening: () => 0,
    hold: () => ({ values: cells.copy(), release: () => {} }),
    restarted: (series, nowMs) => series.beginAt(nowMs),
  };
}

/** A store whose owner writes its numbers only when a view is taken. */
export interface LazyStore extends Store {
  /** Registers a call before each view, in the same synchronous step: it must be quick and must not throw. */
  beforeRead(write: () => void): void;
}

/**
 * Creates a lazy store. Its totals never start again: the owner adds them up itself, so that a fall is a negative observation.
 */
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

/** A store for scraped pages: a page is shown completely or not at all. */
export interface PageStore extends Store {
  /** Shows the page that has been filled. Without this call the page is discarded. */
  swap(): void;
  /** Shows nothing until the next swap, because the target is down. */
  hide(): void;
}

interface HeldPage {
  values: Float64Array;
  holders: number;
}

/**
 * Creates a page store. Two arrays take turns: one is filled while views show the other. An array that a view still holds is not
 * reused. A page that is discarded half-way leaves numbers behind that no view shows; the next page overwrites them, and the
 * increases that it added to merged series are correct.
 */
export function createPageStore(): PageStore {
  const cells = new Cells();
  const restarts: [Recordable, number][] = [];
  let shown: HeldPage = { values: new Float64Array(0), holders: 0 };
  let step = 0;
  let shownStep = 0;
  let lastOpenedStep = 0;
  let visibility = 0;

  /** An array that no view holds, of the size of the array that is shown. */
  const freePage = (before: HeldPage): Float64Array => {
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
    noteOpening() {
      lastOpenedStep = step;
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
      if (lastOpenedStep >= shownStep) visibility += 1;
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
