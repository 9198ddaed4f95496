import { grownColumn, packColumn } from '../../../core/byte-table.ts';
import type { Part } from '../../../core/model.ts';
import { createNames } from '../../../core/registry/labels.ts';
import type { Slice } from '../../../core/slices.ts';
import { readKey } from '../exposition/line-syntax.ts';
import { freeLine, type LineTable, type Page } from '../exposition/line-table.ts';
import {
  familyOfLine,
  type LinePlace,
  locate,
  type PlacedLine,
  seriesKey,
  strippedNames,
} from './assembly.ts';
import { changedTypes, type Metadata, noMetadata, readMetadata } from './metadata.ts';

/** The maximum number of lines of a series; further lines are invalid. A histogram in use has at most some hundred buckets. */
const maxLinesOfSeries = 10_000;
/** How many distributions may wait for their other lines. Each takes some 350 bytes that no limit of the registry counts. */
const maxWaiting = 4_000;
/** How many names of lines that are not known yet take part in the detection of the vocabulary. */
const maxNewNames = 10_000;

/** A series in the registry. Each of its values is set by itself. */
export interface SeriesParts {
  /** The part with this index, in the order of `SeriesView.at`. */
  part(index: number): Part;
  release(): void;
}

/** A series of the target. */
export interface ScrapedSeries {
  readonly key: string;
  readonly family: string;
  /** The ids of the series' lines, in no order. */
  lines: number[];
  /** The handle in the registry, while the series is open there. */
  parts: SeriesParts | undefined;
  /** Kind and layout of the handle (`signatureOf`). */
  signature: string;
}

/** Which line belongs to which series. Each changed page updates it; it does not touch the registry. */
export interface LineGroups {
  readonly series: ReadonlyMap<string, ScrapedSeries>;
  readonly metadata: Metadata;
  /** The number of lines that no family can have, and of lines for which their series has no room. */
  readonly invalidLines: number;
  /** Removes the lines that are not on the page; returns the series that lost a line. Series without a line are removed. */
  removeMissing(page: Page): Promise<Set<ScrapedSeries>>;
  /**
   * The names of the families on the page. If very many families are new, some of the new families are left out. Valid after
   * `removeMissing`.
   */
  families(page: Page): Promise<Set<string>>;
  /**
   * Adds the new lines of the page to their series. A line that is a series by itself goes through `update` at once, so that a
   * line that the registry refuses is not stored. Distributions wait for their other lines; when too many wait, they go through
   * `update`, too. Returns the remaining series. After each line `release` may take lines out of the page: it returns where the
   * line at `at` is then.
   */
  addNew(
    page: Page,
    update: (series: ScrapedSeries) => void,
    release: (page: Page, at: number) => number,
  ): Promise<Set<ScrapedSeries>>;
  /** Removes a series with its lines. */
  remove(series: ScrapedSeries): void;
  /** Records the new ids of all lines (`packLines`). */
  renumber(newIds: Int32Array): void;
  /** Sets the page with which the next `removeMissing` compares. */
  keep(page: Page): void;
  /** The lines of a series with their places, in the order of the page. */
  linesOf(series: ScrapedSeries): PlacedLine[];
}

interface LineGroupsDeps {
  /** Called for each line that leaves its series. */
  forget(id: number): void;
  slice: Slice;
}

function keyOf({ keys }: LineTable, id: number) {
  const at = keys.keyAt[id]!;
  return readKey(keys.arena, at, at + keys.keyLength[id]!);
}

/** The metric name of a line, without parsing its labels. */
function nameOf(table: LineTable, id: number): string {
  const { keys } = table;
  const at = keys.keyAt[id]!;
  const text = keys.arena.toString('utf8', at, at + Math.min(keys.keyLength[id]!, 256));
  const end = text.search(/[{ \t]/);
  return end > 0 ? text.slice(0, end) : keyOf(table, id).name;
}

/** Whether a family, or a family that its name could be a part of, has another type now. */
const isRetyped = (family: string, changed: ReadonlySet<string>): boolean =>
  changed.has(family) || strippedNames(family).some((name) => changed.has(name));

/** The lines that belong to no series. A page may consist of such lines, so that each costs only a byte. */
function createInvalidLines(table: LineTable) {
  let isInvalid = new Uint8Array(0);
  let count = 0;
  return {
    get count() {
      return count;
    },
    has: (id: number) => isInvalid[id] === 1,
    set(id: number, to: 0 | 1): void {
      if (id >= isInvalid.length) isInvalid = grownColumn(isInvalid, table.keys.keyAt.length);
      count += to - isInvalid[id]!;
      isInvalid[id] = to;
    },
    renumber(newIds: Int32Array): void {
      packColumn(isInvalid, newIds);
      isInvalid = isInvalid.slice(0, table.keys.end);
    },
  };
}

export function createLineGroups(table: LineTable, { forget, slice }: LineGroupsDeps): LineGroups {
  const series = new Map<string, ScrapedSeries>();
  const seriesOf: (ScrapedSeries | undefined)[] = [];
  const invalid = createInvalidLines(table);
  const internName = createNames((name) => name);
  let live = new Int32Array(0);
  let metadata = noMetadata;

  const leave = (id: number): ScrapedSeries | undefined => {
    forget(id);
    invalid.set(id, 0);
    const left = seriesOf[id];
    if (left === undefined) return undefined;
    seriesOf[id] = undefined;
    left.lines.splice(left.lines.indexOf(id), 1);
    if (left.lines.length === 0) series.delete(left.key);
    return left;
  };

  /** Adds a line to its series. Undefined if the series has no room for the line. */
  const join = (id: number, place: LinePlace): ScrapedSeries | undefined => {
    const key = seriesKey(place);
    let joined = series.get(key);
    if (joined === undefined) {
      // `[id]` has room for one line; an empty array would get room for 17 lines with the first.
      joined = { key, family: internName(place.family), lines: [id], parts: undefined, signature: '' };
      series.set(key, joined);
    } else if (joined.lines.length === maxLinesOfSeries) return undefined;
    else joined.lines.push(id);
    seriesOf[id] = joined;
    return joined;
  };

  const isPlaced = (id: number) => seriesOf[id] !== undefined || invalid.has(id);
  const familyOf = (id: number) => seriesOf[id]?.family ?? nameOf(table, id);
  return {
    series,
    get metadata() {
      return metadata;
    },
    get invalidLines() {
      return invalid.count;
    },
    async removeMissing(page) {
      const affected = new Set<ScrapedSeries>();
      const now = await readMetadata(table, page, slice);
      // If no line is placed yet, there is nothing to compare: on a first page every type is new.
      const changed = live.length === 0 ? new Set<string>() : await changedTypes(table, metadata, now, slice);
      const isMissing = (id: number) => table.seen[id] !== page.round;
      const note = (left: ScrapedSeries | undefined) => left !== undefined && affected.add(left);
      for (const id of live) {
        if (isMissing(id) && table.comment[id] === 0) {
          note(leave(id));
          freeLine(table, id);
        }
        if (slice.isOver()) await slice.next();
      }
      const retyped: number[] = [];
      for (let n = 0; n < page.count && changed.size > 0; n++) {
        const id = page.order[n]!;
        if (table.comment[id] === 0 && isPlaced(id) && isRetyped(familyOf(id), changed)) retyped.push(id);
        if (slice.isOver()) await slice.next();
      }
      // This happens in one step: code that reads the series in a pause finds each line's place by the metadata.
      metadata = now;
      for (const id of retyped) note(leave(id));
      // The lines of the last metadata were needed until now.
      for (const id of live) {
        if (isMissing(id) && table.comment[id] === 1) freeLine(table, id);
        if (slice.isOver()) await slice.next();
      }
      return affected;
    },
    async families(page) {
      const families = new Set<string>();
      for (const { family } of series.values()) families.add(family);
      if (slice.isOver()) await slice.next();
      const byName = new Map<string, string>();
      for (let n = 0; n < page.count && byName.size < maxNewNames; n++) {
        const id = page.order[n]!;
        if (table.comment[id] === 1 || isPlaced(id)) continue;
        const name = nameOf(table, id);
        if (!byName.has(name)) byName.set(name, familyOfLine(name, metadata.types));
        if (slice.isOver()) await slice.next();
      }
      for (const family of byName.values()) families.add(family);
      return families;
    },
    async addNew(page, update, release) {
      const waiting = new Set<ScrapedSeries>();
      for (let n = 0; n < page.count; n = release(page, n + 1)) {
        const id = page.order[n]!;
        if (table.comment[id] === 1 || isPlaced(id)) continue;
        const place = locate(keyOf(table, id), metadata.types);
        const joined = place && join(id, place);
        if (joined === undefined) invalid.set(id, 1);
        else if (place!.kind === 'histogram' || place!.kind === 'summary') waiting.add(joined);
        else update(joined);
        if (waiting.size > maxWaiting) {
          for (const series of waiting) {
            if (series !== joined) update(series);
            if (slice.isOver()) await slice.next();
          }
          waiting.clear();
          if (joined !== undefined && joined.lines.length > 0) waiting.add(joined);
        }
        if (slice.isOver()) await slice.next();
      }
      return waiting;
    },
    remove(removed) {
      for (const id of removed.lines) {
        forget(id);
        seriesOf[id] = undefined;
        freeLine(table, id);
      }
      removed.lines = [];
      series.delete(removed.key);
    },
    renumber(newIds) {
      for (const { lines } of series.values())
        for (let n = 0; n < lines.length; n++) lines[n] = newIds[lines[n]!]!;
      metadata.renumber(newIds);
      packColumn(seriesOf, newIds);
      seriesOf.length = Math.min(seriesOf.length, table.keys.end);
      invalid.renumber(newIds);
    },
    keep(page) {
      live = page.order.slice(0, page.count);
      seriesOf.length = Math.min(seriesOf.length, table.keys.end);
    },
    linesOf({ lines }) {
      const placed = lines.map((id) => ({ id, place: locate(keyOf(table, id), metadata.types)! }));
      return placed.sort((a, b) => table.position[a.id]! - table.position[b.id]!);
    },
  };
}
