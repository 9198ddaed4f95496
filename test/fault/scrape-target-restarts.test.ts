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

test('counters that went down are evidence of one restart, and shown as they are', async () => {
  const clock = manualClock();
  target.page(page(100, 50, 9));
  const scraped = await openScrape({ url: target.url }, clock);
  await scraped.scrape.scrapeNow();
  expect(scraped.resets).toEqual([]);

  target.page(page(3, 1, 2));
  clock.advance(1000);
  await scraped.scrape.scrapeNow();
  expect(scraped.resets).toEqual([{ fallen: 2, counters: 2 }]);
  expect(scraped.shown()).toMatchObject({ [s('calls', {})]: 3, [s('latency_count', {})]: 1 });

  target.page(page(4, 2, 1));
  clock.advance(1000);
  await scraped.scrape.scrapeNow();
  expect(scraped.resets).toHaveLength(1);
});

test('a restart that happened while the target was gone is still seen', async () => {
  const clock = manualClock();
  target.page(page(100, 50, 9));
  const scraped = await openScrape({ url: target.url }, clock);
  await scraped.scrape.scrapeNow();
  target.answer((request) => void request.socket.resetAndDestroy());
  clock.advance(1000);
  await scraped.scrape.scrapeNow();
  target.page(page(3, 1, 2));
  await scraped.scrape.scrapeNow();
  expect(scraped.resets).toEqual([{ fallen: 2, counters: 2 }]);
});

test('a gauge that falls is no restart', async () => {
  const clock = manualClock();
  target.page(page(100, 50, 9));
  const scraped = await openScrape({ url: target.url }, clock);
  await scraped.scrape.scrapeNow();
  target.page(page(100, 50, 0));
  clock.advance(1000);
  await scraped.scrape.scrapeNow();
  expect(scraped.resets).toEqual([]);
});
