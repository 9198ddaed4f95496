import { describe, expect, test } from 'vitest';
import { createLazyStore } from '../../../src/core/registry/value-stores.ts';
import { createSliceQueue } from '../../../src/core/slices.ts';
import { createVocabulary } from '../../../src/core/vocabulary.ts';
import { createVocabularyDetector, type VocabularyDetector } from '../../../src/core/vocabulary-detector.ts';
import { startExpiry } from '../../../src/sources/statsd/lines/known-lines.ts';
import { createSeriesRecorder } from '../../../src/sources/statsd/lines/statsd-series.ts';
import { createSummaries } from '../../../src/sources/statsd/summaries.ts';
import { testRegistry } from '../../registry.ts';
import { detectedLines } from '../../statsd.ts';
import { until } from '../../until.ts';

const minute = 60_000;

/** Reads lines into a registry, with timers as summaries and a clock that the test advances. */
function path(detector: VocabularyDetector = createVocabularyDetector([], true)) {
  const bed = testRegistry();
  const { clock } = bed;
  // Windows begin with the source, not with the clock.
  clock.advance(7 * minute);
  const store = createLazyStore();
  const intake = bed.intake({
    component: 'statsd',
    tagService: true,
    store,
    translate: detector.translate,
  });
  const slices = createSliceQueue(clock);
  const summaries = createSummaries({ intake, store, clock, slices });
  const recorder = createSeriesRecorder({ intake, detector, bounds: [1], summaries });
  const { knownLines, read } = detectedLines({ detector, recorder, slices, clock });
  const stop = summaries.start();
  return {
    ...bed,
    slices,
    summaries,
    knownLines,
    intake,
    stop,
    read,
    /** Quantiles, rounded to the bound of their error, then sum, then count. */
    took: (key = 'took{svc_service="frontend"}') => {
      const numbers = bed.shown()[key] as number[] | undefined;
      return numbers?.map((value) => Number(value.toPrecision(6)));
    },
    /** Waits until work without a deadline is done. */
    async swept() {
      let isDone = false;
      slices.whenIdle(() => {
        isDone = true;
        return true;
      });
      await until('the sweep is done', () => isDone);
    },
  };
}

const near = (value: number) => expect.closeTo(value, value === 0 ? 9 : 1 - Math.floor(Math.log10(value)));
const none = Array<number>(5).fill(Number.NaN);

describe('timers, histograms and distributions', () => {
  test.each([
    ['took:200|ms', 0.2],
    ['took:0.2|h', 0.2],
    ['took:0.2|d', 0.2],
  ])('%s', (line, value) => {
    const { read, took } = path();
    read(line);
    expect(took()).toEqual([...Array(5).fill(near(value)), value, 1]);
  });

  test('counters and gauges are as they were', () => {
    const { read, shown } = path();
    read('a:2|c\nb:3|g\na:1|c|@0.5');
    expect(shown()).toEqual({ 'a{svc_service="frontend"}': 4, 'b{svc_service="frontend"}': 3 });
  });

  test('the quantiles of the service’s own reporter', () => {
    const { registry, read } = path();
    read('took:1|ms');
    const view = registry.view();
    const took = view.families.find(({ name }) => name === 'took')!;
    expect(took.kind).toBe('summary');
    expect(took.series.map(({ bounds }) => bounds)).toEqual([['0.5', '0.75', '0.95', '0.99', '0.999']]);
    view.release();
  });

  test('each of them is the value at its rank', () => {
    const { read, took } = path();
    read(Array.from({ length: 1000 }, (_, i) => `took:${(i + 1) * 10}|ms`).join('\n'));
    const [half, more, most, nearly, all, sum, count] = took()!;
    for (const [got, wanted] of [
      [half, 5],
      [more, 7.5],
      [most, 9.5],
      [nearly, 9.9],
      [all, 9.99],
    ] as const) {
      expect(Math.abs(got! - wanted)).toBeLessThanOrEqual(wanted * 0.0100001);
    }
    expect([sum, count]).toEqual([5005, 1000]);
  });

  test('a sample rate weighs, and lines of several rates and types are one series', () => {
    const { read, took } = path();
    read('took:1000|ms|@0.1\ntook:3|h\ntook:3000:3000|ms');
    // There are ten of 1 s and three of 3 s: the median is 1, the next is 3.
    expect(took()).toEqual([near(1), near(1), near(3), near(3), near(3), 19, 13]);
  });

  test('what is no number to add is dropped and counted', () => {
    const { read, took, dropped } = path();
    read('took:1|h\ntook:1e308|h|@0.001\ntook:-2|ms');
    expect(took()).toEqual([...Array(5).fill(near(1)), 1, 1]);
    expect(dropped('not_finite')).toBe(1);
  });

  test('a series met by a number that cannot be added has no quantiles yet', () => {
    const { read, took } = path();
    read('took:1e308|h|@0.001');
    expect(took()).toEqual([...none, 0, 0]);
  });

  test('nor has one of which nothing came', () => {
    const { summaries, took } = path();
    summaries.open('took', {});
    expect(took()).toEqual([...none, 0, 0]);
  });

  test('negative observations lower the sum, and nothing begins anew', () => {
    const { registry, clock, read, took } = path();
    const startMs = () => {
      const view = registry.view();
      const [series] = view.families.find(({ name }) => name === 'took')!.series;
      view.release();
      return series!.startMs;
    };
    read('took:5|h');
    const before = startMs();
    clock.advance(minute);
    read('took:-7|h');
    expect(took()!.slice(-2)).toEqual([-2, 2]);
    expect(startMs()).toBe(before);
  });
});

describe('the window', () => {
  test('quantiles are of the last 10 minutes at most and 8 at least, sum and count of all time', async () => {
    const { clock, read, took, swept } = path();
    read('took:4000|ms');
    clock.advance(2 * minute);
    await swept();
    read('took:1000|ms\ntook:1000|ms');
    expect(took()).toEqual([near(1), near(4), near(4), near(4), near(4), 6, 3]);
    clock.advance(8 * minute - 1);
    await swept();
    expect(took()).toEqual([near(1), near(4), near(4), near(4), near(4), 6, 3]);
    clock.advance(1);
    await swept();
    expect(took()).toEqual([...Array(5).fill(near(1)), 6, 3]);
    clock.advance(2 * minute);
    await swept();
    expect(took()).toEqual([...none, 6, 3]);
    read('took:2000|ms');
    expect(took()).toEqual([...Array(5).fill(near(2)), 8, 4]);
  });

  test('an observation right after a step, in front of the sweep, is in the new step', async () => {
    const { clock, read, took, swept } = path();
    read('took:4000|ms');
    clock.advance(10 * minute);
    read('took:1000|ms');
    expect(took()).toEqual([...Array(5).fill(near(1)), 5, 2]);
    clock.advance(8 * minute);
    await swept();
    expect(took()![0]).toEqual(near(1));
    clock.advance(2 * minute);
    await swept();
    expect(took()).toEqual([...none, 5, 2]);
  });

  test('the wall clock does not matter', async () => {
    const { clock, read, took, swept } = path();
    read('took:4000|ms');
    clock.jumpTo(0);
    clock.advance(minute);
    await swept();
    expect(took()![0]).toEqual(near(4));
  });

  test('nothing waits after the stop', () => {
    const { clock, stop } = path();
    const before = clock.waiting;
    stop();
    expect(clock.waiting).toBe(before - 1);
  });
});

describe('series come and go', () => {
  test('one that is not heard of goes, and begins at 0 when it comes back', async () => {
    const { clock, slices, knownLines, read, took } = path();
    const stop = startExpiry(knownLines, 4 * minute, { clock, slices });
    read('took:1000|ms\ntook:1000|ms|@0.5');
    expect(took()!.slice(-2)).toEqual([3, 3]);
    clock.advance(6 * minute);
    await until('both lines are forgotten', () => knownLines.size === 0);
    expect(took()).toBeUndefined();
    read('took:2000|ms');
    expect(took()).toEqual([...Array(5).fill(near(2)), 2, 1]);
    stop();
  });

  test('one that one of its two lines left goes on, with its window', async () => {
    const { clock, read, knownLines, took, swept } = path();
    read('took:1000|ms\ntook:1000|ms|@0.5');
    knownLines.forget(1);
    expect(took()).toEqual([...Array(5).fill(near(1)), 3, 3]);
    clock.advance(10 * minute);
    await swept();
    expect(took()).toEqual([...none, 3, 3]);
  });

  test('a closed intake takes nothing more, and looking does no harm', () => {
    const { read, took, intake, knownLines } = path();
    read('took:1000|ms');
    for (let id = 0; id < knownLines.end; id++) knownLines.forget(id);
    intake.close();
    read('took:1000|ms');
    expect(took()).toBeUndefined();
  });

  test('a counter of the same raw name keeps it; when it goes, the summary begins', () => {
    const { read, shown, knownLines, dropped, took } = path();
    read('took:1|c\ntook:1000|ms\ntook:1000|ms');
    expect(shown()).toEqual({ 'took{svc_service="frontend"}': 1 });
    expect(dropped('refused_series')).toBe(2);
    knownLines.forget(0);
    expect(took()).toEqual([...none, 0, 0]);
    read('took:3000|ms');
    expect(took()).toEqual([...Array(5).fill(near(3)), 3, 1]);
  });
});

describe('words', () => {
  const table = createVocabulary({
    name: 'product',
    metrics: { lat: { to: 'svc_lat', unit: 'nanoseconds' }, only: 'svc_only' },
    tags: {},
  });
  const other = createVocabulary({ name: 'other', metrics: { lat: 'z', alone: 'y' }, tags: {} });

  test('what came before the words were recognised is in the summary that is shown after, in its unit', async () => {
    const { clock, read, shown, took } = path(createVocabularyDetector([table, other]));
    read('lat:2e9:4e9:4e9|h');
    expect(Object.keys(shown())).toEqual(['lat{svc_service="frontend"}']);
    read('only:7|g');
    clock.advance(1000);
    await until('the name is translated', () => !('lat{svc_service="frontend"}' in shown()));
    expect(took('svc_lat{svc_service="frontend"}')).toEqual([...Array(5).fill(near(4)), 10, 3]);
  });
});
