import type { EntryRow } from './section.ts';

type Run = Pick<EntryRow, 'at' | 'count'>;

/** Where a total as last seen stands; NaN there: the next one is only where increases begin. */
export const seenAt = ({ at }: Run, total: number): number => at + 1 + total;
/** Where the part of a total that has not been handed over stands. */
export const owedAt = ({ at, count }: Run, total: number): number => at + 1 + count + total;

/**
 * Whether a total that only grows while its sender lives is lower than it was. The sum of a distribution, the
 * last but one, also falls where negative values are observed.
 */
export function fell(cells: Float64Array, run: Run, numbers: Float64Array, from: number): boolean {
  const sum = run.count - 2;
  for (let total = 0; total < run.count; total++) {
    const now = numbers[from + total]!;
    if (total !== sum && now < cells[seenAt(run, total)]! && Number.isFinite(now)) return true;
  }
  return false;
}

/**
 * Adds what each total grew by to what is owed. A lower one waits until it is over its old height. Says how
 * many totals were no numbers.
 */
export function advance(
  cells: Float64Array,
  run: Run & { owes: boolean },
  numbers: Float64Array,
  from: number,
): number {
  let notFinite = 0;
  for (let total = 0; total < run.count; total++) {
    const now = numbers[from + total]!;
    const seen = seenAt(run, total);
    const before = cells[seen]!;
    if (!Number.isFinite(now)) notFinite += 1;
    else if (Number.isNaN(before)) cells[seen] = now;
    else if (now > before) {
      cells[owedAt(run, total)]! += now - before;
      cells[seen] = now;
      run.owes = true;
    }
  }
  return notFinite;
}

/** How many of a series' totals have something that has not been handed over. */
export function owesLines(cells: Float64Array, run: Run): number {
  let lines = 0;
  for (let total = 0; total < run.count; total++) if (cells[owedAt(run, total)]! > 0) lines += 1;
  return lines;
}
