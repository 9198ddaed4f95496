import { createHash } from 'node:crypto';
import type { FamilyView, SeriesView } from '../../core/model.ts';
import { Cells } from '../../core/registry/value-stores.ts';
import { decodeSection, type EntryRow, encodeRows, encodeSection, widthOf } from './baseline-section.ts';
import { totalsOf } from './statsd-lines.ts';

/** The last seen totals of one series, and the increases that have not been sent. */
export interface BaselineEntry extends EntryRow {
  /** The flush that last saw the series. */
  flush: number;
  /** Whether some increases may not have been sent. */
  owes: boolean;
  /** Whether the entry was discarded. */
  isGone: boolean;
}

interface BaselineOptions {
  /**
   * Wall clock, ms. For totals that began before this time only the increases are pushed. Ignored once a section has been
   * restored.
   */
  sinceMs: number;
  /** The maximum number of entries for series that are gone; they stay in case their series return. */
  maxGone?: number;
}

interface BaselineDeps {
  /** Whether a series shows totals that its sender began before the agent first read them, such as a scraped page's. */
  hasExternalTotals(series: SeriesView): boolean;
  /** Called with the number of totals that are left out because they are not finite. */
  notFinite(totals: number): void;
  /** Called with the number of lines that discarded entries still owed. */
  discarded(lines: number): void;
}

/**
 * How far each total has been pushed. A flush reads the view: the increase since the last flush is owed. `settle` clears what is
 * owed before datagrams are sent, and `restoreOwed` restores it if they were not: at any time each increase is either owed or
 * settled, and never both.
 *
 * - A total that fell was reset and counts in full; so does a total whose series has another start time, and a new total. The sum
 *   of a histogram that falls while its count does not (negative observations) counts again once it exceeds its old value.
 * - A new total that began before `sinceMs` counts from its current value; so does an external one, unless pages of
 *   its service have been seen before. What was counted before the first read is not an increase.
 * - A total whose entry may have been discarded counts from its current value, too: that loses an increase, and
 *   repeats none.
 */
export interface Baseline {
  begin(): void;
  /** Reads a series' totals; undefined for a series without totals. */
  take(family: FamilyView, series: SeriesView, numbers: Float64Array): BaselineEntry | undefined;
  /** Ends the flush, which has read the whole view. */
  end(): void;
  /** Entries that owe increases and were not in this flush's view. */
  absent(): readonly BaselineEntry[];
  owed(entry: BaselineEntry, total: number): number;
  /** Clears what is owed and returns it. All totals of an entry are settled together. */
  settle(entry: BaselineEntry, total: number): number;
  restoreOwed(entry: BaselineEntry, total: number, amount: number): void;
  freeze(): Uint8Array;
  /** Restores a section. Throws `snapshot_corrupt`. */
  restore(section: Uint8Array): void;
}

const mostServices = 1000;

function keyOf({ name, kind }: FamilyView, { labels, bounds }: SeriesView): bigint {
  const text = JSON.stringify([name, kind, bounds, labels]);
  return createHash('sha256').update(text).digest().readBigUInt64LE(0);
}

export function createBaseline(options: BaselineOptions, deps: BaselineDeps): Baseline {
  const { maxGone = 10_000 } = options;
  const held = createEntries(options.sinceMs, deps);
  const { entries, owing } = held;
  const services = new Set<string>();
  const newServices = new Set<string>();
  let flush = 0;
  let seenCount = 0;

  const countsFromHere = (series: SeriesView, isExternal: boolean) =>
    isExternal ? held.forgot || !services.has(series.service) : series.startMs < held.sinceMs;

  const open = (key: bigint, series: SeriesView, count: number): BaselineEntry => {
    const isExternal = deps.hasExternalTotals(series);
    const entry = held.add({ key, count, isExternal, flush });
    const { live } = held.cells;
    live[entry.at] = series.startMs;
    if (countsFromHere(series, isExternal)) live.fill(Number.NaN, entry.at + 1, entry.at + 1 + count);
    return entry;
  };

  const keepWithinBounds = (): void => {
    const excess = entries.size - seenCount - maxGone;
    if (excess <= 0) return;
    const gone = [...entries.values()].filter((entry) => entry.flush !== flush);
    gone.sort((a, b) => a.flush - b.flush);
    for (const entry of gone.slice(0, excess)) held.discard(entry);
  };

  return {
    begin() {
      if (flush > 0) keepWithinBounds();
      flush += 1;
      seenCount = 0;
    },
    take(family, series, numbers) {
      const { first, count } = totalsOf(family.kind, series);
      if (count === 0) return undefined;
      const same = held.known.get(series);
      const isSame = same !== undefined && !same.isGone;
      const key = isSame ? same.key : keyOf(family, series);
      const found = isSame ? same : entries.get(key);
      const entry = found ?? open(key, series, count);
      if (!isSame) held.known.set(series, entry);
      const from = series.at + first;
      const { live } = held.cells;
      if (
        found &&
        (fell(live, entry, numbers, from) || hasStartedAgain(live, entry, family, series, isSame))
      ) {
        live.fill(0, seenAt(entry, 0), seenAt(entry, count));
      }
      live[entry.at] = series.startMs;
      const notFinite = advance(live, entry, numbers, from);
      if (notFinite > 0) deps.notFinite(notFinite);
      if (entry.owes) owing.add(entry);
      seenCount += 1;
      entry.flush = flush;
      if (entry.isExternal) newServices.add(series.service);
      return entry;
    },
    end() {
      for (const service of newServices) if (services.size < mostServices) services.add(service);
      newServices.clear();
    },
    absent: () => [...owing].filter((entry) => entry.flush !== flush),
    owed: (entry, total) => held.cells.live[owedAt(entry, total)]!,
    settle(entry, total) {
      const { live } = held.cells;
      const amount = live[owedAt(entry, total)]!;
      live[owedAt(entry, total)] = 0;
      entry.owes = false;
      owing.delete(entry);
      return amount;
    },
    restoreOwed(entry, total, amount) {
      held.cells.live[owedAt(entry, total)]! += amount;
      entry.owes = true;
      owing.add(entry);
    },
    freeze: () => held.freeze([...services]),
    restore(section) {
      services.clear();
      for (const service of held.restore(section)) services.add(service);
    },
  };
}

function hasStartedAgain(
  cells: Float64Array,
  entry: BaselineEntry,
  family: FamilyView,
  series: SeriesView,
  isSame: boolean,
): boolean {
  if (cells[entry.at] === series.startMs) return false;
  // The start of an external total is the time when the agent first read it, unless it fell since.
  return !entry.isExternal || (isSame && family.kind === 'counter');
}

/** The entries of a baseline with their numbers. Two facts tell what is no longer known about discarded entries. */
interface EntryCells {
  readonly cells: Cells;
  readonly entries: ReadonlyMap<bigint, BaselineEntry>;
  /** The entries of series, so that a known series costs no key. */
  readonly known: WeakMap<SeriesView, BaselineEntry>;
  /** The entries with `owes`. */
  readonly owing: Set<BaselineEntry>;
  /** For totals that began before this time only the increases count. Entries that began before it may have been discarded. */
  readonly sinceMs: number;
  /** Whether entries of external totals were discarded. */
  readonly forgot: boolean;
  add(entry: Pick<BaselineEntry, 'key' | 'count' | 'isExternal' | 'flush'>): BaselineEntry;
  discard(entry: BaselineEntry): void;
  freeze(services: readonly string[]): Uint8Array;
  /** Restores a section and returns its services. Throws `snapshot_corrupt`. */
  restore(section: Uint8Array): readonly string[];
}

function createEntries(firstSinceMs: number, deps: Pick<BaselineDeps, 'discarded'>): EntryCells {
  let cells = new Cells();
  const entries = new Map<bigint, BaselineEntry>();
  let known = new WeakMap<SeriesView, BaselineEntry>();
  const owing = new Set<BaselineEntry>();
  let sinceMs = firstSinceMs;
  let forgot = false;
  /** The encoded entries; undefined after an entry was added or discarded. */
  let rows: Uint8Array | undefined;
  return {
    get cells() {
      return cells;
    },
    get known() {
      return known;
    },
    get sinceMs() {
      return sinceMs;
    },
    get forgot() {
      return forgot;
    },
    entries,
    owing,
    add(added) {
      const entry = { ...added, at: cells.take(widthOf(added.count)), owes: false, isGone: false };
      entries.set(entry.key, entry);
      rows = undefined;
      return entry;
    },
    discard(entry) {
      const lines = owesLines(cells.live, entry);
      if (lines > 0) deps.discarded(lines);
      if (entry.isExternal) forgot = true;
      else sinceMs = Math.max(sinceMs, cells.live[entry.at]! + 1);
      entry.isGone = true;
      entries.delete(entry.key);
      owing.delete(entry);
      cells.give(entry.at, widthOf(entry.count));
      rows = undefined;
    },
    freeze(services) {
      rows ??= encodeRows(entries.values(), entries.size);
      return encodeSection({ facts: { sinceMs, forgot, services }, entries: rows, numbers: cells.copy() });
    },
    restore(section) {
      const { facts, rows: restored, numbers } = decodeSection(section);
      cells = new Cells();
      known = new WeakMap();
      entries.clear();
      owing.clear();
      for (const row of restored) {
        const at = cells.take(widthOf(row.count));
        cells.live.set(numbers.subarray(row.at, row.at + widthOf(row.count)), at);
        const entry = { ...row, at, flush: 0, owes: false, isGone: false };
        entries.set(row.key, entry);
        entry.owes = owesLines(cells.live, entry) > 0;
        if (entry.owes) owing.add(entry);
      }
      ({ sinceMs, forgot } = facts);
      rows = undefined;
      return facts.services;
    },
  };
}

type CellRange = Pick<EntryRow, 'at' | 'count'>;

/** The index of a total's last seen value; NaN means that increases begin at the next value. */
const seenAt = ({ at }: CellRange, total: number): number => at + 1 + total;
/** The index of the part of a total that has not been sent. */
const owedAt = ({ at, count }: CellRange, total: number): number => at + 1 + count + total;

/**
 * Whether a total was reset: it is lower than before. The sum of a distribution, which is the last but one number, is not
 * checked, because it also falls with negative observations.
 */
function fell(cells: Float64Array, run: CellRange, numbers: Float64Array, from: number): boolean {
  const sum = run.count - 2;
  for (let total = 0; total < run.count; total++) {
    const now = numbers[from + total]!;
    if (total !== sum && now < cells[seenAt(run, total)]! && Number.isFinite(now)) return true;
  }
  return false;
}

/**
 * Adds the increase of each total to the increases that have not been sent. A lower total counts again once it exceeds its old
 * value. Returns how many totals were not finite.
 */
function advance(
  cells: Float64Array,
  run: CellRange & { owes: boolean },
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

/** How many of a series' totals have increases that have not been sent. */
function owesLines(cells: Float64Array, run: CellRange): number {
  let lines = 0;
  for (let total = 0; total < run.count; total++) if (cells[owedAt(run, total)]! > 0) lines += 1;
  return lines;
}
