import { catalog } from './catalog.ts';
import type { Translate, Translated } from './intake.ts';
import type { Kind, RawTags } from './model.ts';

/** Units that products count in, by how many of them make one of the catalog's (seconds, bytes). */
export const unitDivisors = {
  nanoseconds: 1e9,
  microseconds: 1e6,
  milliseconds: 1e3,
  seconds: 1,
  kilobytes: 1e-3,
  kibibytes: 1 / 1024,
  bytes: 1,
} as const;
export type Unit = keyof typeof unitDivisors;

/** How one metric of a product is called in the catalog. */
export interface MetricRule {
  /** The catalog's name, or one name for each value of the tag `by`. */
  to: string | Readonly<Record<string, string>>;
  /** Tag whose value chooses the name. It is dropped unless `keep`; a value without a name leaves the metric alone. */
  by?: string;
  keep?: boolean;
  /** Where one of these is sent too, this metric only repeats it and is left out. */
  unless?: readonly string[];
  /** What its numbers count, where that is not the catalog's unit. */
  unit?: Unit;
  /** The catalog's kind, where a single number is sent as another. */
  kind?: Kind;
  /** Text that the catalog puts in front of a tag's value, by the product's name of the tag. */
  prefix?: Readonly<Record<string, string>>;
}

/** A product's words as data. */
export interface VocabularyTable {
  name: string;
  /** By the product's name; a rule that only renames is the catalog's name. */
  metrics: Readonly<Record<string, string | MetricRule>>;
  /** Tag names, of every metric. */
  tags: Readonly<Record<string, string>>;
  /** Units by the product's name of a metric. */
  units?: Readonly<Record<string, Unit>>;
  /** Distributions with such a tag repeat others in sum, and are left out. */
  doubles?: Readonly<Record<string, string>>;
}

export interface Vocabulary {
  readonly name: string;
  /** Its metrics by the product's names. */
  readonly names: ReadonlySet<string>;
  /** Names of the catalog that it can lead to. */
  readonly leadsTo: ReadonlySet<string>;
  /** A series in the catalog's words. `has` says whether the sender has a metric of that name. */
  translate(kind: Kind, name: string, tags: RawTags, has: (name: string) => boolean): ReturnType<Translate>;
}

const ruleOf = (entry: string | MetricRule): MetricRule =>
  typeof entry === 'string' ? { to: entry } : entry;
const namesIn = ({ to }: MetricRule): string[] => (typeof to === 'string' ? [to] : Object.values(to));

export function createVocabulary(table: VocabularyTable): Vocabulary {
  const rules = new Map(Object.entries(table.metrics).map(([from, entry]) => [from, ruleOf(entry)]));
  const doubles = Object.entries(table.doubles ?? {});
  const isDouble = (kind: Kind, tags: RawTags): boolean =>
    (kind === 'histogram' || kind === 'summary') && doubles.some(([tag, value]) => tags[tag] === value);
  return {
    name: table.name,
    names: new Set(rules.keys()),
    leadsTo: new Set([...rules.values()].flatMap(namesIn)),
    translate(kind, name, tags, has): Translated | 'left_out' {
      const rule = rules.get(name);
      if (isDouble(kind, tags) || rule?.unless?.some(has)) return 'left_out';
      const to = rule && nameBy(rule, tags);
      const applied = to === undefined ? undefined : rule;
      const unit = applied?.unit ?? table.units?.[name];
      return {
        name: to ?? name,
        tags: renameTags(tags, table.tags, applied),
        divisor: unit === undefined ? 1 : unitDivisors[unit],
        kind: applied?.kind,
      };
    },
  };
}

/** The catalog's own words, for senders that speak them already. */
export function catalogVocabulary(): Vocabulary {
  const metrics = Object.fromEntries(catalog.map(({ name }) => [name, name]));
  return createVocabulary({ name: 'svc', metrics, tags: {} });
}

function nameBy({ to, by }: MetricRule, tags: RawTags): string | undefined {
  if (typeof to === 'string') return to;
  const value = by === undefined ? undefined : tags[by];
  return value !== undefined && Object.hasOwn(to, value) ? to[value] : undefined;
}

/** A renamed tag never displaces one that has the new name already: it keeps its own. */
function renameTags(tags: RawTags, renames: RawTags, rule: MetricRule | undefined): RawTags {
  const renamed = new Map<string, string>();
  for (const [name, value] of Object.entries(tags)) {
    if (rule !== undefined && name === rule.by && !rule.keep) continue;
    const to = Object.hasOwn(renames, name) ? renames[name]! : name;
    const front = rule?.prefix && Object.hasOwn(rule.prefix, name) ? rule.prefix[name]! : '';
    const isTaken = to !== name && (Object.hasOwn(tags, to) || renamed.has(to));
    renamed.set(isTaken ? name : to, value.startsWith(front) ? value : front + value);
  }
  return Object.fromEntries(renamed);
}

/**
 * The vocabulary that a sender speaks: the one of whose own names, those that no other has, it uses most.
 * Undefined while it uses none, or as many of one as of another.
 */
export function detectVocabulary(
  vocabularies: readonly Vocabulary[],
  names: ReadonlySet<string>,
): Vocabulary | undefined {
  const isOwn = (vocabulary: Vocabulary, name: string) =>
    !vocabularies.some((other) => other !== vocabulary && other.names.has(name));
  const ranked = vocabularies
    .map((vocabulary) => {
      const used = [...vocabulary.names].filter((name) => names.has(name) && isOwn(vocabulary, name));
      return { vocabulary, used: used.length };
    })
    .sort((a, b) => b.used - a.used);
  const [best, next] = ranked;
  return best !== undefined && best.used > (next?.used ?? 0) ? best.vocabulary : undefined;
}

/** The words of one sender: a vocabulary, settled by configuration or by the names it is heard to use. */
export interface VocabularyDetector {
  /** For its intake. Undefined as long as no vocabulary is settled. */
  readonly translate: Translate;
  /** What it has been found to speak. */
  readonly vocabulary: Vocabulary | undefined;
  /**
   * Hears the names that the sender has. Answers which of them mean something else than before, so that
   * their series must be asked for anew.
   */
  detect(names: ReadonlySet<string>): ReadonlySet<string>;
}

/**
 * `choices` are the tables that `auto` chooses from, once, or the only one there is when `isSettled`; none
 * leaves every name as it is.
 */
export function createVocabularyDetector(
  choices: readonly Vocabulary[],
  isSettled = false,
): VocabularyDetector {
  let vocabulary = isSettled ? choices[0] : undefined;
  let heard: ReadonlySet<string> = new Set();
  const has = (name: string): boolean => heard.has(name);
  return {
    translate: (kind, name, tags) => vocabulary?.translate(kind, name, tags, has),
    get vocabulary() {
      return vocabulary;
    },
    detect(names) {
      const isSame = names.size === heard.size && [...names].every(has);
      heard = names;
      if (isSame) return new Set();
      const settled = vocabulary ?? detectVocabulary(choices, names);
      const isNew = settled !== vocabulary;
      vocabulary = settled;
      return isNew ? names : new Set([...names].filter((name) => settled?.names.has(name)));
    },
  };
}
