/**
 * The data model. A source gets a handle from an `Intake` once per series and then updates numbers through it;
 * reporters read a `View`.
 */

export const kinds = ['counter', 'gauge', 'histogram', 'summary', 'untyped'] as const;
export type Kind = (typeof kinds)[number];

/** The raw tags of a source, in any order; names may be unsanitized. */
export type RawTags = Readonly<Record<string, string>>;

/** Labels of a series, sorted by name, each name once. */
export type Labels = readonly (readonly [name: string, value: string])[];

/** A monotonic sum. */
export interface Counter {
  /** Adds an increase; a negative or non-finite increase is refused and counted. */
  add(delta: number): void;
  /**
   * Sets the sender's absolute total. If the counter is alone in its series, the total is shown as it is, including falls (a
   * restart that the reader's `rate()` must see). If several members share the series, increases are added, and a fall counts as
   * a restart from 0.
   */
  set(total: number): void;
  /** Releases the handle; the series ends with its last owner. */
  release(): void;
}

/** A value that goes up and down. */
export interface Gauge {
  add(delta: number): void;
  set(value: number): void;
  release(): void;
}

/** A distribution over upper bounds, in the metric's unit (latencies: seconds). */
export interface Histogram {
  /**
   * Adds an observation. `weight` is the number of observations that it represents, as a sampling sender reports it; it may have
   * a fraction.
   */
  observe(value: number, weight?: number): void;
  /**
   * Sets the sender's absolute parts: cumulative counts in the order of the bounds with +Inf last, then sum, then count. Merges
   * like `Counter.set`, part by part.
   */
  set(parts: ArrayLike<number>): void;
  release(): void;
}

/** Quantiles that the sender computed, with sum and count. */
export interface Summary {
  /** Sets the quantiles' values in order, then sum, then count. */
  set(parts: ArrayLike<number>): void;
  release(): void;
}

/** One number of a series: a bucket, a sum, a count, a value. */
export interface Part {
  /** Does what `set` of the series' kind does, for this number. */
  set(value: number): void;
}

/** The details of a series that a source requests. */
export interface Shape {
  help?: string;
  /** For a histogram, the upper bounds without +Inf. `boundTexts` has the sender's spelling of `le`. */
  bounds?: readonly number[];
  boundTexts?: readonly string[];
  /** For a summary, the quantiles in the sender's spelling. */
  quantiles?: readonly string[];
  /** For a histogram or summary, false if the sender has no `_sum` or no `_count`, which is not shown then. Default true. */
  hasSum?: boolean;
  hasCount?: boolean;
  /** For durable families, the tags of the rule. Series of the state with other tags are discarded. */
  tags?: readonly string[];
}

/**
 * Opens the series of one source of one service. Vocabulary, names, forbidden tags, global tags, limits and identity are resolved
 * here, once per series; updates through the handle need no look-up. The handle of a refused series drops updates and counts
 * them, so callers need not treat it differently.
 */
export interface Intake {
  counter(name: string, tags: RawTags, shape?: Shape): Counter;
  gauge(name: string, tags: RawTags, shape?: Shape): Gauge;
  histogram(name: string, tags: RawTags, shape?: Shape): Histogram;
  summary(name: string, tags: RawTags, shape?: Shape): Summary;
  untyped(name: string, tags: RawTags, shape?: Shape): Gauge;
}

/** A series in a view. Its numbers are `view.numbers(series)[series.at + part]`. */
export interface SeriesView {
  readonly labels: Labels;
  /** The value of `svc_service`, or '' for a series of no service. */
  readonly service: string;
  /** True for a series that a role sent (scrape, statsd), false for one that the agent measured. */
  readonly relayed: boolean;
  /**
   * The index of the first of its numbers. A counter, a gauge and an untyped series have one number; a histogram has cumulative
   * buckets incl. +Inf, sum and count; a summary has quantiles, sum and count.
   */
  readonly at: number;
  /** The texts of `le` without +Inf, or of `quantile`; empty for single numbers. */
  readonly bounds: readonly string[];
  /** For a histogram or summary, whether the sender has a sum and a count; without them their cells have no number. */
  readonly hasSum: boolean;
  readonly hasCount: boolean;
  /** Start time of the series, ms since the epoch. */
  readonly startMs: number;
}

export interface FamilyView {
  readonly name: string;
  readonly kind: Kind;
  readonly help: string;
  readonly series: readonly SeriesView[];
}

/**
 * A consistent snapshot of all series, taken in one synchronous step: durable values from the last commit, scraped
 * values from the last complete page. It does not change while it is rendered in slices. Release it when done.
 */
export interface View {
  readonly families: readonly FamilyView[];
  numbers(series: SeriesView): Float64Array;
  release(): void;
}
