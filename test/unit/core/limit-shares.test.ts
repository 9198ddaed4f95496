import { expect, test } from 'vitest';
import { isUsedUp, type SourceUse } from '../../../src/core/registry/limit-shares.ts';

const sourceOf = (series: number): SourceUse => ({ series, heapBytes: 0 });

/** The limit is 100: 75 are first come, first served, and 25 are shares of the sources. */
test.each<[what: string, series: number[], total: number, isOver: boolean]>([
  ['what is for all is left', [74, 0], 74, false],
  ['what is for all is used up, and so is its share', [75, 0], 75, false],
  ['the others need what is left for their shares', [88, 0], 88, true],
  ['the last place that the others do not need', [87, 0], 87, false],
  ['its share is left, whatever the others have', [11, 88], 99, false],
  ['its share is used up, and the others have theirs', [12, 87], 99, false],
  ['the limit is reached', [11, 89], 100, true],
  ['one source alone has all of it', [99], 99, false],
  ['one source alone has no more', [100], 100, true],
  ['series that belong to no source count, too', [12, 0], 88, true],
  ['a third of the shares is whole', [9, 0, 0], 85, true],
  ['a third of the shares that has a place left', [9, 0, 0], 83, false],
])('%s', (_, series, total, isOver) => {
  const sources = series.map(sourceOf);
  expect(isUsedUp('series', { limit: 100, total }, sources[0]!, new Set(sources))).toBe(isOver);
});

test('series and heap are counted apart', () => {
  const [own, other] = [{ series: 0, heapBytes: 88 }, sourceOf(0)];
  const all = new Set([own, other]);
  expect(isUsedUp('heapBytes', { limit: 100, total: 88 }, own, all)).toBe(true);
  expect(isUsedUp('series', { limit: 100, total: 88 }, own, all)).toBe(false);
});
