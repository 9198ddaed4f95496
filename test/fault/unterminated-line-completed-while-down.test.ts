import { expect, test } from 'vitest';
import { createCounting, feed, tallyOf } from '../counting.ts';

test('is one whole line after the restart, read again from its first byte', () => {
  const counting = createCounting();
  const before = counting.open();
  const held = feed(before, '{"level":"info"}\n{"level":"wa');
  expect(held.toString()).toBe('{"level":"wa');
  const after = counting.open(undefined, before.state());
  expect(feed(after, '{"level":"warn"}\n')).toHaveLength(0);
  expect(counting.counts()).toMatchObject({
    'svc_log_entries_total{level="info"}': 1,
    'svc_log_entries_total{level="warn"}': 1,
  });
  expect(tallyOf(counting)).toEqual({ entry: 2 });
});
