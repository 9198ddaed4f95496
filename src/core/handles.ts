import { observeInto } from './histogram.ts';
import type { Counter, Gauge, Histogram, Kind, Summary } from './model.ts';
import type { RefusalReason, RegistryDrop } from './reasons.ts';
import type { Owner, Series, SeriesSpec } from './registry-state.ts';
import { Cells } from './stores.ts';

/** Whom a handle turns to when something other than an update happens. */
export interface HandleCallbacks {
  leave(handle: Handle): void;
  drop(reason: RegistryDrop): void;
  restarted(series: Series): void;
}

const nowhere = new Cells();

/**
 * One source's hold on a series. Asking again for the same raw series gives the same handle with one owner
 * more. It points to cells, or to none (`at` -1) while it is refused: updates are then counted as dropped.
 *
 * `plain` says that absolute numbers are shown as they come: it has its series to itself and nothing is to be
 * converted. Otherwise `last` keeps what it last said, and increases are added.
 */
export abstract class Handle implements Owner {
  readonly spec: SeriesSpec;
  readonly callbacks: HandleCallbacks;
  cells = nowhere;
  at = -1;
  plain = false;
  series: Series | undefined;
  last: Float64Array | undefined;
  owners = 1;
  refusal: RefusalReason | undefined;
  /** Where it waits for a place. */
  waitsIn: Set<Owner> | undefined;
  next: Owner | undefined;
  previous: Owner | undefined;

  constructor(spec: SeriesSpec, callbacks: HandleCallbacks) {
    this.spec = spec;
    this.callbacks = callbacks;
  }

  /** One number of the series by itself: a bucket, a sum, a count, a value. */
  part(index: number): PartHandle {
    return new PartHandle(this, index);
  }

  release(): void {
    if (this.owners === 0) return;
    this.owners -= 1;
    if (this.owners === 0) this.callbacks.leave(this);
  }

  /** Takes an absolute number as its sender has it. */
  setPart(index: number, told: number): void {
    if (this.at < 0) this.callbacks.drop('refused_series');
    else if (this.last) this.merge(index, this.convert(index, told), this.last);
    else this.show(index, this.convert(index, told));
  }

  /** Whether this number of the series only ever grows while its sender lives. */
  abstract grows(index: number): boolean;

  /** A received number in the unit of the series. */
  protected convert(_index: number, told: number): number {
    const { divisor } = this.spec;
    return divisor === 1 ? told : told / divisor;
  }

  private show(index: number, value: number): void {
    const { live } = this.cells;
    const cell = this.at + index;
    if (value < live[cell]! && this.grows(index)) this.callbacks.restarted(this.series!);
    live[cell] = value;
  }

  /** A fall is a restart from 0. Without a last number (NaN) this one is only where increases begin. */
  private merge(index: number, value: number, last: Float64Array): void {
    const before = last[index]!;
    const falls = value < before && this.grows(index);
    if (!Number.isFinite(value)) this.callbacks.drop('not_finite');
    else if (falls && value < 0) this.callbacks.drop('negative_delta');
    else {
      last[index] = value;
      if (!Number.isNaN(before)) this.cells.live[this.at + index]! += falls ? value : value - before;
    }
  }
}

/** One line of a page: updates one number without a look-up. */
export class PartHandle {
  readonly handle: Handle;
  readonly index: number;

  constructor(handle: Handle, index: number) {
    this.handle = handle;
    this.index = index;
  }

  set(value: number): void {
    const { handle } = this;
    const { live } = handle.cells;
    const cell = handle.at + this.index;
    if (handle.plain && value >= live[cell]!) live[cell] = value;
    else handle.setPart(this.index, value);
  }
}

/** The owners of a series as a doubly linked list: no memory beside them, and any of them leaves at once. */
export function linkOwner(series: Series, owner: Owner): void {
  owner.previous = undefined;
  owner.next = series.first;
  if (series.first) series.first.previous = owner;
  series.first = owner;
}

export function unlinkOwner(series: Series, owner: Owner): void {
  if (owner.previous) owner.previous.next = owner.next;
  else series.first = owner.next;
  if (owner.next) owner.next.previous = owner.previous;
  owner.next = undefined;
  owner.previous = undefined;
}

export function* ownersOf(series: Series): Generator<Handle> {
  for (let owner = series.first; owner; owner = owner.next) yield owner as Handle;
}

/**
 * How owners share a series. Alone, an owner's absolute numbers are shown as they are. Once several senders
 * met, their increases are added, for as long as the series lives; gauges add their differences.
 */

/** Senders that left a series and are remembered, so that one that comes back does not count twice. */
const maxGone = 4096;

/** From now on the series adds increases; what its owners said so far is what stands in its cells (0 if that is not finite). */
export function startMerging(series: Series): void {
  if (series.merged) return;
  series.merged = true;
  const cells = series.store.cells.live.subarray(series.at, series.at + series.spec.layout.width);
  for (let i = 0; i < cells.length; i++) if (!Number.isFinite(cells[i])) cells[i] = 0;
  for (const owner of ownersOf(series)) {
    owner.last = cells.slice();
    owner.plain = false;
  }
}

/**
 * Where a new member's numbers begin: where it left, else 0. Of one that may have been forgotten the first
 * total is only a beginning: that loses what a really new one had before, and never counts anything twice.
 */
function beginning(series: Series, handle: Handle): Float64Array {
  const { rawKey, layout } = handle.spec;
  const left = series.gone?.get(rawKey);
  if (left) series.gone?.delete(rawKey);
  return left ?? new Float64Array(layout.width).fill(series.forgot && handle.grows(0) ? Number.NaN : 0);
}

/** Gives a handle its cells in a series that it may have. */
export function enrol(series: Series, handle: Handle): void {
  const { spec } = handle;
  const twin = series.first?.spec.rawKey === spec.rawKey;
  if (series.first && !twin) startMerging(series);
  linkOwner(series, handle);
  if (series.leader === undefined || spec.rawKey < series.leader) series.leader = spec.rawKey;
  handle.series = series;
  handle.cells = series.store.cells;
  handle.at = series.at;
  handle.refusal = undefined;
  handle.last = series.merged ? beginning(series, handle) : undefined;
  handle.plain = !series.merged && spec.divisor === 1;
}

function remember(series: Series, handle: Handle, last: Float64Array): void {
  series.gone ??= new Map();
  const { gone } = series;
  if (gone.size >= maxGone) {
    gone.delete(gone.keys().next().value!);
    series.forgot = true;
  }
  gone.set(handle.spec.rawKey, last);
}

/** Takes a handle out of its series. What it added to a sum stays, what it added to a gauge goes. */
export function withdraw(series: Series, handle: Handle): void {
  unlinkOwner(series, handle);
  if (series.first && handle.last) {
    if (!handle.grows(0)) series.store.cells.live[series.at]! -= handle.last[0]!;
    else if (handle.last.some((told) => told > 0)) remember(series, handle, handle.last);
  }
  detach(handle);
}

/** Leaves a handle without cells; its updates count as dropped. */
export function detach(handle: Handle): void {
  handle.series = undefined;
  handle.at = -1;
  handle.plain = false;
  handle.last = undefined;
  handle.waitsIn = undefined;
}

export class CounterHandle extends Handle implements Counter {
  add(delta: number): void {
    if (delta >= 0 && delta < Infinity && this.at >= 0 && this.spec.divisor === 1) {
      this.cells.live[this.at]! += delta;
    } else this.#addWithCare(delta);
  }

  set(total: number): void {
    this.setPart(0, total);
  }

  grows(): boolean {
    return true;
  }

  #addWithCare(delta: number): void {
    if (this.at < 0) this.callbacks.drop('refused_series');
    else if (!Number.isFinite(delta)) this.callbacks.drop('not_finite');
    else if (delta < 0) this.callbacks.drop('negative_delta');
    else this.cells.live[this.at]! += this.convert(0, delta);
  }
}

/** Gauges and untyped series. A gauge may be NaN or infinite as long as it is alone. */
export class GaugeHandle extends Handle implements Gauge {
  add(delta: number): void {
    if (this.at < 0) this.callbacks.drop('refused_series');
    else if (!Number.isFinite(delta)) this.callbacks.drop('not_finite');
    else {
      const change = this.convert(0, delta);
      this.cells.live[this.at]! += change;
      if (this.last) this.last[0]! += change;
    }
  }

  set(value: number): void {
    if (this.plain) this.cells.live[this.at] = value;
    else this.setPart(0, value);
  }

  grows(): boolean {
    return false;
  }
}

export class HistogramHandle extends Handle implements Histogram {
  observe(value: number, weight = 1): void {
    if (this.at < 0) this.callbacks.drop('refused_series');
    else if (!Number.isFinite(value * weight)) this.callbacks.drop('not_finite');
    else if (weight < 0) this.callbacks.drop('negative_delta');
    else {
      const { layout } = this.spec;
      const sum = layout.width - 2;
      observeInto(this.cells.live, this.at, layout.bounds, this.convert(sum, value), weight);
    }
  }

  set(parts: ArrayLike<number>): void {
    setAll(this, parts);
  }

  /** The sum falls without a restart where negative values are observed; such a fall is still taken for one. */
  grows(): boolean {
    return true;
  }

  /** Of a histogram only the sum has a unit. */
  protected override convert(index: number, told: number): number {
    return index === this.spec.layout.width - 2 ? super.convert(index, told) : told;
  }
}

export class SummaryHandle extends Handle implements Summary {
  set(parts: ArrayLike<number>): void {
    setAll(this, parts);
  }

  grows(index: number): boolean {
    return index >= this.spec.layout.width - 2;
  }

  /** Of a summary all but the count has a unit. */
  protected override convert(index: number, told: number): number {
    return index < this.spec.layout.width - 1 ? super.convert(index, told) : told;
  }
}

/** A sender with other parts than its series has none that fit. */
function setAll(handle: Handle, parts: ArrayLike<number>): void {
  if (parts.length !== handle.spec.layout.width) handle.callbacks.drop('refused_series');
  else for (let i = 0; i < parts.length; i++) handle.setPart(i, parts[i]!);
}

const classes = {
  counter: CounterHandle,
  gauge: GaugeHandle,
  untyped: GaugeHandle,
  histogram: HistogramHandle,
  summary: SummaryHandle,
} as const satisfies Record<Kind, new (spec: SeriesSpec, callbacks: HandleCallbacks) => Handle>;

/** The handle of a spec's kind, not yet admitted anywhere. */
export function createHandle(spec: SeriesSpec, callbacks: HandleCallbacks): Handle {
  return new classes[spec.kind](spec, callbacks);
}
