import { expect, test } from 'vitest';
import { createVocabularyDetector } from '../../../src/core/vocabulary-detector.ts';
import { createSeriesRecorder } from '../../../src/sources/statsd/lines/statsd-series.ts';
import { testRegistry } from '../../registry.ts';
import { lineReader } from '../../statsd.ts';

const limit = 4;

/** A reader over a registry with room for four series a metric, and what has come of its lines. */
function open() {
  const bed = testRegistry({
    limits: { seriesPerMetric: limit, series: 100, forbiddenTags: [], allowValues: [] },
  });
  const detector = createVocabularyDetector([], true);
  const intake = bed.intake({ component: 'statsd', tagService: true, translate: detector.translate });
  const recorder = createSeriesRecorder({ intake, detector, bounds: [0.1, 1] });
  const reasons: string[] = [];
  const { read } = lineReader(recorder, (reason) => reasons.push(reason));
  return {
    read,
    numbers: (): Record<string, number> => ({
      ...Object.fromEntries(
        Object.entries(bed.shown()).map(([key, value]) => [
          key,
          typeof value === 'number' ? value : value.at(-1)!,
        ]),
      ),
      forbidden: bed.dropped('forbidden_value'),
      limited: bed.refused('calls', 'limit_metric'),
      refusedLines: reasons.length,
    }),
    reasons,
  };
}
type Bed = ReturnType<typeof open>;

const line = (value: string) => `calls:1|c|#client:${value},zone:west`;

/** Reads so many lines of one form, of which the first four get series. */
function flood({ read }: Bed, count: number): void {
  for (let n = 0; n < count; n++) read(line(`c${n}`));
}

/** What a text changes. */
function effect({ read, numbers }: Bed, text: string): Record<string, number> {
  const before = numbers();
  read(text);
  const changed = Object.entries(numbers()).map(([key, value]) => [key, value - (before[key] ?? 0)] as const);
  return Object.fromEntries(changed.filter(([, more]) => more !== 0));
}

const overflow = 'calls{overflow="true",svc_service="frontend"}';
const tags = (count: number) => Array.from({ length: count }, (_, n) => `t${n}:x`).join(',');
const rows: [what: string, text: string, effect: Record<string, number>][] = [
  ['another value', line('new'), { [overflow]: 1, limited: 1 }],
  ['a value of a series', line('c2'), { 'calls{client="c2",svc_service="frontend",zone="west"}': 1 }],
  ['nine digits', line('170000000'), { [overflow]: 1, limited: 1 }],
  ['ten digits, which are a time', line('1700000000'), { [overflow]: 1, limited: 1, forbidden: 1 }],
  ['ten digits behind nine and a letter', line('170000000a1700000000'), { [overflow]: 1, limited: 1 }],
  ['a time behind another word', line('at-1700000000'), { [overflow]: 1, limited: 1, forbidden: 1 }],
  ['a date with its time', line('2026-11-23T12:00:00Z'), { [overflow]: 1, limited: 1, forbidden: 1 }],
  ['a long value with one colon', line('a-long-value:of-the-client'), { [overflow]: 1, limited: 1 }],
  ['two colons in a short value', line('a:b:c'), { [overflow]: 1, limited: 1 }],
  ['a UUID', line('0a1b2c3d-0a1b-4a1b-8a1b-0a1b2c3d4e5f'), { [overflow]: 1, limited: 1, forbidden: 1 }],
  [
    'a UUID with other separators',
    line('0a1b2c3d_0a1b_4a1b_8a1b_0a1b2c3d4e5f'),
    { [overflow]: 1, limited: 1, forbidden: 1 },
  ],
  [
    'a long value with three dashes',
    line('client-of-the-longest-namexxxxxxxxxxxxx'),
    { [overflow]: 1, limited: 1 },
  ],
  ['UTF-8', line('köln'), { [overflow]: 1, limited: 1 }],
  ['a control character', line('a\u0001b'), { refusedLines: 1 }],
  ['a delete character', line('a\u007fb'), { [overflow]: 1, limited: 1 }],
  ['another type', 'calls:1|ms|#client:new,zone:west', {}],
  ['a rate', 'calls:1|c|@0.5|#client:new,zone:west', { [overflow]: 2, limited: 1 }],
  ['several numbers', 'calls:1:2|c|#client:new,zone:west', { [overflow]: 3, limited: 1 }],
  ['a number that no counter takes', 'calls:-1|c|#client:new,zone:west', { refusedLines: 1 }],
  ['a number in another spelling', 'calls:15e-1|c|#client:new,zone:west', { [overflow]: 1.5, limited: 1 }],
  ['a tag that comes twice', 'calls:1|c|#client:new,client:c1', { [overflow]: 1, limited: 1 }],
  ['a container', 'calls:1|c|#client:new,zone:west|c:83c0a9', { [overflow]: 1, limited: 1 }],
  ['sixteen tags', `calls:1|c|#${tags(16)}`, { [overflow]: 1, limited: 1 }],
  ['seventeen tags', `calls:1|c|#${tags(17)}`, { [overflow]: 1, limited: 1 }],
  ['a bare tag', 'calls:1|c|#client', { [overflow]: 1, limited: 1 }],
];

test.each(rows)('%s: the same before a form of refused lines is known, and after', (_, text, expected) => {
  const fresh = open();
  flood(fresh, limit);
  // The first line over the limit makes the overflow series.
  fresh.read(line('over'));
  const first = effect(fresh, text);
  const known = open();
  flood(known, 400);
  for (let n = 0; n < 300; n++) known.read(text);
  const again = open();
  flood(again, 400);
  expect(effect(again, text)).toEqual(first);
  // A value that is refused, or replaced, counts once; its increases count each time.
  const { limited, forbidden, ...always } = first;
  expect(effect(known, text)).toEqual(always);
  expect(first).toEqual(expected);
});
