import { expect, test } from 'vitest';
import { scrapeMarkHeader } from '../../src/core/access.ts';
import { parseAddress } from '../../src/core/address.ts';
import { manualClock } from '../clock.ts';
import { openScrape, openTarget } from '../scrape.ts';

test.each(['0.0.0.0', '127.0.0.1', '127.0.0.2'])(
  'a target that is a listener of the agent on %s is refused',
  async (host) => {
    const target = await openTarget();
    target.page('x 1\n');
    const { port } = new URL(target.url);
    const own = parseAddress(`${host}:${port}`)!;
    const scraped = await openScrape({ url: target.url }, manualClock(), { ownListeners: () => [own] });
    expect(await scraped.scrape.scrapeNow()).toMatchObject({ ok: false, reason: 'own_endpoint' });
    expect(target.requests).toHaveLength(0);
  },
);

test.each([
  ['of another address', '192.0.2.1', 0],
  ['of another port', '127.0.0.1', 1],
  ['of another port on all addresses', '0.0.0.0', 1],
])('a target beside a listener %s is scraped', async (_, host, further) => {
  const target = await openTarget();
  target.page('x 1\n');
  const port = Number(new URL(target.url).port) + further;
  const scraped = await openScrape({ url: target.url }, manualClock(), {
    ownListeners: () => [{ host, port }],
  });
  expect(await scraped.scrape.scrapeNow()).toEqual({ ok: true });
});

test('a loop over a proxy is found by the mark on the request', async () => {
  const target = await openTarget();
  target.answer((request, response) => {
    const isOwn = request.headers[scrapeMarkHeader] === 'agent-7';
    response.writeHead(isOwn ? 508 : 200, { 'content-type': 'text/plain' }).end('x 1\n');
  });
  const scraped = await openScrape({ url: target.url }, manualClock(), { mark: 'agent-7' });
  expect(await scraped.scrape.scrapeNow()).toMatchObject({ ok: false, reason: 'own_endpoint' });
});
