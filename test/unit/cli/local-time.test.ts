import { expect, test } from 'vitest';
import { timeOfDay } from '../../../src/agent/cli/io.ts';

test.each([
  ['UTC', '23:30:00 UTC'],
  ['Asia/Kolkata', '05:00:00 GMT+5:30'],
])('a local time of day has its zone: %s', (zone, text) => {
  expect(timeOfDay(Date.parse('2026-01-02T23:30:00Z'), zone)).toBe(text);
});
