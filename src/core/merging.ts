import { linkOwner, ownersOf, unlinkOwner } from './chain.ts';
import type { Handle } from './handle.ts';
import type { Series } from './series.ts';

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
  const cells = series.store.cells.live.subarray(series.at, series.at + series.want.layout.width);
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
  const { rawKey, layout } = handle.want;
  const left = series.gone?.get(rawKey);
  if (left) series.gone?.delete(rawKey);
  return left ?? new Float64Array(layout.width).fill(series.forgot && handle.grows(0) ? Number.NaN : 0);
}

/** Gives a handle its cells in a series that it may have. */
export function enrol(series: Series, handle: Handle): void {
  const { want } = handle;
  const twin = series.first?.want.rawKey === want.rawKey;
  if (series.first && !twin) startMerging(series);
  linkOwner(series, handle);
  if (series.leader === undefined || want.rawKey < series.leader) series.leader = want.rawKey;
  handle.series = series;
  handle.cells = series.store.cells;
  handle.at = series.at;
  handle.refusal = undefined;
  handle.last = series.merged ? beginning(series, handle) : undefined;
  handle.plain = !series.merged && want.divisor === 1;
}

function remember(series: Series, handle: Handle, last: Float64Array): void {
  series.gone ??= new Map();
  const { gone } = series;
  if (gone.size >= maxGone) {
    gone.delete(gone.keys().next().value!);
    series.forgot = true;
  }
  gone.set(handle.want.rawKey, last);
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
