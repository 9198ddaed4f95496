import { gzipSync } from 'node:zlib';
import { expect, onTestFinished, test } from 'vitest';
import { scrapeDefaults } from '../../src/sources/scrape/block.ts';
import { createFetch } from '../../src/sources/scrape/fetch.ts';
import { manualClock } from '../clock.ts';
import { openTarget } from '../scrape.ts';
import { servingBare } from '../serving.ts';

/** A clock that advances by a second at each read, so that every piece uses up its slice. */
function hurriedClock() {
  let looks = 0;
  return { ...manualClock(), monotonicMs: () => 1000 * ++looks };
}

function fetchOf(url: string) {
  const fetch = createFetch(
    { ...scrapeDefaults, url },
    { clock: hurriedClock(), readSecret: async () => '', ownListeners: () => [], mark: 'test' },
  );
  onTestFinished(() => fetch.close());
  return fetch;
}

const page = Buffer.from(Array.from({ length: 600_000 }, (_, n) => `x ${Math.sin(n)}\n`).join(''));
const packed = gzipSync(page);

test('in a turn of the event loop a page is read for one slice, however much of it has come', async () => {
  const target = await openTarget();
  onTestFinished(() => target.close());
  target.page(page, { 'content-length': String(page.length) });
  const fetch = fetchOf(target.url);
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

const chunked = (body: Buffer) =>
  Buffer.concat([Buffer.from(`${body.length.toString(16)}\r\n`), body, Buffer.from('\r\n0\r\n\r\n')]);

test.each([
  ['a length', `content-length: ${page.length}`, page],
  ['no length', 'connection: close', page],
  ['chunks', 'transfer-encoding: chunked', chunked(page)],
  ['gzip', `content-encoding: gzip\r\ncontent-length: ${packed.length}`, packed],
  ['gzip in chunks', 'content-encoding: gzip\r\ntransfer-encoding: chunked', chunked(packed)],
])('a page with %s is whole although the sender closes the connection at once', async (_, headers, body) => {
  const port = await servingBare((peer) =>
    peer.once('data', () => {
      peer.write(`HTTP/1.1 200 OK\r\ncontent-type: text/plain\r\n${headers}\r\n\r\n`);
      peer.end(body);
    }),
  );
  const chunks: Buffer[] = [];
  const arrival = await fetchOf(`http://127.0.0.1:${port}/metrics`).page({
    begin() {},
    write: (chunk) => void chunks.push(Buffer.from(chunk)),
  });
  // Without a length, nothing shows that the end was not cut off.
  expect(arrival).toEqual({ wholeBody: !headers.startsWith('connection') });
  expect(Buffer.concat(chunks).equals(page)).toBe(true);
});
