import { formatDecimal } from '../../core/decimal.ts';
import type { FamilyView, Kind, Labels, SeriesView } from '../../core/model.ts';
import type { TagFormat } from '../block.ts';

/** The totals among a series' numbers, which are pushed as deltas; the other numbers are pushed as gauges. */
interface Totals {
  readonly first: number;
  readonly count: number;
}

export function totalsOf(kind: Kind, { bounds }: Pick<SeriesView, 'bounds'>): Totals {
  if (kind === 'counter') return { first: 0, count: 1 };
  if (kind === 'histogram') return { first: 0, count: bounds.length + 3 };
  return kind === 'summary' ? { first: bounds.length, count: 2 } : { first: 0, count: 0 };
}

/**
 * The line formats of all of a series' numbers, in their order: `name_bucket` with the bound as `le`, `name_sum` and `name_count`
 * of a histogram; `name` with `quantile`, `name_sum` and `name_count` of a summary. Buckets stay cumulative, so that a receiver
 * that adds the deltas has the same histogram as a scrape. `|ms` is not used: a role's timers arrive as histograms or summaries
 * in seconds, and single observations are not stored.
 */
export function formsOf(
  formatter: LineFormatter,
  { name, kind }: FamilyView,
  series: SeriesView,
): readonly LineFormat[] {
  const { labels, bounds } = series;
  const sums = () => [formatter(`${name}_sum`, labels), formatter(`${name}_count`, labels)];
  if (kind === 'histogram') {
    return [...bounds, '+Inf']
      .map((bound) => formatter(`${name}_bucket`, labels, ['le', bound]))
      .concat(sums());
  }
  if (kind === 'summary') {
    return bounds.map((quantile) => formatter(name, labels, ['quantile', quantile])).concat(sums());
  }
  return [formatter(name, labels)];
}

export function counterLine({ head, tail }: LineFormat, delta: number): string {
  return `${head}${formatDecimal(delta)}|c${tail}`;
}

/**
 * The line of a gauge. Receivers treat a signed number as a change, so a negative value needs two lines: 0, then the change. They
 * must be in one datagram.
 */
export function gaugeLine({ head, tail }: LineFormat, value: number): string {
  const line = `${head}${formatDecimal(value)}|g${tail}`;
  return value < 0 ? `${head}0|g${tail}\n${line}` : line;
}

/** A line without its number and type: `<head>` number `|` type `<tail>`. */
export interface LineFormat {
  readonly head: string;
  readonly tail: string;
  /** Lines with the same key are one series for the receiver. */
  readonly key: string;
}

/** Writes a name with its tags; `part` is the bound or quantile, which every format includes. */
type Spelling = (name: string, tags: Labels, part: Labels) => { path: string; tail: string };

/** Matches characters that end a value in a name for some receiver. */
const endsSegment = /[.:|@#,=;/[\]\s\p{Cc}]/gu;
const endsInfluxValue = /[:|@#,=;[\]\s\p{Cc}]/gu;
const endsDogValue = /[|,\p{Cc}\u2028\u2029]/gu;
const endsPrefix = /[:|@#,=;/[\]\s\p{Cc}]/gu;

const appended = (name: string, tags: Labels) =>
  name + tags.map(([tag, value]) => `.${tag}.${value.replace(endsSegment, '_')}`).join('');

const inOrder = (tags: Labels, part: Labels): Labels =>
  part.length === 0 ? tags : [...tags, ...part].sort(([a], [b]) => (a < b ? -1 : 1));

const spellings: Readonly<Record<TagFormat, Spelling>> = {
  suffix: (name, tags, part) => ({ path: appended(name, inOrder(tags, part)), tail: '' }),
  none: (name, _tags, part) => ({ path: appended(name, part), tail: '' }),
  influx: (name, tags, part) => {
    const pairs = inOrder(tags, part).map(([tag, value]) => `,${tag}=${value.replace(endsInfluxValue, '_')}`);
    return { path: name + pairs.join(''), tail: '' };
  },
  dogstatsd: (name, tags, part) => {
    const pairs = inOrder(tags, part).map(([tag, value]) => `${tag}:${value.replace(endsDogValue, '_')}`);
    return { path: name, tail: pairs.length === 0 ? '' : `|#${pairs.join(',')}` };
  },
};

/** See `createLineFormatter`. */
export type LineFormatter = (
  name: string,
  labels: Labels,
  part?: readonly [name: string, value: string],
) => LineFormat;

interface LineFormatterOptions {
  tagFormat: TagFormat;
  /** Prefixes before every name, outermost first; empty ones are ignored. */
  prefixes: readonly string[];
  /** The value of the tag `instance`, unless the series has one. */
  instance: string;
}

function prefixOf(prefixes: readonly string[]): string {
  const cleaned = prefixes.map((prefix) => prefix.replace(endsPrefix, '_').replace(/^\.+|\.+$/g, ''));
  return cleaned.map((prefix) => (prefix === '' ? '' : `${prefix}.`)).join('');
}

/**
 * Line formats for one tag format. `suffix`: `name.k.v` (what the service's own enhanced reporter sends); `dogstatsd`: `|#k:v`;
 * `influx`: `name,k=v`; `none`: no tags. Tags are sorted by name, `instance` and the part among them. The formats have no
 * escapes: each character that would end a value becomes `_`; in `suffix` this includes the dot. Values that become equal share
 * one key. A tag with an empty value is left out.
 */
export function createLineFormatter({ tagFormat, prefixes, instance }: LineFormatterOptions): LineFormatter {
  const spell = spellings[tagFormat];
  const prefix = prefixOf(prefixes);
  return (name, labels, part) => {
    const own = labels.some(([tag]) => tag === 'instance') ? [] : [['instance', instance] as const];
    const tags = inOrder(labels, own).filter(([, value]) => value !== '');
    const { path, tail } = spell(prefix + name, tags, part ? [part] : []);
    return { head: `${path}:`, tail, key: `${path}${tail}` };
  };
}
