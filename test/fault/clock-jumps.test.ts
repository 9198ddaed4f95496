import { beforeEach, describe, expect, test } from 'vitest';
import { manualClock } from '../clock.ts';
import { type Aggregator, aggregator, startPush } from '../push.ts';
import { testRegistry } from '../registry.ts';
import { eachTarget, openScrape, sampleName as s } from '../scrape.ts';
import { openStatsd, sendDatagrams } from '../statsd.ts';
import { until } from '../until.ts';

const hourMs = 3_600_000;
const jumps = [
  ['forward', hourMs],
  ['back', -hourMs],
] as const;

let destination: Aggregator;
const target = eachTarget();
beforeEach(async () => {
  destination = await aggregator();
});

/** A push reporter over a counting registry, which use the same clock. */
async function pushed() {
  const { registry, clock, intake } = testRegistry();
  const rig = await startPush(
    { hostPort: `127.0.0.1:${destination.port}`, tagFormat: 'none' },
    {
      clock,
      sinceMs: clock.nowMs(),
      gather: async () => registry.view(({ service }) => service === 'frontend'),
    },
  );
  const flush = async () => {
    const before = rig.delivered();
    clock.advance(1000);
    await until('a flush is over', () => rig.delivered() > before);
  };
  return { clock, source: intake({ tagService: true }), rig, flush };
}

describe.each(jumps)('the wall clock jumps an hour %s', (_, jumpMs) => {
  test('pushes keep their rhythm, and no increase is lost or repeated, of a series that begins then neither', async () => {
    const { clock, source, rig, flush } = await pushed();
    const before = source.counter('before', {});
    before.add(5);
    await flush();
    clock.jumpTo(clock.nowMs() + jumpMs);
    before.add(2);
    source.counter('after', {}).add(3);
    clock.advance(999);
    expect(rig.delivered()).toBe(1);
    clock.advance(1);
    await until('both arrive', () => destination.lines().length === 3);
    expect(destination.lines().sort()).toEqual(['after:3|c', 'before:2|c', 'before:5|c']);
    expect(rig.delivered()).toBe(2);
  });

  test('pages are fetched once an interval, and a page of a second ago is still young', async () => {
    const clock = manualClock();
    target.page('x 1\n');
    const scraped = await openScrape({ url: target.url, intervalMs: 15_000 }, clock);
    await scraped.scrape.scrapeNow();
    clock.jumpTo(clock.nowMs() + jumpMs);
    await scraped.scrape.scrapeNow();
    clock.advance(14_999);
    expect(target.requests).toHaveLength(1);
    target.page('x 2\n');
    clock.advance(1);
    await until('the next page is shown', () => scraped.shown()[s('x', {})] === 2);
    expect(target.requests).toHaveLength(2);
    expect(scraped.drops).toEqual({});
  });

  test('what came by datagrams does not expire by it', async () => {
    const clock = manualClock();
    const open = await openStatsd({ listen: '127.0.0.1:0', expireMs: 60_000 }, clock);
    const address = open.statsd.status().addresses.listen!;
    await sendDatagrams(address, ['a:1|c']);
    await until('it came', () => open.statsd.status().lines === 1);
    clock.jumpTo(clock.nowMs() + jumpMs);
    clock.advance(59_999);
    await sendDatagrams(address, ['a:1|c']);
    await until('the next one came', () => open.statsd.status().lines === 2);
    expect(open.shown()).toEqual({ 'counter a': 2 });
  });
});

describe('a machine that slept an hour', () => {
  test('pushes once, not once for each interval it missed', async () => {
    const { clock, source, rig, flush } = await pushed();
    source.counter('a', {}).add(5);
    clock.advance(hourMs);
    await until('one flush is over', () => rig.delivered() === 1);
    source.counter('a', {}).add(1);
    await flush();
    await until('both arrive', () => destination.lines().length === 2);
    expect(destination.lines()).toEqual(['a:5|c', 'a:1|c']);
  });

  test('fetches one page, not one for each interval it missed', async () => {
    const clock = manualClock();
    target.page('x 1\n');
    const scraped = await openScrape({ url: target.url, intervalMs: 15_000, timeoutMs: 10_000 }, clock);
    await scraped.scrape.scrapeNow();
    clock.advance(hourMs);
    await scraped.scrape.scrapeNow();
    expect(target.requests).toHaveLength(2);
  });
});
