import { expect, test } from 'vitest';
import { hiderOf } from '../../../src/core/known-secrets.ts';

/** How a server, a proxy or a library may repeat a value. */
const spellings: readonly (readonly [name: string, write: (value: string) => string])[] = [
  ['as it is', (value) => value],
  ['JSON', (value) => JSON.stringify(value).slice(1, -1)],
  ['JSON in JSON in JSON', (value) => JSON.stringify(JSON.stringify(JSON.stringify(value)))],
  ['a URL', encodeURIComponent],
  ['a form', (value) => new URLSearchParams({ value }).toString().slice('value='.length)],
  ['base64', (value) => Buffer.from(value).toString('base64')],
  ['base64 behind a user', (value) => Buffer.from(`service:${value}`).toString('base64')],
  ['base64url in a URL', (value) => encodeURIComponent(Buffer.from(`s:${value}`).toString('base64url'))],
];

test.each(spellings)('a secret is hidden in %s', (_, write) => {
  for (const secret of ['pA-55 w0rd&', 'DOM\\user"12', '\\\\host\\share\n$', 'pässwörd/+=', '-----BEGIN'])
    expect(hiderOf([secret])(`before ${write(secret)} after`)).toMatch(/^before "?\S*\*\*\*\S*"? after$/);
});

/** Characters without a period, so that no part of the text is like another. */
const longSecret = (length: number): string => {
  let state = 7;
  const next = () => (state = (Math.imul(state, 1_664_525) + 1_013_904_223) >>> 0);
  return Array.from({ length }, () => 'aZ9-_./+= é"'[Math.floor((next() / 2 ** 32) * 12)]).join('');
};

test.each([300, 5_000])('a secret of %i characters is hidden, too', (length) => {
  const secret = longSecret(length);
  for (const [, write] of spellings.filter(([name]) => name !== 'base64 behind a user'))
    expect(hiderOf([secret])(`before ${write(secret)} after`)).toMatch(
      /^before [\\"]*\S{0,4}[*=]+[\\"]* after$/,
    );
});

test.each([20, 31, 32, 700, 3_999])(
  'a text that is cut after %i characters of a secret hides them',
  (length) => {
    const secret = longSecret(4_000);
    expect(hiderOf([secret])(`before ${secret.slice(0, length)}`)).toMatch(/^before \*+\S{0,7}$/);
  },
);

test('a file of 200 kB in the place of a secret is hidden as it is', () => {
  const secret = longSecret(200_000);
  expect(hiderOf([secret])(`before ${secret} after`)).toMatch(/^before \*+ after$/);
});

test('thousands of secrets are hidden in one text', () => {
  const secrets = Array.from({ length: 3_000 }, (_, at) => `s-${at}/é${at * 7}$`);
  expect(hiderOf(secrets)(secrets.join(' '))).toBe(secrets.map(() => '***').join(' '));
});

// If an expression were tried again from each character, it would take seconds, or hours.
test.each(['\\', '%5c', '\\u005c', '&', '+', '$', '-'])('a text of %j alone is searched', (part) => {
  const text = part.repeat(200_000 / part.length);
  const hide = hiderOf(['$ecret12', '\\\\srv\\x', '-----\nabc', '"quoted"', '\n\n\n\\\\\\\\']);
  expect(hide(text).length).toBeLessThanOrEqual(text.length);
});
