import type { Socket } from 'node:net';
import { afterEach, expect, onTestFinished, test, vi } from 'vitest';
import { openArchive, openObjectStore } from '../object-store.ts';
import { servingBare } from '../serving.ts';

const patience = { timeout: 30_000 };

/** A listener that calls `onBytes` for what it receives, and sends nothing by itself. */
async function openListener(onBytes: (socket: Socket) => void) {
  const sockets = new Set<Socket>();
  const port = await servingBare((socket) => {
    sockets.add(socket);
    socket.on('close', () => sockets.delete(socket));
    socket.once('data', () => onBytes(socket));
  });
  return { host: `127.0.0.1:${port}`, sockets };
}

let stop = new AbortController();
afterEach(() => {
  stop = new AbortController();
});

test('silence after the request ends with the signal, and the connection with it', async () => {
  let isAsked = false;
  const { host, sockets } = await openListener(() => {
    isAsked = true;
  });
  const { check } = await openArchive({ uri: 's3://archive/', endpoint: `http://${host}` });
  const pending = check(stop.signal);
  await vi.waitFor(() => expect(isAsked).toBe(true), patience);
  stop.abort();
  expect(await pending).toMatchObject({
    reason: 'too_slow',
    msg: 'the object store did not answer in time',
  });
  await vi.waitFor(() => expect(sockets.size).toBe(0), patience);
});

test('silence in the TLS handshake', async () => {
  let isGreeted = false;
  const { host, sockets } = await openListener(() => {
    isGreeted = true;
  });
  const { check } = await openArchive({ uri: 's3://archive/', endpoint: `https://${host}` });
  const pending = check(stop.signal);
  await vi.waitFor(() => expect(isGreeted).toBe(true), patience);
  stop.abort();
  expect((await pending).reason).toBe('tls');
  await vi.waitFor(() => expect(sockets.size).toBe(0), patience);
});

test('a drip of bytes', async () => {
  let drops = 0;
  const { host, sockets } = await openListener((socket) => {
    socket.write('HTTP/1.1 200 OK\r\ncontent-type: application/xml\r\n\r\n');
    const drip = (): void => {
      drops++;
      socket.write('<', () => void (socket.destroyed || setImmediate(drip)));
    };
    drip();
  });
  const { check } = await openArchive({ uri: 's3://archive/', endpoint: `http://${host}` });
  const pending = check(stop.signal);
  await vi.waitFor(() => expect(drops).toBeGreaterThan(10), patience);
  stop.abort();
  expect((await pending).reason).toBe('too_slow');
  await vi.waitFor(() => expect(sockets.size).toBe(0), patience);
});

test('no time at all', async () => {
  const store = await openObjectStore();
  onTestFinished(() => store.close());
  const { check } = await openArchive({ uri: 's3://archive/', endpoint: store.url });
  expect((await check(AbortSignal.abort())).reason).toBe('too_slow');
  expect(store.asked).toEqual([]);
});

test('a connection that the store closes after each page is opened again', async () => {
  const store = await openObjectStore({ pageSize: 1 });
  onTestFinished(() => store.close());
  let connections = 0;
  const port = await servingBare((socket) => {
    connections++;
    socket.once('data', (bytes) => {
      const [, path = ''] = /^GET (\S+)/.exec(bytes.toString()) ?? [];
      const isLast = path.includes('continuation-token');
      const more = isLast
        ? 'false'
        : 'true</IsTruncated><NextContinuationToken>t</NextContinuationToken><IsTruncated>true';
      const body = `<ListBucketResult><IsTruncated>${more}</IsTruncated></ListBucketResult>`;
      socket.end(`HTTP/1.1 200 OK\r\nconnection: close\r\ncontent-length: ${body.length}\r\n\r\n${body}`);
    });
  });
  const endpoint = `http://127.0.0.1:${port}`;
  const finding = await (await openArchive({ uri: 's3://archive/', endpoint })).check();
  expect(finding).toMatchObject({ details: { pages: 2, complete: true } });
  expect(finding.reason).toBeUndefined();
  expect(connections).toBe(2);
});
