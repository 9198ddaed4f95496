import { readKey } from '../exposition/key.ts';
import { freeLine, type LineTable } from '../exposition/line-table.ts';
import type { Page } from '../exposition/page-reader.ts';
import type { PlacedLine } from './assemble.ts';
import { changedTypes, type Declared, declaredBy } from './declared.ts';
import type { SeriesParts } from './intake.ts';
import { placeOf, seriesKey, strippedNames } from './place.ts';

/** A series that the target sends. */
export interface Sent {
  readonly key: string;
  readonly family: string;
  /** Ids of its lines, in no order. */
  lines: number[];
  /** Its place in the registry, while it is shown. */
  parts: SeriesParts | undefined;
  /** Name and shape under which it is there. */
  signature: string;
}

/** Which line belongs to which series. Brought up to date by each page that changed, without I/O or registry. */
export interface Membership {
  readonly series: ReadonlyMap<string, Sent>;
  readonly declared: Declared;
  /** Lines that no family can have. */
  readonly refusedLines: number;
  /**
   * Takes in a page's coming and going; returns the series that gained or lost a line. One without lines is
   * gone from `series`, and the caller gives its place in the registry back.
   */
  update(page: Page): Promise<Set<Sent>>;
  /** The lines of a series with their places, in the order of the page. */
  linesOf(series: Sent): PlacedLine[];
}

export interface MembershipDeps {
  /** Called for each line that leaves its series. */
  forget(id: number): void;
  breathe(): Promise<void> | undefined;
}

export function createMembership(table: LineTable, { forget, breathe }: MembershipDeps): Membership {
  const series = new Map<string, Sent>();
  const ofLine: (Sent | undefined)[] = [];
  const refused = new Set<number>();
  let live = new Int32Array(0);
  let declared: Declared = { types: new Map(), helps: new Map() };

  const keyOf = (id: number) => {
    const at = table.keyAt[id]!;
    return readKey(table.arena, at, at + table.keyLength[id]!);
  };

  const leave = (id: number, dirty: Set<Sent>): void => {
    forget(id);
    refused.delete(id);
    const left = ofLine[id];
    if (left === undefined) return;
    ofLine[id] = undefined;
    left.lines.splice(left.lines.indexOf(id), 1);
    if (left.lines.length === 0) series.delete(left.key);
    dirty.add(left);
  };

  const join = (id: number, dirty: Set<Sent>): void => {
    const place = placeOf(keyOf(id), declared.types);
    if (place === undefined) {
      refused.add(id);
      return;
    }
    const key = seriesKey(place);
    let joined = series.get(key);
    if (joined === undefined) {
      joined = { key, family: place.family, lines: [], parts: undefined, signature: '' };
      series.set(key, joined);
    }
    joined.lines.push(id);
    ofLine[id] = joined;
    dirty.add(joined);
  };

  /** Whether a line's family, or one that its name could be a part of, has another type now. */
  const isRetyped = (id: number, changed: ReadonlySet<string>): boolean => {
    const family = ofLine[id]?.family ?? keyOf(id).name;
    return changed.has(family) || strippedNames(family).some((name) => changed.has(name));
  };

  const update = async (page: Page): Promise<Set<Sent>> => {
    const dirty = new Set<Sent>();
    const now = declaredBy(table, page);
    const changed = changedTypes(declared, now);
    declared = now;
    for (const id of live) {
      if (table.seen[id] === page.round) continue;
      leave(id, dirty);
      freeLine(table, id);
    }
    for (let n = 0; n < page.count; n++) {
      const id = page.order[n]!;
      if (table.comment[id] === 1) continue;
      const isPlaced = ofLine[id] !== undefined || refused.has(id);
      if (isPlaced && (changed.size === 0 || !isRetyped(id, changed))) continue;
      if (isPlaced) leave(id, dirty);
      join(id, dirty);
      const pause = breathe();
      if (pause !== undefined) await pause;
    }
    live = page.order.slice(0, page.count);
    return dirty;
  };

  return {
    series,
    get declared() {
      return declared;
    },
    get refusedLines() {
      return refused.size;
    },
    update,
    linesOf({ lines }) {
      const placed = lines.map((id) => ({ id, place: placeOf(keyOf(id), declared.types)! }));
      return placed.sort((a, b) => table.position[a.id]! - table.position[b.id]!);
    },
  };
}
