import { readFileSync } from 'node:fs';
import { expect, test } from 'vitest';
import type { Exposition } from '../../../src/sources/scrape/exposition/page-reader.ts';
import { pageTarget, sampleName as s } from '../../scrape.ts';

const read = (text: string | Buffer, format?: Exposition) => pageTarget().read(text, format);

interface Row {
  page: string;
  samples: Record<string, number>;
  kinds?: Record<string, string>;
  invalid?: number;
}

const pages: Record<string, Row> = {
  'a counter with HELP and TYPE': {
    page: '# HELP c Calls.\n# TYPE c counter\nc{a="1"} 2\n',
    samples: { [s('c', { a: '1' })]: 2 },
    kinds: { c: 'counter' },
  },
  'no TYPE: untyped': { page: 'x 1\n', samples: { [s('x', {})]: 1 }, kinds: { x: 'untyped' } },
  'escapes in a value': {
    page: 'x{a="back\\\\slash",b="\\"quoted\\"",c="two\\nlines",d="\\t"} 1\n',
    samples: { [s('x', { a: 'back\\slash', b: '"quoted"', c: 'two\nlines', d: '\\t' })]: 1 },
  },
  'braces, commas and hashes in a value': {
    page: 'x{a="}{,# =",b=""} 1\n',
    samples: { [s('x', { a: '}{,# =', b: '' })]: 1 },
  },
  'blanks wherever they may stand': {
    page: ' \tx { a = "1" , b="2" , } \t 3 \t1000 \n',
    samples: { [s('x', { a: '1', b: '2' })]: 3 },
  },
  'no blank behind the brace': { page: 'x{a="1"}3\n', samples: { [s('x', { a: '1' })]: 3 } },
  'special values': {
    page: 'a NaN\nb +Inf\nc -Inf\nd 1e3\n',
    samples: {
      [s('a', {})]: Number.NaN,
      [s('b', {})]: Number.POSITIVE_INFINITY,
      [s('c', {})]: Number.NEGATIVE_INFINITY,
      [s('d', {})]: 1000,
    },
  },
  'timestamps are passed over': {
    page: 'a 1 1700000000000\nb 2 -5\n',
    samples: { [s('a', {})]: 1, [s('b', {})]: 2 },
  },
  'no final newline': { page: 'a 1\nb 2', samples: { [s('a', {})]: 1, [s('b', {})]: 2 } },
  'raw names that sanitizing deals with': {
    page: 'a.b-c{k.1="v"} 1\n',
    samples: { [s('a.b-c', { 'k.1': 'v' })]: 1 },
  },
  'a name and a value in UTF-8': {
    page: 'größe{ort="Zürich 🗻"} 1\n',
    samples: { [s('größe', { ort: 'Zürich 🗻' })]: 1 },
  },
  'quoted names, as text 1.0.0 has them': {
    page: '# HELP "my.requests" Requests.\n# TYPE "my.requests" counter\n{"my.requests","host.name"="a",code="2"} 3\n{"my.requests"} 4\nplain{"a \\"b\\" c"="d"} 5\n',
    samples: {
      [s('my.requests', { 'host.name': 'a', code: '2' })]: 3,
      [s('my.requests', {})]: 4,
      [s('plain', { 'a "b" c': 'd' })]: 5,
    },
    kinds: { 'my.requests': 'counter', plain: 'untyped' },
  },
  'quoted names of a histogram': {
    page: '# TYPE "h.s" histogram\n{"h.s_bucket",le="1"} 2\n{"h.s_bucket",le="+Inf"} 3\n{"h.s_sum"} 4\n{"h.s_count"} 3\n',
    samples: {
      [s('h.s_bucket', { le: '1' })]: 2,
      [s('h.s_bucket', { le: '+Inf' })]: 3,
      [s('h.s_sum', {})]: 4,
      [s('h.s_count', {})]: 3,
    },
  },
  'quoted names that are none': {
    page: 'good 1\n{} 1\n{a="b"} 1\n{"x","y"} 1\n{"x" 1\n{"x"="1"} 1\n{""} 1\nx{"y"} 1\n',
    samples: { [s('good', {})]: 1 },
    invalid: 7,
  },
  'a histogram whose bounds keep their text': {
    page: '# TYPE h histogram\nh_bucket{le="0.10"} 1\nh_bucket{le="5.0000000000000004e-08"} 0\nh_bucket{le="+Inf"} 3\nh_sum 4.5\nh_count 3\n',
    samples: {
      [s('h_bucket', { le: '5.0000000000000004e-08' })]: 0,
      [s('h_bucket', { le: '0.10' })]: 1,
      [s('h_bucket', { le: '+Inf' })]: 3,
      [s('h_sum', {})]: 4.5,
      [s('h_count', {})]: 3,
    },
    kinds: { h: 'histogram' },
  },
  'a histogram without +Inf takes its count for it': {
    page: '# TYPE h histogram\nh_bucket{le="1"} 1\nh_sum 4\nh_count 3\n',
    samples: {
      [s('h_bucket', { le: '1' })]: 1,
      [s('h_bucket', { le: '+Inf' })]: 3,
      [s('h_sum', {})]: 4,
      [s('h_count', {})]: 3,
    },
  },
  'a histogram with neither is none': {
    page: '# TYPE h histogram\nh_bucket{le="1"} 1\nh_sum 4\nx 1\n',
    samples: { [s('x', {})]: 1 },
    invalid: 2,
  },
  'a sum that is missing is not shown': {
    page: '# TYPE h histogram\nh_bucket{le="+Inf"} 1\nh_count 1\n',
    samples: { [s('h_bucket', { le: '+Inf' })]: 1, [s('h_count', {})]: 1 },
  },
  'a summary of quantiles alone has neither sum nor count': {
    page: '# TYPE t summary\nt{quantile="0.5"} 1\n',
    samples: { [s('t', { quantile: '0.5' })]: 1 },
    kinds: { t: 'summary' },
  },
  'a bucket without a bound, and one whose bound is no number': {
    page: '# TYPE h histogram\nh_bucket 1\nh_bucket{le="x"} 1\nh_bucket{le="+Inf"} 1\nh_sum 1\nh_count 1\n',
    samples: { [s('h_bucket', { le: '+Inf' })]: 1, [s('h_sum', {})]: 1, [s('h_count', {})]: 1 },
    invalid: 2,
  },
  'a summary': {
    page: '# TYPE t summary\nt{quantile="0.5"} 1\nt{quantile="0.99"} 2\nt_sum 3\nt_count 4\n',
    samples: {
      [s('t', { quantile: '0.5' })]: 1,
      [s('t', { quantile: '0.99' })]: 2,
      [s('t_sum', {})]: 3,
      [s('t_count', {})]: 4,
    },
    kinds: { t: 'summary' },
  },
  'TYPE behind its samples': {
    page: 'h_bucket{le="+Inf"} 1\nh_sum 2\nh_count 1\nc 5\n# TYPE h histogram\n# TYPE c counter\n',
    samples: {
      [s('h_bucket', { le: '+Inf' })]: 1,
      [s('h_sum', {})]: 2,
      [s('h_count', {})]: 1,
      [s('c', {})]: 5,
    },
    kinds: { h: 'histogram', c: 'counter' },
  },
  'buckets without TYPE stay numbers of their own': {
    page: 'h_bucket{le="1"} 1\nh_count 1\n',
    samples: { [s('h_bucket', { le: '1' })]: 1, [s('h_count', {})]: 1 },
    kinds: { h_bucket: 'untyped', h_count: 'untyped' },
  },
  'of a repeated series the first counts': {
    page: 'x{a="1",b="2"} 1\nx{a="1",b="2"} 2\nx{b="2",a="1"} 3\ny 1\n',
    samples: { [s('x', { a: '1', b: '2' })]: 1, [s('y', {})]: 1 },
    invalid: 2,
  },
  'broken lines are skipped': {
    page: [
      'good 1',
      '9digit 1',
      '{a="b"} 1',
      'novalue',
      'novalue{a="b"}',
      'x{a="b" 1',
      'x{a=b} 1',
      'x{a="b} 1',
      'x{a="1",a="2"} 1',
      'x{="1"} 1',
      'x{,} 1',
      'x one',
      'x 1 soon',
      'x 1 2 3',
      'x 0x10',
      'x 1 # {a="b"} 1',
      '# TYPE y countess',
      'y 2\r',
      'also_good 2',
      '',
    ].join('\n'),
    samples: { [s('good', {})]: 1, [s('also_good', {})]: 2 },
    invalid: 17,
  },
  'comments that mean nothing': {
    page: '# just so\n#\n#TYPE x counter\n# UNIT x seconds\n# EOF\nx 1\n\n',
    samples: { [s('x', {})]: 1 },
    kinds: { x: 'untyped' },
  },
  'a label that other languages treat specially': {
    page: 'x{__proto__="1",constructor="2"} 1\n',
    samples: {
      [s(
        'x',
        Object.fromEntries([
          ['__proto__', '1'],
          ['constructor', '2'],
        ]),
      )]: 1,
    },
  },
};

test.each(Object.entries(pages))('text: %s', async (_, { page, samples, kinds, invalid = 0 }) => {
  const taken = await read(page);
  expect(taken.samples).toEqual(samples);
  expect(taken.invalidLines).toBe(invalid);
  if (kinds !== undefined) expect(taken.kinds).toEqual(kinds);
});

test.each(Object.entries(pages))('text, cut at every byte: %s', async (_, { page, samples, invalid = 0 }) => {
  for (const chunkBytes of [1, 2, 7]) {
    const taken = await pageTarget().read(page, 'text', chunkBytes);
    expect(taken.samples).toEqual(samples);
    expect(taken.invalidLines).toBe(invalid);
  }
});

test.each(Object.entries(pages))(
  'text, the second time alike: %s',
  async (_, { page, samples, invalid = 0 }) => {
    const target = pageTarget();
    await target.read(page);
    const again = await target.read(page);
    expect(again.changed).toBe(false);
    expect(again.samples).toEqual(samples);
    expect(again.invalidLines).toBe(invalid);
  },
);

test('OpenMetrics: every type, exemplars, timestamps', async () => {
  const page = readFileSync(new URL('../../fixtures/scrape/openmetrics.txt', import.meta.url), 'utf8');
  const taken = await read(page, 'openmetrics');
  expect(taken.invalidLines).toBe(0);
  expect(taken.kinds).toEqual({
    requests_total: 'counter',
    requests_created: 'gauge',
    depth: 'gauge',
    latency_seconds: 'histogram',
    latency_seconds_created: 'gauge',
    size: 'summary',
    queue_bucket: 'untyped',
    queue_gsum: 'untyped',
    queue_gcount: 'untyped',
    build_info: 'gauge',
    state: 'gauge',
    odd: 'untyped',
  });
  expect(taken.samples).toEqual({
    [s('requests_total', { code: '200' })]: 7,
    [s('requests_created', { code: '200' })]: 1700000000.5,
    [s('depth', {})]: 3.5,
    [s('latency_seconds_bucket', { le: '0.1' })]: 1,
    [s('latency_seconds_bucket', { le: '+Inf' })]: 2,
    [s('latency_seconds_sum', {})]: 0.7,
    [s('latency_seconds_count', {})]: 2,
    [s('latency_seconds_created', {})]: 1700000000,
    [s('size', { quantile: '0.5' })]: 4,
    [s('size_sum', {})]: 9,
    [s('size_count', {})]: 2,
    [s('queue_bucket', { le: '1' })]: 2,
    [s('queue_bucket', { le: '+Inf' })]: 5,
    [s('queue_gsum', {})]: 8,
    [s('queue_gcount', {})]: 5,
    [s('build_info', { version: '1.2' })]: 1,
    [s('state', { state: 'open' })]: 1,
    [s('state', { state: 'shut' })]: 0,
    [s('odd', {})]: 1,
  });
});

test.each([
  ['a broken exemplar', 'x_total 1 # {a="b" 1\n'],
  ['an exemplar without a value', 'x_total 1 # {a="b"}\n'],
])('OpenMetrics: %s makes the line broken', async (_, line) => {
  const taken = await read(`${line}y 1\n# EOF\n`, 'openmetrics');
  expect(taken.samples).toEqual({ [s('y', {})]: 1 });
  expect(taken.invalidLines).toBe(1);
});

test.each([
  ['without # EOF', 'x 1\n'],
  ['with more behind # EOF', 'x 1\n# EOF\ny 1\n'],
])('OpenMetrics %s is a broken body', async (_, page) => {
  await expect(read(page, 'openmetrics')).rejects.toMatchObject({ reason: 'invalid_body' });
});

test('a page of which no line is a sample is a broken body', async () => {
  const html = '<html>\n<body>It works!</body>\n</html>\n';
  await expect(read(html)).rejects.toMatchObject({ reason: 'invalid_body' });
});

test('an empty page is a page', async () => {
  expect((await read('')).samples).toEqual({});
});

test('invalid UTF-8 makes a line broken, not the page', async () => {
  const page = Buffer.concat([Buffer.from('x{a="'), Buffer.from([0xff, 0xfe]), Buffer.from('"} 1\ny 1\n')]);
  const taken = await read(page);
  expect(taken.samples).toEqual({ [s('y', {})]: 1 });
  expect(taken.invalidLines).toBe(1);
});

test('a page over its limits is not taken', async () => {
  const body = pageTarget({ bodyBytes: 10 });
  await expect(body.read('abcdefgh 1\nx 1\n')).rejects.toMatchObject({ reason: 'too_large' });
  const samples = pageTarget({ samples: 2 });
  await expect(samples.read('a 1\nb 1\nc 1\n')).rejects.toMatchObject({ reason: 'too_many_samples' });
  const label = pageTarget({ labelBytes: 3 });
  await expect(label.read('a 1\nb{c="four"} 1\n')).rejects.toMatchObject({ reason: 'label_too_long' });
  expect(body.intake.held.size + samples.intake.held.size + label.intake.held.size).toBe(0);
});

test('more distributions than wait for their other lines have all of these, also if they stand apart', async () => {
  const numbered = Array.from({ length: 9_000 }, (_, n) => n);
  const each = (line: (n: number) => string) => numbered.map((n) => `${line(n)}\n`).join('');
  const page =
    each((n) => `# TYPE h${n} histogram`) +
    each((n) => `h${n}_bucket{le="1"} ${n}`) +
    each((n) => `h${n}_bucket{le="+Inf"} ${n + 1}`) +
    each((n) => `h${n}_sum ${n / 2}`) +
    each((n) => `h${n}_count ${n + 1}`);
  const expected = Object.fromEntries(
    numbered.flatMap((n) => [
      [s(`h${n}_bucket`, { le: '1' }), n],
      [s(`h${n}_bucket`, { le: '+Inf' }), n + 1],
      [s(`h${n}_sum`, {}), n / 2],
      [s(`h${n}_count`, {}), n + 1],
    ]),
  );
  const target = pageTarget();
  for (const changed of [true, false]) {
    const taken = await target.read(page);
    expect(taken).toMatchObject({ changed, invalidLines: 0 });
    expect(taken.samples).toEqual(expected);
  }
  expect(target.intake.held.size).toBe(numbered.length);
});

test('a series has at most 10,000 lines: those beyond are invalid, also on the next pages, until they are gone', async () => {
  const bucket = (n: number) => `h_bucket{le="${n}"} 1\n`;
  const finite = Array.from({ length: 12_000 }, (_, n) => bucket(n)).join('');
  const page = `# TYPE h histogram\nh_sum 1\nh_count 1\nh_bucket{le="+Inf"} 1\n${finite}x 1\n`;
  const target = pageTarget();
  for (const value of [1, 2]) {
    const taken = await target.read(page.replace('x 1', `x ${value}`));
    expect(taken.invalidLines).toBe(2003);
    expect(taken.samples[s('x', {})]).toBe(value);
    // With the sum, the count and +Inf.
    expect(Object.keys(taken.samples)).toHaveLength(10_000 + 1);
  }
  const after = await target.read('x 3\n');
  expect(after).toMatchObject({ invalidLines: 0, samples: { [s('x', {})]: 3 } });
});
