import { describe, expect, test } from 'vitest';
import { createTracks, type Tracks } from '../../../../src/agent/verdict/tracks.ts';

const stepMs = 15_000;

/** Tracks with one value for each step; a step may have no value. */
function tracksOf(
  values: readonly (number | undefined)[],
  more: Partial<{ stepMs: number; wasThere: true }> = {},
): Tracks {
  const tracks = createTracks();
  values.forEach((value, step) => {
    tracks.begin(1_000 + step * (more.stepMs ?? stepMs));
    if (value !== undefined) tracks.set('a', 'k', value, more.wasThere);
  });
  return tracks;
}
const steps = (count: number, valueAt: (step: number) => number | undefined) =>
  Array.from({ length: count }, (_, step) => valueAt(step));

describe('a rate', () => {
  test('is the increase over what is known of the span, once that is a minute', () => {
    expect(tracksOf([0, 15, 30, 45]).rate('a', 'k', 120_000)).toBeUndefined();
    expect(tracksOf([0, 15, 30, 45, 60]).rate('a', 'k', 120_000)).toBe(1);
    // Nothing from before the span is left.
    expect(tracksOf(steps(30, (step) => (step < 10 ? step * 1_000 : 9_000))).rate('a', 'k', 120_000)).toBe(0);
  });
  test('is known between two values that are a minute apart', () => {
    expect(tracksOf([0, undefined, undefined, undefined, 60]).rate('a', 'k', 120_000)).toBe(1);
  });
  test('has the increase after a total fell, from 0', () => {
    expect(tracksOf([100, 160, 30, 60, 90]).rate('a', 'k', 120_000)).toBe((60 + 30 + 30 + 30) / 60);
  });
  test('is of the span to the very sample at its edge', () => {
    expect(tracksOf([0, 75, 75, 75, 75, 75]).rate('a', 'k', 75_000)).toBe(1);
    expect(tracksOf([0, 75, 75, 75, 75, 75]).rate('a', 'k', 74_999)).toBe(0);
  });
  test('of a sender that is gone, or of another name or key, is not known', () => {
    const tracks = tracksOf([0, 15, 30, 45, 60, undefined]);
    expect(tracks.rate('a', 'k', 120_000)).toBeUndefined();
    expect(tracks.newest('a', 'k')).toBeUndefined();
    expect(tracks.keys('a')).toEqual([]);
    expect(tracks.rate('b', 'k', 120_000)).toBeUndefined();
    expect(tracks.keys('b')).toEqual([]);
  });
});

test('the newest value, and the keys that have one', () => {
  const tracks = tracksOf([1, 2]);
  tracks.set('a', 'other', 0);
  expect([tracks.newest('a', 'k'), tracks.newest('a', 'other')]).toEqual([2, 0]);
  expect(tracks.keys('a')).toEqual(['k', 'other']);
});

test('a counter that appears began at 0 if its sender was there in the sample before', () => {
  const appears = (wasThere?: true) =>
    tracksOf([undefined, 7, 9], { wasThere: wasThere! }).increase('a', 'k', 60_000);
  expect([appears(), appears(true)]).toEqual([2, 9]);
  // The first sample has no sample before it, so a counter in it began earlier with its value.
  expect(tracksOf([7, 9], { wasThere: true }).increase('a', 'k', 60_000)).toBe(2);
  expect(tracksOf([7, 9, 9, 12], { wasThere: true }).increase('a', 'k', 60_000)).toBe(5);
});

describe('the part of what a counter counted that exceeds a rate', () => {
  const excess = (values: readonly number[], share: number) =>
    tracksOf(values).excess('a', 'k', 600_000, share);
  const onset = (values: readonly number[], share: number) => excess(values, share)?.firstAgoMs;
  test('is the first step of the span if any step is too many', () => {
    expect(onset([1, 1, 2, 2, 3, 3], 0)).toBe(3 * stepMs);
    expect(onset([1, 2, 2], 0)).toBe(stepMs);
    expect(onset([1, 1, 1], 0)).toBeUndefined();
  });
  test('is where the rate rose above the limit', () => {
    // It grows by 1 in each of five steps, and then by 20: 65 in eight steps. A limit of 5 a step is 40 of them.
    expect(onset([0, 1, 2, 3, 4, 5, 25, 45, 65], 40 / 65)).toBe(2 * stepMs);
    // All of it is above a limit of half a step.
    expect(onset([0, 1, 2, 3, 4, 5, 25, 45, 65], 4 / 65)).toBe(7 * stepMs);
    expect(onset([0, 1, 2], 2)).toBeUndefined();
  });
  test.each([
    ['ends where the rate fell below the limit', [0, 20, 40, 60, 61, 62, 63], 30 / 63, [5, 3]],
    ['ends with the last step if any step is too many', [0, 20, 21, 22, 22, 22], 0, [4, 2]],
    ['lasts while the rate is above the limit', [0, 0, 20, 40, 60], 30 / 60, [2, 0]],
    ['goes on over a dip that is smaller than what follows', [0, 20, 40, 40, 60, 80], 50 / 80, [4, 0]],
    ['is the larger one of two', [0, 9, 9, 9, 9, 49, 50, 51], 35 / 51, [2, 2]],
  ])('%s', (_, values, share, [first, last]) => {
    expect(excess(values, share)).toEqual({ firstAgoMs: first! * stepMs, lastAgoMs: last! * stepMs });
  });
});

describe('the least value of a span', () => {
  test('is known once the span is whole, with the value that held when it began', () => {
    const values = steps(9, (step) => (step === 0 ? 1 : 5));
    // The span is exactly two minutes; a late sample leaves the sample before it in the span.
    expect(tracksOf(values).least('a', 'k', 120_000)).toBe(1);
    expect(tracksOf(values.slice(0, 7)).least('a', 'k', 120_000)).toBeUndefined();
    expect(tracksOf(values, { stepMs: 15_100 }).least('a', 'k', 120_000)).toBe(1);
    expect(tracksOf([1, 1, 5, 5, 5, 5, 5, 5, 5, 5, 5], { stepMs: 15_100 }).least('a', 'k', 120_000)).toBe(5);
    // If a sample is exactly at the beginning of the span, the sample before it does not count.
    expect(tracksOf([0, ...values]).least('a', 'k', 120_000)).toBe(1);
    // If the sample that was valid then is missing, an older one does not replace it.
    const missing = [1, undefined, 5, 5, 5, 5, 5, 5, 5, 5];
    expect(tracksOf(missing, { stepMs: 15_100 }).least('a', 'k', 120_000)).toBeUndefined();
  });
  test('counts what is nine tenths of it, between two samples without a value', () => {
    expect(tracksOf([2, 2, undefined, 2, 2, 2, 2, 2, 2], {}).least('a', 'k', 120_000)).toBe(2);
    expect(tracksOf([undefined, undefined, 2, 2, 2, 2, 2, 2, 2]).least('a', 'k', 120_000)).toBeUndefined();
  });
});

test('the slope of a gauge', () => {
  expect(tracksOf([100, 85, 70, 55, 40]).slope('a', 'k', 120_000)).toBe(-1);
  expect(tracksOf([100, 85, 70, 55]).slope('a', 'k', 120_000)).toBeUndefined();
  expect(tracksOf([0, 0, 0, 0, 0]).slope('a', 'k', 120_000)).toBe(0);
});

test('how long a value has been the same', () => {
  expect(tracksOf([1, 1, 2, 2, 2]).unchangedMs('a', 'k')).toBe(2 * stepMs);
  expect(tracksOf([0, 0, 0]).unchangedMs('a', 'k')).toBe(2 * stepMs);
  expect(tracksOf([1, undefined]).unchangedMs('a', 'k')).toBeUndefined();
  // A value that was missing and is back the same has not changed.
  expect(tracksOf([1, undefined, undefined, 1]).unchangedMs('a', 'k')).toBe(3 * stepMs);
});

test('how long is known', () => {
  expect([tracksOf([1]).sampledMs(), tracksOf([1, 1, 1]).sampledMs()]).toEqual([0, 2 * stepMs]);
  expect(tracksOf(steps(61, () => 1)).sampledMs()).toBe(60 * stepMs);
  expect(tracksOf(steps(80, () => 1)).sampledMs()).toBe(60 * stepMs);
});

test('4,000 sums are kept: each goes on, and one more begins only when there is room again', () => {
  const tracks = createTracks();
  let step = 0;
  const accumulate = (atMs: number, count: number, from: number, value: number) => {
    tracks.begin(atMs);
    tracks.accumulate('a', new Map(Array.from({ length: count }, (_, i) => [`k${from + i}`, value])));
  };
  accumulate(0, 4_001, 0, 5);
  accumulate(stepMs, 4_001, 0, 7);
  expect([tracks.newest('a', 'k0'), tracks.newest('a', 'k3999'), tracks.newest('a', 'k4000')]).toEqual([
    ...[7, 7],
    undefined,
  ]);
  // The others have not grown for more than a day, and are gone.
  for (const end = step + 63; step < end; step++) accumulate(90_000_000 + step * stepMs, 1, 4_000, 7);
  expect(tracks.newest('a', 'k4000')).toBe(7);
});

test('a quarter of an hour is kept, and no more', () => {
  const growing = steps(200, (step) => step);
  expect(tracksOf(growing).increase('a', 'k', 3_600_000)).toBe(60);
  expect(tracksOf(growing).rate('a', 'k', 900_000)).toBe(1 / 15);
  // A sample without a value does not take the value from 61 samples ago.
  const away = [100, ...steps(61, () => undefined), 5, 5];
  expect(tracksOf(away).increase('a', 'k', 3_600_000)).toBe(0);
  const gaps = steps(68, (step) => ({ 5: 100, 60: 5, 67: 5 })[step]);
  expect(tracksOf(gaps).increase('a', 'k', 3_600_000)).toBe(0);
  expect(tracksOf([5, ...steps(60, () => undefined), 5]).increase('a', 'k', 3_600_000)).toBe(0);
});

test('4,000 values are kept; what has been away for a whole history makes room', () => {
  const tracks = createTracks();
  tracks.begin(0);
  for (let i = 0; i < 4_001; i++) tracks.set('a', `k${i}`, i);
  expect(tracks.keys('a')).toHaveLength(4_000);
  expect(tracks.newest('a', 'k4000')).toBeUndefined();
  tracks.set('a', 'k0', 8);
  expect(tracks.newest('a', 'k0')).toBe(8);
  let step = 0;
  const pass = (count: number) => {
    for (let i = 0; i < count; i++) {
      tracks.begin(++step * stepMs);
      tracks.set('a', 'k0', 8);
    }
  };
  pass(59);
  tracks.set('b', 'new', 1);
  expect(tracks.keys('b')).toEqual([]);
  pass(2);
  tracks.set('b', 'new', 1);
  expect(tracks.keys('b')).toEqual(['new']);
  for (let i = 0; i < 4_001; i++) tracks.set('b', `k${i}`, i);
  expect(tracks.keys('a').length + tracks.keys('b').length).toBe(4_000);
});

describe('an episode of a counter', () => {
  const leastMs = 75_000;
  /**
   * A counter that grows by `by` in each of the first `grows` steps, then stands still for `stands`, then grows again for
   * `again`.
   */
  const paused = (grows: number, stands: number, again: number, by = 10) => [
    ...steps(grows, (step) => step * by),
    ...steps(stands, () => (grows - 1) * by),
    ...steps(again, (step) => (grows + step) * by),
  ];
  const later = (values: readonly (number | undefined)[], by: number) => values.map((value) => value! + by);
  const episode = (values: readonly (number | undefined)[], pauseMs?: number) =>
    tracksOf(values).episode('a', 'k', leastMs, pauseMs);
  const whole = (values: readonly unknown[]) => (values.length - 2) * stepMs;
  test('begins with the first step after a pause, and ends with the last', () => {
    expect(episode(paused(10, 5, 3))).toEqual({
      firstAgoMs: 2 * stepMs,
      lastAgoMs: 0,
      isOver: false,
      quietAgoMs: 8 * stepMs,
    });
    expect(episode(paused(10, 4, 0))).toMatchObject({ lastAgoMs: 4 * stepMs, isOver: false });
    expect(episode(paused(10, 5, 0))).toMatchObject({ lastAgoMs: 5 * stepMs, isOver: true });
  });
  test.each([
    ['is shorter than that', paused(10, 4, 3)],
    ['is one of steps that come seldom', paused(10, 8, 3, 0.1)],
    [
      'is as long as two before it',
      [...paused(6, 6, 6), ...later(paused(6, 6, 3), 200), ...later(paused(1, 6, 3), 400)],
    ],
    ['is of a sender that was away', [...steps(10, (s) => s * 10), ...steps(9, () => undefined), 500, 510]],
  ])('goes on over a pause that %s', (_, values) => {
    const { firstAgoMs } = episode(values)!;
    // A pause that is not usual yet may have ended an episode; the last one does not.
    expect(firstAgoMs).toBeGreaterThan(2 * stepMs);
    expect(firstAgoMs).toBeLessThanOrEqual(whole(values));
  });
  test('is over after a pause that is longer than usual', () => {
    const values = [...paused(6, 4, 6), ...later(paused(6, 12, 3), 200)];
    expect(episode(values)).toMatchObject({ firstAgoMs: 2 * stepMs });
  });
  test.each([
    ['three times as long as usual', 6, 2],
    ['less than that', 5, 35],
  ])('and after a pause %s', (_, stands, firstAgo) => {
    const values = [...paused(6, 2, 6), ...later(paused(6, 2, 6), 120), ...later(paused(1, stands, 3), 240)];
    expect(episode(values)).toMatchObject({ firstAgoMs: firstAgo * stepMs });
  });
  test('is over after a pause, although there was one that was longer', () => {
    const values = [...paused(6, 8, 6), ...later(paused(1, 5, 3), 120)];
    expect(episode(values)).toMatchObject({ firstAgoMs: 2 * stepMs });
  });
  test('is over after a pause of a given length, however seldom the counter grows', () => {
    expect(episode(paused(10, 8, 3, 0.1), 8 * stepMs)).toMatchObject({ firstAgoMs: 2 * stepMs });
    expect(episode(paused(10, 8, 3, 0.1), 8 * stepMs + 1)).toMatchObject({ firstAgoMs: 19 * stepMs });
  });
  test('is not over by chance if the counter appeared with the first of its events', () => {
    const appeared = (events: number) => [0, ...steps(21, () => events)];
    expect(episode(appeared(1))!.isOver).toBe(false);
    expect(episode(appeared(10))!.isOver).toBe(true);
  });
  test('is over if exactly ten steps are missing', () => {
    // It grows by two in each of eight steps of 2^14 ms, so that the numbers are exact: in five steps ten are missing.
    const isOver = (by: number) =>
      tracksOf(paused(9, 5, 0, by), { stepMs: 2 ** 14 }).episode('a', 'k', leastMs)!.isOver;
    expect([isOver(2), isOver(1.99)]).toEqual([true, false]);
  });
  test.each([
    ['it stood since the first sample for a pause', paused(1, 5, 3), 8],
    ['it stood for a pause, and grew by twelve in two steps since', paused(1, 5, 2, 6), 7],
    ['it stood since the first sample for less', paused(1, 4, 3), undefined],
    ['it stood for that, but grows as seldom', paused(1, 5, 3, 0.1), undefined],
    [
      'it stood for that, and its steps have such pauses',
      [...paused(1, 5, 1), 10, 10, 20, 20, 20, 30],
      undefined,
    ],
    ['it grew from the first sample on', paused(10, 0, 0), undefined],
    ['it began with a sender that was away', [...steps(6, () => undefined), 10, 20], undefined],
  ])('knows the quiet time before it: %s', (_, values, quietSteps) => {
    expect(episode(values)!.quietAgoMs).toBe(quietSteps && quietSteps * stepMs);
  });
  test('is none of a counter that has not grown, or that nobody has', () => {
    expect(episode([1, 1, 1])).toBeUndefined();
    expect(tracksOf([1]).episode('a', 'other', leastMs)).toBeUndefined();
  });
});

describe('a sum', () => {
  const hourMs = 3_600_000;
  /** Samples of a counter at hours; undefined means that it is missing. */
  const summed = (...samples: [hour: number, value: number | undefined][]) => {
    const tracks = createTracks();
    for (const [hour, value] of samples) {
      tracks.begin(hour * hourMs);
      tracks.accumulate('a', new Map(value === undefined ? [] : [['k', value]]));
    }
    return tracks;
  };
  test('goes on over a restart of the counter, and while it is missing', () => {
    expect(summed([0, 50], [1, 3]).newest('a', 'k')).toBe(53);
    expect(summed([0, 50], [1, undefined]).newest('a', 'k')).toBe(50);
    expect(summed([0, 50], [1, undefined], [2, 60]).newest('a', 'k')).toBe(60);
  });
  test('has no value once it has not grown for a day, and has one when it grows', () => {
    expect(summed([0, 50], [24, 50]).newest('a', 'k')).toBe(50);
    expect(summed([0, 50], [25, 50]).newest('a', 'k')).toBeUndefined();
    expect(summed([0, 50], [25, 50], [26, 50]).newest('a', 'k')).toBeUndefined();
    expect(summed([0, 50], [23, 51], [30, 51]).newest('a', 'k')).toBe(51);
    expect(summed([0, 50], [25, 50], [26, 3]).newest('a', 'k')).toBe(53);
  });
  test('begins anew if the counter was missing then', () => {
    expect(summed([0, 50], [25, undefined], [26, 3]).newest('a', 'k')).toBe(3);
  });
  test('that is new has counted nothing before', () => {
    expect(summed([0, undefined], [1, 50]).increase('a', 'k', 2 * hourMs)).toBe(0);
  });
  test('is kept of 4,000 counters', () => {
    const tracks = createTracks();
    const values = new Map(Array.from({ length: 4_000 }, (_, i) => [`k${i}`, 5]));
    const sample = (hour: number) => {
      tracks.begin(hour * hourMs);
      tracks.accumulate('a', values);
    };
    sample(0);
    // All of them stand still for so long that there is room for other tracks.
    for (let i = 0; i <= 61; i++) sample(25 + i / 60);
    values.set('k0', 8).set('other', 1);
    sample(27);
    expect([tracks.newest('a', 'k0'), tracks.newest('a', 'other')]).toEqual([8, undefined]);
  });
});
