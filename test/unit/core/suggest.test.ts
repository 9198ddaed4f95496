import { expect, test } from 'vitest';
import { nearest } from '../../../src/core/errors.ts';

const known = [
  'metrics',
  'services',
  'stores',
  'log',
  'limits',
  'pullmetrics',
  'pushmetrics',
  'scrape',
  'roles',
];

test.each([
  ['metrix', 'metrics'],
  ['Metrics', 'metrics'],
  ['metircs', 'metrics'],
  ['service', 'services'],
  ['pulmetrics', 'pullmetrics'],
  ['pushmetric', 'pushmetrics'],
  ['scarpe', 'scrape'],
  ['lgo', 'log'],
  ['scr', 'scrape'],
  ['banana', undefined],
  ['probes', undefined],
  ['prometheus', undefined],
  ['x', undefined],
  ['', undefined],
  ['m'.repeat(100_000), undefined],
])('%s: %s', (word, expected) => expect(nearest(word, known)).toBe(expected));
