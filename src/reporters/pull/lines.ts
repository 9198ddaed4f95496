import type { Kind, Labels, SeriesView } from '../../core/model.ts';
import type { Format } from './format.ts';

const escapes: Readonly<Record<string, string>> = { '\\': '\\\\', '\n': '\\n', '"': '\\"' };
const escaped = (found: string): string => escapes[found]!;

/** Text 0.0.4 leaves a quote in HELP as it is; OpenMetrics' `escaped-string` does not. */
export function escapeHelp(help: string, format: Format): string {
  return help.replace(format === 'text' ? /[\\\n]/g : /[\\\n"]/g, escaped);
}

function escapeLabelValue(value: string): string {
  return value.replace(/[\\\n"]/g, escaped);
}

/** The shortest decimal that reads back as the same double; `NaN`, `+Inf`, `-Inf`. */
export function numberText(value: number): string {
  if (value - value === 0) return `${value}`;
  if (value > 0) return '+Inf';
  return value < 0 ? '-Inf' : 'NaN';
}

/** Joined and not concatenated: a rope would be walked again each time it is rendered. */
function line(name: string, labels: Labels, extraName?: string, extraValue = ''): string {
  const pairs = labels.map(([label, value]) => `${label}="${escapeLabelValue(value)}"`);
  if (extraName !== undefined) pairs.push(`${extraName}="${escapeLabelValue(extraValue)}"`);
  return pairs.length === 0 ? `${name} ` : [name, '{', pairs.join(','), '} '].join('');
}

/**
 * All of a series' lines up to their numbers, in the order of its numbers. The same text serves both formats:
 * names, label escapes and `le` do not differ.
 */
export function linesOf(name: string, kind: Kind, { labels, bounds }: SeriesView): readonly string[] {
  const sums = () => [line(`${name}_sum`, labels), line(`${name}_count`, labels)];
  if (kind === 'histogram') {
    return [...bounds, '+Inf'].map((bound) => line(`${name}_bucket`, labels, 'le', bound)).concat(sums());
  }
  if (kind === 'summary') {
    return bounds.map((quantile) => line(name, labels, 'quantile', quantile)).concat(sums());
  }
  return [line(name, labels)];
}
