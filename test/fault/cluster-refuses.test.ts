import { expect, test } from 'vitest';
import { checkPeer } from '../peer.ts';
import { bareServer } from '../ports.ts';

test.each(['grpc', 'tchannel'])('%s: nobody listens at the peer’s address', async (rpcTransport) => {
  const server = await bareServer(() => {});
  await server.close();
  const found = await checkPeer({ port: server.port, rpcTransport });
  expect(found.reason).toBe('refused');
});
