import { expect, test } from 'vitest';
import type { StoreCheck } from '../../../../src/core/check-severity.ts';
import { failingSince, readFailingSince } from '../../../../src/probes/stores/store-changes.ts';

/**
 * Polls one after another, each as a time and its results: `+` passed, `-` failed, `?` is hidden, `refuses` is a store that
 * refuses writes. Returns since when what fails at the last one has failed.
 */
function after(polls: string) {
  let remembered: unknown;
  for (const poll of polls.split(', ')) {
    const [atMs, ...checks] = poll.split(' ');
    const results = checks
      .filter((check) => check !== 'refuses')
      .map((check) => ({
        check: check.slice(0, -1) as StoreCheck,
        holds: check.endsWith('?') ? ('unknown' as const) : check.endsWith('+'),
        found: '',
      }));
    const report = { readOnly: checks.includes('refuses'), replica: false };
    remembered = { failing: failingSince(readFailingSince(remembered), report, results, Number(atMs)) };
  }
  return readFailingSince(JSON.parse(JSON.stringify(remembered)));
}

test.each<[string, polls: string, object]>([
  ['a check that passes', '1 slots+', {}],
  ['the first poll that failed', '1 slots-, 2 slots-', { slots: 1 }],
  ['each check by itself', '1 slots-, 2 slots- replica-', { slots: 1, replica: 2 }],
  ['a check that passed meanwhile', '1 slots-, 2 slots+, 3 slots-', { slots: 3 }],
  ['a check that was hidden meanwhile', '1 slots-, 2 slots?, 3 slots-', { slots: 1 }],
  ['a check that was hidden from the beginning', '1 slots?, 2 slots-', { slots: 2 }],
  ['a check that no longer applies', '1 slots-, 2', {}],
  ['writes that are refused', '1 refuses, 2 refuses', { readOnly: 1 }],
  ['a clock that was set back', '9 slots-, 4 slots-', { slots: 4 }],
])('%s', (_, polls, expected) => {
  expect(after(polls)).toEqual(expected);
});

test('what the server knows to last for longer began before the first poll that failed', () => {
  const report = { readOnly: false, replica: false };
  const poll = (before: Parameters<typeof failingSince>[0], holds: boolean, lastsS: number, atMs: number) =>
    failingSince(before, report, [{ check: 'lock_waits', holds, found: '', lastsS }], atMs);
  const first = poll({}, false, 42.5, 100_000);
  expect(first).toEqual({ lock_waits: 57_500 });
  // The first session gave up, and another one waits for the same lock.
  expect(poll(first, false, 12, 160_000)).toEqual({ lock_waits: 57_500 });
  expect(poll(first, true, 2, 160_000)).toEqual({});
});

test('the standby of another server refuses writes as it should', () => {
  expect(failingSince({}, { readOnly: true, replica: true }, [], 1)).toEqual({});
});

test.each([undefined, null, 7, {}, { failing: 7 }, { failing: { slots: 'x' } }])(
  '%j is nothing',
  (recalled) => {
    expect(readFailingSince(recalled)).toEqual({});
  },
);
