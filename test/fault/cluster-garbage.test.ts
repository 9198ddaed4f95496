import { expect, test } from 'vitest';
import { checkPeer } from '../peer.ts';
import { servingBare } from '../serving.ts';

test.each([
  ['bytes that mean nothing', Buffer.alloc(4096, 0xa5)],
  ['HTTP/1.1', Buffer.from('HTTP/1.1 400 Bad Request\r\ncontent-length: 0\r\n\r\n')],
  ['a MySQL greeting', Buffer.from('J\0\0\0\n8.0.36\0')],
])('a peer that answers gRPC with %s is down', async (_, garbage) => {
  const port = await servingBare((socket) => socket.once('data', () => socket.end(garbage)));
  const found = await checkPeer({ port, rpcTransport: 'grpc' });
  expect(found.reason).toMatch(/^(?:invalid_answer|reset)$/);
});
