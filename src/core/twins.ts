/**
 * Two families of a sender with the same observations, such as a timer and the histogram that replaces it. A sender may fill one
 * family or both, and it may send a family that is empty.
 */
export interface Twins {
  /** The suffix that turns the first name into the second. */
  readonly suffix: string;
  /** Tags that only the second family has, and that are dropped. */
  readonly drop?: readonly string[];
}

/** For each pair of twins that a sender has, the twin that counts its observations. */
export interface TwinChoice {
  /** Whether the twin of this metric is used instead of it. */
  isRepeated(name: string): boolean;
  /** Both names of every pair that the sender has: their counts decide. */
  readonly compared: ReadonlySet<string>;
  /** Sets the names that the sender has now. */
  sends(names: ReadonlySet<string>): void;
  /** Sets the number of observations of each compared metric. Returns both names of the pairs whose choice changed. */
  weigh(countOf: (name: string) => number): ReadonlySet<string>;
}

interface Pair {
  readonly first: string;
  readonly second: string;
  /** Whether the second twin is used. */
  isSecond: boolean;
  /** The counts of the used twin and of the other twin on the last page. */
  taken: number;
  other: number;
  /** The number of successive pages on which only the other twin counted. */
  still: number;
}

/**
 * If the second has more than this many times the calls of the first, it has calls that the first lacks: not all of the sender
 * fills the first.
 */
const most = 2;
/** Between the updates of two twins a page may show only one of them, but not twice in a row. */
const stillPages = 2;

/** Chooses between the metrics `bases` and their twins. Until a count is known, the first metric is used. */
export function createTwinChoice({ suffix }: Twins, bases: Iterable<string>): TwinChoice {
  const known = [...bases].filter((name) => !name.endsWith(suffix));
  let pairs = new Map<string, Pair>();
  let compared: ReadonlySet<string> = new Set();

  /** Whether the choice of a pair changed. */
  const decide = (pair: Pair, first: number, second: number): boolean => {
    const { isSecond } = pair;
    const [taken, other] = isSecond ? [second, first] : [first, second];
    const isFirstPage = pair.taken === 0 && pair.other === 0;
    pair.still = taken === pair.taken && other > pair.other ? pair.still + 1 : 0;
    if (isFirstPage) pair.isSecond = second > most * first;
    else if ((taken === 0 && other > 0) || pair.still >= stillPages) pair.isSecond = !isSecond;
    const isChanged = pair.isSecond !== isSecond;
    if (isChanged) pair.still = 0;
    [pair.taken, pair.other] = isChanged ? [other, taken] : [taken, other];
    return isChanged;
  };

  return {
    isRepeated(name) {
      const pair = pairs.get(name);
      return pair !== undefined && (name === pair.second) !== pair.isSecond;
    },
    get compared() {
      return compared;
    },
    sends(names) {
      const next = new Map<string, Pair>();
      for (const first of known) {
        const second = first + suffix;
        if (!names.has(first) || !names.has(second)) continue;
        const pair = pairs.get(first) ?? { first, second, isSecond: false, taken: 0, other: 0, still: 0 };
        next.set(first, pair);
        next.set(second, pair);
      }
      pairs = next;
      compared = new Set(next.keys());
    },
    weigh(countOf) {
      const changed = new Set<string>();
      for (const [name, pair] of pairs) {
        if (name !== pair.first || !decide(pair, countOf(pair.first), countOf(pair.second))) continue;
        changed.add(pair.first).add(pair.second);
      }
      return changed;
    },
  };
}
