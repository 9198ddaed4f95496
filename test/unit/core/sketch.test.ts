import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { addTo, clearPart, createSketch, quantilesOf } from '../../../src/core/sketch.ts';

const quantiles = [0.01, 0.5, 0.75, 0.95, 0.99, 0.999, 1];
const parts = 3;
/** A number with its count of observations, in one part of the window. */
interface Observed {
  part: number;
  value: number;
  weight: number;
}

const once = (value: number): Observed => ({ part: 0, value, weight: 1 });

function sketchOf(observed: readonly Observed[]) {
  const sketch = createSketch(parts);
  for (const { part, value, weight } of observed) addTo(sketch, part, value, weight);
  return sketch;
}

function read(sketch: ReturnType<typeof createSketch>, of: readonly number[] = quantiles): number[] {
  const into = new Float64Array(of.length);
  quantilesOf(sketch, of, into);
  return [...into];
}

/** Computes a quantile by sorting all observations: the smallest number at or below which this share is. */
function exact(observed: readonly Observed[], of: readonly number[] = quantiles): number[] {
  const all = observed
    .flatMap(({ value, weight }) => Array<number>(weight).fill(value))
    .sort((a, b) => a - b);
  return of.map((quantile) => all[Math.ceil(quantile * all.length) - 1] ?? Number.NaN);
}

/** The error is 1 %, plus the rounding of a logarithm. */
const isNear = (got: number, wanted: number) =>
  Object.is(got, wanted) || Math.abs(got - wanted) <= Math.abs(wanted) * (0.01 + 1e-9) + 1e-300;

function expectNear(got: readonly number[], wanted: readonly number[]): void {
  expect(got.map((value, i) => (isNear(value, wanted[i]!) ? 'near' : `${value} for ${wanted[i]}`))).toEqual(
    wanted.map(() => 'near'),
  );
}

const latency = fc.double({ min: -9, max: 4, noNaN: true }).map((power) => 10 ** power);
const any = fc.double({ noNaN: true, noDefaultInfinity: true });
const observations = (value: fc.Arbitrary<number>) =>
  fc.array(
    fc.record({
      part: fc.integer({ min: 0, max: parts - 1 }),
      value,
      weight: fc.oneof(fc.constant(1), fc.integer({ min: 1, max: 40 })),
    }),
    { minLength: 1, maxLength: 300 },
  );

describe('quantiles are within 1 % of those by sorting', () => {
  test.each<[string, number[]]>([
    ['one', [0.25]],
    ['zeros', [0, -0, 0]],
    ['on both sides of 0', [-2, -1, 0, 1, 2]],
    ['negative ones alone', [-1e-9, -3, -1e12]],
    ['the same twice', [5, 5, 7, 7]],
    ['the largest and smallest doubles', [Number.MAX_VALUE, -Number.MAX_VALUE, Number.MIN_VALUE, 1e-300]],
    ['powers of ten', Array.from({ length: 40 }, (_, i) => 10 ** (i - 20))],
    ['one to a thousand', Array.from({ length: 1000 }, (_, i) => i + 1)],
  ])('%s', (_, values) => {
    const observed = values.map(once);
    expectNear(read(sketchOf(observed)), exact(observed));
  });

  test('of any latencies, weighted', () => {
    fc.assert(
      fc.property(observations(latency), (observed) => expectNear(read(sketchOf(observed)), exact(observed))),
    );
  });

  test('of any doubles, weighted', () => {
    fc.assert(
      fc.property(observations(any), (observed) => expectNear(read(sketchOf(observed)), exact(observed))),
    );
  });

  test('of what is left when parts are cleared, in any order', () => {
    const act = fc.oneof(
      { weight: 20, arbitrary: observations(latency).map((list) => list.slice(0, 20)) },
      { weight: 4, arbitrary: fc.integer({ min: 0, max: parts - 1 }) },
    );
    fc.assert(
      fc.property(fc.array(act, { maxLength: 30 }), (acts) => {
        const sketch = createSketch(parts);
        let left: Observed[] = [];
        for (const one of acts) {
          if (typeof one === 'number') {
            clearPart(sketch, one);
            left = left.filter(({ part }) => part !== one);
          } else {
            for (const { part, value, weight } of one) addTo(sketch, part, value, weight);
            left.push(...one);
          }
          expectNear(read(sketch), exact(left));
        }
      }),
    );
  });

  test('weights that are not whole', () => {
    // The total weight is 10: the weight at 1 is 7.5, and the weight at 3 is 2.5.
    const sketch = createSketch(1);
    for (let n = 0; n < 3; n++) addTo(sketch, 0, 1, 2.5);
    addTo(sketch, 0, 3, 2.5);
    expectNear(read(sketch, [0.5, 0.75, 0.76, 1]), [1, 1, 3, 3]);
  });
});

test('nothing observed is not a number', () => {
  expect(read(createSketch(1), [0.5, 0.99])).toEqual([Number.NaN, Number.NaN]);
});

describe('bounds', () => {
  const maxBins = 1024;
  // Each value has a separate bin, and there are three times as many as allowed.
  const wide = Array.from({ length: 3 * maxBins }, (_, i) => 1.03 ** (i - maxBins));
  const shuffled = fc.sample(fc.shuffledSubarray(wide, { minLength: wide.length }), {
    seed: 7,
    numRuns: 1,
  })[0]!;

  test.each([
    ['rising', wide],
    ['falling', wide.toReversed()],
    ['shuffled', shuffled],
  ])('too many bins, %s: the upper third is right, the rest is not told apart', (_, values) => {
    const observed = values.map(once);
    const sketch = sketchOf(observed);
    expect(sketch.size).toBe(maxBins);
    expect(sketch.bins.length).toBe(maxBins);
    const upper = [0.67, 0.75, 0.95, 0.99, 1];
    expectNear(read(sketch, upper), exact(observed, upper));
    const [low] = read(sketch, [0.1]);
    expect(low).toBeGreaterThan(exact(observed, [0.1])[0]!);
    expect(isNear(low!, wide[2 * maxBins]!)).toBe(true);
  });

  test('what is cleared gives its room back', () => {
    const sketch = sketchOf(
      Array.from({ length: 500 }, (_, i) => ({ part: 1, value: 1.05 ** i, weight: 1 })),
    );
    addTo(sketch, 0, 7, 1);
    expect(sketch.bins.length).toBeGreaterThanOrEqual(500);
    clearPart(sketch, 1);
    expect(sketch).toMatchObject({ size: 1, totals: Float64Array.of(1, 0, 0) });
    expect(sketch.bins.length).toBeLessThanOrEqual(8);
    expectNear(
      read(sketch),
      quantiles.map(() => 7),
    );
    clearPart(sketch, 0);
    expect(sketch.bins.length).toBe(0);
    addTo(sketch, 2, 9, 1);
    expectNear(
      read(sketch),
      quantiles.map(() => 9),
    );
  });

  test('a known number needs no new room', () => {
    const sketch = sketchOf([once(3), once(4)]);
    const { bins, weights } = sketch;
    for (let n = 0; n < 10_000; n++) addTo(sketch, n % parts, 3 + (n % 2), 1);
    expect(sketch.bins).toBe(bins);
    expect(sketch.weights).toBe(weights);
  });
});
