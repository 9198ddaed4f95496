import { expect, test } from 'vitest';
import { manualClock } from '../clock.ts';
import { eachTarget, openScrape, sampleName as s } from '../scrape.ts';

const target = eachTarget();

const gone = (request: { socket: { resetAndDestroy(): void } }): void => request.socket.resetAndDestroy();

test('series vanish with the target and come back once each', async () => {
  const clock = manualClock();
  target.page('# TYPE a counter\na{k="1"} 5\na{k="2"} 6\n');
  const scraped = await openScrape({ url: target.url }, clock);
  await scraped.scrape.scrapeNow();
  const before = scraped.shown();
  target.answer(gone);
  for (let n = 0; n < 5; n++) {
    clock.advance(1000);
    await scraped.scrape.scrapeNow();
    expect(scraped.shown()).toEqual({});
    expect(scraped.up()).toBe(0);
  }
  target.page('# TYPE a counter\na{k="1"} 5\na{k="2"} 6\n');
  await scraped.scrape.scrapeNow();
  expect(scraped.shown()).toEqual(before);
  expect(scraped.intake.held.size).toBe(2);
  expect(scraped.drops).toEqual({ 'scrape/failed': 5 });
  await scraped.stop();
  expect(scraped.intake.held.size).toBe(0);
});

test('a target that is gone for ten minutes gives its places back, and gets them again', async () => {
  const clock = manualClock();
  target.page('a 1\n');
  const scraped = await openScrape({ url: target.url, intervalMs: 3_600_000 }, clock);
  await scraped.scrape.scrapeNow();
  target.answer(gone);
  // The time for which the agent runs does not matter.
  clock.advance(600_000);
  await scraped.scrape.scrapeNow();
  expect(scraped.intake.held.size).toBe(1);
  clock.advance(599_999);
  await scraped.scrape.scrapeNow();
  expect(scraped.intake.held.size).toBe(1);
  clock.advance(1);
  await scraped.scrape.scrapeNow();
  expect(scraped.intake.held.size).toBe(0);
  target.page('a 2\n');
  await scraped.scrape.scrapeNow();
  expect(scraped.shown()).toEqual({ [s('a', {})]: 2 });
});

test('the series of a target that is gone are closed in slices', async () => {
  const clock = manualClock();
  target.page(Array.from({ length: 2_000 }, (_, i) => `a{k="${i}"} ${i}\n`).join(''));
  const scraped = await openScrape({ url: target.url, intervalMs: 3_600_000 }, clock);
  await scraped.scrape.scrapeNow();
  target.answer(gone);
  clock.advance(1000);
  await scraped.scrape.scrapeNow();
  clock.advance(600_000);
  // Each series takes 0.1 ms.
  const { monotonicMs } = clock;
  let readings = 0;
  clock.monotonicMs = () => monotonicMs() + 0.1 * readings++;
  const held = new Set<number>();
  const turn = () => {
    held.add(scraped.intake.held.size);
    next = setImmediate(turn);
  };
  let next = setImmediate(turn);
  await scraped.scrape.scrapeNow();
  clearImmediate(next);
  expect(scraped.intake.held.size).toBe(0);
  const sizes = [...held];
  expect(sizes.length).toBeGreaterThan(50);
  const closed = sizes.slice(1).map((size, n) => sizes[n]! - size);
  expect(Math.max(...closed)).toBeLessThan(100);
});

test('series that leave the page go, the others stay where they are', async () => {
  const clock = manualClock();
  target.page('a{k="1"} 1\na{k="2"} 2\na{k="3"} 3\n');
  const scraped = await openScrape({ url: target.url }, clock);
  await scraped.scrape.scrapeNow();
  const kept = [...scraped.intake.held].filter(({ tags }) => tags.k !== '2');
  target.page('a{k="3"} 4\na{k="4"} 5\na{k="1"} 6\n');
  clock.advance(1000);
  await scraped.scrape.scrapeNow();
  expect(scraped.shown()).toEqual({
    [s('a', { k: '1' })]: 6,
    [s('a', { k: '3' })]: 4,
    [s('a', { k: '4' })]: 5,
  });
  expect([...scraped.intake.held]).toEqual(expect.arrayContaining(kept));
});
