import type { Socket } from 'node:net';
import { expect, test } from 'vitest';
import { get, manualGather, say, startPull } from '../integration/pull/scraper.ts';
import { atTestEnd } from '../test-end.ts';
import { viewOf } from '../view.ts';

const view = () => viewOf([{ name: 'a', kind: 'gauge', series: [{ numbers: [1] }] }]);
const page = '# TYPE a gauge\na 1\n';

/** Clients with the scraper's own address that send this text and do not close their connections. */
const slowClients = (address: string, count: number, sent: string): Promise<Socket[]> =>
  Promise.all(Array.from({ length: count }, () => say(address, sent)));

test.each([
  ['send nothing', ''],
  ['never end their headers', 'GET /metrics HTTP/1.1\r\nHost: a\r\nX: '],
  ['rest after a request', 'GET /ready HTTP/1.1\r\nHost: a\r\n\r\n'],
  ['never read a page', 'GET /metrics HTTP/1.1\r\nHost: a\r\n\r\n'],
])('1,000 clients that %s do not keep a scraper out', async (_, sent) => {
  const rig = await startPull(manualGather(view).gather);
  const clients = await slowClients(rig.address, 500, sent);
  atTestEnd(() => {
    for (const client of clients) client.destroy();
  });
  for (let scrape = 0; scrape < 20; scrape++) {
    clients.push(...(await slowClients(rig.address, 25, sent)));
    const { status, body } = await get(rig.address, '/metrics');
    expect([status, body.toString()]).toEqual([200, page]);
  }
  expect(clients).toHaveLength(1000);
});
