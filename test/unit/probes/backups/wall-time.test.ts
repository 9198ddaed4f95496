import { expect, test } from 'vitest';
import {
  isTimeZone,
  momentOf,
  offsetOfName,
  wallTime,
} from '../../../../src/probes/backups/formats/wall-time.ts';

const utc = (text: string) => Date.parse(`${text}Z`);
const at = (text: string, timeZone?: string, isSummer?: boolean) => {
  const wall = wallTime(text)!;
  const ms = momentOf({ ...wall, isSummer }, timeZone);
  return ms === undefined ? undefined : new Date(ms).toISOString().slice(0, 19);
};

test.each([
  // Central European time ends its summer at 03:00 on 25 October 2026, and begins it at 02:00 on 29 March.
  ['UTC', '2026-11-24 09:00:00', '2026-11-24T09:00:00'],
  ['Europe/Berlin', '2026-11-24 09:00:00', '2026-11-24T08:00:00'],
  ['Europe/Berlin', '2026-07-24 09:00:00', '2026-07-24T07:00:00'],
  ['Europe/Berlin', '2026-10-25 02:30:00', '2026-10-25T00:30:00'],
  ['Europe/Berlin', '2026-03-29 02:30:00', undefined],
  ['Asia/Kolkata', '2026-11-24 09:00:00', '2026-11-24T03:30:00'],
  ['America/Los_Angeles', '2026-11-24  9:00:00', '2026-11-24T17:00:00'],
  ['Pacific/Kiritimati', '2026-11-24 09:00:00', '2026-11-23T19:00:00'],
])('%s %s', (timeZone, text, expected) => {
  expect(at(text, timeZone)).toBe(expected);
});

test('an hour that the clock showed twice is the first one, unless daylight saving time decides', () => {
  expect(at('2026-10-25 02:30:00', 'Europe/Berlin', true)).toBe('2026-10-25T00:30:00');
  expect(at('2026-10-25 02:30:00', 'Europe/Berlin', false)).toBe('2026-10-25T01:30:00');
  // The time belongs to another zone.
  expect(at('2026-11-24 09:00:00', 'Europe/Berlin', true)).toBeUndefined();
});

test('without a zone it is the earliest in any zone', () => {
  expect(at('2026-11-24 09:00:00')).toBe(at('2026-11-24 09:00:00', 'Pacific/Kiritimati'));
});

test('names of zones', () => {
  expect(['UTC', '+03', '-0330', '+05:30', 'CET', 'IST'].map(offsetOfName)).toEqual([
    ...[0, 3 * 36e5, -3.5 * 36e5, 5.5 * 36e5],
    ...[undefined, undefined],
  ]);
  expect(['Europe/Berlin', 'UTC', 'Europe/Nowhere'].map(isTimeZone)).toEqual([true, true, false]);
  expect(wallTime('yesterday')).toBeUndefined();
  expect(utc('2026-11-24T09:00:00')).toBe(wallTime('2026-11-24 09:00:00')!.ms);
});
