import { describe, expect, test } from 'vitest';
import { type Copied, compareOffsite } from '../../../../src/probes/backups/offsite.ts';

const hourMs = 36e5;
const nowMs = Date.UTC(2026, 5, 1);

/** Compares this many hourly backups, the oldest first; `copied` tells which numbers have a copy. */
async function compared(count: number, copied: (index: number) => boolean, everyHours = 24) {
  const backups = Array.from({ length: count }, (_, index): Copied => {
    const hoursAgo = (count - index) * everyHours - everyHours + 1;
    return { id: `b${index}`, endMs: nowMs - hoursAgo * hourMs, sizeBytes: 10 };
  });
  let lookups = 0;
  const find = async (id: string) => {
    lookups++;
    return copied(Number(id.slice(1))) ? { sizeBytes: 10 } : undefined;
  };
  const { newestMs, missing } = await compareOffsite(
    backups,
    { find, findAll },
    { maxLagMs: 2 * hourMs, nowMs },
  );
  return { missing, newest: backups.findIndex(({ endMs }) => endMs === newestMs), lookups };
}

const findAll = () => Promise.reject(new Error('only of a log'));

// The newest of each is one hour old, so there is still time for its copy.
test.each<[string, (index: number) => boolean, string[], number]>([
  ['all', () => true, [], 9],
  ['all but the newest', (index) => index < 9, [], 8],
  ['none', () => false, ['b6', 'b7', 'b8'], -1],
  ['the newest only: copies began with it', (index) => index === 9, [], 9],
  ['the last two: the older ones were removed', (index) => index >= 8, [], 9],
  ['one between others is missing', (index) => index !== 7, ['b7'], 9],
  ['copies stopped days ago', (index) => index < 4, ['b6', 'b7', 'b8'], 3],
  ['the first in question is missing, and an older one is there', (index) => index !== 6, ['b6'], 9],
])('%s', async (_, copied, missing, newest) => {
  expect(await compared(10, copied)).toMatchObject({ missing, newest });
});

test('of a hundred thousand segments few are looked up', async () => {
  const { missing, newest, lookups } = await compared(100_000, (index) => index < 60_000, 1 / 60);
  expect({ missing: missing.length, newest }).toEqual({ missing: 3, newest: 59_999 });
  expect(lookups).toBeLessThan(30);
});

describe('of a log', () => {
  const minuteMs = 60_000;
  /** Segments of one minute each, all of which had their time. */
  const segments = (count: number, from = 0) =>
    Array.from({ length: count - from }, (_, index): Copied => {
      return { id: `s${index + from}`, endMs: nowMs - (10_000 - index - from) * minuteMs, sizeBytes: 16 };
    });
  const numberOf = (id: string) => Number(id.slice(1));
  /** The missing segments, and the number of the segment up to which all are copied. */
  async function comparedFrom(
    backups: readonly Copied[],
    isCopied: (n: number) => boolean,
    copiedTo?: number,
  ) {
    let lookups = 0;
    const find = async (id: string) => {
      lookups++;
      return isCopied(numberOf(id)) ? { sizeBytes: 16 } : undefined;
    };
    const findAll = async (ids: readonly string[]) => {
      lookups += ids.length;
      return new Map(ids.filter((id) => isCopied(numberOf(id))).map((id) => [id, { sizeBytes: 16 }]));
    };
    const { missing, copiedTo: to } = await compareOffsite(
      backups,
      { find, findAll },
      {
        maxLagMs: minuteMs,
        nowMs,
        isLog: true,
        copiedTo: copiedTo === undefined ? undefined : `s${copiedTo}`,
      },
    );
    return { missing, copiedTo: to && numberOf(to), lookups };
  }

  test.each<[string, number, (n: number) => boolean, number | undefined, string[], number | undefined]>([
    ['the first comparison looks at the newest', 100, () => true, undefined, [], 99],
    ['one that is missing far behind the newest', 100, (n) => n !== 55, 49, ['s55'], 54],
    ['none is missing any more', 100, () => true, 54, [], 99],
    ['more than are looked up at once', 9_000, () => true, 100, [], 5_100],
    ['the place is empty', 100, () => false, 49, ['s97', 's98', 's99'], undefined],
    ['older copies were removed, and with them the last one known', 100, (n) => n > 60, 49, [], 99],
  ])('%s', async (_, count, isCopied, copiedTo, missing, now) => {
    expect(await comparedFrom(segments(count), isCopied, copiedTo)).toMatchObject({ missing, copiedTo: now });
  });

  test('the last one known is not here any more: the newest are looked at', async () => {
    const found = await comparedFrom(segments(100, 80), (n) => n !== 90, 49);
    expect(found).toMatchObject({ missing: [], copiedTo: 99 });
  });

  test('a segment that was found is not looked up again', async () => {
    expect((await comparedFrom(segments(8_000), () => true, 7_990)).lookups).toBeLessThan(15);
  });
});

test.each([
  ['the same', 'aa', 'aa', []],
  ['another content of the same size', 'aa', 'bb', ['b']],
  ['a place without checksums', 'aa', undefined, []],
  ['a backup that was not verified', undefined, 'bb', []],
])('a checksum: %s', async (_, md5, there, missing) => {
  const backup = { id: 'b', endMs: nowMs - 5 * hourMs, sizeBytes: 10, md5 };
  const copies = { find: async () => ({ sizeBytes: 10, md5: there }), findAll };
  expect(await compareOffsite([backup], copies, { maxLagMs: hourMs, nowMs })).toMatchObject({ missing });
});
