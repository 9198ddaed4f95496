import { createHash } from 'node:crypto';
import { gzipSync } from 'node:zlib';
import { expect, test } from 'vitest';
import { manualClock } from '../clock.ts';
import { eachTarget, openScrape, sampleName as s } from '../scrape.ts';

const target = eachTarget();

const limits = { bodyBytes: 1 << 20, samples: 10_000, labelBytes: 8192 };
const openMetrics = { 'content-type': 'application/openmetrics-text; version=1.0.0; charset=utf-8' };
const gzip = { 'content-encoding': 'gzip' };
const text = { 'content-type': 'text/plain; version=0.0.4' };

async function scrapeOnce() {
  const scraped = await openScrape({ url: target.url, limits }, manualClock());
  const result = await scraped.scrape.scrapeNow();
  const shown = scraped.shown();
  await scraped.stop();
  return { result, shown, drops: scraped.drops };
}

test('an endless plain body is stopped at the limit', async () => {
  let written = 0;
  let isClosed = false;
  target.answer((_, response) => {
    response.writeHead(200, text);
    const line = Buffer.from(`${'x'.repeat(100)} 1\n`.repeat(500));
    const pour = (): void => {
      while (!isClosed) {
        written += line.length;
        if (!response.write(line)) return;
      }
    };
    response.on('drain', pour);
    response.on('close', () => {
      isClosed = true;
    });
    pour();
  });
  const { result, shown, drops } = await scrapeOnce();
  expect(result).toMatchObject({ ok: false, reason: 'too_large' });
  expect(shown).toEqual({});
  expect(drops).toEqual({ 'scrape/too_large': 1 });
  expect(written).toBeLessThan(64 << 20);
});

test('a gzip bomb of 1:1000 is stopped at the limit of what it unpacks to', async () => {
  const bomb = gzipSync(Buffer.alloc(256 << 20, '# a\n'), { level: 9 });
  expect(bomb.length).toBeLessThan(1 << 20);
  target.page(bomb, gzip);
  const { result, drops } = await scrapeOnce();
  expect(result).toMatchObject({ ok: false, reason: 'too_large' });
  expect(drops).toEqual({ 'scrape/too_large': 1 });
});

test('a truncated gzip body is cut off', async () => {
  const packed = gzipSync('x 1\n'.repeat(1000));
  target.page(packed.subarray(0, packed.length - 4), gzip);
  expect((await scrapeOnce()).result).toMatchObject({ ok: false, reason: 'cut_off' });
});

test('a body that says gzip and is not', async () => {
  target.page('x 1\n', gzip);
  expect((await scrapeOnce()).result).toMatchObject({ ok: false, reason: 'invalid_body' });
});

test('a whole gzip body is read', async () => {
  target.page(gzipSync('x 1\n'), gzip);
  expect((await scrapeOnce()).shown).toEqual({ [s('x', {})]: 1 });
});

/** Lines that hardly shrink, so that they arrive in many chunks when they are packed. */
const dense = (lines: number) =>
  Array.from(
    { length: lines },
    (_, n) => `x{n="${createHash('sha512').update(`${n}`).digest('base64')}"} ${n}\n`,
  ).join('');

test('a packed body that comes in many chunks is read to its end, and stopped at the limit', async () => {
  target.page(gzipSync(dense(5000)), gzip);
  const { result, shown } = await scrapeOnce();
  expect([result, Object.keys(shown).length]).toEqual([{ ok: true }, 5000]);
  target.page(gzipSync(dense(11_000)), gzip);
  expect((await scrapeOnce()).result).toMatchObject({ ok: false, reason: 'too_many_samples' });
});

test('a body without final newline whose length is known is whole', async () => {
  target.page('x 1\ny 123', { 'content-length': '9' });
  expect((await scrapeOnce()).shown).toEqual({ [s('x', {})]: 1, [s('y', {})]: 123 });
});

test('a body without final newline that ends with its connection may be cut off', async () => {
  target.answer((request) => {
    request.socket.end('HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\nConnection: close\r\n\r\nx 1\ny 123');
  });
  expect((await scrapeOnce()).result).toMatchObject({ ok: false, reason: 'cut_off' });
});

test('OpenMetrics without # EOF', async () => {
  target.page('# TYPE x gauge\nx 1\n', openMetrics);
  expect((await scrapeOnce()).result).toMatchObject({ ok: false, reason: 'invalid_body' });
  target.page('# TYPE x gauge\nx 1\n# EOF\n', openMetrics);
  expect((await scrapeOnce()).shown).toEqual({ [s('x', {})]: 1 });
});

test('a duplicate series counts once, and TYPE may follow its samples', async () => {
  target.page('c{a="1"} 1\nc{a="1"} 2\n# TYPE c counter\n');
  const { shown, drops } = await scrapeOnce();
  expect(shown).toEqual({ [s('c', { a: '1' })]: 1 });
  expect(drops).toEqual({ 'scrape/invalid_line': 1 });
});

test('a label of a million characters', async () => {
  target.page(`good 1\nx{a="${'v'.repeat(1_000_000)}"} 1\n`);
  const { result, shown, drops } = await scrapeOnce();
  expect(result).toMatchObject({ ok: false, reason: 'label_too_long' });
  expect(shown).toEqual({});
  expect(drops).toEqual({ 'scrape/label_too_long': 1 });
});

test('a line without end', async () => {
  const wide = { ...limits, bodyBytes: 64 << 20 };
  target.page(`x{a="${'v'.repeat(4_000_000)}`);
  const scraped = await openScrape({ url: target.url, limits: wide }, manualClock());
  expect(await scraped.scrape.scrapeNow()).toMatchObject({ ok: false, reason: 'label_too_long' });
});

test('more samples than the limit', async () => {
  target.page(Array.from({ length: 10_001 }, (_, n) => `x{n="${n}"} 1\n`).join(''));
  const { result, shown, drops } = await scrapeOnce();
  expect(result).toMatchObject({ ok: false, reason: 'too_many_samples' });
  expect(shown).toEqual({});
  expect(drops).toEqual({ 'scrape/too_many_samples': 1 });
});
