import type { VocabularyDetector } from '../../../core/vocabulary-detector.ts';
import type { LineTable } from '../exposition/line-table.ts';
import type { LineGroups } from './line-groups.ts';

/** The numbers of observations on the last page that was read, for the families that the vocabulary compares. */
interface FamilyCounts {
  /** The sum over the family's series; 0 for a family without counts. */
  of(this: void, family: string): number;
  /** Must be called when series were added or removed. */
  forget(): void;
}

export function createFamilyCounts(
  table: LineTable,
  groups: LineGroups,
  detector: Pick<VocabularyDetector, 'compared'>,
): FamilyCounts {
  /** The lines with the counts, by family; undefined after a change of the series. */
  let linesOf: Map<string, number[]> | undefined;

  const find = (): Map<string, number[]> => {
    const found = new Map<string, number[]>();
    const { compared } = detector;
    if (compared.size === 0) return found;
    for (const series of groups.series.values()) {
      if (!compared.has(series.family)) continue;
      const lines = found.get(series.family) ?? [];
      for (const { id, place } of groups.linesOf(series)) if (place.role === 'count') lines.push(id);
      found.set(series.family, lines);
    }
    return found;
  };

  return {
    of(family) {
      linesOf ??= find();
      let count = 0;
      for (const id of linesOf.get(family) ?? []) count += table.incoming[id]!;
      return count;
    },
    forget() {
      linesOf = undefined;
    },
  };
}
