import { describe, expect, test } from 'vitest';
import { changeShownMs, notice, readRemembered } from '../../../../src/probes/stores/changes.ts';
import type { StoreLook } from '../../../../src/probes/stores/store.ts';

const nowMs = 1_767_225_600_000;
const look = (over: Partial<StoreLook>): StoreLook => ({
  serverVersion: 'any 1',
  roundTripMs: 1,
  verdicts: [],
  ...over,
});
const nothing = readRemembered(undefined);
const seen = (over: Partial<StoreLook>) => notice(nothing, look(over), nowMs).remember;
const holding = ({ verdicts }: ReturnType<typeof notice>) =>
  Object.fromEntries(verdicts.map(({ check, holds }) => [check, holds]));

describe('what changed since the last look', () => {
  const first = { identity: 'a', timeline: 1, startedAtMs: 1000, startKept: true };
  test.each([
    ['nothing', first, { identity: true, timeline: true, uptime: true }],
    ['a restart', { ...first, startedAtMs: 1001 }, { identity: true, timeline: true, uptime: false }],
    ['a promotion', { ...first, timeline: 2 }, { identity: true, timeline: false, uptime: true }],
    ['a timeline gone back', { ...first, timeline: 0 }, { identity: true, timeline: false, uptime: true }],
    [
      'another server, whose start and timeline say nothing',
      { identity: 'b', timeline: 7, startedAtMs: 9000, startKept: true },
      { identity: false, timeline: true, uptime: true },
    ],
    [
      'a start worked out a little later',
      { ...first, startKept: false, startedAtMs: 3999 },
      { uptime: true },
    ],
    ['a start worked out much later', { ...first, startKept: false, startedAtMs: 4001 }, { uptime: false }],
    ['an earlier start', { ...first, startedAtMs: 1 }, { uptime: true }],
    ['what is not shown any more', {}, {}],
  ])('%s', (_, second, expected) => {
    const noticed = notice(seen(first), look(second), nowMs);
    expect(holding(noticed)).toMatchObject(expected);
    if (Object.keys(second).length === 0) expect(noticed.verdicts).toEqual([]);
    expect(noticed.news).toHaveLength(Object.values(expected).filter((holds) => !holds).length);
  });

  test('the first look has nothing to compare with', () => {
    const noticed = notice(nothing, look(first), nowMs);
    expect(holding(noticed)).toEqual({ identity: true, timeline: true, uptime: true });
    expect(noticed.news).toEqual([]);
  });

  test('what a look does not tell stays remembered', () => {
    const { remember } = notice(seen(first), look({}), nowMs);
    expect(holding(notice(remember, look({ ...first, timeline: 2 }), nowMs))).toMatchObject({
      timeline: false,
    });
  });
});

describe('a change shows for an hour, and is told once', () => {
  const before = seen({ identity: 'a' });
  const changed = notice(before, look({ identity: 'b' }), nowMs);
  const later = (ms: number, identity = 'b') => notice(changed.remember, look({ identity }), nowMs + ms);

  test.each([
    ['at once', 0, false],
    ['until then', changeShownMs - 1, false],
    ['no longer', changeShownMs, true],
  ])('%s', (_, ms, holds) => {
    expect(holding(later(ms))).toEqual({ identity: holds });
    expect(later(ms).news).toEqual([]);
  });

  test('another change meanwhile begins the hour anew, and is not told again', () => {
    const again = later(changeShownMs - 1, 'c');
    expect(again.news).toEqual([]);
    expect(holding(notice(again.remember, look({ identity: 'c' }), nowMs + 2 * changeShownMs - 2))).toEqual({
      identity: false,
    });
  });

  test('a clock that is set back does not keep it for longer than an hour', () => {
    const back = notice(changed.remember, look({ identity: 'b' }), nowMs - 1e9);
    expect(holding(back)).toEqual({ identity: false });
    expect(holding(notice(back.remember, look({ identity: 'b' }), nowMs - 1e9 + changeShownMs))).toEqual({
      identity: true,
    });
  });
});

test.each([
  undefined,
  null,
  7,
  'x',
  [],
  {},
  { changes: 1 },
  { identity: 1, timeline: 'x', changes: { uptime: { atMs: 'x' } } },
])('of %j nothing is believed', (recalled) => expect(readRemembered(recalled)).toEqual({ changes: {} }));

test('what is remembered survives as JSON', () => {
  const { remember } = notice(seen({ identity: 'a' }), look({ identity: 'b', timeline: 3 }), nowMs);
  expect(readRemembered(JSON.parse(JSON.stringify(remember)))).toEqual(JSON.parse(JSON.stringify(remember)));
});
