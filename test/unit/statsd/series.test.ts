import { describe, expect, test } from 'vitest';
import { createLazyStore } from '../../../src/core/registry/value-stores.ts';
import { createSliceQueue } from '../../../src/core/slices.ts';
import { createVocabularyDetector } from '../../../src/core/vocabulary-detector.ts';
import type { StatsdType } from '../../../src/sources/statsd/lines/line-format.ts';
import {
  createSeriesRecorder,
  isAllowed,
  isOverLimit,
  isShared,
  type StatsdIntake,
} from '../../../src/sources/statsd/lines/statsd-series.ts';
import { createSummaries, type Summaries } from '../../../src/sources/statsd/summaries.ts';
import { testRegistry, wideLimits } from '../../registry.ts';
import { recordingIntake } from '../../statsd.ts';

const types: StatsdType[] = ['counter', 'gauge', 'timer', 'histogram'];

test.each<[number, StatsdType[]]>([
  [0, types],
  [1, types],
  [Number.MAX_VALUE, types],
  [Number.POSITIVE_INFINITY, []],
  [-1, ['gauge', 'histogram']],
  [-Number.MAX_VALUE, ['gauge', 'histogram']],
  [Number.NEGATIVE_INFINITY, []],
  [Number.NaN, []],
])('%d is allowed for %j', (value, allowed) => {
  expect(types.filter((type) => isAllowed(type, value))).toEqual(allowed);
});

/** Opens series of lines at an intake. */
function recorderOf(intake: StatsdIntake, summaries?: Summaries) {
  const recorder = createSeriesRecorder({
    intake,
    detector: createVocabularyDetector([], true),
    bounds: [1],
    ...(summaries && { summaries }),
  });
  const open = (name: string, tags: Record<string, string> = {}, type: StatsdType = 'counter', weight = 1) =>
    recorder.open({ name, tags, type, weight, hasSuffixTags: false }, 0);
  return { recorder, open };
}

function limited(seriesPerMetric = 1) {
  const bed = testRegistry({ limits: { ...wideLimits, seriesPerMetric } });
  return { ...bed, ...recorderOf(bed.intake({ component: 'statsd' })) };
}

describe('a series is shared', () => {
  test('not while it is the only one with its cells', () => {
    const { open } = limited(9);
    expect(types.map((type) => isShared(open(type, {}, type)))).toEqual([false, false, false, false]);
  });

  test('if another line has the same series', () => {
    const { open, recorder } = limited(9);
    const series = [open('a'), open('a', {}, 'counter', 2)];
    expect(series.map(isShared)).toEqual([true, true]);
    recorder.close(series[1]!);
    expect(isShared(series[0]!)).toBe(false);
  });

  test('if another name has become the same', () => {
    const { open, recorder } = limited(9);
    const series = ['a.b', 'a-b', 'a+b'].map((name) => open(name));
    expect(series.map(isShared)).toEqual([true, true, true]);
    recorder.close(series[1]!);
    recorder.close(series[2]!);
    expect(isShared(series[0]!)).toBe(false);
  });

  test('if it has no cells', () => {
    const { open } = limited();
    open('g', { i: 'a' }, 'gauge');
    expect(isShared(open('g', { i: 'b' }, 'gauge'))).toBe(true);
  });

  test('never, if there is no registry', () => {
    const { open, recorder } = recorderOf(recordingIntake());
    const series = open('a');
    open('a', {}, 'counter', 2);
    expect([isShared(series), isOverLimit(series), recorder.share(series)]).toEqual([
      false,
      false,
      undefined,
    ]);
    expect(recorder.sharedFor(series.line)).toBeUndefined();
    expect(recorder.sharedForForm(series.line, [])).toBeUndefined();
  });
});

describe('what counts for series over the limit', () => {
  test('is one series for each type, rate and overflow series, and counts as their own would', () => {
    const { open, recorder, shown } = limited();
    const first = open('x', { i: '0' });
    expect([isOverLimit(first), recorder.share(first)]).toEqual([false, undefined]);
    const over = open('x', { i: '1' });
    expect(isOverLimit(over)).toBe(true);
    expect(recorder.sharedFor(over.line)).toBeUndefined();
    const one = recorder.share(over)!;
    expect(recorder.share(open('x', { i: '2' }))).toBe(one);
    const other = recorder.share(open('x', { i: '3' }, 'counter', 4))!;
    expect(other).not.toBe(one);
    recorder.take(one, 2, false);
    recorder.take(other, 3, false);
    expect(shown()['x{overflow="true"}']).toBe(2 + 3 * 4);
    const late = { name: 'x', tags: { i: '9' }, type: 'counter', weight: 1, hasSuffixTags: false } as const;
    expect(recorder.sharedFor(late)).toBe(one);
    expect(recorder.sharedFor({ ...late, weight: 4 })).toBe(other);
    expect(recorder.sharedFor({ ...late, weight: 5 })).toBeUndefined();
    expect(recorder.sharedForForm(late, ['i'])?.series).toBe(one);
    recorder.closeShared();
    expect(shown()).toEqual({ 'x{i="0"}': 0 });
    expect(recorder.sharedFor(late)).toBeUndefined();
  });

  test('is one for all that are refused, whatever their names', () => {
    const { open, recorder, dropped } = limited();
    const refused = ['g', 'h'].map((name) => {
      open(name, { i: '0' }, 'gauge');
      return recorder.share(open(name, { i: '1' }, 'gauge'))!;
    });
    expect(refused[0]).toBe(refused[1]);
    recorder.take(refused[0]!, 1, false);
    expect(dropped('refused_series')).toBe(1);
  });

  test('counts histograms with their observations', () => {
    const { open, recorder, shown } = limited();
    open('h', { i: '0' }, 'timer');
    const one = recorder.share(open('h', { i: '1' }, 'timer', 2))!;
    recorder.take(one, 500, false);
    expect(shown()['h{overflow="true"}']).toEqual([2, 2, 1, 2]);
  });
});

test('summaries over the limit are refused, and what they would have taken is counted', () => {
  const bed = testRegistry({ limits: { ...wideLimits, seriesPerMetric: 1 } });
  const store = createLazyStore();
  const intake = bed.intake({ component: 'statsd', store });
  const summaries = createSummaries({ intake, store, clock: bed.clock, slices: createSliceQueue(bed.clock) });
  const { open, recorder } = recorderOf(intake, summaries);
  const first = open('h', { i: '0' }, 'histogram', 4);
  expect([isOverLimit(first), isShared(first), recorder.share(first)]).toEqual([false, false, undefined]);
  const over = open('h', { i: '1' }, 'histogram');
  expect([isOverLimit(over), isShared(over)]).toEqual([true, true]);
  const one = recorder.share(over)!;
  expect(recorder.share(open('h', { i: '2' }, 'histogram', 2))).toBe(one);
  recorder.take(one, 5, false);
  expect(bed.dropped('refused_series')).toBe(1);
  // Four times this value is no number.
  recorder.take(first, Number.MAX_VALUE / 2, false);
  recorder.take(first, 3, false);
  expect(bed.dropped('not_finite')).toBe(1);
  const shown = bed.shown();
  expect(Object.keys(shown)).toEqual(['h{i="0"}']);
  expect((shown['h{i="0"}'] as number[]).slice(-2)).toEqual([12, 4]);
});
