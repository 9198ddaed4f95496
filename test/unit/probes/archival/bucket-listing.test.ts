import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import {
  type BucketListing,
  newestOf,
  resumedListing,
  withPage,
} from '../../../../src/probes/archival/bucket.ts';
import type { ObjectPage, StoredObject } from '../../../../src/probes/object-store/answers.ts';

const object = (key: string, lastModifiedMs: number, sizeBytes = 1): StoredObject => ({
  key,
  sizeBytes,
  lastModifiedMs,
});
const page = (objects: StoredObject[], continuation?: string): ObjectPage => ({ objects, continuation });
const walked = (...pages: ObjectPage[]): BucketListing => pages.reduce(withPage, { of: 'a' });

describe('newest object', () => {
  test('is known after the last page, not before', () => {
    expect(newestOf(walked(page([object('a', 5)], 'more')))).toBeUndefined();
    expect(newestOf(walked(page([object('a', 5)], 'more'), page([object('b', 3)])))).toBe(5);
  });
  test('of an empty archive is none', () => {
    expect(newestOf(walked(page([])))).toBeUndefined();
  });
  test('is no mark of a directory', () => {
    expect(newestOf(walked(page([object('h/', 9, 0), object('h/a', 3), object('h/b/', 7)])))).toBe(7);
  });
  test('is no leftover of a write check', () => {
    expect(
      newestOf(walked(page([object('h/a', 3), object('h/.svc-agent-write-check-0123456789ab', 7)]))),
    ).toBe(3);
  });
  test('is that of the last whole walk or what was seen since', () => {
    const first = page([object('a', 5), object('b', 6)]);
    expect(newestOf(walked(first, page([object('a', 5)], 'more')))).toBe(6);
    expect(newestOf(walked(first, page([object('a', 9)], 'more')))).toBe(9);
  });
  test('goes back when the newest is gone at the end of a walk', () => {
    expect(newestOf(walked(page([object('a', 5), object('b', 6)]), page([object('a', 5)])))).toBe(5);
  });
  test('is the greatest, however pages are cut and checks end', () => {
    fc.assert(
      fc.property(fc.array(fc.nat(), { minLength: 1 }), fc.integer({ min: 1, max: 5 }), (times, size) => {
        let walk: BucketListing = { of: 'a' };
        for (let at = 0; at < times.length; at += size) {
          const objects = times.slice(at, at + size).map((time, index) => object(`k${at + index}`, time));
          // Each page is read in a separate check, with a restart between any two.
          const kept = JSON.parse(JSON.stringify(walk)) as unknown;
          walk = withPage(
            resumedListing(kept, 'a'),
            page(objects, at + size < times.length ? 'more' : undefined),
          );
        }
        expect(newestOf(walk)).toBe(Math.max(...times));
      }),
    );
  });
});

describe('resumed', () => {
  test('after the last name', () => {
    expect(resumedListing(walked(page([object('a', 5), object('b', 6)], 'more')), 'a').after).toBe('b');
  });
  test('from the beginning after the last page', () => {
    expect(walked(page([object('a', 5)], 'more'), page([object('b', 6)])).after).toBeUndefined();
  });
  test.each([
    ['nothing', undefined],
    ['null', null],
    ['text', 'a'],
    ['another archive', { of: 'b', after: 'x', seenMs: 1, whole: { newestMs: 1 } }],
    ['wrong types', { of: 'a', after: 1, seenMs: 'x', whole: 7 }],
    ['a time without a name', { of: 'a', seenMs: 9 }],
  ])('anew from %s', (_, recalled) => expect(resumedListing(recalled, 'a')).toEqual({ of: 'a' }));
  test('without the times that are none', () => {
    const recalled = { of: 'a', after: 'x', seenMs: 'soon', whole: { newestMs: null } };
    expect(resumedListing(recalled, 'a')).toEqual({
      of: 'a',
      after: 'x',
      seenMs: undefined,
      whole: { newestMs: undefined },
    });
  });
});
