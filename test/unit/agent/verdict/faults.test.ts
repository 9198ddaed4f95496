import { expect, test } from 'vitest';
import { type Mark, played } from '../../../fleet/faults.ts';
import { bySize } from '../../../size.ts';

/** Pairs of faults that overlap in any way. The oracle is what was injected, and when. */

const seeds = Array.from({ length: bySize({ short: 10, long: 30, nightly: 30 }) }, (_, i) => i + 1);
/** A start is late, or an end early, for faults that show only some time after their start, or by single events. */
const judged: readonly Mark[] = ['unnamed', 'wrong', 'ends late', 'several'];
/** What is known to be wrong, by seed. */
const known: Readonly<Record<number, readonly string[]>> = {
  // The role fails for the same reason a quarter of a minute later, with the store. Both begin at once, so that it explains the list.
  6: ['history alone cannot reach the store: ends late', 'more work than workers: wrong'],
  // A list that stands still is only seen by the timeouts of its workflows.
  11: ['an incident without a fault'],
};
/** Faults that an agent cannot see which restarts more often than they take to show: a canary is silent for a quarter of an hour. */
const knownWithRestarts: Readonly<Record<number, readonly string[]>> = {
  5: ['the canary is gone'],
  // Not understood yet.
  14: ['the port of the page is closed'],
};

test.each(seeds)('seed %i: each fault is named, is no effect of another one, and is one incident', (seed) => {
  const { marked, foreign } = played(seed);
  const wrong = marked.flatMap(({ type, marks }) =>
    judged.filter((mark) => marks.includes(mark)).map((mark) => `${type.name}: ${mark}`),
  );
  expect([...wrong, ...Array(foreign).fill('an incident without a fault')]).toEqual(known[seed] ?? []);
});

test.each(seeds)('seed %i: each fault is named although the agent restarts now and then', (seed) => {
  const { marked } = played(seed, 2);
  const wrong = marked.filter(({ marks }) => marks.includes('unnamed') || marks.includes('several'));
  expect(wrong.map(({ type }) => type.name)).toEqual(knownWithRestarts[seed] ?? []);
});
