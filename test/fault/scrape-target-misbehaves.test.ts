import { gzipSync } from 'node:zlib';
import { expect, test } from 'vitest';
import { manualClock } from '../clock.ts';
import { type Answer, eachTarget, openScrape, pageAnswer, sampleName } from '../scrape.ts';
import { servingBare } from '../serving.ts';
import { until } from '../until.ts';

const good = 'x 1\n';
const goodSamples = { [sampleName('x', {})]: 1 };

const target = eachTarget();

const text = { 'content-type': 'text/plain; version=0.0.4' };
const refusals: Record<string, { answer: Answer; reason: string; drop: string; what?: string }> = {
  'resets the connection': {
    answer: (request) => void request.socket.resetAndDestroy(),
    reason: 'reset',
    drop: 'scrape/failed',
  },
  'resets within the body': {
    answer(request, response) {
      response.writeHead(200, text);
      response.write('x 2\n', () => request.socket.resetAndDestroy());
    },
    reason: 'cut_off',
    drop: 'scrape/failed',
  },
  'ends before the length it promised': {
    answer(request, response) {
      response.writeHead(200, { ...text, 'content-length': '1000' });
      response.write('x 2\n', () => request.socket.end());
    },
    reason: 'cut_off',
    drop: 'scrape/failed',
  },
  'redirects, in a loop': {
    answer: (_, response) => void response.writeHead(302, { location: '/metrics' }).end(),
    reason: 'redirect',
    what: 'the target redirects (302) to /metrics',
    drop: 'scrape/failed',
  },
  'redirects to nowhere': {
    answer: (_, response) => void response.writeHead(300, text).end(good),
    reason: 'redirect',
    what: 'the target redirects (300) to nowhere',
    drop: 'scrape/failed',
  },
  'answers 400': {
    answer: (_, response) => void response.writeHead(400, text).end(good),
    reason: 'status',
    drop: 'scrape/failed',
  },
  'is an agent that refuses to scrape itself': {
    answer: (_, response) => void response.writeHead(508, text).end(good),
    reason: 'own_endpoint',
    drop: 'scrape/failed',
  },
  'says gzip of what is plain': {
    answer: pageAnswer(good, { 'content-encoding': 'gzip' }),
    reason: 'invalid_body',
    drop: 'scrape/invalid_body',
  },
  'ends within what it packed': {
    answer: (_, response) =>
      void response
        .writeHead(200, { ...text, 'content-encoding': 'gzip' })
        .end(gzipSync(good).subarray(0, 20)),
    reason: 'cut_off',
    drop: 'scrape/failed',
  },
  'answers 500': {
    answer: (_, response) => void response.writeHead(500, text).end(good),
    reason: 'status',
    drop: 'scrape/failed',
  },
  'answers 200 with HTML': {
    answer: pageAnswer('<html></html>', { 'content-type': 'text/html' }),
    reason: 'content_type',
    drop: 'scrape/failed',
  },
  'answers 200 with HTML as text/plain': {
    answer: pageAnswer('<html>\n</html>\n'),
    reason: 'invalid_body',
    drop: 'scrape/invalid_body',
  },
  'answers with JSON': {
    answer: pageAnswer('{}', { 'content-type': 'application/json' }),
    reason: 'content_type',
    drop: 'scrape/failed',
  },
  'answers with a version to come': {
    answer: pageAnswer(good, { 'content-type': 'text/plain; charset=utf-8; version=9.0' }),
    reason: 'content_type',
    drop: 'scrape/failed',
  },
  'packs its body with what was not asked for': {
    answer: pageAnswer(good, { 'content-encoding': 'br' }),
    reason: 'content_encoding',
    drop: 'scrape/failed',
  },
};

test.each(Object.entries(refusals))('a target that %s', async (_, { answer, reason, drop, ...more }) => {
  target.page(good);
  const clock = manualClock();
  const scraped = await openScrape({ url: target.url }, clock);
  expect(await scraped.scrape.scrapeNow()).toEqual({ ok: true });
  expect(scraped.shown()).toEqual(goodSamples);

  target.answer(answer);
  clock.advance(1000);
  expect(await scraped.scrape.scrapeNow()).toMatchObject({ ok: false, reason, ...more });
  expect(scraped.shown()).toEqual({});
  expect(scraped.up()).toBe(0);
  expect(scraped.drops).toEqual({ [drop]: 1 });
  expect(scraped.scrape.status().failures).toEqual({ [reason]: 1 });

  target.page(good);
  expect(await scraped.scrape.scrapeNow()).toEqual({ ok: true });
  expect(scraped.shown()).toEqual(goodSamples);
  expect(scraped.up()).toBe(1);
});

const hangs: Record<string, Answer> = {
  'before its headers': () => {},
  'within its body': (_, response) => void response.writeHead(200, text).write('x 2\n'),
  'byte by byte': (_, response) => {
    response.writeHead(200, text);
    for (const byte of 'x 2\n') response.write(byte);
  },
};

test.each(Object.entries(hangs))('a target that hangs %s', async (_, answer) => {
  target.page(good);
  const clock = manualClock();
  const scraped = await openScrape({ url: target.url, timeoutMs: 5000 }, clock);
  await scraped.scrape.scrapeNow();
  target.answer(answer);
  clock.advance(1000);
  const result = scraped.scrape.scrapeNow();
  await until('the target is asked', () => target.requests.length === 2);
  clock.advance(5000);
  expect(await result).toMatchObject({ ok: false, reason: 'too_slow' });
  expect(scraped.shown()).toEqual({});
  expect(scraped.drops).toEqual({ 'scrape/too_slow': 1 });
});

// RFC 9110, 15.2: a client reads interim responses that it does not expect.
test('a target behind a proxy that gives early hints', async () => {
  const hints = { link: '</style.css>; rel=preload' };
  target.answer((_, response) =>
    response.writeEarlyHints(hints, () => void response.writeHead(200, text).end(good)),
  );
  const scraped = await openScrape({ url: target.url }, manualClock());
  expect(await scraped.scrape.scrapeNow()).toEqual({ ok: true });
  expect(scraped.shown()).toEqual(goodSamples);
});

test('a target that refuses connections', async () => {
  const { url } = target;
  await target.close();
  const scraped = await openScrape({ url }, manualClock());
  expect(await scraped.scrape.scrapeNow()).toMatchObject({ ok: false, reason: 'refused' });
});

test('a target whose name does not resolve', async () => {
  const scraped = await openScrape({ url: 'http://no-such-host.invalid:1/metrics' }, manualClock());
  expect(await scraped.scrape.scrapeNow()).toMatchObject({ ok: false, reason: 'resolve' });
});

test('a target that accepts and never shakes hands: the next scrape connects anew', async () => {
  let connections = 0;
  const port = await servingBare(() => connections++);
  const clock = manualClock();
  const url = `https://127.0.0.1:${port}/metrics`;
  const scraped = await openScrape({ url, timeoutMs: 5000, intervalMs: 60_000 }, clock);
  for (const attempt of [1, 2]) {
    const result = scraped.scrape.scrapeNow();
    await until(`connection ${attempt} is open`, () => connections === attempt);
    clock.advance(5000);
    expect(await result).toMatchObject({ ok: false, reason: 'too_slow' });
  }
});

test('a target that speaks another protocol', async () => {
  const port = await servingBare((socket) => socket.end('220 mail.example.org ESMTP\r\n'));
  const scraped = await openScrape({ url: `http://127.0.0.1:${port}/metrics` }, manualClock());
  expect(await scraped.scrape.scrapeNow()).toMatchObject({ ok: false, reason: 'failed' });
});

const accepted: Record<string, Record<string, string>> = {
  'no Content-Type': {},
  'a Content-Type without a version': { 'content-type': 'text/plain' },
  'a Content-Type in other letters': { 'content-type': 'Text/Plain;VERSION="0.0.4";charset=utf-8' },
};

test.each(Object.entries(accepted))('a target with %s is read as text', async (_, headers) => {
  target.answer((_request, response) => void response.writeHead(200, headers).end(good));
  const scraped = await openScrape({ url: target.url }, manualClock());
  expect(await scraped.scrape.scrapeNow()).toEqual({ ok: true });
  expect(scraped.shown()).toEqual(goodSamples);
});

// RFC 9110: codings are named without regard to case; x-gzip is gzip.
test.each([
  ['gzip', gzipSync(good)],
  ['X-GZIP', gzipSync(good)],
  [' gzip ', gzipSync(good)],
  ['identity', Buffer.from(good)],
  ['', Buffer.from(good)],
])('a page with the Content-Encoding %j is read', async (encoding, body) => {
  target.answer(
    (_request, response) => void response.writeHead(200, { ...text, 'content-encoding': encoding }).end(body),
  );
  const scraped = await openScrape({ url: target.url }, manualClock());
  expect(await scraped.scrape.scrapeNow()).toEqual({ ok: true });
  expect(scraped.shown()).toEqual(goodSamples);
});
