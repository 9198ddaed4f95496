import { Cells } from './cells.ts';
import type { RefusalReason, RegistryDrop } from './reasons.ts';
import type { Owner, Series, Want } from './series.ts';

/** Whom a handle turns to when something other than an update happens. */
export interface Desk {
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
  readonly want: Want;
  readonly desk: Desk;
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

  constructor(want: Want, desk: Desk) {
    this.want = want;
    this.desk = desk;
  }

  /** One number of the series by itself: a bucket, a sum, a count, a value. */
  part(index: number): PartHandle {
    return new PartHandle(this, index);
  }

  release(): void {
    if (this.owners === 0) return;
    this.owners -= 1;
    if (this.owners === 0) this.desk.leave(this);
  }

  /** Takes an absolute number as its sender has it. */
  setPart(index: number, told: number): void {
    if (this.at < 0) this.desk.drop('refused_series');
    else if (this.last) this.merge(index, this.convert(index, told), this.last);
    else this.show(index, this.convert(index, told));
  }

  /** Whether this number of the series only ever grows while its sender lives. */
  abstract grows(index: number): boolean;

  /** A received number in the unit of the series. */
  protected convert(_index: number, told: number): number {
    const { divisor } = this.want;
    return divisor === 1 ? told : told / divisor;
  }

  private show(index: number, value: number): void {
    const { live } = this.cells;
    const cell = this.at + index;
    if (value < live[cell]! && this.grows(index)) this.desk.restarted(this.series!);
    live[cell] = value;
  }

  /** A fall is a restart from 0. Without a last number (NaN) this one is only where increases begin. */
  private merge(index: number, value: number, last: Float64Array): void {
    const before = last[index]!;
    const falls = value < before && this.grows(index);
    if (!Number.isFinite(value)) this.desk.drop('not_finite');
    else if (falls && value < 0) this.desk.drop('negative_delta');
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
