import { parseValue } from '../../../core/decimal.ts';
import type { Kind, RawTags, Shape } from '../../../core/model.ts';
import type { Place, Role } from './place.ts';

/** A line with its place. */
export interface PlacedLine {
  id: number;
  place: Place;
}

/** One series put together from its lines. */
export interface Assembly {
  family: string;
  kind: Kind;
  tags: RawTags;
  shape: Shape;
  /** How many numbers the series has. */
  parts: number;
  /** Which line feeds each of its numbers; -1 for one that the page does not have. */
  lines: number[];
  /** Which of its numbers is a sum of observed values. */
  sumAt: number;
  /** Lines that repeat a number, or that no whole series could be made of. */
  refused: number[];
}

const tagsOf = (place: Place): RawTags => Object.fromEntries(place.labels);

/**
 * Puts the lines of one series together, in the order of the page: of two for the same number the first wins.
 * A histogram without a `+Inf` bucket takes its count for it, and the other way round; with neither it is
 * none. A sum or count that is missing altogether (-1) is not shown.
 */
export function assemble(placed: readonly PlacedLine[], help: string | undefined): Assembly {
  const first = placed[0]!.place;
  if (first.kind !== 'histogram' && first.kind !== 'summary') return single(placed, help);
  const refused: number[] = [];
  const bounds = new Map<number, { id: number; text: string }>();
  const others: Partial<Record<Role, number>> = {};
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

function single(placed: readonly PlacedLine[], help: string | undefined): Assembly {
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
interface Parts {
  lines: number[];
  shape: Shape;
}

const ascending = (bounds: Bounds) => [...bounds].sort(([a], [b]) => a - b);

function histogram(bounds: Bounds, { sum, count }: { sum: number; count: number }): Parts | undefined {
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

function summary(bounds: Bounds, { sum, count }: { sum: number; count: number }): Parts {
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
