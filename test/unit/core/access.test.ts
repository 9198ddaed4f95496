import { expect, test } from 'vitest';
import { authorizationOf, type ClientAuth } from '../../../src/core/access.ts';

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
