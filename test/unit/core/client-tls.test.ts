import { expect, test } from 'vitest';
import { connectionTls, TlsFileError } from '../../../src/core/client-tls.ts';

const access = {
  readFile: async (path: string) => {
    if (path === '/gone') throw Object.assign(new Error('ENOENT: no such file'), { code: 'ENOENT' });
    return Buffer.from(`contents of ${path}`);
  },
  createSecureContext: (files: object) =>
    Object.fromEntries(Object.entries(files).map(([key, bytes]) => [key, bytes && String(bytes)])),
};

test('a connection has the contents of its files and verifies the server', async () => {
  const tls = { caFile: '/ca', certFile: '/cert', keyFile: '/key', serverName: 'db.test' };
  expect(await connectionTls(tls, access)).toEqual({
    secureContext: { ca: 'contents of /ca', cert: 'contents of /cert', key: 'contents of /key' },
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
