/** PromQL by what it says, without the matchers of the variables; `by` are labels besides `cluster`. */
const interval = '[$__rate_interval]';
const wholeRange = '[$__range] @ end()';
const level = (by: string): string => (by ? `cluster, ${by}` : 'cluster');

/** All of a counter's increases per second. */
export const rate = (series: string, by = ''): string => `sum by (${level(by)}) (rate(${series}${interval}))`;

/** The same of a counter that several agents may count alike. */
export const rateOnce = (series: string, by = ''): string =>
  `max by (${level(by)}) (rate(${series}${interval}))`;

/** How much a counter grew in the shown range; `increase` is no whole number, as it reaches beyond the samples. */
export const grown = (series: string, by = ''): string =>
  `round(sum by (${level(by)}) (increase(${series}[$__range])))`;

/** The same of a counter that several agents may count alike. */
export const grownOnce = (series: string, by = ''): string =>
  `round(max by (${level(by)}) (increase(${series}[$__range])))`;

export const highest = (series: string, by = ''): string => `max by (${level(by)}) (${series})`;
export const total = (series: string, by = ''): string => `sum by (${level(by)}) (${series})`;

/** Seconds since a moment that an agent knew last, in the shown range. */
export const age = (series: string, by = ''): string => `time() - ${lastKnown(series, by)}`;

/** The latest that anybody knew in the shown range: an agent that dies takes nothing with it. */
export const lastKnown = (series: string, by = ''): string =>
  `max by (${level(by)}) (last_over_time(${series}[$__range]))`;

/** A moment as Grafana takes it, in milliseconds. */
export const moment = (series: string, by = ''): string => `1000 * ${lastKnown(series, by)}`;

/** A share of events; 0 where none was bad, absent where there was none at all. */
export const share = (bad: string, all: string, by = ''): string =>
  `(${rate(bad, by)} or 0 * ${rate(all, by)}) / (${rate(all, by)} > 0)`;

/** `metric` is the histogram's name, with matchers if need be. */
export const quantile = (q: number, metric: string, by = ''): string =>
  `histogram_quantile(${q}, sum by (${level(by)}, le) (rate(${part(metric, 'bucket')}${interval})))`;

/** Observations per second. */
export const observations = (metric: string, by = ''): string => rate(part(metric, 'count'), by);

/** A distribution over all clusters that are chosen. */
export const distribution = (metric: string): string =>
  `sum by (le) (rate(${part(metric, 'bucket')}${interval}))`;

/**
 * The `count` series that are greatest over the whole shown range, and no others at any step: `topk` alone
 * chooses at each step anew, which shows hundreds where many are alike. `overall` is what they are chosen by.
 */
export function top(count: number, expr: string, overall = overRange(expr)): string {
  return `${expr} and topk(${count}, ${overall})`;
}

/** An expression of rates, taken once over the whole shown range. */
const overRange = (expr: string): string => expr.replaceAll(interval, wholeRange);

/** What a gauge was at most in the shown range. */
export const peak = (series: string, by = ''): string =>
  `sum by (${level(by)}) (max_over_time(${series}${wholeRange}))`;

/** The rows of a table that has too many: those of now in which `chosenBy` is greatest. */
export const rowsOf = (expr: string, count: number, chosenBy: string): string =>
  `${expr} and topk(${count}, ${chosenBy})`;

/** How many of the series meet the condition; 0 where there are some and none is. */
export const howMany = (series: string, by: string, condition: string): string =>
  `count by (cluster) (${highest(series, by)} ${condition}) or 0 * ${highest(series)}`;

const part = (metric: string, suffix: string): string =>
  metric.replace(/^\w+/, (name) => `${name}_${suffix}`);
