/**
 * Counts of observations in bins whose width grows by a constant factor, so that every quantile has a relative error
 * of at most `relativeError`, whatever the scale (C. Masson and others, "DDSketch", VLDB 2019). Each bin has one
 * weight per part; the parts are the steps of a sliding window and are cleared one by one.
 */
export interface Sketch {
  /** The bins, ascending; elements from `size` on are unused. */
  bins: Int32Array;
  /** Total weight of each bin, in a separate array so that reading touches little memory. */
  sums: Float64Array;
  /** For each bin, one weight per part. */
  weights: Float64Array;
  size: number;
  /** Total weight of each part. */
  readonly totals: Float64Array;
}

/** The largest relative error of a quantile. */
const relativeError = 0.01;
/**
 * The maximum number of bins of a sketch; with 5 parts a bin takes 52 bytes. They cover nearly nine powers of ten. Beyond that
 * the lowest bins are merged, and only quantiles in these bins lose accuracy.
 */
const maxBins = 1024;

const fewestBins = 8;
const factor = (1 + relativeError) / (1 - relativeError);
const logFactor = Math.log(factor);
/** Ratio of a bin's geometric middle to its upper bound, as a logarithm. */
const logMiddle = Math.log(2 / (1 + factor));
/** Makes the bin numbers of all positive values positive; negative values mirror them. */
const offset = 40_000;
/** Values closer to 0 count as 0, because doubles are too coarse there. */
const tiny = 1e-300;
/** The bins of all empty sketches. */
const noBins = new Int32Array(0);
const noWeights = new Float64Array(0);

function binOf(value: number): number {
  if (value >= tiny) return Math.ceil(Math.log(value) / logFactor) + offset;
  return value <= -tiny ? -Math.ceil(Math.log(-value) / logFactor) - offset : 0;
}

function middleOf(bin: number): number {
  if (bin === 0) return 0;
  const size = Math.min(Math.exp((Math.abs(bin) - offset) * logFactor + logMiddle), Number.MAX_VALUE);
  return bin > 0 ? size : -size;
}

export function createSketch(parts: number): Sketch {
  return { bins: noBins, sums: noWeights, weights: noWeights, size: 0, totals: new Float64Array(parts) };
}

/** The first row whose bin is not below this bin. */
function rowOf({ bins, size }: Sketch, bin: number): number {
  let from = 0;
  let to = size;
  while (from < to) {
    const middle = (from + to) >>> 1;
    if (bins[middle]! < bin) from = middle + 1;
    else to = middle;
  }
  return from;
}

/** Changes the capacity to this number of rows. */
function resize(sketch: Sketch, rows: number): void {
  const { bins, sums, weights, size, totals } = sketch;
  sketch.bins = new Int32Array(rows);
  sketch.bins.set(bins.subarray(0, size));
  sketch.sums = new Float64Array(rows);
  sketch.sums.set(sums.subarray(0, size));
  sketch.weights = new Float64Array(rows * totals.length);
  sketch.weights.set(weights.subarray(0, size * totals.length));
}

/** Moves the rows from `row` on by one, up or down. */
function shift({ bins, sums, weights, size, totals }: Sketch, row: number, by: 1 | -1): void {
  const parts = totals.length;
  bins.copyWithin(row + by, row, size);
  sums.copyWithin(row + by, row, size);
  weights.copyWithin((row + by) * parts, row * parts, size * parts);
}

/** Merges the lowest bin into the next bin. */
function foldLowest(sketch: Sketch): void {
  const { sums, weights, totals } = sketch;
  const parts = totals.length;
  sums[1]! += sums[0]!;
  for (let part = 0; part < parts; part++) weights[parts + part]! += weights[part]!;
  shift(sketch, 1, -1);
  sketch.size -= 1;
}

/** Inserts a row for a new bin before `row`, or returns the lowest row if the sketch is full and the bin is below it. */
function insert(sketch: Sketch, row: number, bin: number): number {
  let at = row;
  if (sketch.size === maxBins) {
    if (at === 0) return 0;
    foldLowest(sketch);
    at -= 1;
  }
  if (sketch.size === sketch.bins.length) resize(sketch, Math.max(sketch.size * 2, fewestBins));
  shift(sketch, at, 1);
  const parts = sketch.totals.length;
  sketch.bins[at] = bin;
  sketch.sums[at] = 0;
  sketch.weights.fill(0, at * parts, (at + 1) * parts);
  sketch.size += 1;
  return at;
}

/** Adds a finite value with a positive weight. Allocates only if a new bin needs room. */
export function addTo(sketch: Sketch, part: number, value: number, weight: number): void {
  const bin = binOf(value);
  let row = rowOf(sketch, bin);
  if (row === sketch.size || sketch.bins[row] !== bin) row = insert(sketch, row, bin);
  sketch.sums[row]! += weight;
  sketch.weights[row * sketch.totals.length + part]! += weight;
  sketch.totals[part]! += weight;
}

function weightOf({ weights, totals }: Sketch, row: number): number {
  const end = (row + 1) * totals.length;
  let weight = 0;
  for (let cell = row * totals.length; cell < end; cell++) weight += weights[cell]!;
  return weight;
}

/** Removes a part's observations, and the bins that no other part has. */
export function clearPart(sketch: Sketch, part: number): void {
  const { bins, sums, weights, totals } = sketch;
  const parts = totals.length;
  if (totals[part] === 0) return;
  totals[part] = 0;
  let kept = 0;
  for (let row = 0; row < sketch.size; row++) {
    weights[row * parts + part] = 0;
    const weight = weightOf(sketch, row);
    if (weight === 0) continue;
    bins[kept] = bins[row]!;
    sums[kept] = weight;
    if (kept < row) weights.copyWithin(kept * parts, row * parts, (row + 1) * parts);
    kept += 1;
  }
  sketch.size = kept;
  if (kept * 4 <= bins.length) resize(sketch, kept * 2);
}

/**
 * Writes the values of these quantiles (ascending, 0 to 1) to the start of `into`. Each is the smallest value with at
 * least that share of the total weight at or below it; NaN if the sketch is empty.
 */
export function quantilesOf(sketch: Sketch, quantiles: readonly number[], into: Float64Array): void {
  const { bins, sums, size } = sketch;
  if (size === 0) {
    into.fill(Number.NaN, 0, quantiles.length);
    return;
  }
  let total = 0;
  for (let row = 0; row < size; row++) total += sums[row]!;
  let row = 0;
  let upTo = sums[0]!;
  for (let i = 0; i < quantiles.length; i++) {
    const rank = quantiles[i]! * total;
    while (upTo < rank && row + 1 < size) {
      row += 1;
      upTo += sums[row]!;
    }
    into[i] = middleOf(bins[row]!);
  }
}
