import { createServer, type ServerHttp2Stream } from 'node:http2';
import type { Socket } from 'node:net';
import { expect, test } from 'vitest';
import { checkHealth } from '../health.ts';
import { servingBare, servingOn } from '../serving.ts';
import { until } from '../until.ts';

/** A check of a server that runs `serve` after it has received a request, until the test stops the check. */
async function stoppedCheck(
  scheme: string,
  serve: (socket: Socket, noticed: () => Promise<unknown>) => unknown,
) {
  const stop = new AbortController();
  let steps = 0;
  const port = await servingBare((socket) => {
    socket.once('data', async () => {
      const before = steps;
      await serve(socket, () => until('the check notices', () => steps > before));
      stop.abort();
    });
  });
  const url = `${scheme}://127.0.0.1:${port}/`;
  return checkHealth({ url, signal: stop.signal, onStep: () => steps++ });
}

test.each([
  ['http', 'first_byte_timeout', 'first_byte'],
  ['https', 'tls', 'tls'],
  ['grpc', 'first_byte_timeout', 'first_byte'],
  ['grpcs', 'tls', 'tls'],
])('%s: accepted and silent', async (scheme, reason, phase) => {
  const found = await stoppedCheck(scheme, () => {});
  expect(found.reason).toBe(reason);
  expect(Object.keys(found.phasesMs!)).toEqual(['resolve', 'connect', phase]);
});

test('the answer drips, byte by byte, and is not done with its head in time', async () => {
  const found = await stoppedCheck('http', async (socket, noticed) => {
    socket.setNoDelay();
    for (const byte of 'HTTP/1.1 200 O') await new Promise((sent) => socket.write(byte, sent));
    await noticed();
  });
  expect(found).toMatchObject({
    reason: 'body_timeout',
    msg: 'the response began, but did not end in time',
  });
  expect(Object.keys(found.phasesMs!)).toEqual(['resolve', 'connect', 'first_byte', 'body']);
});

test('the head comes, the body does not', async () => {
  const found = await stoppedCheck('http', async (socket, noticed) => {
    socket.write('HTTP/1.1 200 OK\r\ncontent-length: 20\r\n\r\n{"ok":true');
    await noticed();
  });
  expect(found.reason).toBe('body_timeout');
});

test.each([
  ['nothing of the message', Buffer.alloc(0)],
  ['half of the message', Buffer.from([0, 0, 0])],
])('a gRPC answer begins: %s comes, and no status', async (_, bytes) => {
  const stop = new AbortController();
  let steps = 0;
  const port = await servingOn(
    createServer().on('stream', async (stream: ServerHttp2Stream) => {
      stream.on('error', () => {});
      const before = steps;
      stream.respond({ ':status': 200, 'content-type': 'application/grpc' });
      stream.write(bytes);
      await until('the check notices', () => steps > before);
      stop.abort();
    }),
  );
  const url = `grpc://127.0.0.1:${port}`;
  const found = await checkHealth({ url, signal: stop.signal, onStep: () => steps++ });
  expect(found).toMatchObject({
    reason: 'body_timeout',
    msg: 'the response began, but did not end in time',
  });
});

test('a check whose time is over before it begins opens nothing', async () => {
  let connections = 0;
  const port = await servingBare(() => connections++);
  for (const scheme of ['http', 'https', 'grpc', 'tcp']) {
    const found = await checkHealth({
      url: `${scheme}://localhost:${port}/`,
      signal: AbortSignal.abort(),
    });
    expect(found.reason).toBe('resolve');
  }
  expect(connections).toBe(0);
});
