import { once } from 'node:events';
import { expect, test } from 'vitest';
import { get, manualGather, say, startPull } from '../integration/pull/scraper.ts';
import { until } from '../until.ts';
import { viewOf } from '../view.ts';

const scrape = (encoding: string) =>
  `GET /metrics HTTP/1.1\r\nHost: a\r\nAccept-Encoding: ${encoding}\r\n\r\n`;
const large = () =>
  viewOf([
    {
      name: 'a',
      kind: 'gauge',
      series: Array.from({ length: 200_000 }, (_, i) => ({ labels: { i: `${i}` }, numbers: [i] })),
    },
  ]);

test('gone before the gather ends: the view is released unseen', async () => {
  const hand = manualGather();
  const rig = await startPull(hand.gather);
  const socket = await say(rig.address, scrape('identity'));
  await until('the gather', () => hand.requests.length === 1);
  socket.resetAndDestroy();
  // The listener answers this request after it has noticed the reset.
  expect((await get(rig.address, '/ready')).status).toBe(200);
  const view = large();
  hand.answer(0, view);
  await until('the view is released', () => view.released === 1);
  expect(view.looked).toBe(0);
});

test.each(['identity', 'gzip'])(
  'gone in the middle of the page (%s): the rendering stops',
  async (encoding) => {
    const view = large();
    const rig = await startPull(manualGather(() => view).gather);
    const socket = await say(rig.address, scrape(encoding));
    await once(socket, 'readable');
    socket.resetAndDestroy();
    await until('the view is released', () => view.released === 1);
    expect(view.looked).toBeLessThan(200_000);
    expect(rig.dropped).toEqual([]);
    expect(rig.logged.filter(({ level }) => level === 'error')).toEqual([]);
  },
);

test('gone among others: they get the whole page', async () => {
  const hand = manualGather();
  const rig = await startPull(hand.gather);
  const socket = await say(rig.address, scrape('identity'));
  const stays = get(rig.address, '/metrics');
  await until('the gather', () => hand.requests.length === 1);
  expect((await get(rig.address, '/ready')).status).toBe(200);
  const view = large();
  hand.answer(0, view);
  await once(socket, 'readable');
  socket.resetAndDestroy();
  expect((await stays).body.toString().split('\n').length).toBe(200_002);
  expect(view.released).toBe(1);
});
