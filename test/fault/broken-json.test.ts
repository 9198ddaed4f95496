import { expect, test } from 'vitest';
import { createCounting, feedWhole, tallyOf } from '../counting.ts';

const entry = '{"level":"info"}';
const deep = 400_000;

test.each([
  ['truncated', '{"level":"inf', { invalid_json: 1 }],
  ['two writers in one line', '{"level":"in{"level":"info"}fo"}', { invalid_json: 1 }],
  ['two entries in one line', `${entry}${entry}`, { invalid_json: 1 }],
  ['nested 400,000 deep', `{"a":${'['.repeat(deep)}${']'.repeat(deep)}}`, { entry: 1 }],
  ['nested 400,000 deep and not closed', `{"a":${'['.repeat(deep)}`, { invalid_json: 1 }],
  ['duplicate keys', '{"level":"warn","level":"info"}', { entry: 1 }],
  ['__proto__', '{"__proto__":{"level":"fatal"},"constructor":1,"level":"info"}', { entry: 1 }],
  ['a number beyond every float', '{"level":"info","n":1e400}', { entry: 1 }],
  ['a control character in a string', '{"level":"in\u0001fo"}', { invalid_json: 1 }],
])('%s: counted, and the lines round it too', (_name, line, tally) => {
  const counting = createCounting();
  feedWhole(counting.open(), `${entry}\n${line}\n${entry}\n`);
  const all: Record<string, number> = { ...tally };
  all.entry = (all.entry ?? 0) + 2;
  expect(tallyOf(counting)).toEqual(all);
  expect(Object.keys(counting.counts()).filter((name) => name.includes('fatal'))).toEqual([]);
});
