import { X509Certificate } from 'node:crypto';
import { chmodSync, copyFileSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import type { ClientTls } from '../../src/core/access.ts';
import { type Certificate, type Certificates, makeCertificates } from '../integration/pull/certificates.ts';
import { hasPostgres, ownedByPostgres, type Postgres, startPostgres } from '../postgres.ts';
import { servingBare } from '../serving.ts';
import { checkStore, storeOn } from '../store-probe.ts';
import { pollUntil } from '../until.ts';

const endOf = ({ cert }: Certificate) => Date.parse(new X509Certificate(readFileSync(cert)).validTo);

describe.skipIf(!hasPostgres)('the certificate of a PostgreSQL', () => {
  let certificates: Certificates;
  let authority: Certificate;
  let server: Postgres;
  const runCheck = (tls?: ClientTls, host = '127.0.0.1') =>
    checkStore(storeOn(server.port, { user: 'postgres', tls, address: `${host}:${server.port}` }));
  /** Makes the server present another certificate; new connections see it a moment later. */
  const show = async (certificate: Certificate) => {
    const { cert, key } = certificate;
    copyFileSync(cert, join(server.data, 'server.crt'));
    copyFileSync(key, join(server.data, 'server.key'));
    for (const name of ['server.crt', 'server.key']) {
      chmodSync(join(server.data, name), 0o600);
      ownedByPostgres(join(server.data, name));
    }
    server.configure(['ssl=on']);
    await pollUntil(
      async () => (await runCheck({ caFile: authority.cert, insecure: true })).tlsNotAfterMs,
      (seenMs) => seenMs === endOf(certificate),
    );
  };
  beforeAll(async () => {
    certificates = makeCertificates();
    authority = certificates.authority('authority');
    server = await startPostgres();
  });
  afterAll(() => server?.stop());

  test('TLS is asked for, and the server has none', async () => {
    expect(await runCheck({})).toMatchObject({
      reason: 'tls',
      msg: expect.stringContaining('set ssl = on there, or remove tls from the store'),
    });
  });

  test('trusted by its authority; its end is shown', async () => {
    await show(certificates.signed('good', authority, { days: 1 }));
    const finding = await runCheck({ caFile: authority.cert }, 'localhost');
    expect(finding.reason).toBeUndefined();
    expect(Object.keys(finding.phasesMs!)).toEqual(expect.arrayContaining(['connect', 'tls', 'round_trip']));
    expect(await runCheck({})).toMatchObject({
      reason: 'tls_untrusted',
      msg: expect.stringContaining('set tls.caFile to the certificate of its authority'),
    });
    expect((await runCheck({ insecure: true })).reason).toBeUndefined();
    expect(await runCheck({ caFile: authority.cert, serverName: 'elsewhere' })).toMatchObject({
      reason: 'tls_hostname',
      msg: expect.stringMatching(/the certificate is for .*127\.0\.0\.1.*set tls\.serverName/),
    });
    expect(await runCheck({ caFile: '/nowhere/ca.pem' })).toMatchObject({
      reason: 'credentials',
      msg: expect.stringContaining('tls.caFile: cannot be read'),
    });
  });

  test('a server that wants a certificate, files that are not what they should be', async () => {
    const other = certificates.authority('other');
    const caFile = authority.cert;
    const files = { caFile, certFile: other.cert, keyFile: other.key };
    const message = async (tls: ClientTls) => (await runCheck(tls)).msg;
    expect(await message({ ...files, keyFile: authority.key })).toMatch(
      /^tls\.keyFile: not the key of tls\.certFile \(/,
    );
    expect(await message({ ...files, keyFile: other.cert })).toMatch(/^tls\.keyFile: not a private key/);
    expect(await message({ ...files, certFile: other.key })).toMatch(/^tls\.certFile: not a certificate/);
  });

  test('a server without TLS says nothing that OpenSSL alone explains', async () => {
    const port = await servingBare((socket) => {
      socket.once('data', () => socket.write('S'));
      socket.on('data', () => socket.write('HTTP/1.1 400 no\r\n'));
    });
    const found = await checkStore(storeOn(port, { tls: {} }));
    expect(found.reason).toBe('tls');
    expect(found.msg).toMatch(/^the server does not (?:speak|offer) TLS/);
  });

  test('it has expired: when it ended is known, although it is refused', async () => {
    const old = certificates.signed('old', authority, { days: -1 });
    await show(old);
    const finding = await runCheck({ caFile: authority.cert });
    expect(finding).toMatchObject({ reason: 'tls_expired', tlsNotAfterMs: endOf(old) });
    expect(Object.keys(finding.phasesMs!)).toEqual(['resolve', 'connect', 'tls']);
  });

  test('it is of another name, which may be told', async () => {
    await show(certificates.signed('other', authority, { sans: 'DNS:store.example', days: 1 }));
    expect((await runCheck({ caFile: authority.cert })).reason).toBe('tls_hostname');
    expect((await runCheck({ caFile: authority.cert, serverName: 'store.example' })).reason).toBeUndefined();
  });
});
