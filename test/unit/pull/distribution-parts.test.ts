import { expect, it } from 'vitest';
import type { Format } from '../../../src/reporters/pull/exposition.ts';
import { type FamilySpec, pageOf, viewOf } from '../../view.ts';

const families: FamilySpec[] = [
  { name: 'h', kind: 'histogram', series: [{ bounds: ['1'], hasSum: false, numbers: [1, 2, 0, 2] }] },
  {
    name: 's',
    kind: 'summary',
    series: [{ bounds: ['0.5'], hasSum: false, hasCount: false, numbers: [Number.NaN, 0, 0] }],
  },
  { name: 't', kind: 'summary', series: [{ bounds: [], hasCount: false, numbers: [3, 0] }] },
];

it.each<Format>(['text', 'openmetrics'])(
  '%s has no sum or count that the sender does not have',
  async (format) => {
    const page = await pageOf(viewOf(families), format);
    const samples = page.split('\n').filter((line) => line !== '' && !line.startsWith('#'));
    expect(samples).toEqual([
      'h_bucket{le="1"} 1',
      'h_bucket{le="+Inf"} 2',
      'h_count 2',
      's{quantile="0.5"} NaN',
      't_sum 3',
    ]);
  },
);
