import { execFileSync } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { createServer } from 'node:tls';
import { describe, expect, test } from 'vitest';
import { checkHealth } from '../health.ts';
import { type Certificate, makeCertificates } from '../integration/pull/certificates.ts';
import { servingBare, servingOn } from '../serving.ts';

let heard = 0;
const made = makeCertificates();
const ours = made.authority('ours');
const theirs = made.authority('theirs');

const endOf = ({ cert }: Certificate): number => {
  const told = execFileSync('openssl', ['x509', '-in', cert, '-noout', '-enddate'], { encoding: 'utf8' });
  return Date.parse(told.trim().replace('notAfter=', ''));
};

/** A server that counts every byte that it receives after the handshake. */
const serveTls = (certificate: Certificate): Promise<number> => {
  const files = { cert: readFileSync(certificate.cert), key: readFileSync(certificate.key) };
  return servingOn(
    createServer({ ...files, ALPNProtocols: ['h2', 'http/1.1'] }, (socket) => {
      socket.on('error', () => {});
      socket.on('data', ({ length }) => {
        heard += length;
      });
    }),
  );
};

describe.each(['https', 'grpcs'])('%s', (scheme) => {
  test.each<[string, () => Certificate, string, string]>([
    ['has expired', () => made.signed('expired', ours, { days: -1 }), 'tls_expired', 'CERT_HAS_EXPIRED'],
    [
      'is of another authority',
      () => made.signed('foreign', theirs, { days: 1 }),
      'tls_untrusted',
      'UNABLE_TO_VERIFY_LEAF_SIGNATURE',
    ],
    ['is signed by itself', () => theirs, 'tls_untrusted', 'DEPTH_ZERO_SELF_SIGNED_CERT'],
    [
      'is of another host',
      () => made.signed('elsewhere', ours, { sans: 'DNS:elsewhere.test', days: 1 }),
      'tls_hostname',
      'ERR_TLS_CERT_ALTNAME_INVALID',
    ],
  ])('a certificate that %s: nothing is said to it, and its end is known', async (_, make, reason, code) => {
    const certificate = make();
    const port = await serveTls(certificate);
    const before = heard;
    const found = await checkHealth({
      url: `${scheme}://127.0.0.1:${port}/`,
      tls: { caFile: ours.cert },
      auth: { bearer: 'secret' },
    });
    expect(found).toMatchObject({ reason, tlsNotAfterMs: endOf(certificate) });
    expect(found.msg).toContain(code);
    expect(Object.keys(found.phasesMs!)).toEqual(['resolve', 'connect', 'tls']);
    expect(heard).toBe(before);
  });

  test('a server that speaks no TLS', async () => {
    const port = await servingBare((socket) =>
      socket.once('data', () => socket.end('HTTP/1.1 400 Bad Request\r\n\r\n')),
    );
    const found = await checkHealth({ url: `${scheme}://127.0.0.1:${port}/` });
    expect(found).toMatchObject({ reason: 'tls' });
  });
});

test('a server that wants no HTTP/2 over TLS', async () => {
  const { cert, key } = made.signed('old', ours);
  const files = { cert: readFileSync(cert), key: readFileSync(key) };
  const port = await servingOn(createServer({ ...files, ALPNProtocols: ['http/1.1'] }));
  const found = await checkHealth({ url: `grpcs://127.0.0.1:${port}`, tls: { caFile: ours.cert } });
  expect(found).toMatchObject({ reason: 'tls' });
});

test('a CA that is not there, or is none', async () => {
  const port = await servingOn(createServer());
  const url = `https://127.0.0.1:${port}/`;
  const missing = await checkHealth({ url, tls: { caFile: `${made.folder}/none.pem` } });
  const garbled = await checkHealth({ url, tls: { certFile: ours.key, keyFile: ours.key } });
  expect(missing).toMatchObject({ reason: 'credentials', msg: expect.stringContaining('none.pem') });
  expect(garbled).toMatchObject({ reason: 'credentials' });
});
