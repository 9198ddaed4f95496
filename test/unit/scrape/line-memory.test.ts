import { expect, test } from 'vitest';
import { createLineMemory } from '../../../src/sources/scrape/exposition/line-memory.ts';

test('the targets share the limit, and each may have its part of a quarter of it in any case', () => {
  const memory = createLineMemory(100);
  const [first, second] = [memory.open(), memory.open()];
  expect([memory.limitBytes, first.limitBytes]).toEqual([100, 100]);
  expect([first.set(50), second.set(50)]).toEqual([true, true]);
  // Together these are 101; each has half of a quarter, 12.5.
  expect(second.set(51)).toBe(false);
  expect([first.set(90), second.set(12)]).toEqual([false, true]);
  expect(second.set(13)).toBe(false);
  // The second may use what the first no longer uses.
  expect([first.set(20), second.set(80)]).toEqual([true, true]);
  first.close();
  expect([second.set(100), second.set(101)]).toEqual([true, false]);
  const third = memory.open();
  expect([third.set(12), third.set(13)]).toEqual([true, false]);
  second.close();
  expect([third.set(100), third.set(101)]).toEqual([true, false]);
});

test('a part of the quarter is a part to its last byte', () => {
  const memory = createLineMemory(80);
  const [first, second] = [memory.open(), memory.open()];
  expect([first.set(80), second.set(10), second.set(11)]).toEqual([true, true, false]);
});
