/** The values of a quarter of an hour, so that a span of ten minutes is whole. */
const points = 61;
/** Each costs 500 bytes; further ones are not judged. */
const mostTracks = 4_000;

/** One value over time. */
interface Track {
  /** A ring; NaN where there was no value. */
  values: Float64Array;
  /** Number of the newest sample that has a value. */
  last: number;
  /** When the value last changed, monotonic ms. */
  changedMs: number;
}

/** A pause of a counter: how long ago it grew for the last time before it, and for the first time after it, ms. */
interface Pause {
  fromAgoMs: number;
  untilAgoMs: number;
}

/** Short histories of values by name and key. Times are monotonic ms. */
export interface Tracks {
  /** Begins a sample. */
  begin(nowMs: number): void;
  /**
   * Adds the value of this sample. `wasThere`: the sender was there in the previous sample, so that a counter that is new
   * began at 0 and did not come back.
   */
  set(name: string, key: string, value: number, wasThere?: boolean): void;
  /**
   * Adds the sums of what counters counted, also over restarts, and while a counter is missing. A sum that has not grown for a
   * day has no value any more.
   */
  accumulate(name: string, values: ReadonlyMap<string, number>): void;
  /** Keys of a name that have a value in this sample. */
  keys(name: string): string[];
  newest(name: string, key: string): number | undefined;
  /** Increase of a counter per second over a span; undefined while less than a minute of it is known. */
  rate(name: string, key: string, spanMs: number): number | undefined;
  /** Increase of a counter within a span, however much of it is known. */
  increase(name: string, key: string, spanMs: number): number;
  /** How long ago the first increase within a span was, ms; 0 without any. */
  increasedAgoMs(name: string, key: string, spanMs: number): number;
  /** The newest pause of a counter that grew before and after it; undefined without one. */
  pause(name: string, key: string, leastMs: number): Pause | undefined;
  /** The least value of a span; undefined if not all of it is known. */
  least(name: string, key: string, spanMs: number): number | undefined;
  /** Change of a gauge per second over a span; undefined while less than a minute of it is known. */
  slope(name: string, key: string, spanMs: number): number | undefined;
  /** How long the value has been the same, ms; undefined if there is no value. */
  unchangedMs(name: string, key: string): number | undefined;
}

/** What a counter counted, also before it began again. */
interface Sum {
  /** The newest value of the counter. */
  last: number;
  value: number;
  /** When it last grew, monotonic ms. */
  grewMs: number;
}

const dayMs = 86_400_000;
const leastKnownMs = 60_000;
/** Fewer steps may be missing in a pause by chance. */
const leastMissed = 10;
/** What grows in bursts pauses all the time; a longer pause than that is one of another kind. */
const longerThanUsual = 3;

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
   * Values with their times within a span, oldest first, up to the newest sample; none without a newest value. `isWhole`:
   * with the one that held when the span began, because samples are always a little late.
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
  const knownMs = (values: readonly [number, number][]) =>
    values.length < 2 ? 0 : values.at(-1)![0] - values[0]![0];

  const increaseOf = (values: readonly [number, number][]): number => {
    let sum = 0;
    for (let i = 1; i < values.length; i++) {
      const [before, now] = [values[i - 1]![1], values[i]![1]];
      // A total that fell began again at 0.
      sum += now >= before ? now - before : now;
    }
    return sum;
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
          // It has had no value for a whole history.
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
    increasedAgoMs(name, key, spanMs) {
      const values = within(name, key, spanMs);
      const first = values.find(([, value], i) => i > 0 && value !== values[i - 1]![1]);
      return first ? nowMs - first[0] : 0;
    },
    pause(name, key, leastMs) {
      const values = within(name, key, Number.POSITIVE_INFINITY);
      let found: Pause | undefined;
      let [grewMs, stoodMs, grown, longestMs] = [Number.NaN, 0, 0, 0];
      for (let i = 1; i < values.length; i++) {
        const [[beforeMs, before], [atMs, value]] = [values[i - 1]!, values[i]!];
        if (value === before) {
          stoodMs = atMs;
          continue;
        }
        const pausedMs = Math.max(0, stoodMs - grewMs);
        const missed = (grown / (grewMs - values[0]![0])) * pausedMs;
        if (pausedMs >= leastMs && pausedMs >= longerThanUsual * longestMs && missed >= leastMissed)
          found = { fromAgoMs: nowMs - grewMs, untilAgoMs: nowMs - atMs };
        if (!Number.isNaN(grewMs)) longestMs = Math.max(longestMs, pausedMs, atMs - beforeMs);
        grown += increaseOf([values[i - 1]!, values[i]!]);
        grewMs = atMs;
      }
      return found;
    },
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
  };
}
