import type { FamilyView, Kind, SeriesView } from '../../core/model.ts';
import { plainNumber } from './number.ts';
import type { Form, Former } from './tags.ts';

/** Which of a series' numbers are totals, pushed as deltas; the others are pushed as gauges. */
export interface Totals {
  readonly first: number;
  readonly count: number;
}

export function totalsOf(kind: Kind, { bounds }: Pick<SeriesView, 'bounds'>): Totals {
  if (kind === 'counter') return { first: 0, count: 1 };
  if (kind === 'histogram') return { first: 0, count: bounds.length + 3 };
  return kind === 'summary' ? { first: bounds.length, count: 2 } : { first: 0, count: 0 };
}

/**
 * The forms of all of a series' numbers, in their order: `name_bucket` with the bound as `le`, `name_sum` and
 * `name_count` of a histogram; `name` with `quantile`, `name_sum` and `name_count` of a summary. Buckets stay
 * cumulative, so that a receiver that adds up deltas has a histogram as a scrape shows it. There is no `|ms`:
 * timers of a role arrive as histograms or summaries in seconds, and single observations are not kept.
 */
export function formsOf(former: Former, { name, kind }: FamilyView, series: SeriesView): readonly Form[] {
  const { labels, bounds } = series;
  const sums = () => [former(`${name}_sum`, labels), former(`${name}_count`, labels)];
  if (kind === 'histogram') {
    return [...bounds, '+Inf'].map((bound) => former(`${name}_bucket`, labels, ['le', bound])).concat(sums());
  }
  if (kind === 'summary') {
    return bounds.map((quantile) => former(name, labels, ['quantile', quantile])).concat(sums());
  }
  return [former(name, labels)];
}

export function counterLine({ head, tail }: Form, delta: number): string {
  return `${head}${plainNumber(delta)}|c${tail}`;
}

/**
 * A gauge's line. A receiver takes a signed number for a change, so that a negative one is two lines: 0, then
 * the change from it. They belong in one datagram.
 */
export function gaugeLine({ head, tail }: Form, value: number): string {
  const line = `${head}${plainNumber(value)}|g${tail}`;
  return value < 0 ? `${head}0|g${tail}\n${line}` : line;
}
