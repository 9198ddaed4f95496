import grpc from '@grpc/grpc-js';
import { expect, test } from 'vitest';
import { checkPeer } from '../peer.ts';
import { servingBare } from '../serving.ts';
import { grpcServer, type Served } from './health-grpc-server.ts';

async function checkByGrpc(served: Served) {
  const server = await grpcServer(served);
  try {
    return await checkPeer({ port: server.port, rpcTransport: 'grpc', rpcName: 'svc-frontend' });
  } finally {
    server.close();
  }
}

const meta = 'uber.cadence.api.v1.MetaAPI';
const fails = (code: grpc.status, details: string): Served => ({
  check: (_, callback) => callback({ code, details }),
});

test.each<[string, Served]>([
  ['serves', { check: (_, callback) => callback(null, { status: 1 }) }],
  [
    'is ok by its own method',
    { own: { [meta]: (_, callback) => callback(null, { ok: true, message: 'OK' }) } },
  ],
  ['has no method of ours', {}],
  ['refuses the call', fails(grpc.status.PERMISSION_DENIED, 'who are you?')],
  ['fails at the call', fails(grpc.status.INTERNAL, 'oops')],
])('a peer that %s is up', async (_, served) => {
  const found = await checkByGrpc(served);
  expect(found.reason).toBeUndefined();
  expect(Object.keys(found.phasesMs!)).toContain('first_byte');
});

test.each<[string, Served, string]>([
  ['does not serve', { check: (_, callback) => callback(null, { status: 2 }) }, 'not_ok'],
  [
    'is not ok by its own method',
    { own: { [meta]: (_, callback) => callback(null, { ok: false, message: 'WarmingUp' }) } },
    'warming_up',
  ],
  ['is unavailable behind its proxy', fails(grpc.status.UNAVAILABLE, 'no healthy upstream'), 'not_ok'],
])('a peer that %s is down', async (_, served, reason) => {
  expect((await checkByGrpc(served)).reason).toBe(reason);
});

test('the peer is called by its rpcName', async () => {
  const names: unknown[] = [];
  await checkByGrpc({
    check(call, callback) {
      names.push(...call.metadata.get('rpc-service'));
      callback(null, { status: 1 });
    },
  });
  expect(names).toEqual(['svc-frontend']);
});

test.each([
  ['tchannel', 'with rpcTransport tchannel'],
  [undefined, 'without rpcTransport'],
])('transport %s is only connected to, and that is said once', async (rpcTransport, said) => {
  const port = await servingBare();
  const logged: unknown[] = [];
  const found = await checkPeer({ port, rpcTransport, logged });
  const warning = `${said}, the agent only opens a TCP connection to the frontend; set rpcTransport: grpc for a health check`;
  expect(found.reason).toBeUndefined();
  expect(found.details).toMatchObject({ protocol: 'tcp', warning });
  expect(logged).toEqual([
    ['warn', `cluster dc2: ${warning}`, { cluster: 'dc2', rpcTransport: rpcTransport ?? '' }],
  ]);
});
