import { expect, test } from 'vitest';
import { manualClock } from '../clock.ts';
import { eachTarget, openScrape, sampleName as s } from '../scrape.ts';

const target = eachTarget();

const page = (calls: number, observed: number, depth: number) =>
  [
    '# TYPE calls counter',
    `calls ${calls}`,
    '# TYPE latency histogram',
    `latency_bucket{le="1"} ${observed}`,
    `latency_bucket{le="+Inf"} ${observed}`,
    `latency_sum ${observed}`,
    `latency_count ${observed}`,
    '# TYPE depth gauge',
    `depth ${depth}`,
    '',
  ].join('\n');

/** The source of a role that has shown 100 calls; `next` scrapes a second later, another page if there is one. */
async function followed() {
  const clock = manualClock();
  target.page(page(100, 50, 9));
  const scraped = await openScrape({ url: target.url }, clock);
  await scraped.scrape.scrapeNow();
  const next = async (text?: string) => {
    if (text !== undefined) target.page(text);
    clock.advance(1000);
    await scraped.scrape.scrapeNow();
  };
  return { ...scraped, next };
}

test('counters that went down are evidence of one restart, and shown as they are', async () => {
  const { next, resets, shown } = await followed();
  expect(resets).toEqual([]);

  await next(page(3, 1, 2));
  expect(resets).toEqual([{ fallen: 2, counters: 2 }]);
  expect(shown()).toMatchObject({ [s('calls', {})]: 3, [s('latency_count', {})]: 1 });

  await next(page(4, 2, 1));
  expect(resets).toHaveLength(1);
});

test('a restart that happened while the target was gone is still seen', async () => {
  const { next, resets, scrape } = await followed();
  target.answer((request) => void request.socket.resetAndDestroy());
  await next();
  target.page(page(3, 1, 2));
  await scrape.scrapeNow();
  expect(resets).toEqual([{ fallen: 2, counters: 2 }]);
});

test('a gauge that falls is no restart', async () => {
  const { next, resets } = await followed();
  await next(page(100, 50, 0));
  expect(resets).toEqual([]);
});
