import fc from 'fast-check';
import { describe, expect, it, test } from 'vitest';
import { cursor, fastValue, formatDecimal, parseValue } from '../../../src/core/decimal.ts';
import { runs } from '../../size.ts';

test.each([
  ['1', 1],
  ['-0', -0],
  ['+7', 7],
  ['.5', 0.5],
  ['5.', 5],
  ['1e3', 1000],
  ['1.5E-07', 1.5e-7],
  ['123456789012345678', 123456789012345680],
  ['4.9e-324', 5e-324],
  ['1.7976931348623157e308', Number.MAX_VALUE],
  ['1e-400', 0],
  ['NaN', Number.NaN],
  ['nan', Number.NaN],
  ['+Inf', Number.POSITIVE_INFINITY],
  ['-inf', Number.NEGATIVE_INFINITY],
  ['Infinity', Number.POSITIVE_INFINITY],
])('%s is a value', (text, value) => {
  expect(parseValue(text)).toBe(value);
});

test.each(['', '-', '.', 'e5', '1e', '0x10', '1_000', '0b1', '1,5', 'Inf1', '١', '1 ', '1e999', '-1e309'])(
  '%j is no value',
  (text) => {
    expect(parseValue(text)).toBeUndefined();
  },
);

const fast = (text: string): number | undefined => {
  const value = fastValue(Buffer.from(`${text}\n`), 0);
  return cursor.at === text.length ? value : undefined;
};

test('the fast path gives what Number gives, to the last bit, or nothing', () => {
  const digits = fc.stringMatching(/^\d{0,17}$/);
  const exponent = fc.stringMatching(/^(?:[eE][+-]?\d{1,3})?$/);
  const spelled = fc
    .tuple(fc.constantFrom('', '-'), digits, fc.constantFrom('', '.'), digits, exponent)
    .map((parts) => parts.join(''));
  fc.assert(
    fc.property(spelled, (text) => {
      const value = fast(text);
      if (value !== undefined) expect(value).toBe(Number(text));
    }),
    { numRuns: runs(20_000) },
  );
});

test.each(['0', '17', '-3.25', '1234567.891', '1.2345e+06', '99999999999999', '0.000001'])(
  'the fast path takes %s',
  (text) => {
    expect(fast(text)).toBe(Number(text));
  },
);

test.each(['', '-', '.', '1e', '1e+', '2E-', '1e1000'])(
  'the fast path leaves %j to the other one',
  (text) => {
    expect(fast(text)).toBeUndefined();
  },
);

describe('formatDecimal', () => {
  it.each([
    [0, '0'],
    [-0, '0'],
    [1.5e300, `15${'0'.repeat(299)}`],
    [123_456_789_012_345_680_000, '123456789012345680000'],
    [0.001, '0.001'],
    [1.0, '1'],
    [5.0, '5'],
    [10, '10'],
    [0.1, '0.1'],
    [-2.5, '-2.5'],
    [1e-7, '0.0000001'],
    [1.25e-9, '0.00000000125'],
    [1e21, '1000000000000000000000'],
    [-1.5e22, '-15000000000000000000000'],
    [2 ** 53, '9007199254740992'],
    [Infinity, 'Infinity'],
  ])('%d is %s', (bound, text) => expect(formatDecimal(bound)).toBe(text));

  it('reads back as the same number, without an exponent', () => {
    fc.assert(
      fc.property(fc.double({ noNaN: true, noDefaultInfinity: true }), (bound) => {
        const text = formatDecimal(bound);
        expect(text).toMatch(/^-?\d+(\.\d+)?$/);
        expect(Number(text) === bound).toBe(true);
      }),
    );
  });
});
