import { expect, test } from 'vitest';
import { type Mark, played } from '../../../fleet/faults.ts';
import { bySize } from '../../../size.ts';

/** Pairs of faults that overlap in any way. The oracle is what was injected, and when. */

const seeds = Array.from({ length: bySize({ short: 10, long: 30, nightly: 30 }) }, (_, i) => i + 1);
/** What is wrong with faults, of some kinds of marks. A start is late for faults that show only some time after their start. */
const wrongIn = (marked: ReturnType<typeof played>['marked'], judged: readonly Mark[]): string[] =>
  marked.flatMap(({ type, marks }) =>
    judged
      // The last of several fatal entries is the last that is known of them.
      .filter((mark) => marks.includes(mark) && !(mark === 'ends early' && type.name === 'a fatal entry'))
      .map((mark) => `${type.name}: ${mark}`),
  );
/** What is known to be wrong, by seed. */
const known: Readonly<Record<number, readonly string[]>> = {
  // The role fails for the same reason a quarter of a minute later, with the store. Both begin at once, so that it explains the list.
  6: ['history alone cannot reach the store: ends late', 'more work than workers: wrong'],
  // A list that stands still is only seen by the timeouts of its workflows.
  11: ['an incident without a fault'],
};
/** Faults that an agent cannot see which restarts more often than they take to show: a canary is silent for a quarter of an hour. */
const knownWithRestarts: Readonly<Record<number, readonly string[]>> = { 5: ['the canary is gone: unnamed'] };

test.each(seeds)('seed %i: each fault is named, is no effect of another one, and is one incident', (seed) => {
  const { marked, foreign } = played(seed);
  const wrong = wrongIn(marked, ['unnamed', 'wrong', 'ends late', 'ends early', 'several']);
  expect([...wrong, ...Array(foreign).fill('an incident without a fault')]).toEqual(known[seed] ?? []);
});

test.each(seeds)(
  'seed %i: each fault is named, to its end, although the agent restarts now and then',
  (seed) => {
    const { marked } = played(seed, 2);
    expect(wrongIn(marked, ['unnamed', 'ends early', 'several'])).toEqual(knownWithRestarts[seed] ?? []);
  },
);
