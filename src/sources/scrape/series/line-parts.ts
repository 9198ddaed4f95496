import { grownColumn, packColumn } from '../../../core/byte-table.ts';
import type { Part } from '../../../core/model.ts';
import type { LineTable, Page } from '../exposition/line-table.ts';
import type { SeriesAssembly } from './assembly.ts';
import type { SeriesParts } from './line-groups.ts';

/** The number of counters and counts of distributions that were on the last page, too, and how many of them fell. */
export interface CounterChanges {
  counters: number;
  fallen: number;
}

/** Which part of a series in the registry each line of a page sets, by the ids of the lines. */
interface LineParts {
  /** Lets the lines of an assembled series set its parts. */
  bind(assembly: SeriesAssembly, parts: SeriesParts): void;
  /** Lets a line set nothing. */
  forget(id: number): void;
  /** Sets the values of a page, in one step. */
  fill(page: Page): CounterChanges;
  /** Records the new ids of all lines (`packLines`). */
  renumber(newIds: Int32Array): void;
  /** Releases the memory of ids that the table does not have any more. */
  shorten(): void;
}

/** A part of a line that sets two values: a count that stands for a missing `+Inf` bucket. */
function both(one: Part, other: Part): Part {
  return {
    set(value) {
      one.set(value);
      other.set(value);
    },
  };
}

export function createLineParts(table: LineTable): LineParts {
  const partOf: (Part | undefined)[] = [];
  /** By id, 1 for a line whose value falls only when its sender restarts. */
  let grows = new Uint8Array(0);

  return {
    bind({ lines, kind, sumAt }, parts) {
      lines.forEach((id, index) => {
        const part = parts.part(index);
        if (id === -1) return;
        partOf[id] = partOf[id] === undefined ? part : both(partOf[id], part);
        if (id >= grows.length) grows = grownColumn(grows, table.keys.keyAt.length);
        grows[id] = kind === 'counter' || (sumAt !== -1 && index > sumAt) ? 1 : 0;
      });
    },
    forget(id) {
      // Most lines of a page that exceeds a limit have no part: the columns end before such lines.
      if (id < partOf.length) partOf[id] = undefined;
      if (id < grows.length) grows[id] = 0;
    },
    fill({ order, count }) {
      const { incoming, taken } = table;
      let fallen = 0;
      let counters = 0;
      for (let n = 0; n < count; n++) {
        const id = order[n]!;
        const value = incoming[id]!;
        partOf[id]?.set(value);
        if (grows[id] !== 1 || id >= taken.length) continue;
        if (value < taken[id]!) fallen++;
        if (!Number.isNaN(taken[id]!)) counters++;
      }
      return { counters, fallen };
    },
    renumber(newIds) {
      packColumn(partOf, newIds);
      packColumn(grows, newIds);
    },
    shorten() {
      partOf.length = Math.min(partOf.length, table.keys.end);
      grows = grows.slice(0, table.keys.end);
    },
  };
}
