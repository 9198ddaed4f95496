import { Socket } from 'node:net';
import fc from 'fast-check';
import { expect, test } from 'vitest';
import {
  createResponseReader,
  type HttpReply,
  responseOver,
} from '../../../../src/probes/health/http-response.ts';

/** What is read from these bytes, which come in pieces that end at `cuts`, when the connection ends after them. */
function readAll(bytes: Buffer, cuts: readonly number[] = []): HttpReply {
  const reader = createResponseReader();
  const ends = [...new Set(cuts.map((cut) => cut % (bytes.length + 1)))].sort((a, b) => a - b);
  let from = 0;
  for (const to of [...ends, bytes.length]) {
    const reply = to > from ? reader.take(bytes.subarray(from, to)) : undefined;
    if (reply) return reply;
    from = to;
  }
  return reader.end();
}

const token = fc.stringMatching(/^[a-z][a-z-]{0,9}$/).map((name) => `x-${name}`);
const value = fc.stringMatching(/^(?:[!-~](?:[ -~]{0,20}[!-~])?)?$/);
const framings = ['length', 'chunks', 'end'] as const;
const upper = (text: string, isUpper: boolean) => (isUpper ? text.toUpperCase() : text);

/** A body in chunks, which end at `cuts`. */
function inChunks(body: Buffer, cuts: readonly number[]): Buffer {
  const ends = [...new Set([...cuts.map((cut) => cut % (body.length + 1)), body.length])].sort(
    (a, b) => a - b,
  );
  const pieces = ends
    .map((end, n) => body.subarray(ends[n - 1] ?? 0, end))
    .filter(({ length }) => length > 0);
  const parts = pieces.flatMap((piece) => [`${piece.length.toString(16)};x=1\r\n`, piece, '\r\n']);
  return Buffer.concat([...parts, '0\r\nx-trailer: y\r\n\r\n'].map((part) => Buffer.from(part)));
}

const responses = fc.record({
  status: fc.integer({ min: 200, max: 599 }).filter((status) => status !== 204 && status !== 304),
  reason: value,
  interim: fc.constantFrom([], [100], [103, 100]),
  more: fc.array(fc.tuple(token, value), { maxLength: 4 }),
  contentType: value,
  isUpper: fc.boolean(),
  body: fc.string({ unit: 'grapheme', maxLength: 300 }),
  framing: fc.constantFrom(...framings),
  cuts: fc.array(fc.nat(2000), { maxLength: 12 }),
});

test('a response is read as it was written, however it is framed and cut', () => {
  fc.assert(
    fc.property(responses, ({ status, reason, interim, more, contentType, isUpper, body, framing, cuts }) => {
      const content = Buffer.from(body);
      const framed = framing === 'chunks' ? inChunks(content, cuts) : content;
      const framingHeader = {
        length: [['content-length', String(content.length)]],
        chunks: [['transfer-encoding', 'chunked']],
        end: [],
      }[framing];
      const headers = [...more, ['content-type', contentType], ...framingHeader];
      const lines = headers.map(([name, text]) => `${upper(name!, isUpper)}: ${text}\r\n`).join('');
      const before = interim.map((code) => `HTTP/1.1 ${code} Wait\r\nlink: a\r\n\r\n`).join('');
      const head = Buffer.from(`${before}HTTP/1.1 ${status} ${reason}\r\n${lines}\r\n`);
      const found = readAll(Buffer.concat([head, framed]), cuts);
      expect(found).toEqual({ status, contentType, location: undefined, body });
    }),
  );
});

test.each([
  [
    'bytes after its length',
    'HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nok and more',
    { status: 200, body: 'ok' },
  ],
  ['a switch of protocols', 'HTTP/1.1 101 Switching\r\nupgrade: x\r\n\r\n', { status: 101, body: '' }],
  ['no body by its status', 'HTTP/1.1 304 Same\r\ncontent-length: 5\r\n\r\n', { status: 304, body: '' }],
])('a response is complete with %s', (_, text, reply) => {
  expect(createResponseReader().take(Buffer.from(text))).toMatchObject(reply);
});

const head = 'HTTP/1.1 200 OK\r\n';
const chunked = `${head}transfer-encoding: chunked\r\n\r\n`;

test.each([
  ['a head without an end', `${head}x: ${'y'.repeat(17_000)}`],
  ['a line of a head that ends with LF', 'HTTP/1.1 200 OK\n'],
  ['a chunk whose size line ends with LF', `${chunked}2\nok`],
  ['a size that is no number', `${chunked}zz\r\n`],
  ['a size over 32 bits', `${chunked}fffffffff\r\n`],
  ['a size without an end', `${chunked}${'0'.repeat(17_000)}`],
  ['a chunk that is longer than its size', `${chunked}2\r\nokay\r\n`],
  ['another protocol', 'SSH-2.0'],
])('%s is told at once, before the connection ends', (_, text) => {
  expect(() => createResponseReader().take(Buffer.from(text))).toThrow(
    expect.objectContaining({ reason: 'invalid_answer' }),
  );
});

test('chunks of one byte each, which come one byte at a time, are given up at 64 KiB', () => {
  const reader = createResponseReader();
  reader.take(Buffer.from(chunked));
  const chunk = Array.from('1\r\nx\r\n', (one) => Buffer.from(one));
  let taken = 0;
  const drip = () => {
    for (; taken < 70_000; taken++) for (const byte of chunk) reader.take(byte);
  };
  expect(drip).toThrow(expect.objectContaining({ reason: 'too_large' }));
  expect(taken).toBe(65_536);
});

test('the message shows how another protocol begins, in one short line', () => {
  const reader = createResponseReader();
  const greeting = `220 ready\r\n\u001b[31m${'x'.repeat(1000)}`;
  const begins = JSON.stringify(`220 ready [31m${'x'.repeat(1000)}`.slice(0, 40));
  expect(() => reader.take(Buffer.from(greeting))).toThrow(
    `the response is not HTTP: it begins with ${begins.slice(0, -1)}…"`,
  );
});

test.each([
  ['by an error', new Error('reset by the peer'), 'reset by the peer'],
  ['without one', undefined, 'the connection was closed'],
])('a socket that was destroyed before, %s, rejects at once', async (_, error, message) => {
  const socket = new Socket().on('error', () => {});
  socket.destroy(error);
  await expect(responseOver(socket, 'GET / HTTP/1.1\r\n\r\n', () => {})).rejects.toThrow(message);
});
