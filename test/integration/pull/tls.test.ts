import { renameSync, rmSync, symlinkSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import type { ListenerTls } from '../../../src/core/access.ts';
import {
  createListener,
  createListeners,
  type Listener,
  type ListenerLimits,
} from '../../../src/reporters/listen/listener.ts';
import { atTestEnd } from '../../test-end.ts';
import { until } from '../../until.ts';
import { type Certificate, makeCertificates } from './certificates.ts';
import { get, listenerDeps, openListener, rest, say } from './scraper.ts';
import { type Client, connectSecurely, getSecurely } from './secure.ts';

const made = makeCertificates();
const ours = made.authority('ours');
const theirs = made.authority('theirs');
const server = made.signed('server', ours);

const listen = (tls: Partial<ListenerTls> = {}, limits: Partial<ListenerLimits> = {}) =>
  openListener({ limits, secure: { tls: { certFile: server.cert, keyFile: server.key, ...tls } } });

const outcome = (listener: Listener, client: Client) =>
  getSecurely(listener.address, '/a', client).then(
    ({ status }) => status,
    () => 'refused',
  );

test('speaks TLS, and nothing else', async () => {
  const { listener, dropped } = await listen();
  const { status, body } = await getSecurely(listener.address, '/a', { trusts: ours });
  expect([status, body.toString()]).toEqual([200, 'a']);
  await expect(get(listener.address, '/a')).rejects.toThrow();
  await until('it is counted', () => dropped.length > 0);
  expect(dropped).toEqual(['pull handshake_failed']);
  await expect(getSecurely(listener.address, '/a', { trusts: theirs })).rejects.toThrow(/certificate/);
});

test('one connection serves many requests, and its limits hold', async () => {
  const { listener } = await listen();
  const socket = await connectSecurely(listener.address, { trusts: ours });
  let text = '';
  socket.on('data', (piece: Buffer) => (text += piece.toString('latin1')));
  const statuses = () => [...text.matchAll(/HTTP\/1\.1 (\d+)/g)].map(([, status]) => status);
  for (let i = 1; i <= 3; i++) {
    socket.write('GET /a HTTP/1.1\r\nHost: a\r\n\r\n');
    await until('it is answered', () => statuses().length === i);
  }
  socket.write(`GET /a HTTP/1.1\r\nHost: a\r\nX: ${'x'.repeat(20_000)}\r\n\r\n`);
  await until('the headers are too long', () => statuses().length === 4);
  expect(statuses()).toEqual(['200', '200', '200', '431']);
});

test.each([
  [
    'TLS 1.2 at most is refused by minVersion TLS13',
    { minVersion: 'TLS13' },
    { maxVersion: 'TLSv1.2' },
    'refused',
  ],
  ['TLS 1.2 is taken by default', {}, { maxVersion: 'TLSv1.2' }, 200],
  [
    'TLS 1.1 is not',
    {},
    { minVersion: 'TLSv1.1', maxVersion: 'TLSv1.1', ciphers: 'DEFAULT@SECLEVEL=0' },
    'refused',
  ],
  ['TLS 1.3 is refused by maxVersion TLS12', { maxVersion: 'TLS12' }, { minVersion: 'TLSv1.3' }, 'refused'],
  [
    'a suite of the list is taken',
    { cipherSuites: ['TLS_ECDHE_ECDSA_WITH_AES_256_GCM_SHA384'] },
    { maxVersion: 'TLSv1.2', ciphers: 'ECDHE-ECDSA-AES256-GCM-SHA384' },
    200,
  ],
  [
    'another suite is not',
    { cipherSuites: ['TLS_ECDHE_ECDSA_WITH_AES_256_GCM_SHA384'] },
    { maxVersion: 'TLSv1.2', ciphers: 'ECDHE-ECDSA-AES128-GCM-SHA256' },
    'refused',
  ],
  [
    'TLS 1.3 has its own suites',
    { cipherSuites: ['TLS_ECDHE_ECDSA_WITH_AES_256_GCM_SHA384'] },
    { minVersion: 'TLSv1.3' },
    200,
  ],
  ['a curve of the list is taken', { curvePreferences: ['CurveP384'] }, { ecdhCurve: 'P-384' }, 200],
  ['another curve is not', { curvePreferences: ['CurveP384'] }, { ecdhCurve: 'X25519' }, 'refused'],
] as [string, Partial<ListenerTls>, Client['more'], unknown][])('%s', async (_, tls, more, expected) => {
  const { listener } = await listen(tls);
  expect(await outcome(listener, { trusts: ours, ...(more && { more }) })).toBe(expected);
});

/**
 * Each row has a policy, then the results for a client without a certificate, with ours, with another authority's, and with an
 * expired one.
 */
test.each([
  ['NoClientCert', 200, 200, 200, 200],
  ['RequestClientCert', 200, 200, 200, 200],
  ['RequireAnyClientCert', 'refused', 200, 200, 200],
  ['VerifyClientCertIfGiven', 200, 200, 'refused', 'refused'],
  ['RequireAndVerifyClientCert', 'refused', 200, 'refused', 'refused'],
  ['the default with a client CA', 'refused', 200, 'refused', 'refused'],
] as const)('%s', async (policy, ...expected) => {
  const clientAuthType = policy.startsWith('the') ? {} : { clientAuthType: policy as 'NoClientCert' };
  const { listener, dropped } = await listen({ clientCaFile: ours.cert, ...clientAuthType });
  const shown = [
    undefined,
    made.signed('client', ours),
    made.signed('stranger', theirs),
    made.signed('expired', ours, { days: -1 }),
  ];
  const outcomes = [];
  for (const shows of shown)
    outcomes.push(await outcome(listener, { trusts: ours, ...(shows && { shows }) }));
  expect(outcomes).toEqual(expected);
  expect(dropped).toEqual(expected.filter((one) => one === 'refused').map(() => 'pull handshake_failed'));
});

test.each([
  ['DNS:prometheus.example', 200],
  ['IP:10.1.2.3', 200],
  ['IP:fd00:0:0:0:0:0:0:7', 200],
  ['email:ops@example.org', 200],
  ['URI:spiffe://example.org/prometheus', 200],
  ['DNS:a.example,DNS:prometheus.example', 200],
  ['DNS:other.example', 'refused'],
  ['DNS:prometheus.example.evil', 'refused'],
  ['URI:https://x/?DNS:prometheus.example', 'refused'],
])('a client certificate for %s: %s', async (sans, expected) => {
  const { listener } = await listen({
    clientCaFile: ours.cert,
    clientAllowedSans: [
      ...['prometheus.example', '10.1.2.3', 'fd00::7', 'ops@example.org'],
      'spiffe://example.org/prometheus',
    ],
  });
  const shows = made.signed('named', ours, { sans });
  expect(await outcome(listener, { trusts: ours, shows })).toBe(expected);
});

test('a certificate that was replaced serves the next client; who is connected stays', async () => {
  const link = join(made.folder, 'live');
  const place = (name: string, { cert, key }: Certificate) => {
    symlinkSync(cert, `${link}.${name}.pem`);
    symlinkSync(key, `${link}.${name}.key`);
    renameSync(`${link}.${name}.key`, `${link}.key`);
    renameSync(`${link}.${name}.pem`, `${link}.pem`);
  };
  place('first', server);
  const { listener, logged } = await listen({ certFile: `${link}.pem`, keyFile: `${link}.key` });
  const early = await connectSecurely(listener.address, { trusts: ours });
  expect(early.getPeerCertificate().subject.CN).toBe('server');

  place('second', made.signed('renewed', theirs));
  const late = await connectSecurely(listener.address, { trusts: theirs });
  expect(late.getPeerCertificate().subject.CN).toBe('renewed');
  expect(logged.map(({ msg }) => msg)).toEqual(['listening', 'certificate reloaded']);
  early.write('GET /a HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n');
  expect(await rest(early)).toContain('HTTP/1.1 200');
  late.destroy();
});

test('a reload turns TLS on, changes it and turns it off on one address; earlier connections are closed', async () => {
  const deps = listenerDeps();
  const listeners = createListeners((options) => createListener(options, deps));
  const hold = async (secure: Parameters<Listener['protect']>[0]) => {
    const listener = await listeners.hold({ name: 'metrics', address: '127.0.0.1:0', secure });
    listener.protect(secure)();
    listener.routes = { '/a': { handle: (_, reply) => reply.send(200, 'a') } };
    atTestEnd(() => listener.close());
    return listener.address;
  };
  const bound = await hold({});
  expect((await get(bound, '/a')).status).toBe(200);
  const plain = await say(bound, 'GET /a HTTP/1.1\r\nHost: a\r\n\r\n');
  await until('it is answered', () => plain.bytesRead > 0);
  const plainEnd = rest(plain);

  const files = { certFile: server.cert, keyFile: server.key };
  expect(await hold({ tls: files })).toBe(bound);
  await plainEnd;
  expect((await getSecurely(bound, '/a', { trusts: ours })).status).toBe(200);
  await expect(get(bound, '/a')).rejects.toThrow();

  const secure = await connectSecurely(bound, { trusts: ours });
  const secureEnd = rest(secure);
  await hold({ tls: { ...files, clientCaFile: ours.cert } });
  await secureEnd;
  await expect(getSecurely(bound, '/a', { trusts: ours })).rejects.toThrow();
  await hold({});
  expect((await get(bound, '/a')).status).toBe(200);
});

test('a reload that changes no protection closes nobody', async () => {
  const { listener } = await listen();
  const socket = await connectSecurely(listener.address, { trusts: ours });
  listener.protect({ tls: { certFile: server.cert, keyFile: server.key } })();
  socket.write('GET /a HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n');
  expect(await rest(socket)).toContain('HTTP/1.1 200');
});

test('files that cannot be used stop a reload, and nothing changes', async () => {
  const { listener } = await listen();
  const missing = join(made.folder, 'gone.pem');
  expect(() => listener.protect({ tls: { certFile: missing, keyFile: server.key } })).toThrow(
    `metrics.tls.certFile: cannot be read (ENOENT: no such file or directory, open '${missing}'), got "${missing}"; create it, and make it readable`,
  );
  expect(await outcome(listener, { trusts: ours })).toBe(200);
  rmSync(missing, { force: true });
});

test('close cuts handshakes under way, and waits for nobody else', async () => {
  const { listener } = await listen({}, { handshakeMs: 600_000 });
  const silent = rest(await say(listener.address, ''));
  await listener.close();
  expect((await silent).toString()).toBe('');
});
