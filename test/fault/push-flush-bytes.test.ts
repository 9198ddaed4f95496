import { expect, test } from 'vitest';
import { type Aggregator, aggregator, count, gauge, type PushRig, startPush } from '../push.ts';
import { until } from '../until.ts';

let target: Aggregator;
let rig: PushRig;

const start = async (flushBytes: number) => {
  target = await aggregator();
  rig = await startPush({
    hostPort: `127.0.0.1:${target.port}`,
    tagFormat: 'dogstatsd',
    instance: '',
    flushBytes,
  });
};

test('a line longer than a packet is dropped and counted, once for each delta', async () => {
  await start(12);
  const long = 'l'.repeat(9);
  rig.show([count(long, 1), count('a', 1)]);
  await rig.flush();
  rig.show([count(long, 1), count('a', 2)]);
  await rig.flush();
  await until('the short lines arrive', () => target.datagrams.length === 2);
  expect(target.datagrams).toEqual(['a:1|c', 'a:1|c']);
  expect(Object.fromEntries(rig.dropped)).toEqual({ line_too_long: 1 });
  expect(rig.failures).toEqual([]);
});

test('a line of exactly the size has its packet to itself', async () => {
  await start(12);
  rig.show([count('a', 1), count('l'.repeat(8), 1), count('b', 1), count('c', 1)]);
  await rig.flush();
  await until('three packets arrive', () => target.datagrams.length === 3);
  expect(target.datagrams).toEqual(['a:1|c', 'llllllll:1|c', 'b:1|c\nc:1|c']);
  expect(rig.dropped.size).toBe(0);
});

test('the size is that of the bytes: characters of several bytes at the edge', async () => {
  await start(14);
  // "a:1|c|#k:" has 9 bytes.
  rig.show([
    count('a', 1, { labels: { k: 'éé' } }),
    count('b', 1, { labels: { k: '€é' } }),
    count('c', 1, { labels: { k: '€€' } }),
    count('d', 1, { labels: { k: '😀' } }),
  ]);
  await rig.flush();
  await until('three packets arrive', () => target.datagrams.length === 3);
  expect(target.datagrams).toEqual(['a:1|c|#k:éé', 'b:1|c|#k:€é', 'd:1|c|#k:😀']);
  expect(Object.fromEntries(rig.dropped)).toEqual({ line_too_long: 1 });
});

test('the two lines of a negative gauge stay together', async () => {
  await start(13);
  rig.show([gauge('a', 1), gauge('b', -7), gauge('c', 1)]);
  await rig.flush();
  await until('three packets arrive', () => target.datagrams.length === 3);
  expect(target.datagrams).toEqual(['a:1|g', 'b:0|g\nb:-7|g', 'c:1|g']);
});
