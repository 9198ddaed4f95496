import fc from 'fast-check';
import { expect, test } from 'vitest';
import {
  absent,
  createFields,
  numeral,
  plainText,
  setField,
  viewOf,
} from '../../../src/sources/logs/lines/fields.ts';
import {
  createLabelCache,
  findIn,
  keepIn,
  keyHash,
  sweepIn,
} from '../../../src/sources/logs/metrics/label-cache.ts';

const fields = createFields([0, 1, 2]);

/** Fields 0 and 2 as texts; undefined is an absent field, a number a numeral. */
function setTo(values: readonly (string | number | undefined)[]) {
  const bytes = Buffer.from(`xx${values.map((value) => value ?? '').join('')}xx`);
  fields.bytes = bytes;
  fields.view = viewOf(bytes);
  let at = 2;
  for (const [n, value] of values.entries()) {
    const to = at + Buffer.byteLength(String(value ?? ''));
    const kind = value === undefined ? absent : typeof value === 'number' ? numeral : plainText;
    setField(fields, n * 2, kind, at, to);
    at = to;
  }
}

const value = fc.oneof(
  fc.constantFrom(undefined, '', 'a', 'ab', 'abc', 'abcd', 'abcde', 'b', 1, 12, '1', '12'),
  fc.string({ maxLength: 10 }),
);

test('finds what was kept for the same values, and nothing else', () => {
  fc.assert(
    fc.property(fc.array(fc.tuple(value, value), { maxLength: 200 }), fc.nat(9), (pairs, gone) => {
      const cache = createLabelCache<number>([0, 2]);
      const model = new Map<string, number>();
      const keyOf = (pair: unknown) => JSON.stringify(pair, (_, part) => (part === undefined ? null : part));
      for (const [n, pair] of pairs.entries()) {
        setTo(pair);
        expect(findIn(cache, fields)).toBe(model.get(keyOf(pair)));
        if (model.has(keyOf(pair))) continue;
        expect(keepIn(cache, fields, n)).toBe(true);
        model.set(keyOf(pair), n);
      }
      sweepIn(cache, (n) => n % 10 < gone);
      for (const pair of pairs) {
        const n = model.get(keyOf(pair))!;
        setTo(pair);
        expect(findIn(cache, fields)).toBe(n % 10 < gone ? undefined : n);
      }
    }),
  );
});

test('other values, kinds and orders have another hash', () => {
  const cache = createLabelCache<number>([0, 2]);
  const texts = Array.from({ length: 100 }, (_, n) => `domain-${n}`);
  const pairs = [
    ...texts.flatMap((one) => texts.map((other) => [one, other])),
    ...['', '1', 1, undefined].flatMap((one) => ['', '1', 1, undefined].map((other) => [one, other])),
  ];
  const hashes = pairs.map((pair) => {
    setTo(pair);
    return keyHash(cache, fields);
  });
  expect(new Set(hashes).size).toBe(pairs.length);
  expect(hashes.every((hash) => hash > 0 && Number.isSafeInteger(hash))).toBe(true);
});

test('keeps no more than it may', () => {
  const cache = createLabelCache<number>([0], 3);
  const kept = ['a', 'b', 'c', 'd', 'e'].map((text, n) => {
    setTo([text, undefined]);
    return keepIn(cache, fields, n);
  });
  expect(kept).toEqual([true, true, true, false, false]);
});
