import { expect, test } from 'vitest';
import {
  ascending,
  dialAddress,
  formatDuration,
  interval,
  listenAddress,
  objectStoreAddress,
  parseDuration,
  parsedAs,
  placeholders,
  span,
  webAddress,
  withinInterval,
} from '../../../src/core/text-formats.ts';

// The formats of Go's time.ParseDuration, and days and weeks.
test.each([
  ['0s', 0],
  ['1ns', 1e-6],
  ['250us', 0.25],
  ['250µs', 0.25],
  ['500ms', 500],
  ['1.5s', 1500],
  ['2m', 120_000],
  ['1h30m', 5_400_000],
  ['2d', 172_800_000],
  ['1w1d', 691_200_000],
])('%s is a duration', (text, spanMs) => expect(parseDuration(text)).toBe(spanMs));

test.each(['', '1', 's', '-1s', '1 s', '1s ', 'x1s', '1.s', '.5s', '1S', '1y', '1s2'])(
  '%j is no duration',
  (text) =>
    expect(() => parseDuration(text, 'here')).toThrow(expect.objectContaining({ code: 'timer_invalid' })),
);

test.each([
  [0, '0ms'],
  [0.4, '0ms'],
  [999, '999ms'],
  [1000, '1s'],
  [1999, '1s'],
  [60_000, '1m'],
  [200_000, '3m20s'],
  [3_600_000, '1h'],
  [3_605_000, '1h5s'],
  [86_400_000 + 2 * 3_600_000 + 60_000, '1d2h'],
  [86_400_000 + 61_000, '1d1m'],
])('%d ms are %s', (spanMs, text) => expect(formatDuration(spanMs)).toBe(text));

const reads = {
  interval,
  span,
  listenAddress,
  objectStoreAddress,
  dial: dialAddress('127.0.0.1:1'),
  web: webAddress(['http', 'https'], 'x'),
};

test.each<[keyof typeof reads, string, boolean]>([
  ['interval', '1ms', true],
  ['interval', '999us', false],
  ['interval', '7d', true],
  ['interval', '7d1ms', false],
  ['interval', '10', false],
  ['span', '0s', true],
  ['span', '3000w', true],
  ['span', '20000000w', false],
  ['listenAddress', '0.0.0.0:0', true],
  ['listenAddress', '127.0.0.1', false],
  ['dial', '127.0.0.1:9464', true],
  ['dial', '127.0.0.1:0', false],
  ['dial', '127.0.0.1', false],
  ['web', 'http://host:1/path', true],
  ['web', 'https://host', true],
  ['web', 'ftp://host', false],
  ['web', 'http:', false],
  ['web', 'host', false],
  ['web', 'http://user@host', false],
  ['web', 'http://:secret@host', false],
])('%s %s: %s', (name, text, isRead) => expect(reads[name].read(text) !== undefined).toBe(isRead));

test('a text of another format is an issue of the schema', () => {
  const issues: unknown[] = [];
  const refusal = { addIssue: (issue: unknown) => void issues.push(issue) };
  expect(parsedAs(interval)('10s', refusal)).toBe(10_000);
  expect(issues).toEqual([]);
  parsedAs(interval)('10', refusal);
  expect(issues).toEqual([{ code: 'custom', message: interval.fault, input: '10' }]);
});

test.each<[unknown[], number]>([
  [[], -1],
  [[1, 2, 3], -1],
  [[1, 2, 2], 2],
  [[3, 2, 1], 1],
  [[1, 'x', 1], -1],
])('bounds %j: %d is the first that does not rise', (bounds, at) =>
  expect(ascending.brokenAt(bounds)).toBe(at),
);

test.each([
  [{ interval: 10, timeout: 10 }, true],
  [{ interval: 10, timeout: 11 }, false],
  [{ timeout: 11 }, true],
  [{ interval: 10 }, true],
])('a time-out within its interval: %j %s', (times, holds) =>
  expect(withinInterval.holds(times)).toBe(holds),
);

test.each([
  [5, 10, 60, 5],
  [undefined, 10, 60, 10],
  [undefined, 10, 6, 6],
])('of %s, %d and the interval %d the time-out is %d', (set, usual, every, expected) =>
  expect(withinInterval.timeoutMs(set, usual, every)).toBe(expected),
);

test.each([
  ['cat {file} {directory}', true],
  ['cat {files}', false],
  ['cat \u0024{files} { files } {}', true],
  ['cat {FILE}', false],
])('placeholders in %j: %s', (text, holds) =>
  expect(placeholders(['file', 'directory']).holds(text)).toBe(holds),
);

test.each([
  [[], 'use none'],
  [['a'], 'use {a}'],
  [['a', 'b'], 'use {a} or {b}'],
  [['a', 'b', 'c'], 'use {a}, {b} or {c}'],
])('the placeholders %j are listed', (known, text) => expect(placeholders(known).fault).toContain(text));

test.each([
  ['s3.example.com', { origin: 'https://s3.example.com', basePath: '' }],
  ['store:9000', { origin: 'https://store:9000', basePath: '' }],
  ['http://store:9000/base/', { origin: 'http://store:9000', basePath: '/base' }],
  ['https://store?x=1', undefined],
  ['https://store#x', undefined],
  ['ftp://store', undefined],
  ['a store', undefined],
])('the address of an object store: %s', (text, address) => {
  expect(objectStoreAddress.read(text)).toEqual(address);
});
