import { expect, test } from 'vitest';
import { type Copied, compareOffsite } from '../../../../src/probes/backups/offsite.ts';

const hourMs = 36e5;
const nowMs = Date.UTC(2026, 5, 1);

/** Backups of so many hours, the oldest first; `copied` are the numbers of those with a copy. */
async function compared(count: number, copied: (index: number) => boolean, everyHours = 24) {
  const backups = Array.from({ length: count }, (_, index): Copied => {
    const hoursAgo = (count - index) * everyHours - everyHours + 1;
    return { id: `b${index}`, endMs: nowMs - hoursAgo * hourMs, sizeBytes: 10 };
  });
  let looks = 0;
  const sizeOf = async (id: string) => {
    looks++;
    return copied(Number(id.slice(1))) ? 10 : undefined;
  };
  const { newestMs, missing } = await compareOffsite(backups, sizeOf, { maxLagMs: 2 * hourMs, nowMs });
  return { missing, newest: backups.findIndex(({ endMs }) => endMs === newestMs), looks };
}

// The newest of each is one hour old, so that it still has time.
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
  const { missing, newest, looks } = await compared(100_000, (index) => index < 60_000, 1 / 60);
  expect({ missing: missing.length, newest }).toEqual({ missing: 3, newest: 59_999 });
  expect(looks).toBeLessThan(30);
});
