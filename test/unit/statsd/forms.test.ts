import { expect, test } from 'vitest';
import { createVocabularyDetector } from '../../../src/core/vocabulary-detector.ts';
import { createSeriesRecorder } from '../../../src/sources/statsd/lines/statsd-series.ts';
import { testRegistry } from '../../registry.ts';
import { lineReader } from '../../statsd.ts';

const limit = 4;

/** A reader over a registry with room for four series per metric, and the results of its lines. */
function open() {
  const bed = testRegistry({
    limits: { seriesPerMetric: limit, series: 1000, forbiddenTags: [], allowValues: [] },
  });
  const detector = createVocabularyDetector([], true);
  const intake = bed.intake({ component: 'statsd', tagService: true, translate: detector.translate });
  const recorder = createSeriesRecorder({ intake, detector, bounds: [0.1, 1] });
  const reasons: string[] = [];
  let parsed = 0;
  const sharedFor: typeof recorder.sharedFor = (one) => {
    parsed += 1;
    return recorder.sharedFor(one);
  };
  const { read, knownLines } = lineReader({ ...recorder, sharedFor }, (reason) => reasons.push(reason));
  return {
    read,
    knownLines,
    /** The number of lines that were parsed in full so far, without a failure. */
    parsed: () => parsed,
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

/** Reads this many lines of one form, of which the first four get series. */
function flood({ read }: Bed, count: number): void {
  for (let n = 0; n < count; n++) read(line(`c${n}`));
}

/** The changes that a text causes. */
function effect({ read, numbers }: Bed, text: string): Record<string, number> {
  const before = numbers();
  read(text);
  const changed = Object.entries(numbers()).map(([key, value]) => [key, value - (before[key] ?? 0)] as const);
  return Object.fromEntries(changed.filter(([, more]) => more !== 0));
}

const overflow = 'calls{overflow="true",svc_service="frontend"}';
const tags = (count: number) => Array.from({ length: count }, (_, n) => `t${n}:x`).join(',');
const counted = { [overflow]: 1, limited: 1 };
const replaced = { ...counted, forbidden: 1 };
/** `isParsed` says whether the line is parsed in full once its form is known. */
const rows: [what: string, text: string, isParsed: boolean, effect: Record<string, number>][] = [
  ['another value', line('new'), false, counted],
  ['a value of a series', line('c2'), false, { 'calls{client="c2",svc_service="frontend",zone="west"}': 1 }],
  ['nine digits', line('170000000'), false, counted],
  ['ten digits, which are a time', line('1700000000'), true, replaced],
  ['ten digits that are no time', line('9999999999'), true, counted],
  ['zeros', line('0000000000'), true, counted],
  ['ten digits behind nine and a letter', line('170000000a1700000000'), true, counted],
  ['nine digits, a letter and nine digits', line('170000000a170000000'), false, counted],
  ['a time behind another word', line('at-1700000000'), true, replaced],
  ['a date with its time', line('2026-11-23T12:00:00Z'), true, replaced],
  ['a long value with one colon', line('a-long-value:of-the-client'), false, counted],
  ['two colons in a short value', line('a:b:c'), false, counted],
  ['two colons in 18 characters', line('a:b:c_____________'), false, counted],
  ['two colons in 19 characters', line('a:b:c______________'), true, counted],
  ['a UUID', line('0a1b2c3d-0a1b-4a1b-8a1b-0a1b2c3d4e5f'), true, replaced],
  ['a UUID with other separators', line('0a1b2c3d_0a1b_4a1b_8a1b_0a1b2c3d4e5f'), true, replaced],
  ['a long value with three dashes', line('client-of-the-longestnamexxxxxxxxxxxxxx'), false, counted],
  ['four dashes in 35 characters', line(`a-b-c-d-${'x'.repeat(27)}`), false, counted],
  ['four dashes in 36 characters', line(`a-b-c-d-${'x'.repeat(28)}`), true, counted],
  ['no value', line(''), true, counted],
  ['blanks and tildes', line(' ~ '), false, counted],
  ['UTF-8', line('köln'), true, counted],
  ['a control character', line('a\u0001b'), false, { refusedLines: 1 }],
  ['a delete character', line('a\u007fb'), true, counted],
  ['another type', 'calls:1|ms|#client:new,zone:west', true, {}],
  [
    'another name',
    'cells:1|c|#client:new,zone:west',
    true,
    { 'cells{client="new",svc_service="frontend",zone="west"}': 1 },
  ],
  ['another tag', 'calls:1|c|#clients:new,zone:west', true, counted],
  ['a tag more', 'calls:1|c|#client:new,zone:west,zone2:east', true, counted],
  ['a tag less', 'calls:1|c|#client:new', true, counted],
  ['a rate', 'calls:1|c|@0.5|#client:new,zone:west', true, { ...counted, [overflow]: 2 }],
  ['several numbers', 'calls:1:2|c|#client:new,zone:west', false, { ...counted, [overflow]: 3 }],
  ['a number that no counter takes', 'calls:-1|c|#client:new,zone:west', false, { refusedLines: 1 }],
  [
    'a number in another spelling',
    'calls:15e-1|c|#client:new,zone:west',
    false,
    { ...counted, [overflow]: 1.5 },
  ],
  ['a tag that comes twice', 'calls:1|c|#client:new,client:c1', true, counted],
  ['a container', 'calls:1|c|#client:new,zone:west|c:83c0a9', true, counted],
  ['sixteen tags', `calls:1|c|#${tags(16)}`, true, counted],
  ['seventeen tags', `calls:1|c|#${tags(17)}`, true, counted],
  ['a bare tag', 'calls:1|c|#client', true, counted],
];

test.each(rows)(
  '%s: the same before a form of refused lines is known, and after',
  (_, text, isParsed, expected) => {
    const fresh = open();
    flood(fresh, limit);
    // The first line over the limit creates the overflow series.
    fresh.read(line('over'));
    const first = effect(fresh, text);
    const known = open();
    flood(known, 400);
    for (let n = 0; n < 300; n++) known.read(text);
    const again = open();
    flood(again, 400);
    const before = again.parsed();
    expect(effect(again, text)).toEqual(first);
    expect(again.parsed() - before).toBe(Number(isParsed));
    // A value that is refused or replaced counts once; its increases count each time.
    const { limited, forbidden, ...always } = first;
    expect(effect(known, text)).toEqual(always);
    expect(first).toEqual(expected);
  },
);

/** How many of this many further lines of a form are parsed in full. */
function parsedOf({ read, parsed }: Bed, count: number, of: (n: number) => string): number {
  const before = parsed();
  for (let n = 0; n < count; n++) read(of(n));
  return parsed() - before;
}

test('128 lines of a form are parsed in full, and then one of 1,024', () => {
  const bed = open();
  flood(bed, limit);
  // The first line over the limit creates the overflow series.
  expect(parsedOf(bed, 200, (n) => line(`first${n}`))).toBe(129);
  const more = 1024 - 128 - 71;
  expect(parsedOf(bed, more - 1, (n) => line(`more${n}`))).toBe(0);
  expect(parsedOf(bed, 1, (n) => line(`example${n}`))).toBe(1);
  // The example counts as one of the next 1,024.
  expect(parsedOf(bed, 1022, (n) => line(`later${n}`))).toBe(0);
  expect(parsedOf(bed, 1, (n) => line(`next${n}`))).toBe(1);
  bed.knownLines.forgetRefused();
  // Everything is as at the beginning.
  expect(parsedOf(bed, 200, (n) => line(`again${n}`))).toBe(129);
});

test.each([
  ['sixteen tags', 16, false],
  ['seventeen tags', 17, true],
])('a form of %s', (_, count, isParsed) => {
  const bed = open();
  const of = (value: string) => `calls:1|c|#${tags(count).replace('x', value)}`;
  for (let n = 0; n < 200; n++) bed.read(of(`v${n}`));
  expect(parsedOf(bed, 10, (n) => of(`w${n}`))).toBe(isParsed ? 10 : 0);
});

test.each([
  ['tags of two forms', (n: number) => `calls,a=1:1|c|#client:c${n}`],
  ['a tag that comes twice', (n: number) => `calls:1|c|#client:c${n},client:d${n}`],
  ['such a tag and one of another form', (n: number) => `calls,a=1:1|c|#client:c${n},client:d${n}`],
  ['no tags', (n: number) => `calls,client=c${n}:1|c`],
])('lines with %s have no form: each is parsed', (_, of) => {
  const bed = open();
  for (let n = 0; n < 200; n++) bed.read(of(n));
  expect(parsedOf(bed, 10, (n) => of(200 + n))).toBe(10);
});

test('a form that is known counts nothing of 500 others', () => {
  const bed = open();
  flood(bed, 400);
  const before = bed.numbers()[overflow];
  for (let n = 0; n < 500; n++) bed.read(`other${n}:1|c|#client:c${n},zone:west`);
  const after = bed.numbers();
  expect(after[overflow]).toBe(before);
  expect(Object.keys(after).filter((key) => key.startsWith('other'))).toHaveLength(500);
});
