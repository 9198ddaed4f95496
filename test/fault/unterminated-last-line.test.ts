import { expect, test } from 'vitest';
import { createCounting, feed, feedWhole, tallyOf } from '../counting.ts';

const entry = '{"level":"info"}';

test('it is held, and one entry when it is completed later', () => {
  const counting = createCounting();
  const sink = counting.open();
  const held = feed(sink, `${entry}\n{"level":`);
  expect(held.toString()).toBe('{"level":');
  expect(tallyOf(counting)).toEqual({ entry: 1 });
  feed(sink, Buffer.concat([held, Buffer.from('"info"}\n')]));
  expect(tallyOf(counting)).toEqual({ entry: 2 });
});

test.each([
  [entry, { entry: 1 }],
  ['{"level":"in', { invalid_json: 1 }],
  ['nope', { not_console: 1 }],
  ['', {}],
  ['  ', {}],
])('%j counts when its file is finished', (last, tally) => {
  const counting = createCounting();
  feedWhole(counting.open(), `${entry}\n`, last);
  const all: Record<string, number> = { ...tally };
  all.entry = (all.entry ?? 0) + 1;
  expect(tallyOf(counting)).toEqual(all);
  expect(counting.counts().svc_log_bytes_total).toBe(entry.length + 1 + last.length);
});

test('the file that takes the name of a finished one begins anew', () => {
  const counting = createCounting();
  const sink = counting.open();
  feedWhole(sink, 'T\terror\tm\n', 'trace');
  feed(sink, 'trace\n');
  expect(tallyOf(counting)).toEqual({ entry: 1, not_console: 1 });
});
