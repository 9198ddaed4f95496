import { expect, test } from 'vitest';
import { checkPeer } from '../peer.ts';
import { bareServer } from '../ports.ts';

test('a peer that accepts and says nothing is down when the time is over, and its connection is closed', async () => {
  const stop = new AbortController();
  let gone: Promise<void> | undefined;
  const server = await bareServer((socket) => {
    gone = new Promise((resolve) => socket.once('close', () => resolve()));
    socket.once('data', () => stop.abort());
  });
  const found = await checkPeer({ port: server.port, rpcTransport: 'grpc', signal: stop.signal });
  await gone;
  await server.close();
  expect(found.reason).toBe('first_byte_timeout');
});
