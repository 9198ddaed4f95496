import { readFileSync } from 'node:fs';
import { expect, test } from 'vitest';
import { connectionTls, TlsFileError } from '../../../src/core/client-tls.ts';
import { certificateText } from '../../../src/core/tls-faults.ts';
import { makeCertificates } from '../../integration/pull/certificates.ts';

const authority = readFileSync(makeCertificates().authority('test').cert, 'utf8');

const access = {
  readFile: async (path: string) => {
    if (path === '/gone') throw Object.assign(new Error('ENOENT: no such file'), { code: 'ENOENT' });
    return Buffer.from(path === '/ca' ? authority : `contents of ${path}`);
  },
  createSecureContext: (files: object) =>
    Object.fromEntries(Object.entries(files).map(([key, bytes]) => [key, bytes && String(bytes)])),
};

test('a connection has the contents of its files and verifies the server', async () => {
  const tls = { caFile: '/ca', certFile: '/cert', keyFile: '/key', serverName: 'db.test' };
  expect(await connectionTls(tls, access)).toEqual({
    secureContext: { ca: authority, cert: 'contents of /cert', key: 'contents of /key' },
    servername: 'db.test',
    rejectUnauthorized: true,
  });
});

test('an insecure connection accepts any certificate', async () => {
  expect(await connectionTls({ insecure: true }, access)).toMatchObject({ rejectUnauthorized: false });
});

test('of two files that are gone, the message names the first', async () => {
  const opened = connectionTls({ caFile: '/gone', keyFile: '/gone' }, access);
  await expect(opened).rejects.toThrow(TlsFileError);
  await expect(opened).rejects.toThrow('caFile');
});

test.each<[string, Parameters<typeof certificateText>[1], string]>([
  ['CERT_HAS_EXPIRED', undefined, 'the server’s certificate has expired; renew it there'],
  ['CERT_HAS_EXPIRED', { valid_to: 'Jan 1' }, 'the server’s certificate expired on Jan 1; renew it there'],
  [
    'CERT_NOT_YET_VALID',
    { subject: { CN: 'db.test' } },
    'the server’s certificate, for db.test, is not valid yet; check the clocks of both hosts',
  ],
  [
    'ERR_TLS_CERT_ALTNAME_INVALID',
    { subject: { CN: 'old.test' }, subjectaltname: 'DNS:db.test' },
    'the certificate is for DNS:db.test; use such a name as the address, or set tls.serverName',
  ],
  [
    'UNABLE_TO_VERIFY_LEAF_SIGNATURE',
    {},
    'the certificate has no trusted issuer; set tls.caFile to the certificate of its authority',
  ],
])('why a certificate is not trusted: %s %j', (code, certificate, text) => {
  expect(certificateText(code, certificate)).toBe(`${text} (${code})`);
});
