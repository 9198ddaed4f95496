/** Values for what Grafana puts into a query before it sends it. */
export interface Filling {
  rateInterval: string;
  range: string;
  interval: string;
  /** Values of variables by name, as regular expressions. */
  values: Readonly<Record<string, string>>;
}

/** A query as Grafana would send it. A variable without a value becomes `.*`, as its All does. */
export function fill(expr: string, { rateInterval, range, interval, values }: Filling): string {
  return expr
    .replaceAll('$__rate_interval', rateInterval)
    .replaceAll('$__range', range)
    .replaceAll('$__interval', interval)
    .replace(/\$(\w+)|\$\{(\w+)(?::\w+)?\}/g, (_, bare, braced) => values[bare ?? braced] ?? '.*');
}

const spans = ['$__rate_interval', '$__range', '$__interval'] as const;
const standIn = (span: string): string => `${'1'.padStart(span.length - 1, '0')}m`;

/** Grafana's spans, as spans of the same length in characters: what is parsed keeps its places. */
export function parseable(expr: string): string {
  return expr.replace(/\$__(?:rate_interval|range|interval)\b/g, standIn);
}

/** The reverse of `parseable`. */
export function withSpans(expr: string): string {
  const meant = new Map(spans.map((span) => [standIn(span), span]));
  return expr.replace(/\b0+1m\b/g, (word) => meant.get(word) ?? word);
}
