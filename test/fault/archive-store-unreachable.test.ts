import { readFileSync } from 'node:fs';
import { describe, expect, onTestFinished, test } from 'vitest';
import { makeCertificates } from '../integration/pull/certificates.ts';
import { environmentOf, keys, openArchive, openObjectStore } from '../object-store.ts';

const runCheck = async (endpoint: string, env = environmentOf(keys) as Record<string, string>) =>
  (await openArchive({ uri: 's3://archive/', endpoint, env })).check();

test('refused', async () => {
  const finding = await runCheck('http://127.0.0.1:1');
  expect(finding.reason).toBe('refused');
  expect(finding.gauges).toBeUndefined();
});

test('a name that nobody has', async () => {
  expect((await runCheck('http://no-such-host.invalid')).reason).toBe('resolve');
});

test('plain HTTP where TLS is expected', async () => {
  const store = await openObjectStore();
  onTestFinished(() => store.close());
  expect((await runCheck(`127.0.0.1:${store.port}`)).reason).toBe('tls');
});

describe('a certificate', () => {
  const certificates = makeCertificates();

  test.each([
    ['that has ended', { days: -1 }, 'tls_expired'],
    ['of another host', { sans: 'DNS:elsewhere.example' }, 'tls_hostname'],
  ] as const)('%s', async (_, options, reason) => {
    const authority = certificates.authority(`authority-${reason}`);
    const { cert, key } = certificates.signed(reason, authority, options);
    const tls = { cert: readFileSync(cert, 'utf8'), key: readFileSync(key, 'utf8') };
    const store = await openObjectStore({ tls });
    onTestFinished(() => store.close());
    const finding = await runCheck(store.url, { ...environmentOf(keys), AWS_CA_BUNDLE: authority.cert });
    expect(finding.reason).toBe(reason);
    expect(finding.tlsNotAfterMs).toEqual(expect.any(Number));
    expect(store.asked).toEqual([]);
  });

  test('of a file that is not there', async () => {
    const store = await openObjectStore();
    onTestFinished(() => store.close());
    const env = { ...environmentOf(keys), AWS_CA_BUNDLE: '/nowhere/ca.pem' };
    expect((await runCheck(store.url.replace('http:', 'https:'), env)).reason).toBe('credentials');
  });
});
