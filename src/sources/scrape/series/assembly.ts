import { parseValue } from '../../../core/decimal.ts';
import type { Kind, RawTags, Shape } from '../../../core/model.ts';
import { joinTexts } from '../../../core/registry/labels.ts';
import type { SampleKey } from '../exposition/line-syntax.ts';
import { type ExposedType, kindOf } from '../exposition/line-syntax.ts';
import type { ByName } from './metadata.ts';

/**
 * How sample lines form series. `locate` finds the series of one line and its role in it, by the types that the
 * page declares. `assemble` puts the lines of one series into the order of the registry's numbers.
 */

/** Which number of its series a line has. */
type LineRole = 'value' | 'bucket' | 'quantile' | 'sum' | 'count';

/** The series of a line and the line's role in it. */
export interface LinePlace {
  /** The name of the family, as the registry receives it. */
  family: string;
  kind: Kind;
  role: LineRole;
  /** The text of `le` or `quantile`; empty for other lines. */
  bound: string;
  /** The labels of the line without the bound. */
  labels: readonly (readonly [string, string])[];
}

/** Types by family name, spelled as on the page. */
type Types = ByName<ExposedType>;

interface Suffix {
  ending: string;
  role: LineRole;
  /** The types of families that have such lines. */
  of: readonly ExposedType[];
  /** The kind of a line that the registry treats as a family of its own; undefined for a part of the family. */
  alone?: Kind;
}

/**
 * The suffixes of lines that are named after their family (OpenMetrics 1.0, "Metric types"; text 0.0.4, "Histograms and
 * summaries").
 */
const suffixes: readonly Suffix[] = [
  { ending: '_bucket', role: 'bucket', of: ['histogram'] },
  { ending: '_sum', role: 'sum', of: ['histogram', 'summary'] },
  { ending: '_count', role: 'count', of: ['histogram', 'summary'] },
  { ending: '_total', role: 'value', of: ['counter'], alone: 'counter' },
  { ending: '_created', role: 'value', of: ['counter', 'histogram', 'summary'], alone: 'gauge' },
  { ending: '_info', role: 'value', of: ['info'], alone: 'gauge' },
];

const mayBePart = (own: ExposedType | undefined): boolean =>
  own === undefined || own === 'counter' || kindOf[own] === 'untyped';

/**
 * The suffix of a line that is a part of a family on the page, and the family. A gauge `x_count` beside a histogram `x` is no
 * part of the histogram. A second declaration of a part as a counter changes nothing.
 */
function partOf(
  name: string,
  types: Types,
): { suffix: Suffix; family: string; type: ExposedType } | undefined {
  for (const suffix of suffixes) {
    if (!name.endsWith(suffix.ending)) continue;
    const family = name.slice(0, -suffix.ending.length);
    const type = types.get(family);
    if (type === undefined || !suffix.of.includes(type)) continue;
    if (suffix.alone !== undefined || mayBePart(types.get(name))) return { suffix, family, type };
  }
  return undefined;
}

/**
 * The place of a line. Undefined for a line that its family cannot have: a bucket without a bound, the bare name of a histogram.
 */
export function locate({ name, labels }: SampleKey, types: Types): LinePlace | undefined {
  const part = partOf(name, types);
  if (part === undefined) return ownPlace(name, types.get(name) ?? 'untyped', labels);
  const { suffix, family, type } = part;
  const { role, alone } = suffix;
  if (alone !== undefined) return { family: name, kind: alone, role, bound: '', labels };
  if (role === 'bucket') return bounded(family, 'histogram', 'bucket', 'le', labels);
  return { family, kind: kindOf[type], role, bound: '', labels };
}

/** The family that the registry receives for lines of this name. */
export function familyOfLine(name: string, types: Types): string {
  const part = partOf(name, types);
  return part === undefined || part.suffix.alone !== undefined ? name : part.family;
}

/** The families that a line of this name could be a part of. */
export function strippedNames(name: string): string[] {
  return suffixes
    .filter(({ ending }) => name.endsWith(ending))
    .map(({ ending }) => name.slice(0, -ending.length));
}

/** The place of a line that has the name of its family. */
function ownPlace(name: string, type: ExposedType, labels: LinePlace['labels']): LinePlace | undefined {
  if (type === 'histogram') return undefined;
  if (type === 'summary') return bounded(name, 'summary', 'quantile', 'quantile', labels);
  return { family: name, kind: kindOf[type], role: 'value', bound: '', labels };
}

function bounded(
  family: string,
  kind: Kind,
  role: LineRole,
  label: string,
  labels: LinePlace['labels'],
): LinePlace | undefined {
  const bound = labels.find(([name]) => name === label)?.[1];
  const number = bound === undefined ? undefined : parseValue(bound);
  if (bound === undefined || number === undefined || Number.isNaN(number)) return undefined;
  return { family, kind, role, bound, labels: labels.filter(([name]) => name !== label) };
}

/** An unambiguous key of the series: family, kind and labels sorted by name. */
export function seriesKey({ family, kind, labels }: LinePlace): string {
  return joinTexts([family, kind, ...labels.toSorted(([a], [b]) => (a < b ? -1 : 1)).flat()]);
}

export interface PlacedLine {
  /** The line's id in the line table. */
  id: number;
  place: LinePlace;
}

/** A series assembled from its lines. */
export interface SeriesAssembly {
  family: string;
  kind: Kind;
  tags: RawTags;
  shape: Shape;
  /** The number of values; 0 if the lines form no valid series. */
  parts: number;
  /** The line of each value; -1 for a sum or count that is not on the page. */
  lines: number[];
  /** The index of the sum of observed values, or -1. */
  sumAt: number;
  /** Lines that repeat a value, or all lines if they form no valid series. */
  refused: number[];
}

const tagsOf = (place: LinePlace): RawTags => Object.fromEntries(place.labels);

/**
 * Assembles the lines of one series, which are in the order of the page: the first of two lines for the same value wins. A
 * histogram without a `+Inf` bucket uses its count for it, and a histogram without a count uses its `+Inf` bucket; a histogram
 * without both is invalid. A sum or count that is missing (-1) is not shown.
 */
export function assemble(placed: readonly PlacedLine[], help: string | undefined): SeriesAssembly {
  const first = placed[0]!.place;
  if (first.kind !== 'histogram' && first.kind !== 'summary') return single(placed, help);
  const refused: number[] = [];
  const bounds = new Map<number, { id: number; text: string }>();
  const others: Partial<Record<LineRole, number>> = {};
  for (const { id, place } of placed) {
    const { role, bound } = place;
    if (role === 'bucket' || role === 'quantile') {
      const at = parseValue(bound)!;
      if (bounds.has(at)) refused.push(id);
      else bounds.set(at, { id, text: bound });
    } else if (others[role] !== undefined) refused.push(id);
    else others[role] = id;
  }
  const ends = { sum: others.sum ?? -1, count: others.count ?? -1 };
  const parts = first.kind === 'histogram' ? histogram(bounds, ends) : summary(bounds, ends);
  if (parts === undefined) {
    return { ...single(placed.slice(0, 1), help), lines: [], parts: 0, refused: placed.map(({ id }) => id) };
  }
  const { lines, shape } = parts;
  return {
    family: first.family,
    kind: first.kind,
    tags: tagsOf(first),
    shape: { ...shape, help },
    parts: lines.length,
    lines,
    sumAt: lines.length - 2,
    refused,
  };
}

function single(placed: readonly PlacedLine[], help: string | undefined): SeriesAssembly {
  const [{ id, place }, ...repeated] = placed as [PlacedLine, ...PlacedLine[]];
  return {
    family: place.family,
    kind: place.kind,
    tags: tagsOf(place),
    shape: { help },
    parts: 1,
    lines: [id],
    sumAt: -1,
    refused: repeated.map((line) => line.id),
  };
}

type Bounds = Map<number, { id: number; text: string }>;
interface AssembledParts {
  lines: number[];
  shape: Shape;
}

const ascending = (bounds: Bounds) => [...bounds].sort(([a], [b]) => a - b);

function histogram(
  bounds: Bounds,
  { sum, count }: { sum: number; count: number },
): AssembledParts | undefined {
  const infinite = bounds.get(Number.POSITIVE_INFINITY)?.id ?? count;
  if (infinite === -1) return undefined;
  const finite = ascending(bounds).filter(([bound]) => bound !== Number.POSITIVE_INFINITY);
  return {
    lines: [...finite.map(([, { id }]) => id), infinite, sum, count === -1 ? infinite : count],
    shape: {
      bounds: finite.map(([bound]) => bound),
      boundTexts: finite.map(([, { text }]) => text),
      hasSum: sum !== -1,
    },
  };
}

function summary(bounds: Bounds, { sum, count }: { sum: number; count: number }): AssembledParts {
  const quantiles = ascending(bounds);
  return {
    lines: [...quantiles.map(([, { id }]) => id), sum, count],
    shape: {
      quantiles: quantiles.map(([, { text }]) => text),
      hasSum: sum !== -1,
      hasCount: count !== -1,
    },
  };
}

/**
 * The signature of a series. When it changes, the series must be opened again in the registry. Name and labels are part of the
 * series' key.
 */
export function signatureOf({ kind, shape }: SeriesAssembly): string {
  if (kind !== 'histogram' && kind !== 'summary') return kind;
  const { boundTexts, quantiles, hasSum, hasCount } = shape;
  return [kind, hasSum, hasCount, ...(boundTexts ?? quantiles ?? [])].join(' ');
}
