import { expect, test } from 'vitest';
import { checkPeer } from '../peer.ts';
import { servingBare } from '../serving.ts';

test('a peer that accepts and says nothing is down when the time is over, and its connection is closed', async () => {
  const stop = new AbortController();
  let gone: Promise<void> | undefined;
  const port = await servingBare((socket) => {
    gone = new Promise((resolve) => socket.once('close', () => resolve()));
    socket.once('data', () => stop.abort());
  });
  const found = await checkPeer({ port, rpcTransport: 'grpc', signal: stop.signal });
  await gone;
  expect(found.reason).toBe('first_byte_timeout');
});
