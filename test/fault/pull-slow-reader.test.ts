import { expect, test } from 'vitest';
import { get, manualGather, rest, say, startPull } from '../integration/pull/scraper.ts';
import { until } from '../until.ts';
import { viewOf } from '../view.ts';

/** 12 MB: far more than the socket buffers of both ends hold while nobody reads. */
const huge = () =>
  viewOf([
    {
      name: 'a',
      kind: 'gauge',
      series: Array.from({ length: 12 }, (_, i) => ({
        labels: { x: `${i % 10}`.repeat(1_000_000 + i) },
        numbers: [i],
      })),
    },
  ]);
const scrape = 'GET /metrics HTTP/1.1\r\nHost: a\r\n\r\n';

test('a reader that takes nothing is cut off after writeMs and counted; the view is long released', async () => {
  const view = huge();
  const rig = await startPull(manualGather(() => view).gather, { limits: { writeMs: 30_000 } });
  const socket = await say(rig.address, scrape);
  socket.pause();
  await until('the page is rendered', () => view.released === 1);
  rig.clock.advance(29_999);
  expect(rig.dropped).toEqual([]);
  rig.clock.advance(1);
  expect(rig.dropped).toEqual(['pull slow_reader']);
  const text = await rest(socket);
  expect(text.startsWith('HTTP/1.1 200')).toBe(true);
  expect(text.endsWith('\r\n0\r\n\r\n')).toBe(false);
});

test('others are served meanwhile, and a reader in time is not counted', async () => {
  const views = [huge(), viewOf([]), huge()];
  const all = [...views];
  const rig = await startPull(manualGather(() => views.shift()!).gather);
  const slow = await say(rig.address, scrape);
  slow.pause();
  await until('the page is rendered', () => all[0]!.released === 1);
  expect((await get(rig.address, '/metrics')).status).toBe(200);
  expect((await get(rig.address, '/metrics')).body.length).toBeGreaterThan(12_000_000);
  rig.clock.advance(29_999);
  expect(rig.dropped).toEqual([]);
  slow.destroy();
});

test('pages under way are bounded: the oldest is cut off for the newest', async () => {
  const views = Array.from({ length: 17 }, huge);
  const all = [...views];
  const rig = await startPull(manualGather(() => views.shift()!).gather);
  const slow = [];
  for (const view of all) {
    expect(rig.dropped).toEqual([]);
    const socket = await say(rig.address, scrape);
    socket.pause();
    slow.push(socket);
    await until('the page is rendered', () => view.released === 1);
  }
  expect(rig.dropped).toEqual(['pull slow_reader']);
  expect((await rest(slow[0]!)).endsWith('\r\n0\r\n\r\n')).toBe(false);
  for (const socket of slow) socket.destroy();
});
