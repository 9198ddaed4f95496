import type { Desk } from './handle.ts';
import { Handle } from './handle.ts';
import { observeInto } from './histogram.ts';
import type { Counter, Gauge, Histogram, Kind, Summary } from './model.ts';
import type { Want } from './series.ts';

export class CounterHandle extends Handle implements Counter {
  add(delta: number): void {
    if (delta >= 0 && delta < Infinity && this.at >= 0 && this.want.divisor === 1) {
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
    if (this.at < 0) this.desk.drop('refused_series');
    else if (!Number.isFinite(delta)) this.desk.drop('not_finite');
    else if (delta < 0) this.desk.drop('negative_delta');
    else this.cells.live[this.at]! += this.convert(0, delta);
  }
}

/** Gauges and untyped series. A gauge may be NaN or infinite as long as it is alone. */
export class GaugeHandle extends Handle implements Gauge {
  add(delta: number): void {
    if (this.at < 0) this.desk.drop('refused_series');
    else if (!Number.isFinite(delta)) this.desk.drop('not_finite');
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
    if (this.at < 0) this.desk.drop('refused_series');
    else if (!Number.isFinite(value * weight)) this.desk.drop('not_finite');
    else if (weight < 0) this.desk.drop('negative_delta');
    else {
      const { layout } = this.want;
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
    return index === this.want.layout.width - 2 ? super.convert(index, told) : told;
  }
}

export class SummaryHandle extends Handle implements Summary {
  set(parts: ArrayLike<number>): void {
    setAll(this, parts);
  }

  grows(index: number): boolean {
    return index >= this.want.layout.width - 2;
  }

  /** Of a summary all but the count has a unit. */
  protected override convert(index: number, told: number): number {
    return index < this.want.layout.width - 1 ? super.convert(index, told) : told;
  }
}

/** A sender with other parts than its series has none that fit. */
function setAll(handle: Handle, parts: ArrayLike<number>): void {
  if (parts.length !== handle.want.layout.width) handle.desk.drop('refused_series');
  else for (let i = 0; i < parts.length; i++) handle.setPart(i, parts[i]!);
}

const classes = {
  counter: CounterHandle,
  gauge: GaugeHandle,
  untyped: GaugeHandle,
  histogram: HistogramHandle,
  summary: SummaryHandle,
} as const satisfies Record<Kind, new (want: Want, desk: Desk) => Handle>;

/** The handle of a want's kind, not yet admitted anywhere. */
export function createHandle(want: Want, desk: Desk): Handle {
  return new classes[want.kind](want, desk);
}
