import { expect, test } from 'vitest';
import { createCounting, feedWhole, tallyOf } from '../counting.ts';

const bytes = (...parts: (string | number[])[]) =>
  Buffer.concat(parts.map((part) => Buffer.from(part as string)));

test.each([
  ['invalid UTF-8 in a value', bytes('{"level":"info","msg":"', [0xff, 0xc3], '"}\n'), { entry: 1 }],
  ['invalid UTF-8 in a key', bytes('{"', [0xe2, 0x82], '":1}\n'), { entry: 1 }],
  ['invalid UTF-8 outside of strings', bytes('{"a":1}', [0x80], '\n'), { invalid_json: 1 }],
  ['NUL inside a JSON string', bytes('{"a":"b\0c"}\n'), { invalid_json: 1 }],
  ['NUL inside a console line', bytes('T\tinfo\ta\0b\n'), { entry: 1 }],
  ['colours in a console line', bytes('T\t\x1b[33mwarn\x1b[0m\t\x1b[1mbold\x1b[0m\n'), { entry: 1 }],
  ['a colour that never ends', bytes('T\t\x1b[33\n'), { not_console: 1 }],
  ['invalid UTF-8 in a console line', bytes('T\tinfo\t', [0xff], '\n'), { entry: 1 }],
])('%s: the line survives and its bytes count as bytes', (_name, line, tally) => {
  const counting = createCounting();
  feedWhole(counting.open(), line, '{"level":"debug"}\n');
  const all: Record<string, number> = { ...tally };
  all.entry = (all.entry ?? 0) + 1;
  expect(tallyOf(counting)).toEqual(all);
  expect(counting.counts().svc_log_bytes_total).toBe(line.length + 18);
});

test('a label is what the text decodes to', () => {
  const counting = createCounting();
  feedWhole(counting.open(), bytes('{"level":"info","logger":"a', [0xff], 'b"}\n'));
  expect(counting.counts()['svc_log_entries_total{level="info",logger="a\ufffdb"}']).toBe(1);
});
