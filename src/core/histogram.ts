import { formatDecimal } from './decimal.ts';
import type { Kind, Shape } from './model.ts';

/** The spec's buckets for latencies, in seconds (Metrics configuration). */
export const defaultBounds: readonly number[] = [0.001, 0.005, 0.01, 0.05, 0.1, 0.5, 1, 5, 10];

/** The order of a series' numbers in its cells. */
export interface Layout {
  /** How many numbers there are. */
  readonly width: number;
  /** Histogram: upper bounds, ascending, without +Inf; else empty. */
  readonly bounds: readonly number[];
  /** Texts of `le` or `quantile`, in order; empty for single numbers. */
  readonly texts: readonly string[];
  /** Whether the sender has a sum and a count. Their cells exist either way; reporters leave missing ones out. */
  readonly hasSum: boolean;
  readonly hasCount: boolean;
}

export const singleLayout: Layout = { width: 1, bounds: [], texts: [], hasSum: false, hasCount: false };

/** Cumulative buckets with +Inf last, then sum, then count. */
export function histogramLayout(
  bounds: readonly number[],
  texts: readonly string[] = bounds.map(formatDecimal),
  { hasSum = true, hasCount = true }: Pick<Shape, 'hasSum' | 'hasCount'> = {},
): Layout {
  return { width: bounds.length + 3, bounds, texts, hasSum, hasCount };
}

/** Quantiles, then sum, then count. */
export function summaryLayout(
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
 * Adds an observation to cumulative buckets, sum and count. Writing cumulative counts costs a few additions per
 * observation and lets readers copy the cells as they are. `weight` is the number of observations it stands for.
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

/** The layout of a kind as its sender describes it. Bounds that the sender gave are divided by `divisor`. */
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
