import { formatDecimal } from '../../core/decimal.ts';
import type { FamilyView, Kind, Labels, SeriesView } from '../../core/model.ts';
import type { TagFormat } from './block.ts';

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
  return `${head}${formatDecimal(delta)}|c${tail}`;
}

/**
 * A gauge's line. A receiver takes a signed number for a change, so that a negative one is two lines: 0, then
 * the change from it. They belong in one datagram.
 */
export function gaugeLine({ head, tail }: Form, value: number): string {
  const line = `${head}${formatDecimal(value)}|g${tail}`;
  return value < 0 ? `${head}0|g${tail}\n${line}` : line;
}

/** A line but for its number and type: `<head>` number `|` type `<tail>`. */
export interface Form {
  readonly head: string;
  readonly tail: string;
  /** Lines of the same key are one series to the receiver. */
  readonly key: string;
}

/** How a format writes a name with its tags; `part` is the bound or quantile, which no format drops. */
type Spelling = (name: string, tags: Labels, part: Labels) => { path: string; tail: string };

/** Code points that end a value where the tags stand in the name, in one receiver or another. */
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

/** Writes names with tags; see `createFormer`. */
export type Former = (name: string, labels: Labels, part?: readonly [name: string, value: string]) => Form;

export interface FormerOptions {
  tagFormat: TagFormat;
  /** In front of every name, outermost first; empty ones do not count. */
  prefixes: readonly string[];
  /** Value of the tag `instance`, unless a series has its own. */
  instance: string;
}

function prefixOf(prefixes: readonly string[]): string {
  const cleaned = prefixes.map((prefix) => prefix.replace(endsPrefix, '_').replace(/^\.+|\.+$/g, ''));
  return cleaned.map((prefix) => (prefix === '' ? '' : `${prefix}.`)).join('');
}

/**
 * Forms of one tag format. `suffix`: `name.k.v` (what the service's own enhanced reporter sends); `dogstatsd`:
 * `|#k:v`; `influx`: `name,k=v`; `none`: no tags. Tags are sorted by name, `instance` and the part among them.
 * None of the formats has an escape: each code point of a value that would end it becomes `_`, in `suffix`
 * the dot too. Values that meet because of that meet in one key. An empty value is no tag.
 */
export function createFormer({ tagFormat, prefixes, instance }: FormerOptions): Former {
  const spell = spellings[tagFormat];
  const prefix = prefixOf(prefixes);
  return (name, labels, part) => {
    const own = labels.some(([tag]) => tag === 'instance') ? [] : [['instance', instance] as const];
    const tags = inOrder(labels, own).filter(([, value]) => value !== '');
    const { path, tail } = spell(prefix + name, tags, part ? [part] : []);
    return { head: `${path}:`, tail, key: `${path}${tail}` };
  };
}
