import { createServer, type Http2Server, type ServerHttp2Stream } from 'node:http2';
import type { Socket } from 'node:net';
import { expect, test } from 'vitest';
import { checkHealth } from '../health.ts';
import { type GrpcServer, grpcServer } from '../integration/health-grpc-server.ts';
import { servingBare, servingOn } from '../serving.ts';

const half = 'HTTP/1.1 200 OK\r\ncontent-length: 20\r\n\r\n{"ok":true';

test.each<[string, string, (socket: Socket) => void]>([
  ['http', 'closed instead of an answer', (socket) => socket.end()],
  ['http', 'reset instead of an answer', (socket) => socket.resetAndDestroy()],
  ['http', 'closed within the head', (socket) => socket.end('HTTP/1.1 200 O')],
  ['http', 'closed within the body', (socket) => socket.end(half)],
  ['http', 'reset within the body', (socket) => socket.write(half, () => socket.resetAndDestroy())],
  ['https', 'closed within the handshake', (socket) => socket.end()],
  ['https', 'reset within the handshake', (socket) => socket.resetAndDestroy()],
  ['grpc', 'closed instead of an answer', (socket) => socket.end()],
  ['grpc', 'reset instead of an answer', (socket) => socket.resetAndDestroy()],
])('%s: %s', async (scheme, _, lose) => {
  const port = await servingBare((socket) => socket.once('data', () => lose(socket)));
  const found = await checkHealth({ url: `${scheme}://127.0.0.1:${port}/` });
  expect(found).toMatchObject({ reason: 'reset' });
});

test('a gRPC server that goes away in the middle of a call', async () => {
  let server: GrpcServer;
  const recalled = { method: 'standard' };
  server = await grpcServer({ check: () => server.close() });
  const found = await checkHealth({ url: `grpc://127.0.0.1:${server.port}`, recalled });
  expect(found).toMatchObject({ reason: 'reset', remember: recalled });
});

const answering = (serve: (stream: ServerHttp2Stream) => void): Http2Server =>
  createServer().on('stream', (stream) => {
    stream.on('error', () => {});
    serve(stream);
  });
const head = { ':status': 200, 'content-type': 'application/grpc' };

test.each<[string, string, (stream: ServerHttp2Stream) => void]>([
  ['refuses the call', 'reset', (stream) => stream.close(7)],
  ['says goodbye at once', 'reset', (stream) => stream.session!.destroy(undefined, 2)],
  [
    'breaks off within the answer',
    'reset',
    (stream) => {
      stream.respond(head);
      stream.write(Buffer.from([0, 0, 0]), () => stream.session!.destroy());
    },
  ],
  [
    'ends without a status',
    'invalid_answer',
    (stream) => {
      stream.respond(head);
      stream.end();
    },
  ],
  ['is a page', 'http_status', (stream) => stream.respond({ ':status': 503 }, { endStream: true })],
  ['wants credentials', 'credentials', (stream) => stream.respond({ ':status': 401 }, { endStream: true })],
  [
    'knows no such page',
    'unimplemented',
    (stream) => stream.respond({ ':status': 404 }, { endStream: true }),
  ],
  [
    'is too large',
    'too_large',
    (stream) => {
      stream.respond(head);
      stream.end(Buffer.alloc(65_537));
    },
  ],
])('an HTTP/2 answer that %s', async (_, reason, serve) => {
  const port = await servingOn(answering(serve));
  const found = await checkHealth({ url: `grpc://127.0.0.1:${port}` });
  expect(found).toMatchObject({ reason });
});

test.each([
  ['words', 'hello, this is no HTTP/2\r\n\r\n'],
  ['a web server', 'HTTP/1.1 400 Bad Request\r\n\r\n'],
  ['the greeting of a database', 'J\u0000\u0000\u0000\n8.0.36\u0000'],
])('garbage instead of HTTP/2: %s', async (_, garbage) => {
  const port = await servingBare((socket) => socket.once('data', () => socket.write(garbage.repeat(10))));
  const found = await checkHealth({ url: `grpc://127.0.0.1:${port}` });
  expect(found).toMatchObject({ reason: 'invalid_answer' });
  expect(found.msg).toMatch(/^the server does not speak HTTP\/2/);
});
