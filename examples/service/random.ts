/** Pseudo-random numbers that depend on the seed alone, so that a run can be had again. */
export interface Random {
  /** Even in [0, 1). */
  next(): number;
  /** Even in [from, to]. */
  integer(from: number, to: number): number;
  /** How many independent events happen where `mean` are expected (Knuth; normal above 30). */
  count(mean: number): number;
  /** Long-tailed and positive, half of the values below `median`; what latencies look like. */
  longTail(median: number): number;
  /** One of the rows, each as likely as its `weight`. */
  weighted<T extends { weight: number }>(rows: readonly T[]): T;
  /** A version 4 UUID. */
  uuid(): string;
}

/** Mulberry32 (public domain, Tommy Ettinger): 32 bits of state are plenty for make-believe. */
function mulberry32(seed: number): () => number {
  let state = seed >>> 0;
  return () => {
    state = (state + 0x6d2b79f5) >>> 0;
    let mixed = Math.imul(state ^ (state >>> 15), state | 1);
    mixed ^= mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61);
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32;
  };
}

export function createRandom(seed: number): Random {
  const next = mulberry32(seed);
  const integer = (from: number, to: number) => from + Math.floor(next() * (to - from + 1));
  const normal = () => Math.sqrt(-2 * Math.log(1 - next())) * Math.cos(2 * Math.PI * next());

  function count(mean: number): number {
    if (mean > 30) return Math.max(0, Math.round(mean + Math.sqrt(mean) * normal()));
    const limit = Math.exp(-mean);
    let events = 0;
    for (let product = next(); product > limit; product *= next()) events += 1;
    return events;
  }

  function weighted<T extends { weight: number }>(rows: readonly T[]): T {
    let rest = next() * rows.reduce((sum, row) => sum + row.weight, 0);
    for (const row of rows) {
      rest -= row.weight;
      if (rest < 0) return row;
    }
    return rows.at(-1) as T;
  }

  function uuid(): string {
    const hex = Array.from({ length: 32 }, () => integer(0, 15).toString(16)).join('');
    const variant = '89ab'[integer(0, 3)];
    return `${hex.slice(0, 8)}-${hex.slice(8, 12)}-4${hex.slice(13, 16)}-${variant}${hex.slice(17, 20)}-${hex.slice(20)}`;
  }

  return { next, integer, count, weighted, uuid, longTail: (median) => median * Math.exp(0.7 * normal()) };
}
