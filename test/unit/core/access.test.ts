import { expect, test } from 'vitest';
import { authorizationOf, type ClientAuth, type ClientTls, connectionTls } from '../../../src/core/access.ts';

const readSecret = async (secret: unknown) => ` ${JSON.stringify(secret).slice(1, -1)}\n`;

// The pair is the example of RFC 7617.
test.each<[string, ClientAuth | undefined, string | undefined]>([
  ['nothing', undefined, undefined],
  ['no credentials', {}, undefined],
  ['a token', { bearer: 'abc' }, 'Bearer abc'],
  [
    'a name and a password',
    { basic: { username: 'Aladdin', password: 'open sesame' } },
    'Basic QWxhZGRpbjpvcGVuIHNlc2FtZQ==',
  ],
])('the header of %s', async (_, auth, header) => {
  expect(await authorizationOf(auth, readSecret)).toBe(header);
});

test.each<[string, ClientTls, object]>([
  ['nothing', {}, { rejectUnauthorized: true }],
  ['no checks', { insecure: true }, { rejectUnauthorized: false }],
  [
    'everything',
    { caFile: 'a', certFile: 'b', keyFile: 'c', serverName: 'd', insecure: false },
    { ca: 'bytes of a', cert: 'bytes of b', key: 'bytes of c', servername: 'd', rejectUnauthorized: true },
  ],
])('the options of a connection with %s', async (_, tls, expected) => {
  const read = async (path: string) => `bytes of ${path}` as unknown as Uint8Array;
  expect(await connectionTls(tls, read)).toEqual(expected);
});
