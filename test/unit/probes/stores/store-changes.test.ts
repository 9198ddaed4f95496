import { describe, expect, test } from 'vitest';
import { noticeChanges, readRemembered } from '../../../../src/probes/stores/store-changes.ts';
import type { StoreReport } from '../../../../src/probes/stores/store-report.ts';

const nowMs = 1_767_225_600_000;
const report = (over: Partial<StoreReport>): StoreReport => ({
  serverVersion: 'any 1',
  roundTripMs: 1,
  askedAtMonotonicMs: 0,
  answeredAtMonotonicMs: 0,
  checks: [],
  ...over,
});
const nothing = readRemembered(undefined);
const seen = (over: Partial<StoreReport>) => noticeChanges(nothing, report(over), nowMs).remember;
const holding = ({ checks }: ReturnType<typeof noticeChanges>) =>
  Object.fromEntries(checks.map(({ check, holds }) => [check, holds]));

test('a node that answers in place of another was not restarted', () => {
  const first = { identity: 'c', node: 'a', startedAtMs: 1000, startTimeIsExact: true };
  const other = { ...first, node: 'b', startedAtMs: 9000 };
  expect(holding(noticeChanges(seen(first), report(other), nowMs))).toMatchObject({ uptime: true });
  expect(holding(noticeChanges(seen(first), report({ ...other, node: 'a' }), nowMs))).toMatchObject({
    uptime: false,
  });
});

describe('what changed since the last poll', () => {
  const first = { identity: 'a', timeline: 1, startedAtMs: 1000, startTimeIsExact: true };
  test.each([
    ['nothing', first, { identity: true, timeline: true, uptime: true }],
    ['a restart', { ...first, startedAtMs: 1001 }, { identity: true, timeline: true, uptime: false }],
    ['a promotion', { ...first, timeline: 2 }, { identity: true, timeline: false, uptime: true }],
    ['a timeline gone back', { ...first, timeline: 0 }, { identity: true, timeline: false, uptime: true }],
    [
      'another server, whose start and timeline say nothing',
      { identity: 'b', timeline: 7, startedAtMs: 9000, startTimeIsExact: true },
      { identity: false, timeline: true, uptime: true },
    ],
    [
      'a start worked out a little later',
      { ...first, startTimeIsExact: false, startedAtMs: 3999 },
      { uptime: true },
    ],
    [
      'a start worked out much later',
      { ...first, startTimeIsExact: false, startedAtMs: 4001 },
      { uptime: false },
    ],
    ['an earlier start', { ...first, startedAtMs: 1 }, { uptime: true }],
    ['what is not shown any more', {}, {}],
  ])('%s', (_, second, expected) => {
    const noticed = noticeChanges(seen(first), report(second), nowMs);
    expect(holding(noticed)).toMatchObject(expected);
    if (Object.keys(second).length === 0) expect(noticed.checks).toEqual([]);
    expect(noticed.news).toHaveLength(Object.values(expected).filter((holds) => !holds).length);
  });

  test('the first check has nothing to compare with', () => {
    const noticed = noticeChanges(nothing, report(first), nowMs);
    expect(holding(noticed)).toEqual({ identity: true, timeline: true, uptime: true });
    expect(noticed.news).toEqual([]);
  });

  test('what a check does not tell stays remembered', () => {
    const { remember } = noticeChanges(seen(first), report({}), nowMs);
    expect(holding(noticeChanges(remember, report({ ...first, timeline: 2 }), nowMs))).toMatchObject({
      timeline: false,
    });
  });
});

describe('a change shows for an hour, and is told once', () => {
  const hourMs = 3_600_000;
  const before = seen({ identity: 'a' });
  const changed = noticeChanges(before, report({ identity: 'b' }), nowMs);
  const later = (ms: number, identity = 'b') =>
    noticeChanges(changed.remember, report({ identity }), nowMs + ms);

  test.each([
    ['at once', 0, false],
    ['until then', hourMs - 1, false],
    ['no longer', hourMs, true],
  ])('%s', (_, ms, holds) => {
    expect(holding(later(ms))).toEqual({ identity: holds });
    expect(later(ms).news).toEqual([]);
  });

  test('another change meanwhile begins the hour anew, and is not told again', () => {
    const again = later(hourMs - 1, 'c');
    expect(again.news).toEqual([]);
    expect(holding(noticeChanges(again.remember, report({ identity: 'c' }), nowMs + 2 * hourMs - 2))).toEqual(
      {
        identity: false,
      },
    );
  });

  test('a clock that is set back does not keep it for longer than an hour', () => {
    const back = noticeChanges(changed.remember, report({ identity: 'b' }), nowMs - 1e9);
    expect(holding(back)).toEqual({ identity: false });
    expect(holding(noticeChanges(back.remember, report({ identity: 'b' }), nowMs - 1e9 + hourMs))).toEqual({
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
  const { remember } = noticeChanges(seen({ identity: 'a' }), report({ identity: 'b', timeline: 3 }), nowMs);
  expect(readRemembered(JSON.parse(JSON.stringify(remember)))).toEqual(JSON.parse(JSON.stringify(remember)));
});
