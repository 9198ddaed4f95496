import { expect, test } from 'vitest';
import { bareServer } from '../health.ts';
import { checkPeer } from '../peer.ts';

test.each(['grpc', 'tchannel'])('%s: nobody listens at the peer’s address', async (rpcTransport) => {
  const server = await bareServer(() => {});
  await server.close();
  const found = await checkPeer({ port: server.port, rpcTransport });
  expect(found.reason).toBe('refused');
});
