import { readFileSync } from 'node:fs';
import { createServer } from 'node:https';
import { join } from 'node:path';
import type { TLSSocket } from 'node:tls';
import { expect, test } from 'vitest';
import { manualClock } from '../../clock.ts';
import { eachTarget, openScrape, pageAnswer, sampleName as s } from '../../scrape.ts';
import { servingOn } from '../../serving.ts';
import { until } from '../../until.ts';
import { makeCertificates } from '../pull/certificates.ts';

const target = eachTarget('x 1\n');

test('a page younger than a second is shared, an older one fetched again', async () => {
  const clock = manualClock();
  const scraped = await openScrape({ url: target.url }, clock);
  await Promise.all([scraped.scrape.scrapeNow(), scraped.scrape.scrapeNow()]);
  clock.advance(999);
  expect(await scraped.scrape.scrapeNow()).toEqual({ ok: true });
  expect(target.requests).toHaveLength(1);
  clock.advance(1);
  await scraped.scrape.scrapeNow();
  expect(target.requests).toHaveLength(2);
});

test('the source fetches by itself when nobody has come for an interval', async () => {
  const clock = manualClock();
  const scraped = await openScrape({ url: target.url, intervalMs: 15_000 }, clock);
  await until('the first page is shown', () => scraped.up() === 1);
  clock.advance(10_000);
  await scraped.scrape.scrapeNow();
  clock.advance(14_999);
  expect(target.requests).toHaveLength(2);
  target.page('x 2\n');
  clock.advance(1);
  await until('the page of the interval is shown', () => scraped.shown()[s('x', {})] === 2);
  expect(target.requests).toHaveLength(3);
  await scraped.stop();
  clock.advance(60_000);
  expect(await scraped.scrape.scrapeNow()).toMatchObject({ ok: false, what: 'the source is stopped' });
  expect(target.requests).toHaveLength(3);
});

test('a page that is taken while the source stops is not shown', async () => {
  const clock = manualClock();
  let stopped: Promise<void> | undefined;
  const swaps: string[] = [];
  const scraped = await openScrape({ url: target.url }, clock, {
    intake: {
      parts() {
        stopped = scraped.stop();
        return { part: () => ({ set() {} }), release() {} };
      },
    },
    show: { swap: () => void swaps.push('swap'), hide() {} },
  });
  await until('its series are opened', () => stopped !== undefined);
  await stopped;
  expect(swaps).toEqual([]);
});

test('a request says what it wants, and uses one connection', async () => {
  const clock = manualClock();
  const ports = new Set<number | undefined>();
  target.answer((request, response) => {
    ports.add(request.socket.remotePort);
    pageAnswer('x 1\n')(request, response);
  });
  const url = `${target.url}?format=prometheus`;
  const scraped = await openScrape({ url, auth: { bearer: 'token-1' } }, clock, { mark: 'agent-1' });
  await scraped.scrape.scrapeNow();
  clock.advance(1000);
  await scraped.scrape.scrapeNow();
  const [request] = target.requests;
  expect(request).toMatchObject({ method: 'GET', url: '/metrics?format=prometheus' });
  expect(request!.headers).toMatchObject({
    authorization: 'Bearer token-1',
    'user-agent': 'svc-agent',
    'x-svc-agent-scrape': 'agent-1',
    'x-prometheus-scrape-timeout-seconds': '10',
  });
  expect(request!.headers.accept).toMatch(/^text\/plain;version=0\.0\.4;q=1,application\/openmetrics-text/);
  expect(ports.size).toBe(1);
  // Compression costs more than it saves if the target is on the same machine, even if its name does not show that.
  expect(request!.headers['accept-encoding']).toBeUndefined();
  await scraped.stop();
  const far = await openScrape({ url: target.url.replace('127.0.0.1', '0.0.0.0') }, clock);
  await far.scrape.scrapeNow();
  expect(target.requests.at(-1)!.headers['accept-encoding']).toBe('gzip');
});

test('a kept connection that the target has just closed is no failure', async () => {
  const clock = manualClock();
  const sockets = new Set<{ destroy(): void }>();
  let closeFirst = false;
  target.answer((request, response) => {
    if (closeFirst && sockets.has(request.socket)) {
      request.socket.destroy();
      return;
    }
    sockets.add(request.socket);
    pageAnswer('x 1\n')(request, response);
  });
  const scraped = await openScrape({ url: target.url }, clock);
  expect(await scraped.scrape.scrapeNow()).toEqual({ ok: true });
  closeFirst = true;
  clock.advance(1000);
  expect(await scraped.scrape.scrapeNow()).toEqual({ ok: true });
});

test('a new connection that the target closes is a failure, asked for once', async () => {
  const clock = manualClock();
  target.answer((request) => void request.socket.destroy());
  const scraped = await openScrape({ url: target.url }, clock);
  expect(await scraped.scrape.scrapeNow()).toMatchObject({ ok: false, reason: 'reset' });
  expect(target.requests).toHaveLength(1);
});

test('after a failure within the second of its last page a target is asked again', async () => {
  const clock = manualClock();
  const scraped = await openScrape({ url: target.url, intervalMs: 400 }, clock);
  expect(await scraped.scrape.scrapeNow()).toEqual({ ok: true });
  target.answer((_, response) => void response.writeHead(503).end());
  clock.advance(400);
  await until('the target is down', () => scraped.up() === 0);
  expect(await scraped.scrape.scrapeNow()).toMatchObject({ ok: false, reason: 'status' });
  expect(target.requests).toHaveLength(3);
});

test('a page tells how many of its counters were there before, and how many fell', async () => {
  const clock = manualClock();
  const pages: { fallen: number; counters: number }[] = [];
  const scraped = await openScrape({ url: target.url }, clock, { onPage: (page) => void pages.push(page) });
  const page = (a: number, b: number, more = '') =>
    `# TYPE a counter\na ${a}\n# TYPE b counter\nb ${b}\n# TYPE g gauge\ng 1\n${more}`;
  for (const text of [page(5, 5), page(6, 5), page(1, 5, '# TYPE c counter\nc 1\n')]) {
    target.page(text);
    clock.advance(1000);
    await scraped.scrape.scrapeNow();
  }
  expect(pages.slice(-3)).toEqual([
    { fallen: 0, counters: 0 },
    { fallen: 0, counters: 2 },
    { fallen: 1, counters: 2 },
  ]);
});

test('basic credentials are read at each use, and their loss is a failure by name', async () => {
  const clock = manualClock();
  let password: string | undefined = 'one';
  const readSecret = () =>
    password === undefined ? Promise.reject(new Error('ENOENT')) : Promise.resolve(`${password}\n`);
  const auth = { basic: { username: 'reader', password: { file: '/run/secrets/reader' } } };
  const scraped = await openScrape({ url: target.url, auth }, clock, { readSecret });
  const expected = (text: string) => `Basic ${Buffer.from(text).toString('base64')}`;
  await scraped.scrape.scrapeNow();
  expect(target.requests.at(-1)!.headers.authorization).toBe(expected('reader:one'));
  password = 'two';
  clock.advance(1000);
  await scraped.scrape.scrapeNow();
  expect(target.requests.at(-1)!.headers.authorization).toBe(expected('reader:two'));
  password = undefined;
  clock.advance(1000);
  expect(await scraped.scrape.scrapeNow()).toMatchObject({ ok: false, reason: 'credentials' });
});

test('readings are those of the page shown', async () => {
  const clock = manualClock();
  target.page('# TYPE lag gauge\nlag{shard="1"} 5\nlag{shard="2"} 7\nother 1\n');
  const scraped = await openScrape({ url: target.url }, clock);
  await scraped.scrape.scrapeNow();
  expect([...scraped.scrape.values('lag')]).toEqual([
    { labels: { shard: '1' }, value: 5 },
    { labels: { shard: '2' }, value: 7 },
  ]);
  expect([...scraped.scrape.values('nothing')]).toEqual([]);
  target.answer((_, response) => void response.writeHead(503).end());
  clock.advance(1000);
  await scraped.scrape.scrapeNow();
  expect([...scraped.scrape.values('lag')]).toEqual([]);
});

const certificates = makeCertificates();
const authority = certificates.authority('authority');
const [ofServer, ofClient] = ['server', 'client'].map((name) =>
  certificates.signed(name, authority, { sans: 'DNS:role.test' }),
);

async function openTlsTarget(): Promise<{ url: string; clients: string[] }> {
  const clients: string[] = [];
  const options = {
    key: readFileSync(ofServer!.key),
    cert: readFileSync(ofServer!.cert),
    ca: readFileSync(authority.cert),
    requestCert: true,
  };
  const server = createServer({ ...options, rejectUnauthorized: false }, (request, response) => {
    const socket = request.socket as TLSSocket;
    clients.push(socket.authorized ? String(socket.getPeerCertificate().subject.CN) : 'nobody');
    pageAnswer('x 1\n')(request, response);
  });
  return { url: `https://127.0.0.1:${await servingOn(server)}/metrics`, clients };
}

test('TLS: its own authority, a client certificate, a server name; files are read for each connection', async () => {
  const { url, clients } = await openTlsTarget();
  const clock = manualClock();
  const shown = { caFile: authority.cert, serverName: 'role.test' };

  const untrusted = await openScrape({ url }, clock);
  expect(await untrusted.scrape.scrapeNow()).toMatchObject({ ok: false, reason: 'tls' });
  await untrusted.stop();

  const misnamed = await openScrape({ url, tls: { ...shown, serverName: 'other.test' } }, clock);
  expect(await misnamed.scrape.scrapeNow()).toMatchObject({ ok: false, reason: 'tls' });
  await misnamed.stop();

  const careless = await openScrape({ url, tls: { insecure: true } }, clock);
  expect(await careless.scrape.scrapeNow()).toEqual({ ok: true });
  await careless.stop();

  const tls = { ...shown, certFile: ofClient!.cert, keyFile: ofClient!.key };
  const known = await openScrape({ url, tls }, clock);
  expect(await known.scrape.scrapeNow()).toEqual({ ok: true });
  await known.stop();

  const missing = await openScrape({ url, tls: { caFile: join(certificates.folder, 'none.pem') } }, clock);
  expect(await missing.scrape.scrapeNow()).toMatchObject({ ok: false, reason: 'credentials' });
  await missing.stop();

  expect(clients).toEqual(['nobody', 'client']);
});
