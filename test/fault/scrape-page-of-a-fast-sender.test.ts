import { expect, onTestFinished, test } from 'vitest';
import { scrapeDefaults } from '../../src/sources/scrape/block.ts';
import { createFetch } from '../../src/sources/scrape/fetch.ts';
import { manualClock } from '../clock.ts';
import { openTarget } from '../scrape.ts';

test('in a turn of the event loop a page is read for one slice, however much of it has come', async () => {
  const target = await openTarget();
  onTestFinished(() => target.close());
  const page = Buffer.alloc(8_000_000, 'x 1\n');
  target.page(page, { 'content-length': String(page.length) });
  let looks = 0;
  // Each look at the clock is a second later, so that every piece uses its slice up.
  const clock = { ...manualClock(), monotonicMs: () => 1000 * ++looks };
  const fetch = createFetch(
    { ...scrapeDefaults, url: target.url },
    { clock, readSecret: async () => '', ownListeners: () => [], mark: 'test' },
  );
  onTestFinished(() => fetch.close());
  let bytes = 0;
  let pieces = 0;
  let isRead = false;
  const perTurn: number[] = [];
  const endTurn = () => {
    if (pieces > 0) perTurn.push(pieces);
    pieces = 0;
    if (!isRead) setImmediate(endTurn);
  };
  setImmediate(endTurn);
  await fetch.page({
    begin() {},
    write(chunk) {
      pieces++;
      bytes += chunk.length;
    },
  });
  isRead = true;
  expect(bytes).toBe(page.length);
  expect(perTurn.length).toBeGreaterThan(10);
  expect(Math.max(...perTurn)).toBe(1);
});
