import { expect, test, vi } from 'vitest';
import { createVocabulary } from '../../src/core/vocabulary.ts';
import { createVocabularyDetector } from '../../src/core/vocabulary-detector.ts';
import { createSeriesRecorder } from '../../src/sources/statsd/lines/statsd-series.ts';
import { testRegistry } from '../registry.ts';
import { bySize } from '../size.ts';
import { lineReader } from '../statsd.ts';

const limit = 500;

function open(detector = createVocabularyDetector([], true)) {
  const bed = testRegistry({
    limits: { seriesPerMetric: limit, series: 2000, forbiddenTags: [], allowValues: [] },
  });
  const intake = bed.intake({ component: 'statsd', tagService: true, translate: detector.translate });
  const counter = vi.spyOn(intake, 'counter');
  const recorder = createSeriesRecorder({
    intake,
    detector,
    bounds: [0.1, 1],
  });
  const { knownLines, read } = lineReader(recorder);
  return {
    knownLines,
    shown: bed.shown,
    refused: bed.refused,
    dropped: bed.dropped,
    /** The number of counters that were requested. */
    opened: () => counter.mock.calls.length,
    read,
  };
}

/** Sends `total` lines, a thousand at a time. */
function flood(read: (text: string) => void, total: number, line: (n: number) => string): void {
  for (let from = 0; from < total; from += 1000) {
    read(Array.from({ length: 1000 }, (_, i) => line(from + i)).join('\n'));
  }
}

const sumOf = (shown: Record<string, number | number[]>, prefix: string) =>
  Object.entries(shown)
    .filter(([key]) => key.startsWith(prefix))
    .reduce((sum, [, value]) => sum + (typeof value === 'number' ? value : value.at(-1)!), 0);

/** The number of values of one tag. */
const values = bySize({ short: 200_000, long: 1_000_000, nightly: 10_000_000 });

test(`${values} values of a tag: series and known lines within limits, the counter’s sum exact`, () => {
  const { read, shown, knownLines } = open();
  flood(read, values, (n) => `requests:1|c|#client:c${n}`);
  expect(knownLines.size).toBeLessThan(17_000);

  const all = shown();
  const keys = Object.keys(all).filter((key) => key.startsWith('requests'));
  expect(keys).toHaveLength(limit + 1);
  expect(sumOf(all, 'requests')).toBe(values);

  // Another metric, which appears only now, has its place and keeps it.
  read('late:1|c\nlate:1|c\ntook:50|ms');
  expect(shown()['late{svc_service="frontend"}']).toBe(2);
  expect(shown()['took{svc_service="frontend"}']).toEqual([1, 1, 1, 0.05, 1]);
});

test('a tag that is forbidden, with any number of values: one series, and a rare operation is kept', () => {
  const { read, shown } = open();
  flood(read, 40_000, (n) => `requests:1|c|#operation:often,wf_id:w${n}`);
  read('requests:1|c|#operation:rare,wf_id:w40001');
  read('requests:1|c|#operation:rare,wf_id:w40002');
  expect(shown()).toEqual({
    'requests{operation="often",svc_service="frontend"}': 40_000,
    'requests{operation="rare",svc_service="frontend"}': 2,
  });
});

test('histograms over the limit are counted in one series, gauges are refused', () => {
  const { read, shown } = open();
  flood(read, 30_000, (n) => `took:50|ms|#client:c${n}\nsize:1|g|#client:c${n}`);
  const all = shown();
  expect(sumOf(all, 'took')).toBe(30_000);
  expect(Object.keys(all).filter((key) => key.startsWith('took'))).toHaveLength(limit + 1);
  expect(Object.keys(all).filter((key) => key.startsWith('size'))).toHaveLength(limit);
});

test('each kind of series over the limit is refused and counted once, whatever its tags', () => {
  const { read, shown, refused, dropped } = open();
  const total = 4 * limit;
  const id = (n: number) => `01234567-89ab-cdef-0123-${String(n).padStart(12, '0')}`;
  const line = (n: number) =>
    `requests:1|c|#client:c${n}\nsize:1|g|#client:c${n}\ntook:50|ms|#client:c${n}\ncalls:1|c|#client:c${n},session:${id(n)}`;
  // Each line is sent twice: a refused line is known.
  for (let round = 0; round < 2; round++) flood(read, total, line);
  for (const name of ['requests', 'size', 'took', 'calls'])
    expect(`${name} ${refused(name, 'limit_metric')}`).toBe(`${name} ${total - limit}`);
  expect(dropped('forbidden_value')).toBe(total);
  expect(sumOf(shown(), 'requests')).toBe(2 * total);
  expect(sumOf(shown(), 'calls')).toBe(2 * total);
  expect(sumOf(shown(), 'took')).toBe(2 * total);
  const overflow = Object.entries(shown()).filter(([key]) => key.includes('overflow'));
  expect(overflow.map(([key]) => key.split('{')[0]).sort()).toEqual(['calls', 'requests', 'took']);
});

test('over the limit, a line of a known form still finds the series that exists, whatever the order of its tags', () => {
  const { read, shown, refused, dropped, knownLines } = open();
  const line = (n: number) => `calls:1|c|#client:c${n},zone:west`;
  const turned = (n: number) => `calls:1|c|#zone:west,client:c${n}`;
  const total = 4 * limit;
  flood(read, total, line);
  // The turned lines have their own forms, which are known after the first few hundred lines.
  flood(read, total, (n) => turned(total - 1 - n));
  const series = (n: number) => shown()[`calls{client="c${n}",svc_service="frontend",zone="west"}`];
  for (const n of [0, 1, limit - 1]) expect(series(n)).toBe(2);
  expect(series(limit)).toBeUndefined();
  expect(sumOf(shown(), 'calls{overflow')).toBe(2 * (total - limit));
  expect(refused('calls', 'limit_metric')).toBe(2 * (total - limit));

  // Values that are replaced, and other values of the other tag, are no such lines or have no such series.
  read('calls:1|c|#client:1700000000,zone:west\ncalls:1|c|#client:c0,zone:east');
  expect(dropped('forbidden_value')).toBe(1);
  expect(series(0)).toBe(2);
  expect(sumOf(shown(), 'calls{overflow')).toBe(2 * (total - limit) + 2);

  // A place that becomes free is used.
  for (let id = 0; id < knownLines.end; id++) {
    if (knownLines.seriesOf(id)?.line.tags.client === 'c7') knownLines.forget(id);
  }
  read('calls:5|c|#client:new,zone:west');
  expect(shown()['calls{client="new",svc_service="frontend",zone="west"}']).toBe(5);
  read('calls:5|c|#client:newer,zone:west');
  expect(shown()['calls{client="newer",svc_service="frontend",zone="west"}']).toBeUndefined();
});

test('a vocabulary that reads the values of a tag is asked for each of them', () => {
  const detector = createVocabularyDetector(
    [
      createVocabulary({
        name: 'product',
        metrics: { calls: { to: { a: 'calls_a' }, by: 'kind' } },
        tags: {},
      }),
    ],
    true,
  );
  const { read, shown } = open(detector);
  flood(read, 4 * limit, (n) => `calls:1|c|#kind:b,client:c${n}`);
  read('calls:1|c|#kind:a,client:c1');
  expect(shown()['calls_a{client="c1",svc_service="frontend"}']).toBe(1);
});

test('ever new names: series and overflow series within limits, each line counted or dropped, none opened to be refused', () => {
  const { read, shown, refused, dropped, opened } = open();
  const total = 50_000;
  flood(read, total, (n) => `calls.of.${n}:1|c`);
  const places = 2000;
  const overflows = 1000;
  const all = Object.keys(shown());
  expect(all.filter((key) => key.includes('overflow'))).toHaveLength(overflows);
  expect(all.filter((key) => key.startsWith('calls_of_'))).toHaveLength(places + overflows);
  expect(sumOf(shown(), 'calls_of_')).toBe(places + overflows);
  expect(dropped('refused_series')).toBe(total - places - overflows);
  // A hundred families have a separate count.
  expect(refused('other', 'limit_total')).toBe(total - places - 100);
  expect(opened()).toBeLessThan(places + overflows + 10);
});
