import type { FileTally } from './tally.ts';

/** Passes over the lines of a file whose only claimant is not watched. */
export const silentTally: FileTally = {
  role: '',
  entry() {},
  continuation() {},
  blank() {},
  dropped() {},
  skipped() {},
  settle() {},
};
