/** A counter's total as a look found it. */
export interface Total {
  /** The same for the same series; also for series that cannot be told apart, which count as one. */
  series: string;
  value: number;
}

export interface Rise {
  by: number;
  /** The total fell: it began anew, and what it has counted since then is its rise. */
  anew: boolean;
}

export interface Rises {
  /**
   * How much each series rose since the look before. A series that is new, or back after a look without it,
   * has no rise: what it counted meanwhile is not known.
   */
  since(totals: readonly Total[]): Map<string, Rise>;
}

interface Sum {
  value: number;
  parts: number;
}

/** Remembers the last totals of counters that somebody else keeps. */
export function createRises(): Rises {
  let last = new Map<string, Sum>();
  return {
    since(totals) {
      const now = sumsOf(totals);
      const rises = new Map<string, Rise>();
      for (const [series, sum] of now) {
        const before = last.get(series);
        if (before?.parts === sum.parts) rises.set(series, riseOf(before, sum));
      }
      last = now;
      return rises;
    },
  };
}

function sumsOf(totals: readonly Total[]): Map<string, Sum> {
  const sums = new Map<string, Sum>();
  for (const { series, value } of totals) {
    const { value: sum, parts } = sums.get(series) ?? { value: 0, parts: 0 };
    sums.set(series, { value: sum + value, parts: parts + 1 });
  }
  return sums;
}

/** Which part of a sum began anew is not known, nor what it has counted. */
function riseOf(before: Sum, { value, parts }: Sum): Rise {
  if (value >= before.value) return { by: value - before.value, anew: false };
  return { by: parts === 1 ? value : 0, anew: true };
}
