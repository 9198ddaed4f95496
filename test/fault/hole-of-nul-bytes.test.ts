import { expect, test } from 'vitest';
import { createCounting, feed, tallyOf } from '../counting.ts';

test('a hole longer than any line is consumed as it comes, and the line behind it counts', () => {
  const counting = createCounting();
  const sink = counting.open();
  const hole = Buffer.alloc(256 * 1024);
  for (let i = 0; i < 40; i++) expect(sink.write(hole, 0, hole.length)).toBe(hole.length);
  expect(sink.state()).toBeUndefined();
  feed(sink, '\0\0{"level":"info"}\n');
  expect(tallyOf(counting)).toEqual({ entry: 1 });
  expect(counting.counts()).toMatchObject({
    'svc_log_skipped_bytes_total{reason="nul_hole"}': 40 * hole.length + 2,
    svc_log_bytes_total: 17,
  });
});

test.each([0, 1, 4095, 4096, 4097, 12_345])(
  'a hole of %i bytes anywhere in a chunk ends where a line begins',
  (length) => {
    const counting = createCounting();
    const line = '{"level":"info"}\n';
    const rest = feed(
      counting.open(),
      Buffer.concat([Buffer.from(line), Buffer.alloc(length), Buffer.from(`${line}{"l`)]),
    );
    expect(rest.toString()).toBe('{"l');
    expect(tallyOf(counting)).toEqual({ entry: 2 });
    expect(counting.counts()['svc_log_skipped_bytes_total{reason="nul_hole"}'] ?? 0).toBe(length);
  },
);
