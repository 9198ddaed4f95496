import { gunzipSync } from 'node:zlib';
import { expect, test } from 'vitest';
import {
  type Answer,
  get,
  manualGather,
  type Rig,
  rest,
  say,
  startPull,
} from '../integration/pull/scraper.ts';
import { readOpenMetrics } from '../openmetrics.ts';
import { until } from '../until.ts';
import { viewOf } from '../view.ts';

const seriesCount = 500;
const small = () =>
  viewOf([
    {
      name: 'a_total',
      kind: 'counter',
      series: Array.from({ length: seriesCount }, (_, i) => ({ labels: { i: `${1000 + i}` }, numbers: [i] })),
    },
  ]);
const page = [
  '# TYPE a_total counter',
  ...Array.from({ length: seriesCount }, (_, i) => `a_total{i="${1000 + i}"} ${i}`),
  '',
].join('\n');
/** 12 MB: far more than the socket buffers of both ends hold while nobody reads. */
const huge = () =>
  viewOf([
    {
      name: 'a',
      kind: 'gauge',
      series: Array.from({ length: 12 }, (_, i) => ({
        labels: { x: `${10 + i}`.repeat(500_000) },
        numbers: [i],
      })),
    },
  ]);
const scrape = 'GET /metrics HTTP/1.1\r\nHost: a\r\n\r\n';
const openMetrics = { accept: 'application/openmetrics-text;version=1.0.0,text/plain;q=0.5' };
const gzip = { 'accept-encoding': 'gzip' };
/** The headers of scrapers, which take turns. */
const mixes = [{}, gzip, openMetrics, { ...openMetrics, ...gzip }];

const bodyOf = ({ headers, body }: Answer): string =>
  (headers['content-encoding'] === 'gzip' ? gunzipSync(body) : body).toString();

let rig: Rig;

/** A scraper that has requested a page of 12 MB and reads nothing of it. */
async function stuckReader(hand: ReturnType<typeof manualGather>) {
  const socket = await say(rig.address, scrape);
  socket.pause();
  await until('its gather', () => hand.requests.length === 1);
  const view = huge();
  hand.answer(0, view);
  await until('its page is rendered', () => view.released === 1);
  return socket;
}

test('50 scrapes of every kind beside one that never reads: one gather, one rendering for each format', async () => {
  const hand = manualGather();
  rig = await startPull(hand.gather, { openMetrics: true, limits: { writeMs: 30_000 } });
  const stuck = await stuckReader(hand);

  const scrapes = Array.from({ length: 50 }, (_, i) => get(rig.address, '/metrics', mixes[i % mixes.length]));
  const heads = Array.from({ length: 5 }, () => get(rig.address, '/metrics', {}, 'HEAD'));
  const posts = Array.from({ length: 5 }, () => get(rig.address, '/metrics', {}, 'POST'));
  await until('the gather of the 50', () => hand.requests.length === 2);
  expect((await Promise.all(heads)).map(({ status, body }) => [status, body.length])).toEqual(
    Array(5).fill([200, 0]),
  );
  expect((await Promise.all(posts)).map(({ status, headers }) => [status, headers.allow])).toEqual(
    Array(5).fill([405, 'GET, HEAD']),
  );
  // Connections are accepted and read in order: once a later one is answered, all of the 50 have joined.
  expect((await get(rig.address, '/ready')).status).toBe(200);
  const view = small();
  hand.answer(1, view);

  const bodies = (await Promise.all(scrapes)).map(bodyOf);
  for (const [i, body] of bodies.entries()) {
    if (i % mixes.length < 2) expect(body).toBe(page);
    else {
      const [family] = readOpenMetrics(body);
      expect(family).toMatchObject({ name: 'a', type: 'counter' });
      expect(family!.samples.map(({ value }) => value)).toEqual(
        Array.from({ length: seriesCount }, (_, n) => n),
      );
    }
  }
  expect(hand.requests).toHaveLength(2);
  expect(view.looked).toBeLessThanOrEqual(2 * seriesCount);

  expect(rig.dropped).toEqual([]);
  rig.clock.advance(30_000);
  expect(rig.dropped).toEqual(['pull slow_reader']);
  expect((await rest(stuck)).endsWith('\r\n0\r\n\r\n')).toBe(false);
});

test('who shares the page of one that never reads gets it whole', async () => {
  const hand = manualGather();
  rig = await startPull(hand.gather, { limits: { writeMs: 30_000 } });
  const stuck = await say(rig.address, scrape);
  stuck.pause();
  const others = [{}, gzip, {}].map((headers) => get(rig.address, '/metrics', headers));
  await until('the gather', () => hand.requests.length === 1);
  expect((await get(rig.address, '/ready')).status).toBe(200);
  hand.answer(0, huge());
  const lengths = (await Promise.all(others)).map((answer) => bodyOf(answer).length);
  // The page has a type line, and twelve lines with a million characters in the label, 7 around it, and a number.
  const whole = '# TYPE a gauge\n'.length + 12 * (1_000_000 + 'a{x=""} \n'.length) + 10 + 2 * 2;
  expect(lengths).toEqual([whole, whole, whole]);
  expect(hand.requests).toHaveLength(1);
  rig.clock.advance(30_000);
  expect(rig.dropped).toEqual(['pull slow_reader']);
  stuck.destroy();
});

test('100 scrapes in a row are answered while one client never reads', async () => {
  const hand = manualGather();
  rig = await startPull(hand.gather);
  const stuck = await stuckReader(hand);
  for (let i = 0; i < 100; i++) {
    const asked = get(rig.address, '/metrics', mixes[i % 2]);
    await until('the gather', () => hand.requests.length === i + 2);
    hand.answer(i + 1, small());
    expect(bodyOf(await asked)).toBe(page);
  }
  // The clock stood still: the slow reader was not cut off to answer the others.
  expect(rig.dropped).toEqual([]);
  rig.clock.advance(30_000);
  expect(rig.dropped).toEqual(['pull slow_reader']);
  stuck.destroy();
});
