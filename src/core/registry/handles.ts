import type { Counter, Gauge, Histogram, Kind, Part, Summary } from '../model.ts';
import type { RefusalReason, RegistryDrop } from '../reasons.ts';
import type { Owner, Series, SeriesSpec } from './registry-state.ts';
import { Cells, observeInto } from './value-stores.ts';

/** Callbacks for release, drops and counter resets. */
export interface HandleCallbacks {
  leave(handle: Handle): void;
  drop(reason: RegistryDrop): void;
  restarted(series: Series): void;
}

const nowhere = new Cells();

/**
 * A source's access to a series. Another request for the same raw series returns the same handle and adds an owner. The handle
 * points to cells, or to none (`at` is -1) while it waits or is refused: its updates are counted as dropped then.
 *
 * `plain` means that absolute numbers are stored as they come: the handle has the series alone and nothing is converted.
 * Otherwise `last` has the last numbers, and their increases are added.
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
  /** The number of bytes of heap that the registry counts for the handle (`ownerBytes`); 0 if it stores nothing for it. */
  heapBytes = 0;
  /** The queue in which the handle waits. */
  waitsIn: Set<Owner> | undefined;
  next: Owner | undefined;
  previous: Owner | undefined;

  constructor(spec: SeriesSpec, callbacks: HandleCallbacks) {
    this.spec = spec;
    this.callbacks = callbacks;
  }

  /**
   * Whether the registry does not store the series by itself: the handle waits, is refused, or is added up in an overflow series.
   * A source with `RefusedLines` may release such a handle at once.
   */
  get refused(): boolean {
    return this.series === undefined || this.series.overflow;
  }

  /** A part of the series: a bucket, a sum, a count. For a series with one number, the part is the handle itself. */
  part(index: number): Part {
    return new PartHandle(this, index);
  }

  /** Adds an owner: another request for the same series. */
  share(): this {
    this.owners += 1;
    return this;
  }

  release(): void {
    if (this.owners === 0) return;
    this.owners -= 1;
    if (this.owners === 0) this.callbacks.leave(this);
  }

  /** Adds an increase of one number, in the sender's unit. It is used for overflow series whose members the source tracks. */
  addIncrease(index: number, increase: number): void {
    if (this.at < 0) this.callbacks.drop('refused_series');
    else this.cells.live[this.at + index]! += this.convert(index, increase);
  }

  /** Sets a number to an absolute value in the sender's unit. */
  setPart(index: number, received: number): void {
    if (this.at < 0) this.callbacks.drop('refused_series');
    else if (this.last) this.merge(index, this.convert(index, received), this.last);
    else this.show(index, this.convert(index, received));
  }

  /** Whether this number of the series only grows while its sender lives. */
  abstract grows(index: number): boolean;

  /** The received number in the unit of the series. */
  protected convert(_index: number, received: number): number {
    const { divisor } = this.spec;
    return divisor === 1 ? received : received / divisor;
  }

  private show(index: number, value: number): void {
    const { live } = this.cells;
    const cell = this.at + index;
    if (value < live[cell]! && this.grows(index)) this.callbacks.restarted(this.series!);
    live[cell] = value;
  }

  /**
   * Adds the increase of a number. A fall is a restart from 0. If there is no last number (NaN), this number is only the start of
   * increases.
   */
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

/** One number of a series, updated without a look-up: a line of a scraped page. */
class PartHandle {
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

/** The owners of a series are a doubly linked list: it needs no memory of its own, and removing one is O(1). */
function linkOwner(series: Series, owner: Owner): void {
  owner.previous = undefined;
  owner.next = series.first;
  if (series.first) series.first.previous = owner;
  series.first = owner;
}

function unlinkOwner(series: Series, owner: Owner): void {
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
 * The number of members of a merged series whose totals are remembered after they left, so that a member that returns does not
 * count twice.
 */
const maxFormerMembers = 4096;

/**
 * Changes a series from a single owner to several. A single owner's absolute numbers are shown as they are. Once several senders
 * share a series, their increases are added for as long as the series exists; gauges add their differences. The increases start
 * at the present values of the cells, or at 0 if these are not finite.
 */
function startMerging(series: Series): void {
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
 * The numbers from which a member's increases start: its last numbers if it returns, otherwise 0. If it may have been forgotten,
 * its first total is only a start: then what a new member counted before is lost, but nothing is counted twice.
 */
function beginning(series: Series, handle: Handle): Float64Array {
  const { rawKey, layout } = handle.spec;
  const left = series.formerMembers?.get(rawKey);
  if (left) series.formerMembers?.delete(rawKey);
  return left ?? new Float64Array(layout.width).fill(series.forgot && handle.grows(0) ? Number.NaN : 0);
}

/** Makes a handle an owner of a series. */
export function attach(series: Series, handle: Handle): void {
  const { spec } = handle;
  const isTwin = series.first?.spec.rawKey === spec.rawKey;
  if (series.first && !isTwin) startMerging(series);
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
  series.formerMembers ??= new Map();
  const { formerMembers } = series;
  if (formerMembers.size >= maxFormerMembers) {
    formerMembers.delete(formerMembers.keys().next().value!);
    series.forgot = true;
  }
  formerMembers.set(handle.spec.rawKey, last);
}

/** Removes an owner. What it added to a total stays; what it added to a gauge is subtracted. */
export function withdraw(series: Series, handle: Handle): void {
  unlinkOwner(series, handle);
  if (series.first && handle.last) {
    if (!handle.grows(0)) series.store.cells.live[series.at]! -= handle.last[0]!;
    else if (handle.last.some((received) => received > 0)) remember(series, handle, handle.last);
  }
  detach(handle);
}

/** Removes a handle from its series; its updates are then counted as dropped. */
export function detach(handle: Handle): void {
  handle.series = undefined;
  handle.at = -1;
  handle.plain = false;
  handle.last = undefined;
}

class CounterHandle extends Handle implements Counter {
  add(delta: number): void {
    if (delta >= 0 && delta < Infinity && this.at >= 0 && this.spec.divisor === 1) {
      this.cells.live[this.at]! += delta;
    } else this.#addWithCare(delta);
  }

  set(total: number): void {
    if (this.plain && total >= this.cells.live[this.at]!) this.cells.live[this.at] = total;
    else this.setPart(0, total);
  }

  override part(): Part {
    return this;
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

/** A gauge or an untyped series. A gauge may be NaN or infinite as long as it is alone. */
class GaugeHandle extends Handle implements Gauge {
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

  override part(): Part {
    return this;
  }

  grows(): boolean {
    return false;
  }
}

class HistogramHandle extends Handle implements Histogram {
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

  /** If negative values are observed, the sum falls without a restart; such a fall is still treated as a restart. */
  grows(): boolean {
    return true;
  }

  /** Only the sum of a histogram has a unit. */
  protected override convert(index: number, received: number): number {
    return index === this.spec.layout.width - 2 ? super.convert(index, received) : received;
  }
}

class SummaryHandle extends Handle implements Summary {
  set(parts: ArrayLike<number>): void {
    setAll(this, parts);
  }

  grows(index: number): boolean {
    return index >= this.spec.layout.width - 2;
  }

  /** Everything but the count of a summary has a unit. */
  protected override convert(index: number, received: number): number {
    return index < this.spec.layout.width - 1 ? super.convert(index, received) : received;
  }
}

/** Sets all parts. A sender's parts fit only a series with the same number of parts. */
function setAll(handle: Handle, parts: ArrayLike<number>): void {
  if (parts.length !== handle.spec.layout.width) handle.callbacks.drop('refused_series');
  else for (let i = 0; i < parts.length; i++) handle.setPart(i, parts[i]!);
}

/** Two handles that get the same updates, for a raw series that a vocabulary relays under two names. */
export class HandlePair implements Counter, Gauge {
  readonly #first: Handle;
  readonly #second: Handle;

  constructor(first: Handle, second: Handle) {
    this.#first = first;
    this.#second = second;
  }

  /** Whether neither series opened: then a source loses nothing by dropping the pair. */
  get refused(): boolean {
    return this.#first.refused && this.#second.refused;
  }

  part(index: number): Part {
    const [first, second] = [this.#first.part(index), this.#second.part(index)];
    return {
      set(value) {
        first.set(value);
        second.set(value);
      },
    };
  }

  add(delta: number): void {
    for (const handle of [this.#first, this.#second]) (handle as CounterHandle | GaugeHandle).add(delta);
  }

  observe(value: number, weight?: number): void {
    for (const handle of [this.#first, this.#second]) (handle as HistogramHandle).observe(value, weight);
  }

  set(numbers: number | ArrayLike<number>): void {
    for (const handle of [this.#first, this.#second]) (handle as GaugeHandle).set(numbers as number);
  }

  release(): void {
    this.#first.release();
    this.#second.release();
  }
}

export const pairOf = (first: Handle, second: Handle | undefined): Handle | HandlePair =>
  second ? new HandlePair(first, second) : first;

const classes = {
  counter: CounterHandle,
  gauge: GaugeHandle,
  untyped: GaugeHandle,
  histogram: HistogramHandle,
  summary: SummaryHandle,
} as const satisfies Record<Kind, new (spec: SeriesSpec, callbacks: HandleCallbacks) => Handle>;

/** A handle of the kind in the spec, not yet admitted. */
export function createHandle(spec: SeriesSpec, callbacks: HandleCallbacks): Handle {
  return new classes[spec.kind](spec, callbacks);
}
