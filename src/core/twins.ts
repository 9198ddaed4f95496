/**
 * Two families of a sender with the same observations, such as a timer and the histogram that replaces it: a sender
 * may fill the one, the other, or both, and it may show the one that it does not fill, too.
 */
export interface Twins {
  /** What the second name has after the first. */
  readonly suffix: string;
  /** Tags that only the second has, and that are dropped. */
  readonly drop?: readonly string[];
}

/** For each pair of twins that a sender has, the twin that counts its observations. */
export interface TwinChoice {
  /** Whether the other one of its pair is taken in place of this metric. */
  isRepeated(name: string): boolean;
  /** Both names of every pair that the sender has: their counts decide. */
  readonly compared: ReadonlySet<string>;
  /** Takes the names that the sender has now. */
  sends(names: ReadonlySet<string>): void;
  /** Takes the number of observations of each compared metric. Returns both names of the pairs that changed sides. */
  weigh(countOf: (name: string) => number): ReadonlySet<string>;
}

interface Pair {
  readonly first: string;
  readonly second: string;
  /** Whether the second is taken. */
  isSecond: boolean;
  /** Counts on the last page: of the twin that is taken, and of the other twin. */
  taken: number;
  other: number;
  /** Successive pages on which only the other twin counted. */
  still: number;
}

/** Beyond this share the second has calls that the first has not: the first is not filled by all of the sender. */
const most = 2;
/** Between the updates of two twins a page may show the one without the other, but not twice in a row. */
const stillPages = 2;

/** Chooses between the metrics `bases` and their twins. Until a count is known, the first one is taken. */
export function createTwinChoice({ suffix }: Twins, bases: Iterable<string>): TwinChoice {
  const known = [...bases].filter((name) => !name.endsWith(suffix));
  let pairs = new Map<string, Pair>();
  let compared: ReadonlySet<string> = new Set();

  /** Whether the pair changed sides. */
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
