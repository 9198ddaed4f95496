import { describe, expect, test } from 'vitest';
import { createCounting, feedWhole, tallyOf } from '../counting.ts';

const entry = '{"level":"info"}';

describe.each(['auto', 'json'] as const)('encoding %s', (encoding) => {
  test.each([
    ['CRLF', `${entry}\r\n${entry}\r\n`, { entry: 2 }],
    ['blank lines', `\n\n \t\r\n${entry}\n\r\n`, { entry: 1 }],
    ['a lone CR, which is white space and ends no line', `${entry}\r${entry}\n`, { invalid_json: 1 }],
    ['trailing white space', `${entry} \t \r\n`, { entry: 1 }],
    ['NUL bytes at the end of a file', `${entry}\n\0\0\0`, { entry: 1 }],
    ['NUL bytes at the end of a line', `${entry}\0\n`, { invalid_json: 1 }],
    ['a hole before a line', `\0\0\0\0${entry}\n`, { entry: 1 }],
    ['a hole before a newline', '\0\0\n', {}],
  ])('%s', (_name, text, tally) => {
    const counting = createCounting({ history: { encoding } });
    feedWhole(counting.open(), text);
    expect(tallyOf(counting)).toEqual(tally);
    const { svc_log_bytes_total: bytes = 0 } = counting.counts();
    const hole = counting.counts()['svc_log_skipped_bytes_total{reason="nul_hole"}'] ?? 0;
    expect(bytes + hole).toBe(text.length);
  });
});

test.each([
  ['json', `  ${entry}\n`, { entry: 1 }],
  ['auto', `  ${entry}\n`, { not_console: 1 }],
  ['json', `\ufeff${entry}\n`, { invalid_json: 1 }],
  ['auto', `\ufeff${entry}\n`, { not_console: 1 }],
  ['json', '[1,{"a":"b"}]\n', { not_object: 1 }],
  ['json', `${'['.repeat(99)}${']'.repeat(99)}\n`, { not_object: 1 }],
  ['json', `${'['.repeat(99)}${']'.repeat(98)}\n`, { invalid_json: 1 }],
  ['json', '"text"\n12 \n true\nnull\n', { not_object: 4 }],
  ['json', 'text\n1 2\n', { invalid_json: 2 }],
] as const)('%s: %j', (encoding, text, tally) => {
  const counting = createCounting({ history: { encoding } });
  feedWhole(counting.open(), text);
  expect(tallyOf(counting)).toEqual(tally);
  expect(counting.counts().svc_log_bytes_total).toBe(Buffer.byteLength(text));
});
