import { once } from 'node:events';
import { connect, type Socket } from 'node:net';
import { gzipSync } from 'node:zlib';
import { expect, onTestFinished, test } from 'vitest';
import { createSlice } from '../../../src/core/slices.ts';
import { readIntoSharedBuffer } from '../../../src/sources/scrape/shared-read-buffer.ts';
import { manualClock } from '../../clock.ts';
import { openScrape, openTarget, sampleName } from '../../scrape.ts';
import { servingBare } from '../../serving.ts';
import { until } from '../../until.ts';

/** Bytes in which no piece with the length of a chunk occurs twice. */
const bytesOf = (seed: number) =>
  Buffer.from(Uint32Array.from({ length: 500_000 }, (_, n) => n * 8 + seed).buffer);

/** A connection to a server that sends these bytes and closes. */
async function openConnection(bytes: Buffer): Promise<Socket> {
  const port = await servingBare((peer) => void peer.end(bytes));
  const { options, adopt } = readIntoSharedBuffer(createSlice({ sliceMs: 0 }));
  const socket = connect({ host: '127.0.0.1', port, ...options });
  adopt(socket);
  onTestFinished(() => void socket.destroy());
  return socket;
}

/** Everything that the socket delivers, copied when it arrives. */
async function readAll(socket: Socket): Promise<Buffer> {
  const chunks: Buffer[] = [];
  socket.on('readable', () => {
    for (let chunk = socket.read(); chunk !== null; chunk = socket.read()) chunks.push(Buffer.from(chunk));
  });
  await once(socket, 'end');
  return Buffer.concat(chunks);
}

/** Reads what is left, until the connection ends. */
async function readRest(socket: Socket, chunks: Buffer[]): Promise<Buffer> {
  const readOne = () => {
    const chunk = socket.read() as Buffer | null;
    if (chunk !== null) chunks.push(Buffer.from(chunk));
    return chunk !== null;
  };
  await until('the connection has ended', () => !readOne() && socket.readableEnded);
  return Buffer.concat(chunks);
}

test('connections that read at the same time get each its own bytes', async () => {
  const sent = [1, 2, 3, 4, 5].map(bytesOf);
  const sockets = await Promise.all(sent.map(openConnection));
  const got = await Promise.all(sockets.map(readAll));
  expect(got.map((bytes, n) => bytes.equals(sent[n]!))).toEqual(Array(5).fill(true));
});

test('chunks that nobody reads at once are kept, in their order', async () => {
  const [sent, other] = [bytesOf(1), bytesOf(2)];
  const [socket, busy] = await Promise.all([openConnection(sent), openConnection(other)]);
  const chunks: Buffer[] = [];
  // Every third event reads only one chunk; another connection fills the buffer meanwhile.
  let events = 0;
  socket.on('readable', () => {
    const chunk = ++events % 3 === 0 ? (socket.read() as Buffer | null) : null;
    if (chunk !== null) chunks.push(Buffer.from(chunk));
  });
  expect((await readAll(busy)).equals(other)).toBe(true);
  expect((await readRest(socket, chunks)).equals(sent)).toBe(true);
});

test('a reader may put back what it has not used', async () => {
  const [sent, other] = [bytesOf(1), bytesOf(2)];
  const [socket, busy] = await Promise.all([openConnection(sent), openConnection(other)]);
  const chunks: Buffer[] = [];
  let events = 0;
  socket.on('readable', () => {
    const chunk = ++events % 2 === 1 ? (socket.read() as Buffer | null) : null;
    if (chunk === null) return;
    const half = Math.ceil(chunk.length / 2);
    chunks.push(Buffer.from(chunk.subarray(0, half)));
    if (half < chunk.length) socket.unshift(chunk.subarray(half));
  });
  expect((await readAll(busy)).equals(other)).toBe(true);
  expect((await readRest(socket, chunks)).equals(sent)).toBe(true);
});

test('compressed and plain pages of several targets do not mix', async () => {
  const clock = manualClock();
  const pages = [0, 1, 2, 3].map((role) =>
    Array.from({ length: 8_000 }, (_, n) => `calls{key="${(n * 7919 + role) % 99_991}"} ${n + role}`),
  );
  const scrapes = await Promise.all(
    pages.map(async (lines, role) => {
      const target = await openTarget();
      const body = `${lines.join('\n')}\n`;
      if (role % 2 === 0) target.page(body);
      else target.page(gzipSync(body, { level: 1 }), { 'content-encoding': 'gzip' });
      const scrape = await openScrape({ url: target.url }, clock);
      onTestFinished(async () => {
        await scrape.stop();
      });
      return scrape;
    }),
  );
  await until('each page is there', () => scrapes.every(({ up }) => up() === 1));
  const expected = pages.map((lines) =>
    Object.fromEntries(
      lines.map((line) => {
        const [, key = '', value = ''] = /"(.*)"\} (.*)/.exec(line) ?? [];
        return [sampleName('calls', { key }), Number(value)];
      }),
    ),
  );
  expect(
    scrapes.map(({ shown }, n) => {
      const values = shown();
      return Object.entries(expected[n]!).filter(([name, value]) => values[name] !== value);
    }),
  ).toEqual([[], [], [], []]);
});
