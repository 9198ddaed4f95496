import { status as Status } from '@grpc/grpc-js';
import { afterEach, describe, expect, test } from 'vitest';
import { checkHealth } from '../health.ts';
import { serving } from '../serving.ts';
import { type GrpcServer, grpcServer, type Served } from './health-grpc-server.ts';
import { makeCertificates } from './pull/certificates.ts';

const metaApi = 'uber.cadence.api.v1.MetaAPI';
const servers: GrpcServer[] = [];
const serve = async (served: Served): Promise<string> => {
  servers.push(await grpcServer(served));
  return `127.0.0.1:${servers.at(-1)!.port}`;
};
afterEach(() => {
  for (const server of servers.splice(0)) server.close();
});

describe('the standard method', () => {
  test.each([
    [1, undefined, 'SERVING'],
    [0, 'not_ok', 'UNKNOWN'],
    [2, 'not_ok', 'NOT_SERVING'],
    [3, 'not_ok', 'SERVICE_UNKNOWN'],
  ])('status %d', async (status, reason, msg) => {
    const at = await serve({ check: (_, answer) => answer(null, { status }) });
    const found = await checkHealth({ url: `grpc://${at}` });
    expect(found).toMatchObject({
      msg,
      details: { address: at, protocol: 'grpc', method: 'grpc.health.v1.Health/Check', grpcStatus: 0 },
      remember: { method: 'standard' },
    });
    expect(found.reason).toBe(reason);
    expect(Object.keys(found.phasesMs!)).toEqual(['resolve', 'connect', 'first_byte', 'body']);
  });

  test('is asked about the service in the URL', async () => {
    const asked: unknown[] = [];
    const at = await serve({
      check({ request }, answer) {
        asked.push(request.service);
        if (request.service === 'gone') answer({ code: Status.NOT_FOUND, details: 'unknown service' });
        else answer(null, { status: 1 });
      },
    });
    expect((await checkHealth({ url: `grpc://${at}/my.pkg.Frontend` })).reason).toBeUndefined();
    expect((await checkHealth({ url: `grpc://${at}/` })).reason).toBeUndefined();
    expect(await checkHealth({ url: `grpc://${at}/gone` })).toMatchObject({
      reason: 'not_ok',
      msg: 'gRPC status 5: unknown service',
      details: { grpcStatus: 5 },
    });
    expect(asked).toEqual(['my.pkg.Frontend', '', 'gone']);
  });
});

describe('the service’s own method', () => {
  /** Refuses what the product's routing would refuse. */
  const own: NonNullable<Served['own']>[string] = ({ metadata }, answer) => {
    const sent = ['rpc-caller', 'rpc-service', 'rpc-encoding', 'context-ttl-ms', 'grpc-timeout'].map(
      (name) => metadata.get(name)[0],
    );
    if (sent.slice(0, 4).join() !== 'svc-agent,cadence-history,proto,4000') {
      answer({ code: Status.INVALID_ARGUMENT, details: `headers: ${sent}` });
    } else answer(null, { ok: true, message: 'OK' });
  };

  test('answers where the standard one is not implemented, and is asked first from then on', async () => {
    const at = await serve({ own: { [metaApi]: own } });
    const first = await checkHealth({ url: `grpc://${at}`, service: 'history', timeoutMs: 4000 });
    expect(first).toMatchObject({ msg: 'OK', remember: { method: 'own' } });
    expect(first.reason).toBeUndefined();
  });

  test('which one answered last is asked first, and the other when it no longer does', async () => {
    const asked: string[] = [];
    const check: Served['check'] = (_, answer) => {
      asked.push('standard');
      answer(null, { status: 1 });
    };
    const both = await serve({
      check,
      own: {
        [metaApi](_, answer) {
          asked.push('own');
          answer(null, { ok: true });
        },
      },
    });
    const recalled = { method: 'own' };
    expect(await checkHealth({ url: `grpc://${both}`, recalled })).toMatchObject({ remember: recalled });
    expect(await checkHealth({ url: `grpc://${both}` })).toMatchObject({ remember: { method: 'standard' } });
    const one = await serve({ check });
    const turned = await checkHealth({ url: `grpc://${one}`, recalled });
    expect(turned).toMatchObject({ msg: 'SERVING', remember: { method: 'standard' } });
    expect(asked).toEqual(['own', 'standard', 'standard']);
  });

  test.each([
    [{ ok: true, message: 'matching good' }, undefined, 'matching good'],
    [{ ok: true }, undefined, 'ok'],
    [{ ok: false, message: 'WarmingUp' }, 'warming_up', 'WarmingUp'],
    [{ message: 'ShuttingDown' }, 'shutting_down', 'ShuttingDown'],
    [{}, 'not_ok', 'not ok, without a message'],
  ])('%j', async (response, reason, msg) => {
    const at = await serve({ own: { [metaApi]: (_, answer) => answer(null, response) } });
    const found = await checkHealth({ url: `grpc://${at}/${metaApi}` });
    expect(found.msg).toBe(msg);
    expect(found.reason).toBe(reason);
  });

  test('of another package is asked where the URL names it', async () => {
    const named: unknown[] = [];
    const at = await serve({
      own: {
        'svc.api.v1.MetaAPI'({ metadata }, answer) {
          named.push(metadata.get('rpc-service')[0]);
          answer(null, { ok: true, message: 'OK' });
        },
      },
    });
    expect(await checkHealth({ url: `grpc://${at}/svc.api.v1.MetaAPI` })).toMatchObject({
      msg: 'OK',
      details: { method: 'svc.api.v1.MetaAPI/Health' },
    });
    expect(named).toEqual(['svc-frontend']);
  });
});

describe('a call that fails', () => {
  test.each([
    [Status.UNAUTHENTICATED, 'who are you', 'credentials'],
    [Status.PERMISSION_DENIED, 'no', 'credentials'],
    [Status.DEADLINE_EXCEEDED, 'late', 'too_slow'],
    [Status.UNAVAILABLE, 'the server is shutting down', 'shutting_down'],
    [Status.INTERNAL, 'persistence: 50% of reads fail – ü', 'persistence'],
    [Status.UNKNOWN, '', 'not_ok'],
  ])('with status %d', async (code, details, reason) => {
    const at = await serve({ check: (_, answer) => answer({ code, details }) });
    const found = await checkHealth({ url: `grpc://${at}` });
    expect(found).toMatchObject({
      reason,
      msg: `gRPC status ${code}: ${details || 'without a message'}`,
      details: { grpcStatus: code },
    });
  });

  test('because nothing of it is implemented', async () => {
    const at = await serve({});
    const found = await checkHealth({ url: `grpc://${at}`, recalled: { method: 'own' } });
    expect(found).toMatchObject({ reason: 'unimplemented' });
    expect(found.msg).toContain('grpc.health.v1.Health/Check');
    expect(found.msg).toContain(`${metaApi}/Health`);
  });

  test('because the server speaks HTTP/1.1', async () => {
    const port = await serving((_, response) => response.end('{"ok":true}'));
    const found = await checkHealth({ url: `grpc://127.0.0.1:${port}` });
    expect(found).toMatchObject({ reason: 'invalid_answer' });
  });
});

test('credentials are sent with the call', async () => {
  const at = await serve({
    check({ metadata }, answer) {
      const right = metadata.get('authorization')[0] === 'Bearer secret';
      answer(right ? null : { code: Status.UNAUTHENTICATED, details: 'no' }, { status: 1 });
    },
  });
  const url = `grpc://${at}`;
  expect((await checkHealth({ url, auth: { bearer: 'secret' } })).reason).toBeUndefined();
  expect((await checkHealth({ url })).reason).toBe('credentials');
});

test('over TLS', async () => {
  const made = makeCertificates();
  const ours = made.authority('ours');
  const at = await serve({
    check: (_, answer) => answer(null, { status: 1 }),
    certificate: made.signed('server', ours, { days: 1 }),
  });
  const url = `grpcs://${at}`;
  const trusted = await checkHealth({ url, tls: { caFile: ours.cert } });
  const untrusted = await checkHealth({ url });
  expect(trusted).toMatchObject({ msg: 'SERVING', details: { tlsVersion: 'TLSv1.3' } });
  expect(trusted.reason).toBeUndefined();
  expect(trusted.tlsNotAfterMs).toBeGreaterThan(Date.now());
  expect(Object.keys(trusted.phasesMs!)).toContain('tls');
  expect(untrusted).toMatchObject({ reason: 'tls_untrusted', tlsNotAfterMs: trusted.tlsNotAfterMs });
});
