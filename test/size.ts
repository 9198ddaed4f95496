import { test } from 'vitest';

const sizes = ['short', 'long', 'nightly'] as const;
type Size = (typeof sizes)[number];

function sizeOf(text = 'short'): Size {
  const found = sizes.find((name) => name === text);
  if (!found) throw new Error(`TEST_SIZE: unknown size, got "${text}"; use ${sizes.join(', ')}`);
  return found;
}

/**
 * How much of a test that repeats something runs: `npm test` is short, `npm run long` and `npm run nightly` set the
 * others. What is short still shows every behaviour once.
 */
const size = sizeOf(process.env.TEST_SIZE);

/** Takes what would be defined, and defines nothing. */
const nothing = Object.assign(() => {}, { each: () => () => {}, skipIf: () => nothing });

/**
 * Defines a group that does not repeat, in a file of which a longer run repeats the rest: `npm test` has shown it. `define` is
 * `describe` or `describe.skipIf(…)`.
 */
export const onlyShort = <Define extends object>(define: Define): Define =>
  size === 'short' ? define : (nothing as unknown as Define);

/** Defines such a test, as `test` does. */
export const testOnce = onlyShort(test);

/** Defines a test or a group that takes long and shows one more case of what `npm test` shows: the longer runs have it. */
export const onlyLong = <Define extends object>(define: Define): Define =>
  size === 'short' ? (nothing as unknown as Define) : define;

export const bySize = <T>(of: Readonly<Record<Size, T>>): T => of[size];

/** How often a property is tried that is tried `long` times in the long run. */
export const runs = (long: number): number =>
  bySize({ short: Math.ceil(long / 5), long, nightly: 100 * long });
