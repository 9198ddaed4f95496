/**
 * What a metric is. Sources get handles from an `Intake` once per series and then update numbers;
 * reporters read a `View`. Nothing here does I/O.
 */

export const kinds = ['counter', 'gauge', 'histogram', 'summary', 'untyped'] as const;
export type Kind = (typeof kinds)[number];

/** Raw tags as a source has them; order does not matter, names may be unsanitized. */
export type RawTags = Readonly<Record<string, string>>;

/** Final labels, sorted by name, each name once. */
export type Labels = readonly (readonly [name: string, value: string])[];

/** A monotonic sum. */
export interface Counter {
  /** Adds an increase; a negative or non-finite one is refused and counted. */
  add(delta: number): void;
  /**
   * Takes an absolute total as its sender has it. Alone in its series, the total is shown as it is, falls
   * included (a restart that the reader's `rate()` must see); where several members share the series,
   * increases are added, a fall counting as a restart from 0.
   */
  set(total: number): void;
  /** Gives the handle back; the series goes with its last owner. */
  release(): void;
}

/** A value that goes up and down. */
export interface Gauge {
  add(delta: number): void;
  set(value: number): void;
  release(): void;
}

/** A distribution over upper bounds. Units are the metric's (latencies: seconds). */
export interface Histogram {
  /** `weight`: how many observations this one stands for, as a sampled sender says; need not be whole. */
  observe(value: number, weight?: number): void;
  /**
   * Takes absolute parts as their sender has them: cumulative counts in the order of the bounds with +Inf
   * last, then sum, then count. Merges as `Counter.set` does, part by part.
   */
  set(parts: ArrayLike<number>): void;
  release(): void;
}

/** Ready-made quantiles, with sum and count; whoever sends or times them works them out. */
export interface Summary {
  /** The quantiles' values in order, then sum, then count. */
  set(parts: ArrayLike<number>): void;
  release(): void;
}

/** One line of a series that is updated by itself: a bucket, a sum, a count, a value. */
export interface Part {
  /** Same meaning as `set` of the series' kind, for this part alone. */
  set(value: number): void;
}

/** What an intake may be told about a family when it asks for the first series of it. */
export interface Shape {
  help?: string;
  /** Histogram: upper bounds without +Inf, as numbers; `boundTexts` keeps a sender's own spelling of `le`. */
  bounds?: readonly number[];
  boundTexts?: readonly string[];
  /** Summary: quantiles as the sender spells them. */
  quantiles?: readonly string[];
  /** Histogram, summary: false if the sender has no `_sum` or no `_count`; it is not shown then. Default true. */
  hasSum?: boolean;
  hasCount?: boolean;
  /** Durable families: the tags that a rule gives; series of the state that have others are given up. */
  tags?: readonly string[];
}

/**
 * Where one source of one service hands in its series. Vocabulary, names, forbidden tags, global tags, limits
 * and identity are dealt with here, once per series; the handle that comes back is updated without look-ups.
 * A refused series gets a handle that discards, so callers never branch.
 */
export interface Intake {
  counter(name: string, tags: RawTags, shape?: Shape): Counter;
  gauge(name: string, tags: RawTags, shape?: Shape): Gauge;
  histogram(name: string, tags: RawTags, shape?: Shape): Histogram;
  summary(name: string, tags: RawTags, shape?: Shape): Summary;
  untyped(name: string, tags: RawTags, shape?: Shape): Gauge;
}

/** One series as a reporter sees it. Its numbers are `view.numbers(series)[series.at + part]`. */
export interface SeriesView {
  readonly labels: Labels;
  /** The value of `svc_service`, or '' for what belongs to no service. */
  readonly service: string;
  /** True for what a role itself sent (scrape, statsd); false for what the agent found out. */
  readonly relayed: boolean;
  /** First of its numbers. Counter, gauge, untyped: 1. Histogram: cumulative buckets incl. +Inf, sum, count. Summary: quantiles, sum, count. */
  readonly at: number;
  /** Texts of `le` without +Inf, or of `quantile`; empty for single numbers. */
  readonly bounds: readonly string[];
  /** Histogram, summary: whether the sender has a sum and a count; their cells hold no number otherwise. */
  readonly hasSum: boolean;
  readonly hasCount: boolean;
  /** When the series' counter began, ms since the epoch; what hosted reporters call its start time. */
  readonly startMs: number;
}

export interface FamilyView {
  readonly name: string;
  readonly kind: Kind;
  readonly help: string;
  readonly series: readonly SeriesView[];
}

/**
 * A still picture of everything, taken in one step: durable values from the committed view, scraped pages as
 * last taken whole. It does not move while it is rendered in slices. Release it when done.
 */
export interface View {
  readonly families: readonly FamilyView[];
  numbers(series: SeriesView): Float64Array;
  release(): void;
}
