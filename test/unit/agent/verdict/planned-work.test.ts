import { expect, test } from 'vitest';
import type { MaintenanceWindow } from '../../../../src/agent/config/types.ts';
import { plannedWorkAt } from '../../../../src/agent/verdict/planned-work.ts';

const hourMs = 3_600_000;
const windowOf = (change: Partial<MaintenanceWindow> = {}): MaintenanceWindow => ({
  days: ['sunday'],
  start: 23 * 60,
  duration: 2 * hourMs,
  timeZone: 'UTC',
  reason: 'upgrade',
  ...change,
});
const until = (at: string, window: MaintenanceWindow): string | undefined =>
  plannedWorkAt(Date.parse(at), [], [window])?.until;

// 2026-11-22 is a Sunday.
test.each([
  ['a second before', '2026-11-22T22:59:59Z', windowOf(), undefined],
  ['at its start', '2026-11-22T23:00:00Z', windowOf(), '2026-11-23T01:00:00.000Z'],
  ['past midnight, into the next week', '2026-11-23T00:59:59.999Z', windowOf(), '2026-11-23T01:00:00.000Z'],
  ['at its end', '2026-11-23T01:00:00Z', windowOf(), undefined],
  ['on another day', '2026-11-24T23:30:00Z', windowOf(), undefined],
  [
    'on the second of two days',
    '2026-11-24T23:30:00Z',
    windowOf({ days: ['sunday', 'tuesday'] }),
    '2026-11-25T01:00:00.000Z',
  ],
  [
    'by the clock of its zone: 23:00 in Berlin is 22:00 UTC in winter',
    '2026-11-22T22:30:00Z',
    windowOf({ timeZone: 'Europe/Berlin' }),
    '2026-11-23T00:00:00.000Z',
  ],
  [
    'and 21:00 UTC in summer',
    '2026-07-19T21:30:00Z',
    windowOf({ timeZone: 'Europe/Berlin' }),
    '2026-07-19T23:00:00.000Z',
  ],
  [
    'a zone of half an hour, where it is Sunday already',
    '2026-11-21T18:45:00Z',
    windowOf({ timeZone: 'Asia/Kolkata', start: 0 }),
    '2026-11-21T20:30:00.000Z',
  ],
  [
    'of an hour at a time that the clock skips',
    '2027-03-28T01:59:59Z',
    windowOf({ timeZone: 'Europe/Berlin', start: 150, duration: hourMs }),
    '2027-03-28T02:30:00.000Z',
  ],
  [
    'of three hours in which the clock is set forward',
    '2027-03-28T02:59:59Z',
    windowOf({ timeZone: 'Europe/Berlin', start: 60, duration: 3 * hourMs }),
    '2027-03-28T03:00:00.000Z',
  ],
  [
    'that begins after the clock was set forward on the same day',
    '2027-03-28T01:29:59Z',
    windowOf({ timeZone: 'Europe/Berlin', start: 210, duration: hourMs }),
    undefined,
  ],
  [
    'of that hour, at its start',
    '2027-03-28T01:30:00Z',
    windowOf({ timeZone: 'Europe/Berlin', start: 210, duration: hourMs }),
    '2027-03-28T02:30:00.000Z',
  ],
  [
    'of three hours in which the clock is set back',
    '2026-10-25T01:59:59Z',
    windowOf({ timeZone: 'Europe/Berlin', start: 60, duration: 3 * hourMs }),
    '2026-10-25T02:00:00.000Z',
  ],
  [
    'that ended before the clock was set back: it does not begin again',
    '2026-10-25T01:20:00Z',
    windowOf({ timeZone: 'Europe/Berlin', start: 135, duration: hourMs / 2 }),
    undefined,
  ],
  [
    'at a time that the clock shows twice begins the first time',
    '2026-10-25T00:20:00Z',
    windowOf({ timeZone: 'Europe/Berlin', start: 135, duration: hourMs / 2 }),
    '2026-10-25T00:45:00.000Z',
  ],
  [
    'of a whole week',
    '2026-11-25T12:00:00Z',
    windowOf({ duration: 168 * hourMs }),
    '2026-11-29T23:00:00.000Z',
  ],
])('a window %s', (_, at, window, end) => {
  expect(until(at, window)).toBe(end);
});

test('of announced and weekly work, what ends last is shown', () => {
  const announced = (time: string) => ({
    at: '2026-11-22T23:00:00.000Z',
    kind: 'maintenance' as const,
    what: 'disks',
    until: time,
  });
  const at = Date.parse('2026-11-22T23:30:00Z');
  const shown = (time: string) => plannedWorkAt(at, [announced(time)], [windowOf()]);
  expect(shown('2026-11-23T02:00:00.000Z')).toEqual({ until: '2026-11-23T02:00:00.000Z', reason: 'disks' });
  expect(shown('2026-11-23T00:30:00.000Z')).toEqual({ until: '2026-11-23T01:00:00.000Z', reason: 'upgrade' });
  expect(shown('2026-11-22T23:20:00.000Z')?.reason).toBe('upgrade');
});

test('an announced end ends what was announced before, and neither what follows nor a weekly window', () => {
  const announced = (at: string, until: string, what: string) => ({
    kind: 'maintenance' as const,
    ...{ at: `2026-11-22T${at}Z`, until: `2026-11-22T${until}Z`, what },
  });
  const first = announced('20:00:00', '22:30:00', 'disks');
  const long = announced('20:10:00', '22:50:00', 'network');
  const end = announced('20:30:00', '20:30:00', 'done');
  const next = announced('20:40:00', '21:30:00', 'memory');
  const reason = (newestFirst: (typeof first)[]) =>
    plannedWorkAt(Date.parse('2026-11-22T21:00:00Z'), newestFirst, [])?.reason;
  expect(reason([long, first])).toBe('network');
  expect(reason([end, long, first])).toBeUndefined();
  expect(reason([next, end, long, first])).toBe('memory');
  const nightMs = Date.parse('2026-11-22T23:30:00Z');
  expect(plannedWorkAt(nightMs, [end], [windowOf()])?.reason).toBe('upgrade');
});
