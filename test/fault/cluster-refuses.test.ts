import { expect, test } from 'vitest';
import { bareServer } from '../health.ts';
import { lookAtPeer } from '../peer.ts';

test.each(['grpc', 'tchannel'])('%s: nobody listens at the peer’s address', async (rpcTransport) => {
  const server = await bareServer(() => {});
  await server.close();
  const found = await lookAtPeer({ port: server.port, rpcTransport });
  expect(found.reason).toBe('refused');
});
