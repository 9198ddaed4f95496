import { expect, test } from 'vitest';
import { checkPeer } from '../peer.ts';
import { freePort } from '../ports.ts';

test.each(['grpc', 'tchannel'])('%s: nobody listens at the peer’s address', async (rpcTransport) => {
  const found = await checkPeer({ port: await freePort(), rpcTransport });
  expect(found.reason).toBe('refused');
});
