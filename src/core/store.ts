import { Cells } from './cells.ts';
import type { Kind, Labels } from './model.ts';

/** Numbers that a view holds; they do not move until it lets go. */
export interface Held {
  readonly values: Float64Array;
  release(): void;
}

/**
 * Where numbers live. Handles write `cells.live`; what views show is the store's business. Time is counted in
 * steps (freezes, pages): a series born during step n is shown once `shownStep` is past n, so a cell that is
 * reused at once is never seen through its new series in an older picture.
 */
export interface Store {
  /** Order of creation; settles who is first where all else is equal. */
  readonly id: number;
  readonly cells: Cells;
  readonly shownStep: number;
  /** Changes whenever series that exist may have come into sight or gone out of it. */
  readonly sight: number;
  /** The step during which a series that opens now is born. */
  birth(): number;
  /** The numbers that views show now. */
  hold(): Held;
  /** A sender's total fell: the series began anew. */
  restarted(series: Stored, nowMs: number): void;
  /** What survives restarts; absent where nothing does. */
  readonly ledger?: Ledger;
}

/** A series as the state has it. */
export interface Entry {
  readonly at: number;
  readonly family: string;
  readonly kind: Kind;
  readonly texts: readonly string[];
  readonly labels: Labels;
  readonly identity: string;
  readonly overflow: boolean;
  readonly startMs: number;
  readonly born: number;
}

/** A series as its store sees it. */
export interface Stored {
  beginAt(nowMs: number): void;
  entry(): Entry;
}

/** The identities behind durable cells. */
export interface Ledger {
  /** Enters a series that has just been given cells, or whose start changed. */
  enter(series: Stored): void;
  /** Strikes a series out; its cells are free again. */
  strike(at: number, width: number): void;
  /** Keeps a series in the state without showing it, until it is adopted. */
  park(series: Stored): void;
  parked(family: string): readonly Entry[];
  find(family: string, identity: string): Entry | undefined;
  /** Takes a parked series out of the park; its cells and entry stay. */
  adopt(parked: Entry): void;
  /** Drops a parked series with its cells. */
  giveUp(parked: Entry): void;
}

let created = 0;

/** The next store's id. */
export function nextStoreId(): number {
  created += 1;
  return created;
}

/** A store whose numbers are shown as they are at the moment the view is taken. */
export function createImmediateStore(): Store {
  const cells = new Cells();
  return {
    id: nextStoreId(),
    cells,
    shownStep: 1,
    sight: 0,
    birth: () => 0,
    hold: () => ({ values: cells.copy(), release: () => {} }),
    restarted: (series, nowMs) => series.beginAt(nowMs),
  };
}
