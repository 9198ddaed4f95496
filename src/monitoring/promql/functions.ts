/** Aggregation operators of Prometheus 2.42. */
export const aggregators: ReadonlySet<string> = new Set([
  ...['sum', 'min', 'max', 'avg', 'group', 'count', 'stddev', 'stdvar'],
  ...['count_values', 'bottomk', 'topk', 'quantile'],
]);

/** What a function reads: increases of a counter, movement of a gauge, or anything. */
export type Reads = 'counter' | 'gauge' | 'any';

const rows: Readonly<Record<Reads, readonly string[]>> = {
  counter: ['rate', 'irate', 'increase', 'resets'],
  gauge: ['deriv', 'delta', 'idelta', 'predict_linear', 'holt_winters'],
  any: [
    ...['absent', 'absent_over_time', 'changes', 'clamp', 'clamp_max', 'clamp_min', 'scalar', 'vector'],
    ...['histogram_quantile', 'label_join', 'label_replace', 'sort', 'sort_desc', 'time', 'timestamp'],
    ...['abs', 'ceil', 'exp', 'floor', 'ln', 'log10', 'log2', 'round', 'sgn', 'sqrt'],
    ...['day_of_month', 'day_of_week', 'day_of_year', 'days_in_month', 'hour', 'minute', 'month', 'year'],
    ...['avg_over_time', 'count_over_time', 'last_over_time', 'max_over_time', 'min_over_time'],
    ...['present_over_time', 'quantile_over_time', 'stddev_over_time', 'stdvar_over_time', 'sum_over_time'],
  ],
};

/** Functions of Prometheus 2.42 by what they read. */
export const functions: ReadonlyMap<string, Reads> = new Map(
  Object.entries(rows).flatMap(([reads, names]) => names.map((name) => [name, reads as Reads] as const)),
);
