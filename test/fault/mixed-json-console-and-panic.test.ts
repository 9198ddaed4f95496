import { expect, test } from 'vitest';
import { createCounting, feedWhole, tallyOf } from '../counting.ts';

const json = '{"level":"error","msg":"x"}';
const entry = '2025-12-31T03:04:05.678Z\terror\tPanic is captured\t{"sys-stack-trace":"t"}';
const panic = [
  'panic: runtime error',
  '',
  'goroutine 7 [running]:',
  'main.main()',
  '\t/app/main.go:12 +0x1d',
];

test('a panic behind a console entry belongs to it, blank lines apart', () => {
  const counting = createCounting();
  feedWhole(counting.open(), [json, entry, ...panic, json, entry, entry].join('\n'));
  expect(tallyOf(counting)).toEqual({ entry: 5 });
  expect(Object.fromEntries(counting.drops)).toEqual({});
});

test('a panic between JSON lines is dropped line by line, counted', () => {
  const counting = createCounting();
  feedWhole(counting.open(), [json, ...panic, json].join('\n'));
  expect(tallyOf(counting)).toEqual({ entry: 2, not_console: 4 });
  expect(Object.fromEntries(counting.drops)).toEqual({ 'logs/not_console': 4 });
});

test('lines of the standard logger before the first entry are dropped, counted', () => {
  const counting = createCounting();
  feedWhole(counting.open(), ['2026/01/02 15:04:05 Loading configFiles=[a]', entry, json].join('\n'));
  expect(tallyOf(counting)).toEqual({ entry: 2, not_console: 1 });
});

test('where the configuration says JSON, console lines and panics are no JSON', () => {
  const counting = createCounting({ history: { encoding: 'json' } });
  feedWhole(counting.open(), [json, entry, ...panic].join('\n'));
  expect(tallyOf(counting)).toEqual({ entry: 1, invalid_json: 5 });
});
