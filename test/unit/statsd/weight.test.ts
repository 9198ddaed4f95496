import { expect, test } from 'vitest';
import { testRegistry } from '../../registry.ts';

test('an observation that stands for several counts as that many, in every part', () => {
  const bed = testRegistry();
  const histogram = bed.intake().histogram('took', {}, { bounds: [0.1, 1] });
  histogram.observe(0.5, 4);
  histogram.observe(0.05, 2.5);
  histogram.observe(2);
  expect(bed.shown()).toEqual({ took: [2.5, 6.5, 7.5, 0.5 * 4 + 0.05 * 2.5 + 2, 7.5] });
});

test('a weight that is none is dropped and counted', () => {
  const bed = testRegistry();
  const histogram = bed.intake().histogram('took', {}, { bounds: [1] });
  histogram.observe(0.5, Number.NaN);
  histogram.observe(0.5, Number.POSITIVE_INFINITY);
  histogram.observe(0.5, -1);
  expect(bed.shown()).toEqual({ took: [0, 0, 0, 0] });
  expect(bed.dropped('not_finite')).toBe(2);
  expect(bed.dropped('negative_delta')).toBe(1);
});
