import { readFileSync } from 'node:fs';
import { createServer } from 'node:net';
import { networkInterfaces } from 'node:os';
import { createServer as createTlsServer } from 'node:tls';
import { expect, onTestFinished, test } from 'vitest';
import { lookupOfSystem } from '../../src/probes/connection.ts';
import { checkHealth } from '../health.ts';
import { listening } from '../ports.ts';
import { servingBare, servingOn } from '../serving.ts';
import { makeCertificates } from './pull/certificates.ts';

test('whoever accepts is up, and hears nothing', async () => {
  const heard: Buffer[] = [];
  let ended: () => void = () => {};
  const gone = new Promise<void>((resolve) => {
    ended = resolve;
  });
  const port = await servingBare((socket) => {
    socket.on('data', (bytes) => heard.push(bytes));
    socket.on('close', () => ended());
    socket.write('hello');
  });
  const found = await checkHealth({ url: `tcp://127.0.0.1:${port}` });
  await gone;
  expect(found).toMatchObject({ msg: 'accepts connections', details: { protocol: 'tcp' } });
  expect(found.reason).toBeUndefined();
  expect(Object.keys(found.phasesMs!)).toEqual(['resolve', 'connect']);
  expect(heard).toEqual([]);
});

const hasIPv6 = Object.values(networkInterfaces()).some((all) =>
  all?.some(({ address }) => address === '::1'),
);
test.skipIf(!hasIPv6)('over IPv6', async () => {
  const { port, close } = await listening(createServer(), { host: '::1' });
  onTestFinished(close);
  const found = await checkHealth({ url: `tcp://[::1]:${port}` });
  expect(found).toMatchObject({ details: { address: `[::1]:${port}` } });
  expect(found.reason).toBeUndefined();
});

test('whoever asks for a name while it is looked up waits for the same answer', async () => {
  const [first, second] = [lookupOfSystem('localhost'), lookupOfSystem('localhost')];
  expect(second).toBe(first);
  expect((await first).every((address) => ['127.0.0.1', '::1'].includes(address))).toBe(true);
  expect(lookupOfSystem('localhost')).not.toBe(first);
});

test('with TLS asked for, hands are shaken too', async () => {
  const made = makeCertificates();
  const ours = made.authority('ours');
  const { cert, key } = made.signed('server', ours, { days: 1 });
  const port = await servingOn(createTlsServer({ cert: readFileSync(cert), key: readFileSync(key) }));
  const url = `tcp://127.0.0.1:${port}`;
  const trusted = await checkHealth({ url, tls: { caFile: ours.cert } });
  const untrusted = await checkHealth({ url, tls: {} });
  expect(trusted.reason).toBeUndefined();
  expect(trusted.tlsNotAfterMs).toBeGreaterThan(Date.now());
  expect(untrusted).toMatchObject({ reason: 'tls_untrusted', tlsNotAfterMs: trusted.tlsNotAfterMs });
});
