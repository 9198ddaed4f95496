/** The number of samples that are stored: a quarter of an hour, so that a span of ten minutes is always complete. */
const points = 61;
/** The maximum number of tracks. Each takes 500 bytes; values beyond that are not judged. */
const mostTracks = 4_000;

/** One value over time. */
interface Track {
  /** The values in a ring; NaN for a sample without a value. */
  values: Float64Array;
  /** The number of the newest sample that has a value. */
  last: number;
  /** When the value last changed, monotonic ms. */
  changedMs: number;
}

/** The growth of a counter since its newest pause, or since the first sample. */
export interface Episode {
  /** How long ago the counter first grew, ms. */
  firstAgoMs: number;
  /** How long ago the counter last grew, ms. */
  lastAgoMs: number;
  /** Whether a pause has begun since. */
  isOver: boolean;
  /** How long ago the quiet time before the episode began, ms; undefined if that time is too short to be a pause. */
  quietAgoMs?: number;
}

/** The part of a counter's increase that exceeds a rate by most. */
interface Excess {
  firstAgoMs: number;
  lastAgoMs: number;
}

/** Short histories of values by name and key. Times are monotonic ms. */
export interface Tracks {
  /** Begins a sample. */
  begin(nowMs: number): void;
  /**
   * Adds the value of this sample. `wasThere`: the sender had values in the previous sample, so that a new counter began at 0 and
   * did not return.
   */
  set(name: string, key: string, value: number, wasThere?: boolean): void;
  /**
   * Adds to the sums of what counters counted. A sum survives a counter that begins again or is missing. A sum that has not grown
   * for a day has no value any more.
   */
  accumulate(name: string, values: ReadonlyMap<string, number>): void;
  /** The keys of a name that have a value in this sample. */
  keys(name: string): string[];
  newest(name: string, key: string): number | undefined;
  /** The increase of a counter per second over a span; undefined while less than a minute of it is known. */
  rate(name: string, key: string, spanMs: number): number | undefined;
  /** The increase of a counter within a span, however much of the span is known. */
  increase(name: string, key: string, spanMs: number): number;
  /**
   * The newest episode of a counter; undefined if it did not grow. A pause is `pauseMs` long, or else at least `leastMs` and so
   * long that it is not by chance.
   */
  episode(name: string, key: string, leastMs: number, pauseMs?: number): Episode | undefined;
  /**
   * How long ago a part of a counter's increase within a span began and ended, ms: the part that exceeds this share of the
   * average rate by most. Undefined if the counter did not grow. What was counted before and after that part is the usual
   * background.
   */
  excess(name: string, key: string, spanMs: number, share: number): Excess | undefined;
  /**
   * How long ago the newest part of a counter's increase within a span began, ms: a part that is more than this share of the
   * increase. Undefined if the counter did not grow.
   */
  newestAgoMs(name: string, key: string, spanMs: number, share: number): number | undefined;
  /** The least value within a span; undefined if not all of the span is known. */
  least(name: string, key: string, spanMs: number): number | undefined;
  /** The change of a gauge per second over a span; undefined while less than a minute of it is known. */
  slope(name: string, key: string, spanMs: number): number | undefined;
  /** How long the value has been the same, ms; undefined if there is no value. */
  unchangedMs(name: string, key: string): number | undefined;
  /** How long ago the first sample was, ms; at most the span that is stored. */
  sampledMs(): number;
}

/** The sum of what a counter counted, including what it counted before it began again. */
interface Sum {
  /** The newest value of the counter. */
  last: number;
  value: number;
  /** When the counter last grew, monotonic ms. */
  grewMs: number;
}

const dayMs = 86_400_000;
const leastKnownMs = 60_000;
/** A pause must lack this many steps: fewer may be missing by chance. */
const leastMissed = 10;
/** A pause must be this many times longer than usual: a counter that grows in bursts pauses all the time. */
const longerThanUsual = 3;

/** Values with their times, oldest first. */
type Values = readonly (readonly [atMs: number, value: number])[];

/** The time from the first to the last of some values. */
const knownMs = (values: Values): number => (values.length < 2 ? 0 : values.at(-1)![0] - values[0]![0]);

/** How much a counter rose over some values. */
function increaseOf(values: Values): number {
  let sum = 0;
  for (let i = 1; i < values.length; i++) {
    const [before, now] = [values[i - 1]![1], values[i]![1]];
    // A total that fell began again at 0.
    sum += now >= before ? now - before : now;
  }
  return sum;
}

/** `Tracks.episode` for all values of a counter. */
function episodeIn(values: Values, nowMs: number, leastMs: number, pauseMs?: number): Episode | undefined {
  let [firstMs, grewMs, stoodMs, grown] = [Number.NaN, Number.NaN, 0, 0];
  /** The time without growth before the episode: since the newest growth before it, or since the first sample. */
  let quiet: readonly [fromMs: number, untilMs: number] = [0, 0];
  /** The longest time without growth, and the second longest, which tells that the longest is usual. */
  let longestMs: readonly [number, number] = [0, 0];
  const isLong = (stillMs: number, knownMs: number, usualMs: number): boolean => {
    if (pauseMs !== undefined) return stillMs >= pauseMs;
    // A counter may have appeared with the first of its events, so that it is hardly known how often they come.
    const missed = (grown / Math.max(knownMs, leastMs)) * stillMs;
    return stillMs >= leastMs && stillMs >= longerThanUsual * usualMs && missed >= leastMissed;
  };
  const isPause = (): boolean => isLong(stoodMs - grewMs, grewMs - values[0]![0], longestMs[1]);
  for (let i = 1; i < values.length; i++) {
    const [[lastMs, last], [atMs, value]] = [values[i - 1]!, values[i]!];
    if (value === last) {
      stoodMs = atMs;
      continue;
    }
    if (Number.isNaN(firstMs)) [firstMs, quiet] = [atMs, [values[0]![0], lastMs]];
    else if (isPause()) [firstMs, quiet] = [atMs, [grewMs, stoodMs]];
    const stillMs = Math.max(stoodMs - grewMs, atMs - lastMs);
    if (stillMs > longestMs[0]) longestMs = [stillMs, longestMs[0]];
    else if (stillMs > longestMs[1]) longestMs = [longestMs[0], stillMs];
    grown += increaseOf([values[i - 1]!, values[i]!]);
    grewMs = atMs;
  }
  if (Number.isNaN(firstMs)) return undefined;
  const [fromMs, untilMs] = quiet;
  const isAfterPause = isLong(untilMs - fromMs, grewMs - untilMs, longestMs[1]);
  return {
    firstAgoMs: nowMs - firstMs,
    lastAgoMs: nowMs - grewMs,
    isOver: isPause(),
    ...(isAfterPause && { quietAgoMs: nowMs - fromMs }),
  };
}

/** `Tracks.excess` for the values of a span. */
function excessIn(values: Values, nowMs: number, share: number): Excess | undefined {
  const usual = (share * increaseOf(values)) / knownMs(values);
  // How much more than usual was counted from the beginning of the span to each sample. It rises most from its least value on.
  let [sum, least, leastAt, most] = [0, 0, 0, 0];
  let found: Excess | undefined;
  for (let i = 1; i < values.length; i++) {
    const atMs = values[i]![0];
    sum += increaseOf([values[i - 1]!, values[i]!]) - usual * (atMs - values[i - 1]![0]);
    if (sum - least > most) {
      most = sum - least;
      found = { firstAgoMs: nowMs - values[leastAt + 1]![0], lastAgoMs: nowMs - atMs };
    }
    if (sum <= least) [least, leastAt] = [sum, i];
  }
  return found;
}

/** `Tracks.newestAgoMs` for the values of a span. */
function newestAgoMsIn(values: Values, nowMs: number, share: number): number | undefined {
  const wanted = share * increaseOf(values);
  for (let i = values.length - 1, sum = 0; i > 0; i--) {
    sum += increaseOf(values.slice(i - 1, i + 1));
    if (sum > wanted) return nowMs - values[i]![0];
  }
  return undefined;
}

export function createTracks(): Tracks {
  const byName = new Map<string, Map<string, Track>>();
  const sums = new Map<string, Map<string, Sum>>();
  const times = new Float64Array(points).fill(Number.NaN);
  let count = 0;
  let sample = -1;
  let nowMs = 0;

  const trackOf = (name: string, key: string) => byName.get(name)?.get(key);
  const open = (name: string, key: string): Track | undefined => {
    const known = trackOf(name, key);
    if (known || count >= mostTracks) return known;
    const group = byName.get(name) ?? new Map<string, Track>();
    byName.set(name, group);
    const track = { values: new Float64Array(points).fill(Number.NaN), last: -1, changedMs: nowMs };
    group.set(key, track);
    count++;
    return track;
  };
  /**
   * Values with their times within a span, oldest first, up to the newest sample; none if the newest sample has no value.
   * `isWhole`: includes the value from the beginning of the span, because samples are always a little late.
   */
  const within = (
    name: string,
    key: string,
    spanMs: number,
    isWhole = false,
  ): [atMs: number, value: number][] => {
    const track = trackOf(name, key);
    if (!track || track.last !== sample) return [];
    const found: [number, number][] = [];
    for (let at = sample; at >= 0 && at > sample - points; at--) {
      const atMs = times[at % points]!;
      const isBefore = nowMs - atMs > spanMs;
      if (isBefore && !(isWhole && nowMs - found.at(-1)![0] < spanMs)) break;
      const value = track.values[at % points]!;
      if (!Number.isNaN(value)) found.push([atMs, value]);
      if (isBefore) break;
    }
    return found.reverse();
  };
  const set = (name: string, key: string, value: number, wasThere: boolean) => {
    const track = open(name, key);
    if (!track) return;
    const isNew = track.last < sample - 1;
    if (isNew && wasThere) track.values[(sample - 1) % points] = 0;
    if (track.values[track.last % points] !== value) track.changedMs = nowMs;
    track.values[sample % points] = value;
    track.last = sample;
  };

  return {
    begin(atMs) {
      sample++;
      nowMs = atMs;
      times[sample % points] = atMs;
      for (const group of byName.values())
        for (const [key, { values, last }] of group) {
          values[sample % points] = Number.NaN;
          if (sample - last < points) continue;
          // The key has had no value in the whole history.
          group.delete(key);
          count--;
        }
    },
    set: (name, key, value, wasThere = false) => set(name, key, value, wasThere),
    accumulate(name, values) {
      const group = sums.get(name) ?? new Map<string, Sum>();
      sums.set(name, group);
      for (const [key, last] of values) {
        const known = group.get(key);
        if (!known && group.size >= mostTracks) continue;
        const { value, grewMs } = known ?? { value: 0, grewMs: nowMs };
        const grown = increaseOf([
          [grewMs, known?.last ?? 0],
          [nowMs, last],
        ]);
        group.set(key, { last, value: value + grown, grewMs: grown > 0 ? nowMs : grewMs });
      }
      for (const [key, { value, grewMs }] of group)
        if (nowMs - grewMs <= dayMs) set(name, key, value, false);
        else if (!values.has(key)) group.delete(key);
    },
    keys: (name) =>
      [...(byName.get(name) ?? [])].filter(([, { last }]) => last === sample).map(([key]) => key),
    newest(name, key) {
      const track = trackOf(name, key);
      return track?.last === sample ? track.values[sample % points] : undefined;
    },
    rate(name, key, spanMs) {
      const values = within(name, key, spanMs);
      const spannedMs = knownMs(values);
      return spannedMs < leastKnownMs ? undefined : (increaseOf(values) / spannedMs) * 1e3;
    },
    increase: (name, key, spanMs) => increaseOf(within(name, key, spanMs)),
    episode: (name, key, leastMs, pauseMs) =>
      episodeIn(within(name, key, Number.POSITIVE_INFINITY), nowMs, leastMs, pauseMs),
    excess: (name, key, spanMs, share) => excessIn(within(name, key, spanMs), nowMs, share),
    newestAgoMs: (name, key, spanMs, share) => newestAgoMsIn(within(name, key, spanMs), nowMs, share),
    least(name, key, spanMs) {
      const values = within(name, key, spanMs, true);
      // Samples are some seconds apart.
      if (knownMs(values) < spanMs * 0.9) return undefined;
      return Math.min(...values.map(([, value]) => value));
    },
    slope(name, key, spanMs) {
      const values = within(name, key, spanMs);
      const spannedMs = knownMs(values);
      if (spannedMs < leastKnownMs) return undefined;
      return ((values.at(-1)![1] - values[0]![1]) / spannedMs) * 1e3;
    },
    unchangedMs(name, key) {
      const track = trackOf(name, key);
      return track?.last === sample ? nowMs - track.changedMs : undefined;
    },
    sampledMs: () => nowMs - times[Math.max(0, sample - points + 1) % points]!,
  };
}
