import { expect, test } from 'vitest';
import { chooseFormat, wantsGzip } from '../../../src/reporters/pull/negotiation.ts';

const prometheus2 =
  'application/openmetrics-text;version=1.0.0,application/openmetrics-text;version=0.0.1;q=0.75,text/plain;version=0.0.4;q=0.5,*/*;q=0.1';
const prometheus3 =
  'application/openmetrics-text;version=1.0.0;escaping=allow-utf-8;q=0.5,application/openmetrics-text;version=0.0.1;q=0.4,text/plain;version=1.0.0;escaping=allow-utf-8;q=0.3,text/plain;version=0.0.4;q=0.2,*/*;q=0.1';

test.each([
  [undefined, 'text'],
  ['', 'text'],
  ['*/*', 'text'],
  ['text/html', 'text'],
  [prometheus2, 'openmetrics'],
  [prometheus3, 'openmetrics'],
  ['application/openmetrics-text', 'openmetrics'],
  ['APPLICATION/OpenMetrics-Text; Version="1.0.0" ; Q=1', 'openmetrics'],
  ['application/openmetrics-text;version=0.0.1', 'text'],
  ['application/openmetrics-text;q=0', 'text'],
  ['application/openmetrics-text;q=0,*/*', 'text'],
  ['application/openmetrics-text;q=0.4,text/plain;q=0.5', 'text'],
  ['application/openmetrics-text;q=0.5,text/plain;q=0.5', 'openmetrics'],
  ['application/openmetrics-text;q=0.5,text/plain;version=1.0.0;q=0.9', 'openmetrics'],
  ['application/openmetrics-text;q=0.5,text/*;q=0.6', 'text'],
  ['application/openmetrics-text;q=nonsense', 'text'],
  ['application/openmetrics-text;q=2', 'text'],
  [',;,;;=,', 'text'],
])('Accept: %s is %s, and text where OpenMetrics is off', (accept, format) => {
  expect(chooseFormat(accept, true)).toBe(format);
  expect(chooseFormat(accept, false)).toBe('text');
});

test.each([
  [undefined, false],
  ['', false],
  ['gzip', true],
  ['GZIP', true],
  ['deflate, gzip;q=0.1', true],
  ['gzip;q=0', false],
  ['*', true],
  ['*;q=0', false],
  ['gzip;q=0, *', false],
  ['identity', false],
  ['identity;q=1, gzip;q=0.5', false],
  ['identity;q=0.5, gzip', true],
  ['br, zstd', false],
  ['gzipped', false],
])('Accept-Encoding: %s wants gzip: %s', (header, wanted) => {
  expect(wantsGzip(header)).toBe(wanted);
});
