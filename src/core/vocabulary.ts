import { catalog } from './catalog.ts';
import type { Kind, RawTags } from './model.ts';
import { compareText } from './registry/labels.ts';
import type { Translate, Translated } from './registry/resolver.ts';
import type { Twins } from './twins.ts';

/** The units that products use, by how many of them make one of the catalog's units (seconds, bytes). */
export const unitDivisors = {
  nanoseconds: 1e9,
  microseconds: 1e6,
  milliseconds: 1e3,
  seconds: 1,
  kilobytes: 1e-3,
  kibibytes: 1 / 1024,
  bytes: 1,
} as const;
export type SourceUnit = keyof typeof unitDivisors;

/** How a metric of a product becomes a metric of the catalog, and for which series and senders the rule applies. */
interface MetricRule {
  /** The rule applies only to senders that have all of these metrics. */
  has?: readonly string[];
  /** The rule applies only to series that have none of these tags. */
  lacks?: readonly string[];
  /** The rule applies only to series whose tags have one of these values. */
  where?: Readonly<Record<string, readonly string[]>>;
  /**
   * The catalog's name, or one name for each value of the tag `by`. Several metrics of a product may have the
   * same name: they are parts of one total and are added up. Without a name the series is left out on purpose.
   */
  to?: string | Readonly<Record<string, string>>;
  /**
   * The tag whose value chooses the name. It is dropped unless `keep` is set; a value without a name leaves the metric as it is.
   */
  by?: string;
  keep?: boolean;
  /** Tags that are dropped, by the product's names. */
  drop?: readonly string[];
  /** A second name for the same numbers, with other tags dropped. */
  also?: { to: string; drop?: readonly string[] };
  /** If the sender has one of these metrics, the metric of this rule repeats it and is left out. */
  unless?: readonly string[];
  /** The unit of the numbers, if it is not the catalog's. */
  unit?: SourceUnit;
  /** The catalog's kind, if a single number is sent as another kind. */
  kind?: Kind;
  /** Text that the catalog puts before a tag's value, by the product's name of the tag. */
  prefix?: Readonly<Record<string, string>>;
}

/** A name, a rule, or several rules of which the first that applies is used. */
type MetricEntry = string | MetricRule | readonly MetricRule[];

/** A product's names as data. */
export interface VocabularyTable {
  name: string;
  /** Rules by the product's name of the metric. */
  metrics: Readonly<Record<string, MetricEntry>>;
  /** The names of the tags of every metric. */
  tags: Readonly<Record<string, string>>;
  /** Units by the product's name of a metric. */
  units?: Readonly<Record<string, SourceUnit>>;
  /** Distributions with such a tag repeat others as a sum, and are left out. */
  doubles?: Readonly<Record<string, string>>;
  /** Each metric may have a second name; its rules apply to both. */
  twins?: Twins;
  /** Metrics that are left out, by the product's or the catalog's name; `*` stands for any characters. */
  drop?: readonly string[];
  /** If there are any, all other metrics are left out. */
  keep?: readonly string[];
  /** Tags that are dropped from every metric, by the product's names or the catalog's. */
  dropLabels?: readonly string[];
}

/** What a translation needs to know about the sender. */
export interface Sender {
  /** Whether the sender has a metric with this name. */
  has(name: string): boolean;
  /** Whether the twin of this metric is used instead of it. */
  isRepeated(name: string): boolean;
}

export interface Vocabulary {
  readonly name: string;
  readonly table: VocabularyTable;
  /** The metrics of the vocabulary, by the product's names. */
  readonly names: ReadonlySet<string>;
  /** The catalog's names to which the rules lead. */
  readonly leadsTo: ReadonlySet<string>;
  /** Translates a series into the catalog's names. */
  translate(kind: Kind, name: string, tags: RawTags, sender: Sender): ReturnType<Translate>;
  /** Whether the translation of this metric may depend on the values of tags. */
  readsValues(kind: Kind, name: string): boolean;
}

const rulesOf = (entry: MetricEntry): readonly MetricRule[] => {
  if (typeof entry === 'string') return [{ to: entry }];
  return Array.isArray(entry) ? entry : [entry as MetricRule];
};
const namesIn = ({ to, also }: MetricRule): string[] => [
  ...(typeof to === 'string' ? [to] : Object.values(to ?? {})),
  ...(also ? [also.to] : []),
];

function holds({ has, lacks, where }: MetricRule, tags: RawTags, sends: (name: string) => boolean): boolean {
  return (
    (has?.every(sends) ?? true) &&
    (lacks?.every((tag) => tags[tag] === undefined) ?? true) &&
    Object.entries(where ?? {}).every(([tag, values]) => values.includes(tags[tag] ?? ''))
  );
}

/** The rules of each metric. A twin has the rules of its metric, and its additional tags are dropped. */
function rulesByName({ metrics, twins }: VocabularyTable): Map<string, readonly MetricRule[]> {
  const all = new Map(Object.entries(metrics).map(([from, entry]) => [from, rulesOf(entry)]));
  if (!twins) return all;
  for (const [from, rules] of [...all]) {
    const name = from + twins.suffix;
    if (from.endsWith(twins.suffix) || all.has(name)) continue;
    const drops = (drop: readonly string[] = []) => [...drop, ...(twins.drop ?? [])];
    all.set(
      name,
      rules.map((rule) => ({
        ...rule,
        drop: drops(rule.drop),
        ...(rule.also && { also: { ...rule.also, drop: drops(rule.also.drop) } }),
      })),
    );
  }
  return all;
}

/** Whether a name matches one of the patterns; `*` stands for any characters. */
function matcherOf(patterns: readonly string[] = []): (name: string) => boolean {
  if (patterns.length === 0) return () => false;
  const parts = patterns.map((pattern) => pattern.replace(/[^\w*]/g, '\\$&').replaceAll('*', '.*'));
  const any = new RegExp(`^(?:${parts.join('|')})$`);
  return (name) => any.test(name);
}

/** Whether the table's `drop` and `keep` leave out a metric with these names. */
function createSelection({ drop, keep }: VocabularyTable): (names: readonly string[]) => boolean {
  const [isDropped, isKept] = [matcherOf(drop), matcherOf(keep)];
  return (names) => names.some(isDropped) || (keep !== undefined && keep.length > 0 && !names.some(isKept));
}

export function createVocabulary(table: VocabularyTable): Vocabulary {
  const metrics = rulesByName(table);
  const doubles = Object.entries(table.doubles ?? {});
  const isLeftOut = createSelection(table);
  const { suffix } = table.twins ?? {};
  const mayBeDouble = (kind: Kind) => doubles.length > 0 && (kind === 'histogram' || kind === 'summary');
  const isDouble = (kind: Kind, tags: RawTags): boolean =>
    mayBeDouble(kind) && doubles.some(([tag, value]) => tags[tag] === value);
  return {
    name: table.name,
    table,
    names: new Set(metrics.keys()),
    leadsTo: new Set([...metrics.values()].flat().flatMap(namesIn)),
    readsValues: (kind, name) =>
      mayBeDouble(kind) ||
      (metrics.get(name)?.some(({ where, by, prefix }) => where ?? by ?? prefix) ?? false),
    translate(kind, name, tags, { has, isRepeated }): Translated | 'left_out' {
      // A rule that names a metric applies to either of its names.
      const sends = (other: string) => has(other) || (suffix !== undefined && has(other + suffix));
      const rule = metrics.get(name)?.find((one) => holds(one, tags, sends));
      if (isDouble(kind, tags) || isRepeated(name) || rule?.unless?.some(sends)) return 'left_out';
      if (rule && rule.to === undefined) return 'left_out';
      const to = rule && nameBy(rule, tags);
      if (isLeftOut([name, ...(to === undefined ? [] : [to])])) return 'left_out';
      const applied = to === undefined ? undefined : rule;
      const unit = applied?.unit ?? table.units?.[name];
      const common = { divisor: unit === undefined ? 1 : unitDivisors[unit], kind: applied?.kind };
      const also = applied?.also;
      return {
        ...common,
        name: to ?? name,
        tags: renameTags(tags, table, applied),
        ...(also &&
          !isLeftOut([also.to]) && {
            also: {
              ...common,
              name: also.to,
              tags: renameTags(tags, table, { ...applied, drop: also.drop }),
            },
          }),
      };
    },
  };
}

/** A table with the entries of another table, in which its own entries take precedence. */
export function extendTable(base: VocabularyTable, own: VocabularyTable): VocabularyTable {
  return {
    ...base,
    name: own.name,
    metrics: { ...base.metrics, ...own.metrics },
    tags: { ...base.tags, ...own.tags },
    units: { ...base.units, ...own.units },
    drop: own.drop,
    keep: own.keep,
    dropLabels: own.dropLabels,
  };
}

/** The catalog's own names, for senders that use them already. */
export function catalogVocabulary(): Vocabulary {
  const metrics = Object.fromEntries(catalog.map(({ name }) => [name, name]));
  return createVocabulary({ name: 'svc', metrics, tags: {} });
}

function nameBy({ to, by }: MetricRule, tags: RawTags): string | undefined {
  if (to === undefined || typeof to === 'string') return to;
  const value = by === undefined ? undefined : tags[by];
  return value !== undefined && Object.hasOwn(to, value) ? to[value] : undefined;
}

/** Renames tags. A renamed tag never replaces a tag that has the new name already: then it stays as it is. */
function renameTags(
  tags: RawTags,
  { tags: renames, dropLabels = [] }: VocabularyTable,
  rule: MetricRule | undefined,
): RawTags {
  const renamed = new Map<string, string>();
  for (const [name, value] of Object.entries(tags)) {
    if (rule !== undefined && name === rule.by && !rule.keep) continue;
    const to = Object.hasOwn(renames, name) ? renames[name]! : name;
    if (rule?.drop?.includes(name) || dropLabels.includes(name) || dropLabels.includes(to)) continue;
    const front = rule?.prefix && Object.hasOwn(rule.prefix, name) ? rule.prefix[name]! : '';
    const isTaken = to !== name && (Object.hasOwn(tags, to) || renamed.has(to));
    renamed.set(isTaken ? name : to, value.startsWith(front) ? value : front + value);
  }
  return Object.fromEntries(renamed);
}

/** What one raw metric of a sender became; `to` is empty if all its series were left out. */
export interface MappedMetric {
  readonly name: string;
  readonly to: ReadonlySet<string>;
  /** Whether some of its series were left out on purpose. */
  readonly leftOut: boolean;
}

/** A page compared with the catalog, for `check --live`. */
export interface Coverage {
  /** The raw names from which each metric was made. */
  readonly made: Readonly<Record<string, readonly string[]>>;
  /** Metrics of the catalog that the page does not have. */
  readonly missing: readonly string[];
  /** Raw names without a rule. */
  readonly unmapped: readonly string[];
  /** The raw names that resemble a missing metric, each with that metric. */
  readonly alike: Readonly<Record<string, readonly string[]>>;
  /** Raw names of which at least some series were left out on purpose. */
  readonly leftOut: readonly string[];
}

const wordsOf = (name: string): string[] => name.split('_').filter((word) => word !== 'svc' && word !== 'ns');

/** Two names are alike if all words of the shorter name, at least two, are in the other name. */
function isAlike(one: string, other: string): boolean {
  const [short, long] = [wordsOf(one), wordsOf(other)].sort((a, b) => a.length - b.length) as [
    string[],
    string[],
  ];
  return short.length > 1 && short.every((word) => long.includes(word));
}

/**
 * Compares metrics with the catalog. `wanted` are the names that the sender should have; `known` are further names that are read
 * under their raw names.
 */
export function coverageOf(
  mapped: Iterable<MappedMetric>,
  wanted: readonly string[],
  known: ReadonlySet<string>,
): Coverage {
  const all = [...mapped].sort((a, b) => compareText(a.name, b.name));
  const made = new Map<string, string[]>();
  for (const { name, to } of all) {
    for (const target of to) made.set(target, [...(made.get(target) ?? []), name]);
  }
  const missing = wanted.filter((name) => !made.has(name));
  const isMapped = ({ name, to }: MappedMetric) =>
    to.size === 0 || known.has(name) || [...to].some((target) => target !== name || known.has(target));
  const unmapped = all.filter((metric) => !isMapped(metric)).map(({ name }) => name);
  const alike = unmapped.map((name) => [name, missing.filter((metric) => isAlike(name, metric))] as const);
  return {
    made: Object.fromEntries(made),
    missing,
    unmapped,
    alike: Object.fromEntries(alike.filter(([, metrics]) => metrics.length > 0)),
    leftOut: all.filter(({ leftOut }) => leftOut).map(({ name }) => name),
  };
}
