import { describe, expect, test } from 'vitest';
import type { Lookup } from '../../src/probes/connection.ts';
import { checkHealth } from '../health.ts';
import { freePort } from '../ports.ts';
import { servingBare } from '../serving.ts';

const schemes = ['http', 'https', 'grpc', 'grpcs', 'tcp'];

test.each(schemes)('%s: nobody listens', async (scheme) => {
  const port = await freePort();
  const found = await checkHealth({ url: `${scheme}://127.0.0.1:${port}` });
  expect(found).toMatchObject({ reason: 'refused', details: { address: `127.0.0.1:${port}` } });
  expect(found.msg).toContain(`127.0.0.1:${port}`);
  expect(Object.keys(found.phasesMs!)).toEqual(['resolve', 'connect']);
});

const failing =
  (code: string): Lookup =>
  () =>
    Promise.reject(Object.assign(new Error(`getaddrinfo ${code} role.test`), { code }));

describe('the name', () => {
  test.each(['ENOTFOUND', 'EAI_AGAIN'])('cannot be resolved: %s', async (code) => {
    const found = await checkHealth({ url: 'http://role.test:1', lookup: failing(code) });
    expect(found).toMatchObject({ reason: 'resolve', msg: `getaddrinfo ${code} role.test` });
    expect(Object.keys(found.phasesMs!)).toEqual(['resolve']);
  });

  test('has no address', async () => {
    const found = await checkHealth({ url: 'tcp://role.test:1', lookup: async () => [] });
    expect(found).toMatchObject({ reason: 'resolve', msg: 'role.test: the name has no address' });
  });

  test('is not resolved in time', async () => {
    const stop = new AbortController();
    const lookup: Lookup = () => {
      queueMicrotask(() => stop.abort());
      return new Promise(() => {});
    };
    const found = await checkHealth({ url: 'grpc://role.test:1', lookup, signal: stop.signal });
    expect(found).toMatchObject({ reason: 'resolve', msg: 'role.test:1: name resolution timed out' });
  });

  test('has a second address, which is not tried', async () => {
    const port = await servingBare();
    const found = await checkHealth({
      url: `tcp://role.test:${port}`,
      lookup: async () => ['127.0.0.2', '127.0.0.1'],
    });
    expect(found).toMatchObject({ reason: 'refused', details: { address: `127.0.0.2:${port}` } });
  });
});

test.each(schemes)('%s: the time is over before the connection is there', async (scheme) => {
  const port = await servingBare();
  const stop = new AbortController();
  const url = `${scheme}://role.test:${port}`;
  const lookup: Lookup = async () => {
    // The abort comes after every promise that is settled by now, and before anything comes from a network.
    process.nextTick(() => stop.abort());
    return ['127.0.0.1'];
  };
  const found = await checkHealth({ url, lookup, signal: stop.signal });
  expect(found).toMatchObject({
    reason: 'connect_timeout',
    msg: `role.test:${port}: the connection was not accepted in time`,
  });
});
