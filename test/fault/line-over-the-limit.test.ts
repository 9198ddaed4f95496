import { describe, expect, test } from 'vitest';
import { createCounting, feed, feedWhole, tallyOf } from '../counting.ts';

const limit = 1024 * 1024;
const entry = '{"level":"info"}\n';
/** An entry with this many bytes, without its newline. */
const entryOf = (length: number) => `{"level":"info","msg":"${'x'.repeat(length - 25)}"}`;

describe.each([
  ['in one read', 64 * limit],
  ['in reads of 256 KiB', 256 * 1024],
  ['in reads of 100 kB', 100_000],
])('%s', (_name, chunkBytes) => {
  const run = (text: string, container: 'auto' | 'none' = 'auto') => {
    const counting = createCounting({ history: { container } });
    const bytes = Buffer.from(text);
    const chunks: Buffer[] = [];
    for (let i = 0; i < bytes.length; i += chunkBytes) chunks.push(bytes.subarray(i, i + chunkBytes));
    feedWhole(counting.open(), ...chunks);
    expect(counting.counts().svc_log_bytes_total).toBe(bytes.length);
    return tallyOf(counting);
  };

  test('a line of just the limit counts', () => {
    expect(run(`${entryOf(limit)}\n${entry}`)).toEqual({ entry: 2 });
  });

  test.each([
    ['one byte over, an entry', `${entryOf(limit + 1)}\n`],
    ['one byte over, not terminated', entryOf(limit + 1)],
    ['10 MB', `${'x'.repeat(10_000_000)}\n`],
    ['10 MB of brackets', `${'['.repeat(10_000_000)}\n`],
    ['blank', `${' '.repeat(limit + 1)}\n`],
  ])('%s: dropped once, the line before intact', (_what, line) => {
    expect(run(entry + line)).toEqual({ entry: 1, too_long: 1 });
  });

  test('the line behind it is intact', () => {
    expect(run(`${'x'.repeat(3 * limit)}\n${entry}${entry}`, 'none')).toEqual({ entry: 2, too_long: 1 });
  });
});

test('holds none of it, and counts it once after a restart in its middle', () => {
  const counting = createCounting();
  const before = counting.open();
  const half = 'y'.repeat(2 * limit);
  expect(feed(before, `${entry}${half}`)).toHaveLength(0);
  const state = before.state()!;
  expect(state.length).toBeLessThan(1000);
  feed(counting.open(undefined, state), `${half}\n${entry}`);
  expect(tallyOf(counting)).toEqual({ entry: 2, too_long: 1 });
  expect(counting.counts().svc_log_bytes_total).toBe(2 * entry.length + 2 * half.length + 1);
});
