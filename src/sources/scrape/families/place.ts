import { parseValue } from '../../../core/decimal.ts';
import type { Kind } from '../../../core/model.ts';
import { type ExposedType, kindOf } from '../exposition/comment.ts';
import type { Key } from '../exposition/key.ts';

/** Which number of its series a line is. */
export type Role = 'value' | 'bucket' | 'quantile' | 'sum' | 'count';

/** Where a line belongs. */
export interface Place {
  /** Name of the family as the registry is told it. */
  family: string;
  kind: Kind;
  role: Role;
  /** Text of `le` or `quantile`; empty otherwise. */
  bound: string;
  /** The line's labels without the bound. */
  labels: readonly (readonly [string, string])[];
}

/** The types that a page declares, by family name as it spells them. */
export type Types = ReadonlyMap<string, ExposedType>;

interface Suffix {
  ending: string;
  role: Role;
  /** Types of the family in front of the ending that have such a line. */
  of: readonly ExposedType[];
  /** Kind of a line that is a family of its own; undefined if it is part of the family in front. */
  alone?: Kind;
}

/** Lines whose name is a family's name and an ending (OpenMetrics 1.0, "Metric types"; text 0.0.4, "Histograms and summaries"). */
const suffixes: readonly Suffix[] = [
  { ending: '_bucket', role: 'bucket', of: ['histogram'] },
  { ending: '_sum', role: 'sum', of: ['histogram', 'summary'] },
  { ending: '_count', role: 'count', of: ['histogram', 'summary'] },
  { ending: '_total', role: 'value', of: ['counter'], alone: 'counter' },
  { ending: '_created', role: 'value', of: ['counter', 'histogram', 'summary'], alone: 'gauge' },
  { ending: '_info', role: 'value', of: ['info'], alone: 'gauge' },
];

/**
 * Finds a line's place by the types of its page. Undefined for a line that its family cannot have: a bucket
 * without a bound, a histogram's bare name.
 */
export function placeOf({ name, labels }: Key, types: Types): Place | undefined {
  for (const { ending, role, of, alone } of suffixes) {
    if (!name.endsWith(ending)) continue;
    const family = name.slice(0, -ending.length);
    const type = types.get(family);
    if (type === undefined || !of.includes(type)) continue;
    if (alone !== undefined) return { family: name, kind: alone, role, bound: '', labels };
    if (role === 'bucket') return bounded(family, 'histogram', 'bucket', 'le', labels);
    return { family, kind: kindOf[type], role, bound: '', labels };
  }
  return ownPlace(name, types.get(name) ?? 'untyped', labels);
}

/** The families that a line of this name could be a part of. */
export function strippedNames(name: string): string[] {
  return suffixes
    .filter(({ ending }) => name.endsWith(ending))
    .map(({ ending }) => name.slice(0, -ending.length));
}

/** The place of a line by its own name's type alone. */
function ownPlace(name: string, type: ExposedType, labels: Place['labels']): Place | undefined {
  if (type === 'histogram') return undefined;
  if (type === 'summary') return bounded(name, 'summary', 'quantile', 'quantile', labels);
  return { family: name, kind: kindOf[type], role: 'value', bound: '', labels };
}

function bounded(
  family: string,
  kind: Kind,
  role: Role,
  label: string,
  labels: Place['labels'],
): Place | undefined {
  const bound = labels.find(([name]) => name === label)?.[1];
  const number = bound === undefined ? undefined : parseValue(bound);
  if (bound === undefined || number === undefined || Number.isNaN(number)) return undefined;
  return { family, kind, role, bound, labels: labels.filter(([name]) => name !== label) };
}

/** Identity of a line's series: family, kind and labels in the order of their names, unambiguous. */
export function seriesKey({ family, kind, labels }: Place): string {
  return JSON.stringify([family, kind, ...labels.toSorted(([a], [b]) => (a < b ? -1 : 1)).flat()]);
}
