import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';
import { expect, test } from 'vitest';
import { createLazyStore } from '../../src/core/registry/value-stores.ts';
import { createSliceQueue } from '../../src/core/slices.ts';
import { createVocabularyDetector } from '../../src/core/vocabulary-detector.ts';
import { createSeriesRecorder } from '../../src/sources/statsd/lines/statsd-series.ts';
import { createSummaries } from '../../src/sources/statsd/summaries.ts';
import { testRegistry } from '../registry.ts';
import { lineReader } from '../statsd.ts';

const limit = 200;

setFlagsFromString('--expose_gc');
const collectGarbage = runInNewContext('gc') as () => void;

/** The bytes in use, whatever the process has not given back yet. */
function heldBytes(): number {
  collectGarbage();
  const { heapUsed, arrayBuffers } = process.memoryUsage();
  return heapUsed + arrayBuffers;
}

function open() {
  const bed = testRegistry({
    limits: { seriesPerMetric: limit, series: 2000, forbiddenTags: [], allowValues: [] },
  });
  const store = createLazyStore();
  const intake = bed.intake({ component: 'statsd', tagService: true, store });
  const { clock } = bed;
  const summaries = createSummaries({ intake, store, clock, slices: createSliceQueue(clock) });
  const recorder = createSeriesRecorder({
    intake,
    detector: createVocabularyDetector([], true),
    bounds: [1],
    summaries,
  });
  const { knownLines, read } = lineReader(recorder);
  return { ...bed, knownLines, read: (lines: readonly string[]) => read(lines.join('\n')) };
}

const many = (total: number, from: number, line: (n: number) => string) =>
  Array.from({ length: total }, (_, i) => line(from + i));
const summaries = (shown: Record<string, number | number[]>) => Object.values(shown) as number[][];

test('any number of tag values: series within the limit, what they lose is counted, and memory is bounded', () => {
  const { read, shown, dropped, knownLines } = open();
  const line = (n: number) => `took:50|ms|#client:c${n}`;
  read(many(20_000, 0, line));
  const before = heldBytes();
  // Nobody reads meanwhile.
  for (let from = 20_000; from < 100_000; from += 1000) read(many(1000, from, line));
  expect(heldBytes() - before).toBeLessThan(32 * 2 ** 20);
  expect(knownLines.size).toBeLessThan(17_000);
  expect(summaries(shown())).toHaveLength(limit);
  const counted = summaries(shown()).reduce((sum, numbers) => sum + numbers.at(-1)!, 0);
  expect(counted).toBe(limit);
  expect(counted + dropped('refused_series')).toBe(100_000);
});

test('numbers of every size: memory is bounded, the upper quantiles are right, count and sum are exact', () => {
  const { read, shown } = open();
  // The values are 1 to 1e300 in 30,000 steps, each once: far more bins than a series may have.
  const value = (n: number) => 10 ** ((n % 30_000) / 100);
  const before = heldBytes();
  for (let series = 0; series < limit; series++) {
    read(many(3000, 0, (n) => `took:${value(n * 10)}|h|#client:c${series}`));
  }
  // 200 series of 53 kB each make 11 MB; with a bin for each number it would be three times that.
  expect(heldBytes() - before).toBeLessThan(20 * 2 ** 20);
  for (const numbers of summaries(shown())) {
    const [half, more, most] = numbers;
    expect(most! / value(2849 * 10)).toBeCloseTo(1, 1);
    expect(more! / value(2249 * 10)).toBeCloseTo(1, 1);
    expect(half).toBeLessThan(more!);
    expect(numbers.at(-1)).toBe(3000);
    expect(numbers.every(Number.isFinite)).toBe(true);
  }
});
