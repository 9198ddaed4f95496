import { expect, test } from 'vitest';
import { get, manualGather, rest, say, startPull } from '../integration/pull/scraper.ts';
import { until } from '../until.ts';
import { viewOf } from '../view.ts';

const scrape = 'GET /metrics HTTP/1.1\r\nHost: a\r\n\r\n';
const last = 'GET /metrics HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n';

test('a few requests that do not wait for answers are answered in order', async () => {
  const rig = await startPull(manualGather(() => viewOf([])).gather);
  const text = await rest(await say(rig.address, scrape.repeat(3) + last));
  expect(text.match(/HTTP\/1\.1 200 /g)).toHaveLength(4);
  expect(rig.dropped).toEqual([]);
});

test('a connection with hundreds of them is closed, counted once, and makes one gather at most', async () => {
  const gathers = manualGather(() => viewOf([]));
  const rig = await startPull(gathers.gather);
  const text = await rest(await say(rig.address, scrape.repeat(500)));
  expect(text).not.toContain('200 OK');
  expect(rig.dropped).toEqual(['pull too_many_requests']);
  expect(gathers.requests.length).toBeLessThanOrEqual(1);
  expect((await get(rig.address, '/metrics')).status).toBe(200);
});

test('answers that wait behind another are given up with their connection', async () => {
  const big = () =>
    viewOf([{ name: 'a', kind: 'gauge', series: [{ labels: { x: 'x'.repeat(12_000_000) }, numbers: [1] }] }]);
  const view = big();
  const rig = await startPull(manualGather(() => view).gather, { limits: { writeMs: 30_000 } });
  const socket = await say(rig.address, scrape.repeat(3));
  socket.pause();
  await until('the page is rendered', () => view.released === 1);
  socket.destroy();
  // Later clients are answered later.
  for (let n = 0; n < 3; n++) expect((await get(rig.address, '/')).status).toBe(404);
  rig.clock.advance(30_000);
  expect(rig.dropped).toEqual([]);
});
