/**
 * How much of the limits the series of one source use. Each source has its own share of the limits, so that a role that starts
 * after another one sent too many series is still served.
 */
export interface SourceUse {
  /** How many series count against `limits.series`. */
  series: number;
  /** How many bytes count against `limits.heapBytes`. */
  heapBytes: number;
}

/** This part of a limit is divided equally among the sources. The unused part of a source's share stays reserved for it. */
const reservedPart = 0.25;

/**
 * Whether `own` must not use more of a limit. `all` are the sources of received series, and `total` is what they use together.
 */
export function isUsedUp(
  what: keyof SourceUse,
  { limit, total }: { limit: number; total: number },
  own: SourceUse,
  all: ReadonlySet<SourceUse>,
): boolean {
  if (total >= limit) return true;
  const share = Math.floor((reservedPart * limit) / all.size);
  if (total < (1 - reservedPart) * limit || own[what] < share) return false;
  let unused = 0;
  for (const use of all) unused += Math.max(0, share - use[what]);
  return total + unused >= limit;
}
