import fc from 'fast-check';
import { expect, test } from 'vitest';
import { createRefusedKeys } from '../../../src/core/registry/refused-series.ts';

test('finds what was added, like a map', () => {
  const hash = fc.nat(2 ** 20).map((n) => n * 2 ** 30 + 1);
  fc.assert(
    fc.property(fc.array(fc.tuple(hash, fc.constantFrom('a', 'b', 'c'))), hash, (added, other) => {
      const keys = createRefusedKeys<string>(1e6);
      const model = new Map(added);
      for (const [one, target] of added) keys.add(one, target);
      expect(keys.size).toBe(model.size);
      for (const [one, target] of model) expect(keys.find(one)).toBe(target);
      expect(keys.find(other)).toBe(model.get(other));
    }),
  );
});

test('starts anew when it is full', () => {
  const keys = createRefusedKeys<string>(2000);
  for (let n = 1; n <= 2001; n++) keys.add(n, 'a');
  expect(keys.size).toBe(1);
  expect(keys.find(2000)).toBeUndefined();
  expect(keys.find(2001)).toBe('a');
});

test('starts anew when there is no number left for another target', () => {
  const keys = createRefusedKeys<number>(1e6);
  for (let n = 1; n <= 0xffff; n++) keys.add(n, n);
  expect([keys.size, keys.find(1), keys.find(0xffff)]).toEqual([0xffff, 1, 0xffff]);
  keys.add(1, 0);
  expect([keys.size, keys.find(1), keys.find(2)]).toEqual([1, 0, undefined]);
});

test('counts a key once, and knows its last target', () => {
  const keys = createRefusedKeys<string>(2);
  keys.add(7, 'a');
  keys.add(7, 'b');
  expect([keys.size, keys.find(7)]).toEqual([1, 'b']);
  keys.clear();
  expect([keys.size, keys.find(7)]).toEqual([0, undefined]);
});
