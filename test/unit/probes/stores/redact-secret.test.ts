import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { createRedact } from '../../../../src/probes/stores/store-probe.ts';

describe('a password never leaves in a message', () => {
  test.each([
    ['as it is', 'hunter2', 'login failed with hunter2 twice: hunter2', 'login failed with *** twice: ***'],
    ['percent-encoded', 'p@ss/wörd', 'at p%40ss%2Fw%C3%B6rd', 'at ***'],
    ['percent-encoded in lower case', 'p@ss/wörd', 'at p%40ss%2fw%c3%b6rd', 'at ***'],
    ['a blank as plus', 'a b&c', 'q=a+b%26c', 'q=***'],
    ['quoted as JSON', 'a"b\\c', '{"p":"a\\"b\\\\c"}', '{"p":"***"}'],
    ['in base64, as an authentication may write it', 'p@ss/wörd', 'sent cEBzcy93w7ZyZA==', 'sent ***=='],
    ['in a path of a URL', 'p@ss/wörd+', 'at p%40ss/w%C3%B6rd+', 'at ***'],
    ['in base64 after a name', 'p@ss/wörd', 'sent c3ZjOnBAc3Mvd8O2cmQ=', 'sent c3ZjO***='],
    ['as Python writes JSON', 'p@ss/wörd"', '{"p":"p@ss/w\\u00f6rd\\""}', '{"p":"***"}'],
    ['as PHP writes JSON', 'p@ss/wörd', '"p@ss\\/w\\u00F6rd"', '"***"'],
    ['as JSON in JSON', 'a"b\\c', '{\\"p\\":\\"a\\\\\\"b\\\\\\\\c\\"}', '{\\"p\\":\\"***\\"}'],
    ['in HTML', `a&b'c"d`, 'a&amp;b&#39;c&quot;d', '***'],
    ['with signs of patterns', 'a.b*(c)[d]$', 'x a.b*(c)[d]$ axb', 'x *** axb'],
    ['in a URL, whoever’s', undefined, 'postgres://me:else@host/db', 'postgres://***@host/db'],
    [
      'a short one only as a whole word',
      's',
      "user 's' and s, session lost",
      "user '***' and ***, session lost",
    ],
    ['a short sign wherever it is', '!', 'no!t here', 'no***t here'],
    ['no password at all', '', 'nothing to hide', 'nothing to hide'],
  ])('%s', (_, secret, text, shown) => expect(createRedact(secret)(text)).toBe(shown));

  // If the pattern were tried over all of them from each backslash, this would take minutes.
  test.each(['/a', '\\"', 'é', '\n', 'a\\b', '\\\\\\\\\\\\\\\\/'])(
    'a text of backslashes is read once for %j',
    (secret) => {
      const text = '\\'.repeat(1 << 18);
      expect(createRedact(`${secret}hunter2`)(text)).toBe(text);
    },
  );

  test('in every string of a value', () => {
    const value = { a: ['x hunter2', 1, null], hunter2: { b: true, c: 'hunter2' } };
    expect(createRedact('hunter2').deep(value)).toEqual({
      a: ['x ***', 1, null],
      '***': { b: true, c: '***' },
    });
  });

  test('whatever it is, and wherever it stands', () => {
    const anyText = fc.string({ unit: 'grapheme', minLength: 1 });
    fc.assert(
      fc.property(anyText, anyText, anyText, (secret, before, after) => {
        fc.pre(!'***'.includes(secret) && !before.includes(secret) && !after.includes(secret));
        const encodings = [secret, encodeURIComponent(secret)];
        for (const text of encodings) {
          const shown = createRedact(secret)(`${before} ${text} ${after}`);
          fc.pre(!`${before} *** ${after}`.includes(secret));
          expect(shown.includes(secret)).toBe(false);
        }
      }),
    );
  });
});
