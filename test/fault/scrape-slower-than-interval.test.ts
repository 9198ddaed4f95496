import type { ServerResponse } from 'node:http';
import { expect, test } from 'vitest';
import { manualClock } from '../clock.ts';
import { eachTarget, openScrape, sampleName as s } from '../scrape.ts';
import { until } from '../until.ts';

const target = eachTarget();

const finish = (response: ServerResponse, page: string): void => {
  response.writeHead(200, { 'content-type': 'text/plain' });
  response.end(page);
};

test('never two requests at a time; intervals that pass meanwhile are counted', async () => {
  const waiting: ServerResponse[] = [];
  target.answer((_, response) => void waiting.push(response));
  const clock = manualClock();
  const scraped = await openScrape({ url: target.url, intervalMs: 1000, timeoutMs: 60_000 }, clock);
  await until('the first request is there', () => waiting.length === 1);
  clock.advance(3000);
  const asked = [scraped.scrape.scrapeNow(), scraped.scrape.scrapeNow()];
  expect(scraped.drops).toEqual({ 'scrape/too_slow': 3 });
  finish(waiting[0]!, 'x 1\n');
  expect(await Promise.all(asked)).toEqual([{ ok: true }, { ok: true }]);
  expect(target.requests).toHaveLength(1);
  clock.advance(1000);
  await until('the next interval asks again', () => waiting.length === 2);
  finish(waiting[1]!, 'x 2\n');
  await until('the second page is shown', () => scraped.shown()[s('x', {})] === 2);
});

test('a page that misses the deadline of one scrape is absent from it, and shown when it is there', async () => {
  const clock = manualClock();
  target.page('x 1\n');
  const scraped = await openScrape({ url: target.url }, clock);
  await scraped.scrape.scrapeNow();
  const waiting: ServerResponse[] = [];
  target.answer((_, response) => void waiting.push(response));
  clock.advance(2000);
  const late = scraped.scrape.scrapeNow(clock.monotonicMs() + 500);
  const later = scraped.scrape.scrapeNow(clock.monotonicMs() + 750);
  const patient = scraped.scrape.scrapeNow(clock.monotonicMs() + 5000);
  await until('the target is asked', () => waiting.length === 1);
  clock.advance(500);
  expect(await late).toMatchObject({ ok: false, reason: 'too_slow' });
  clock.advance(250);
  // The page is late for both, but it is one page.
  expect(await later).toMatchObject({ ok: false, reason: 'too_slow' });
  expect(scraped.scrape.status().failures).toEqual({ too_slow: 1 });
  expect(scraped.shown()).toEqual({});
  expect(scraped.up()).toBe(0);
  finish(waiting[0]!, 'x 2\n');
  expect(await patient).toEqual({ ok: true });
  expect(scraped.shown()).toEqual({ [s('x', {})]: 2 });
  expect(scraped.up()).toBe(1);
  expect(scraped.drops).toEqual({ 'scrape/too_slow': 1 });
  expect(scraped.scrape.status().page).toMatchObject({ durationMs: 750 });
});

test('stopping does not wait for a target that hangs', async () => {
  target.answer(() => {});
  const scraped = await openScrape({ url: target.url }, manualClock());
  await until('the target is asked', () => target.requests.length === 1);
  await scraped.stop();
  expect(scraped.shown()).toEqual({});
  expect(scraped.drops).toEqual({});
});
