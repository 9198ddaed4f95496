import { test } from 'vitest';

const sizes = ['short', 'long', 'whole', 'nightly'] as const;

function sizeOf(text = 'short'): (typeof sizes)[number] {
  const found = sizes.find((name) => name === text);
  if (!found) throw new Error(`TEST_SIZE: unknown size, got "${text}"; use ${sizes.join(', ')}`);
  return found;
}

/**
 * Which tests run, and how often a repeating test repeats: `npm test` is short, `npm run long` and `npm run nightly` set the other
 * sizes. A short run still shows every behaviour once. CI is whole: the tests of a short run and of a long one, where those that
 * are in both repeat as in a long run.
 */
const run = sizeOf(process.env.TEST_SIZE);
const size = run === 'whole' ? 'long' : run;
type Size = typeof size;

/** Accepts the arguments of a definition, and defines nothing. */
const nothing = Object.assign(() => {}, { each: () => () => {}, skipIf: () => nothing });

/**
 * Defines a group that does not repeat, in a file whose other tests repeat in a longer run: `npm test` has shown this group.
 * `define` is `describe` or `describe.skipIf(…)`.
 */
export const onlyShort = <Define extends object>(define: Define): Define =>
  run === 'short' || run === 'whole' ? define : (nothing as unknown as Define);

/** Defines a test that does not repeat, like `test` does. */
export const testOnce = onlyShort(test);

/**
 * Defines a test or a group that takes long and shows one more case of what `npm test` shows: only the longer runs include it.
 */
export const onlyLong = <Define extends object>(define: Define): Define =>
  size === 'short' ? (nothing as unknown as Define) : define;

export const bySize = <T>(of: Readonly<Record<Size, T>>): T => of[size];

/** How often a property is tried here if the long run tries it `long` times. */
export const runs = (long: number): number =>
  bySize({ short: Math.ceil(long / 5), long, nightly: 100 * long });
