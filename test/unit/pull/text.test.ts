import { spawnSync } from 'node:child_process';
import { readFileSync } from 'node:fs';
import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import type { View } from '../../../src/core/model.ts';
import type { Format } from '../../../src/reporters/pull/exposition.ts';
import { createRenderer } from '../../../src/reporters/pull/exposition.ts';
import { isInstalled } from '../../installed.ts';
import { readOpenMetrics } from '../../openmetrics.ts';
import { type FamilySpec, pageOf, viewOf } from '../../view.ts';

const fixture = (name: string) =>
  readFileSync(new URL(`../../fixtures/pull/${name}`, import.meta.url), 'utf8');

const page = (view: View, format: Format, prefix = '') => pageOf(view, format, createRenderer(prefix));

const frontend = { svc_service: 'frontend' };
const families: FamilySpec[] = [
  {
    name: 'svc_agent_gap',
    kind: 'gauge',
    help: 'Nothing said "yet"\nand a \\ backslash',
    series: [{ numbers: [Number.NaN] }],
  },
  {
    name: 'svc_frontend_latency',
    kind: 'histogram',
    series: [
      {
        labels: { operation: 'StartWorkflowExecution', ...frontend },
        bounds: ['0.001', '1.0', '10'],
        numbers: [1, 3, 3, 4, 20.25, 4],
      },
    ],
  },
  {
    name: 'svc_frontend_requests',
    kind: 'counter',
    help: 'Requests',
    series: [
      { labels: { domain: 'a\\b"c\nd', ...frontend }, numbers: [1e21] },
      { labels: { domain: 'Zürich 🚂', ...frontend }, numbers: [0.1] },
    ],
  },
  { name: 'svc_gone', kind: 'gauge', help: 'A family without series is not shown', series: [] },
  {
    name: 'svc_log_bytes_total',
    kind: 'counter',
    help: 'Bytes',
    series: [{ labels: frontend, numbers: [Number.MAX_SAFE_INTEGER] }],
  },
  {
    name: 'svc_pause',
    kind: 'summary',
    series: [{ bounds: ['0.5', '0.99'], numbers: [0.25, Infinity, 5e-7, 2] }],
  },
  { name: 'svc_queue', kind: 'gauge', series: [{ numbers: [-Infinity] }] },
  { name: 'svc_queue_total', kind: 'counter', series: [{ numbers: [5] }] },
  { name: 'svc_raw', kind: 'untyped', series: [{ labels: { le: '7' }, numbers: [-1.5] }] },
];

const promtool = 'promtool';
const hasPromtool = isInstalled(promtool);
/** Whether promtool can read a page: status 3 is only lint; 1 is a page that it cannot read. */
function readable(text: string): boolean {
  const { status } = spawnSync(promtool, ['check', 'metrics'], { input: text });
  return status === 0 || status === 3;
}

describe('a page with one of everything', () => {
  test('is the hand-written text', async () => {
    expect(await page(viewOf(families), 'text')).toBe(fixture('page.txt'));
  });

  test('is the hand-written OpenMetrics', async () => {
    expect(await page(viewOf(families), 'openmetrics')).toBe(fixture('page.openmetrics.txt'));
  });

  test.skipIf(!hasPromtool)('is read by promtool', async () => {
    expect(readable('svc_broken{a="} 1\n')).toBe(false);
    expect(readable(await page(viewOf(families), 'text', 'p_'))).toBe(true);
  });

  test('is the same again from known series, with new numbers', async () => {
    const view = viewOf([{ name: 'a', kind: 'gauge', series: [{ labels: { x: '1' }, numbers: [1] }] }]);
    const renderer = createRenderer('p_');
    const once = () => pageOf(view, 'text', renderer);
    expect(await once()).toBe('# TYPE p_a gauge\np_a{x="1"} 1\n');
    view.numbers(view.families[0]!.series[0]!)[0] = 2;
    expect(await once()).toBe('# TYPE p_a gauge\np_a{x="1"} 2\n');
  });

  test('has its prefix before every name', async () => {
    const samples = readOpenMetrics(await page(viewOf(families), 'openmetrics', 'p_')).flatMap(
      (f) => f.samples,
    );
    const plain = readOpenMetrics(fixture('page.openmetrics.txt')).flatMap((f) => f.samples);
    expect(samples.map(({ name }) => name)).toEqual(plain.map(({ name }) => `p_${name}`));
  });
});

test('nothing to show is an empty text, or the end alone', async () => {
  expect(await page(viewOf([]), 'text')).toBe('');
  expect(await page(viewOf([]), 'openmetrics')).toBe('# EOF\n');
});

describe('OpenMetrics types where names could clash', () => {
  const one = (name: string, kind: FamilySpec['kind']): FamilySpec => {
    const shape = {
      histogram: { bounds: ['1'], numbers: [1, 2, 3, 2] },
      summary: { bounds: ['0.5'], numbers: [1, 3, 2] },
    }[kind as string];
    return { name, kind, series: [shape ?? { numbers: [1] }] };
  };
  const table: [what: string, FamilySpec[], Record<string, string>][] = [
    ['a counter with _total', [one('a_total', 'counter')], { a: 'counter' }],
    ['a counter without', [one('a', 'counter')], { a: 'unknown' }],
    ['a counter called _total', [one('_total', 'counter')], { _total: 'unknown' }],
    [
      'its stem is a gauge',
      [one('a', 'gauge'), one('a_total', 'counter')],
      { a: 'gauge', a_total: 'unknown' },
    ],
    [
      'its stem is a histogram',
      [one('a', 'histogram'), one('a_total', 'counter')],
      { a: 'histogram', a_total: 'unknown' },
    ],
    [
      "its stem is a histogram's count",
      [one('a', 'histogram'), one('a_count_total', 'counter')],
      { a: 'histogram', a_count_total: 'unknown' },
    ],
    [
      'a gauge has the name of its creation time',
      [one('a_created', 'gauge'), one('a_total', 'counter')],
      { a_created: 'gauge', a_total: 'unknown' },
    ],
    [
      "its stem is another counter's creation time",
      [one('a_created_total', 'counter'), one('a_total', 'counter')],
      { a_created_total: 'unknown', a: 'counter' },
    ],
    [
      "its stem is another counter's name",
      [one('a_total', 'counter'), one('a_total_total', 'counter')],
      { a: 'counter', a_total_total: 'unknown' },
    ],
    [
      'its stem would be a bucket, but a summary has none',
      [one('a', 'summary'), one('a_bucket_total', 'counter')],
      { a: 'summary', a_bucket: 'counter' },
    ],
    [
      "a histogram's creation time as a gauge",
      [one('a', 'histogram'), one('a_created', 'gauge')],
      { a_bucket: 'unknown', a_sum: 'unknown', a_count: 'unknown', a_created: 'gauge' },
    ],
    [
      "a summary's creation time as a gauge",
      [one('a', 'summary'), one('a_created', 'gauge')],
      { a: 'unknown', a_sum: 'unknown', a_count: 'unknown', a_created: 'gauge' },
    ],
  ];

  test.each(table)('%s', async (_, specs, types) => {
    const read = readOpenMetrics(await page(viewOf(specs), 'openmetrics'));
    expect(Object.fromEntries(read.map(({ name, type }) => [name, type]))).toEqual(types);
    const samples = (text: string) =>
      text
        .split('\n')
        .filter((line) => line && !line.startsWith('#'))
        .sort();
    const shown = samples(await page(viewOf(specs), 'openmetrics'));
    expect(shown).toEqual(samples(await page(viewOf(specs), 'text')));
  });
});

describe('any text in labels and HELP', () => {
  const text = fc.string({ unit: 'binary' }).filter((value) => !/\p{Surrogate}/u.test(value));
  const quoted = fc.string({ unit: fc.constantFrom('\\', '"', '\n', 'n', '}', ',', '=', ' ', '\r', 'é') });
  const any = fc.oneof(text, quoted);

  test('comes back from OpenMetrics as it went in', async () => {
    await fc.assert(
      fc.asyncProperty(any, any, fc.double(), async (help, value, number) => {
        const specs: FamilySpec[] = [
          { name: 'a', kind: 'gauge', help, series: [{ labels: { x: value }, numbers: [number] }] },
        ];
        const [family] = readOpenMetrics(await page(viewOf(specs), 'openmetrics'));
        expect(family?.help ?? '').toBe(help);
        expect(family?.samples).toEqual([
          { name: 'a', labels: { x: value }, value: number === 0 ? 0 : number },
        ]);
      }),
    );
  });

  test.skipIf(!hasPromtool)('never breaks the text page for promtool', async () => {
    const values = fc.sample(any, 300);
    const series = [...new Set(values)].map((value) => ({ labels: { x: value }, numbers: [1] }));
    const hostile = ['\0', '\x01', '\r', '\u2028', '\ufeff', '"} 1\n', '\\'].map((value) => ({
      labels: { y: value },
      numbers: [1],
    }));
    const specs = values.map((help, i) => ({
      name: `h${i}`,
      kind: 'gauge' as const,
      help,
      series: [{ numbers: [i] }],
    }));
    const view = viewOf([{ name: 'a', kind: 'gauge', series: [...series, ...hostile] }, ...specs]);
    const { stderr, status } = spawnSync(promtool, ['check', 'metrics'], { input: await page(view, 'text') });
    expect([0, 3], stderr.toString().slice(-500)).toContain(status);
  });
});

test('a large page leaves in pieces, whole series each, with turns of the event loop between', async () => {
  const series = Array.from({ length: 80_000 }, (_, i) => ({ labels: { i: `${i}` }, numbers: [i] }));
  const view = viewOf([{ name: 'a_total', kind: 'counter', series }]);
  let turns = 0;
  let running = true;
  const turn = () => {
    turns += 1;
    if (running) setImmediate(turn);
  };
  setImmediate(turn);
  const pieces: string[] = [];
  for await (const piece of createRenderer().render(view, 'text')) pieces.push(piece.toString());
  running = false;
  expect(pieces.length).toBeGreaterThan(5);
  expect(turns).toBeGreaterThan(2);
  for (const piece of pieces) expect(piece.endsWith('\n')).toBe(true);
  expect(Math.max(...pieces.map((piece) => piece.length))).toBeLessThan(263_000);
  const values = pieces
    .join('')
    .trimEnd()
    .split('\n')
    .slice(1)
    .map((line) => Number(line.split(' ')[1]));
  expect(values).toEqual(series.map((_, i) => i));
});
