import { expect, test } from 'vitest';
import { type Replay, watchReplay } from '../../../../src/probes/stores/postgres-replica.ts';
import { manualClock } from '../../../clock.ts';

const streaming: Replay = {
  ...{ receivers: 1, paused: false, ageS: 2, received: 1000, replayed: 1000 },
  ...{ restore: '', primary: 'set' },
};

/** The result of the last of several polls; `at` is the time of each in seconds. */
function after(...polls: (Partial<Replay> & { at: number })[]) {
  const clock = manualClock();
  const watch = watchReplay(clock);
  let atS = 0;
  let last: unknown;
  for (const { at, ...replay } of polls) {
    clock.advance((at - atS) * 1000);
    atS = at;
    [last] = watch({ ...streaming, ...replay });
  }
  return last;
}

const fromArchive = { receivers: 0, restore: 'set', primary: '' };

test.each<[string, Partial<Replay>, boolean | 'unknown', string]>([
  ['one that follows', {}, true, '0 s behind'],
  ['one that is some seconds late', { replayed: 900 }, true, '2 s behind'],
  ['one of an idle primary', { ageS: 90_000 }, true, '0 s behind'],
  ['one that nothing reaches', { receivers: 0 }, false, 'no WAL receiver: nothing is streamed'],
  ['one that waits', { paused: true }, false, 'replay is paused'],
  ['one that replayed nothing', { ageS: null, replayed: 900 }, 'unknown', 'nothing has been replayed yet'],
  ['one that has the log since its start, without a commit', { ageS: null }, true, '0 s behind'],
  [
    'one that restores from an archive',
    { ...fromArchive, ageS: 200 },
    true,
    'restores from an archive, 200 s behind',
  ],
  [
    'one that restores, of a primary that may be idle',
    { ...fromArchive, ageS: 9000 },
    'unknown',
    'restores from an archive, 9000 s behind',
  ],
  [
    'one that could stream, and does not',
    { ...fromArchive, primary: 'set' },
    false,
    'no WAL receiver: nothing is streamed',
  ],
  [
    'one whose connection string is hidden',
    { ...fromArchive, primary: undefined },
    'unknown',
    'no WAL receiver, and primary_conninfo is hidden',
  ],
])('at one poll: %s', (_, replay, holds, found) => {
  expect(after({ at: 0, ...replay })).toEqual({ check: 'replica', holds, found });
});

test('there is nothing to check on a primary', () => {
  expect(watchReplay(manualClock())(undefined)).toEqual([]);
});

test('after an idle hour, a long transaction is replayed as it comes: the age of the last commit is no lag', () => {
  const idle = { at: 0, ageS: 3600 };
  const late = { ageS: 3630, received: 5000, replayed: 4000 };
  expect(after(idle, { at: 30, ...late })).toEqual({ check: 'replica', holds: true, found: '30 s behind' });
  expect(after(idle, { at: 30, ...late }, { at: 60, ageS: 3660, received: 9000, replayed: 8000 })).toEqual({
    ...{ check: 'replica', holds: true, found: '30 s behind' },
  });
});

test('what is shown within the limit is no age of a commit either', () => {
  const idle = { at: 0, ageS: 200 };
  expect(after(idle, { at: 10, ageS: 210, received: 5000, replayed: 4000 })).toMatchObject({
    found: '10 s behind',
  });
});

test('what was received a minute ago and is not replayed shows that the standby is late', () => {
  const stuck = { received: 5000, replayed: 4000 };
  const polls = [0, 30, 59, 60].map((at) => ({ at, ...stuck, ageS: 3600 + at }));
  expect(after(...polls.slice(0, 3))).toMatchObject({ holds: 'unknown' });
  expect(after(...polls)).toEqual({ check: 'replica', holds: false, found: '3660 s behind' });
  expect(after(...polls, { at: 90, received: 5000, replayed: 5000 })).toMatchObject({ holds: true });
});

test('a standby that falls behind is late from the limit on', () => {
  const polls = [0, 60, 120, 180, 240, 299].map((at) => ({
    at,
    ageS: at,
    received: 1000 + at,
    replayed: 999,
  }));
  expect(after(...polls)).toEqual({ check: 'replica', holds: true, found: '299 s behind' });
  expect(after(...polls, { at: 301, ageS: 301, received: 2000, replayed: 999 })).toEqual({
    ...{ check: 'replica', holds: false, found: '301 s behind' },
  });
});

test('a standby that was made anew is not compared with the positions before', () => {
  const old = { at: 0, received: 9000, replayed: 9000 };
  expect(after(old, { at: 100, ageS: 400, received: 500, replayed: 400 })).toMatchObject({
    holds: 'unknown',
  });
});
