import type { Socket } from 'node:net';
import { afterEach, expect, test } from 'vitest';
import { get, manualGather, type Rig, say, startPull } from '../integration/pull/scraper.ts';
import { viewOf } from '../view.ts';

const view = () => viewOf([{ name: 'a', kind: 'gauge', series: [{ numbers: [1] }] }]);
const page = '# TYPE a gauge\na 1\n';

let rig: Rig;
const clients: Socket[] = [];
afterEach(async () => {
  for (const client of clients.splice(0)) client.destroy();
  await rig.stop();
});

/** Clients with the scraper's own address that send this text and do not close their connections. */
async function slowClients(count: number, sent: string): Promise<void> {
  clients.push(...(await Promise.all(Array.from({ length: count }, () => say(rig.address, sent)))));
}

test.each([
  ['send nothing', ''],
  ['never end their headers', 'GET /metrics HTTP/1.1\r\nHost: a\r\nX: '],
  ['rest after a request', 'GET /ready HTTP/1.1\r\nHost: a\r\n\r\n'],
  ['never read a page', 'GET /metrics HTTP/1.1\r\nHost: a\r\n\r\n'],
])('1,000 clients that %s do not keep a scraper out', async (_, sent) => {
  rig = await startPull(manualGather(view).gather);
  await slowClients(500, sent);
  for (let scrape = 0; scrape < 20; scrape++) {
    await slowClients(25, sent);
    const { status, body } = await get(rig.address, '/metrics');
    expect([status, body.toString()]).toEqual([200, page]);
  }
  expect(clients).toHaveLength(1000);
});
