import { formatDecimal } from './decimal.ts';
import type { Kind, Shape } from './model.ts';

/** The spec's buckets for latencies, in seconds (Metrics configuration). */
export const defaultBounds: readonly number[] = [0.001, 0.005, 0.01, 0.05, 0.1, 0.5, 1, 5, 10];

/** How a series' numbers lie beside each other. */
export interface Layout {
  /** Numbers in all. */
  readonly width: number;
  /** Histogram: upper bounds, ascending, without +Inf; else empty. */
  readonly bounds: readonly number[];
  /** Texts of `le` or `quantile`, in order; empty for single numbers. */
  readonly texts: readonly string[];
}

export const singleLayout: Layout = { width: 1, bounds: [], texts: [] };

/** Cumulative buckets with +Inf last, then sum, then count. */
export function histogramLayout(
  bounds: readonly number[],
  texts: readonly string[] = bounds.map(formatDecimal),
): Layout {
  return { width: bounds.length + 3, bounds, texts };
}

/** Quantiles, then sum, then count. */
export function summaryLayout(quantiles: readonly string[]): Layout {
  return { width: quantiles.length + 2, bounds: [], texts: quantiles };
}

/** Whether two histograms can be added up; how their senders spell a bound does not matter. */
export function sameBounds(a: Layout, b: Layout): boolean {
  return a === b || (a.width === b.width && a.bounds.every((bound, i) => bound === b.bounds[i]));
}

/**
 * Counts one observation into cumulative buckets. Adding at the write keeps what readers see a plain copy,
 * at the price of a few additions per observation. It stands for `weight` of them.
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

/** The layout of a kind as its sender describes it; bounds that come from there are divided by `divisor`. */
export function layoutOf(kind: Kind, { bounds, boundTexts, quantiles }: Shape, divisor = 1): Layout {
  if (kind === 'summary') return summaryLayout(quantiles ?? []);
  if (kind !== 'histogram') return singleLayout;
  if (!bounds) return histogramLayout(defaultBounds);
  return divisor === 1
    ? histogramLayout(bounds, boundTexts)
    : histogramLayout(bounds.map((bound) => bound / divisor));
}
