import { setImmediate as nextTurn } from 'node:timers/promises';
import { expect, test } from 'vitest';
import { openStatsd, sendDatagrams } from '../statsd.ts';

test('datagrams that take longer than a slice are read over several turns, in order', async () => {
  let reads = 0;
  let nowMs = 0;
  // Each read of the time advances it by half a millisecond.
  const monotonicMs = () => {
    reads += 1;
    nowMs += 0.5;
    return nowMs;
  };
  const clock = { nowMs: () => 0, monotonicMs, after: () => () => {} };
  const open = await openStatsd({ listen: '127.0.0.1:0' }, clock);
  const lines = 2000;
  const datagram = (value: number) => `${'level:1|g\n'.repeat(lines - 1)}level:${value}|g`;
  await sendDatagrams(open.statsd.status().addresses.listen!, [datagram(7), datagram(8), 'level:+100|g']);
  let turns = 0;
  let most = 0;
  let before = 0;
  for (; before < 2 * lines + 1; await nextTurn()) {
    turns += 1;
    const read = open.statsd.status().lines;
    most = Math.max(most, read - before);
    before = read;
  }
  expect(open.shown()).toEqual({ 'gauge level': 108 });
  expect(most).toBeLessThanOrEqual(2 * 4 * 32);
  expect(turns).toBeGreaterThan(10);
  expect(reads).toBeGreaterThan(turns);
});
