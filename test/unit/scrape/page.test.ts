import { readFileSync } from 'node:fs';
import { expect, test } from 'vitest';
import type { Kind } from '../../../src/core/model.ts';
import { createRefusedLines } from '../../../src/core/registry/refused-series.ts';
import { scrapeDefaults } from '../../../src/sources/scrape/block.ts';
import { createLineTable } from '../../../src/sources/scrape/exposition/line-table.ts';
import { createPageReader, type Exposition } from '../../../src/sources/scrape/exposition/page-reader.ts';
import { pageTarget, sampleName as s } from '../../scrape.ts';

const read = (text: string | Buffer, format?: Exposition) => pageTarget().read(text, format);

const labelsUpTo = (count: number) => Array.from({ length: count }, (_, n) => `l${n}="${n}"`).join(',');

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
  'labels whose names begin alike': {
    page: 'x{ab="1",a="2",abc="3"} 1\n',
    samples: { [s('x', { ab: '1', a: '2', abc: '3' })]: 1 },
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
    page: 'a 1\t1700000000000\nb 2 -5\n',
    samples: { [s('a', {})]: 1, [s('b', {})]: 2 },
  },
  'no final newline': { page: 'a 1\nb 2', samples: { [s('a', {})]: 1, [s('b', {})]: 2 } },
  'raw names that sanitizing deals with': {
    page: 'a.b-c{k.1="v"} 1\nback\\\\slash 2\n',
    samples: { [s('a.b-c', { 'k.1': 'v' })]: 1, [s('back\\\\slash', {})]: 2 },
  },
  'as many labels as a line may have, and one more': {
    page: `x{${labelsUpTo(256)}} 1\nx{${labelsUpTo(257)}} 2\n`,
    samples: {
      [s('x', Object.fromEntries(Array.from({ length: 256 }, (_, n) => [`l${n}`, `${n}`])))]: 1,
    },
    invalid: 1,
  },
  'a quote that is open, behind a brace that begins the page': {
    page: '} 1\nx{a="b 1\ngood 1\n',
    samples: { [s('good', {})]: 1 },
    invalid: 2,
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
    page: 'good 1\n{x} 1\n{} 1\n{a="b"} 1\n{"x","y"} 1\n{"x" 1\n{"x"="1"} 1\n{""} 1\nx{"y"} 1\n',
    samples: { [s('good', {})]: 1 },
    invalid: 8,
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
  'names that begin with a digit, which the registry sanitizes': {
    page: '9lead 1\nx{9t="2"} 3\n',
    samples: { [s('9lead', {})]: 1, [s('x', { '9t': '2' })]: 3 },
  },
  'a gauge that is named like a part of a histogram is a family of its own': {
    page: 'h_bucket{le="+Inf"} 1\nh_sum 9\n# TYPE h histogram\n# TYPE h_count gauge\nh_count{z="1"} 77\n',
    samples: {
      [s('h_bucket', { le: '+Inf' })]: 1,
      [s('h_sum', {})]: 9,
      [s('h_count', {})]: 1,
      [s('h_count', { z: '1' })]: 77,
    },
    kinds: { h: 'histogram', h_count: 'gauge' },
  },
  'a part of a histogram that is declared once more as a counter': {
    page: '# TYPE h histogram\n# TYPE h_sum counter\nh_bucket{le="+Inf"} 1\nh_sum 9\nh_count 1\n',
    samples: { [s('h_bucket', { le: '+Inf' })]: 1, [s('h_sum', {})]: 9, [s('h_count', {})]: 1 },
    kinds: { h: 'histogram' },
  },
  'of a repeated series the first counts': {
    page: 'x{a="1",b="2"} 1\nx{a="1",b="2"} 2\nx{b="2",a="1"} 3\ny 1\n',
    samples: { [s('x', { a: '1', b: '2' })]: 1, [s('y', {})]: 1 },
    invalid: 2,
  },
  'broken lines are skipped': {
    page: [
      'good 1',
      '-dash 1',
      '{a="b"} 1',
      'novalue',
      'novalue{a="b"}',
      'x{a="b" 1',
      'x{a=b} 1',
      'x{a=b"} 1',
      'x{a="1" b="2"} 1',
      'x{a "1"} 1',
      'x{a,"1"} 1',
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
      '# TYPE y COUNTER',
      '# TYPE y counter now',
      'y 2\r',
      'also_good 2',
      '',
    ].join('\n'),
    samples: { [s('good', {})]: 1, [s('also_good', {})]: 2 },
    invalid: 23,
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

test('texts of HELP are handed on without their escapes', async () => {
  const target = pageTarget();
  await target.read(
    '# HELP a A \\\\ and\\n more.\na 1\n# HELP "b.c" \tIn "quotes".\n{"b.c"} 1\n# HELP d\nd 1\n#HELP e No.\ne 1\n',
  );
  const helps = [...target.intake.held].map(({ name, shape }) => [name, shape.help]);
  expect(Object.fromEntries(helps)).toEqual({
    a: 'A \\ and\n more.',
    'b.c': '\tIn "quotes".',
    d: '',
    e: undefined,
  });
});

test('the kind of a family follows its first TYPE line from page to page', async () => {
  const target = pageTarget();
  const kindAfter = async (comments: string): Promise<Kind | undefined> =>
    (await target.read(`${comments}a 1\nm 1\nb 1\n`)).kinds.m;
  expect(await kindAfter('')).toBe('untyped');
  expect(await kindAfter('# TYPE a gauge\n# TYPE m counter\n')).toBe('counter');
  expect(await kindAfter('# TYPE a gauge\n#  TYPE  m  counter\n')).toBe('counter');
  expect(await kindAfter('# TYPE m gauge\n# TYPE m counter\n')).toBe('gauge');
  expect(await kindAfter('# TYPE m counter\n# TYPE m gauge\n')).toBe('counter');
  expect(await kindAfter('# TYPE m gauge\n# HELP m counter\n')).toBe('gauge');
  expect(await kindAfter('# HELP m counter\n')).toBe('untyped');
  expect(target.intake.kinds()).toEqual({ a: 'untyped', b: 'untyped', m: 'untyped' });
});

test('lines of a distribution are found again under each type of their family, among thousands', async () => {
  const target = pageTarget();
  const families = Array.from({ length: 2000 }, (_, n) => `h${n}`);
  const page = (type: (n: number) => string) =>
    families.map((h, n) => `${type(n)}${h}_bucket{le="+Inf"} 1\n${h}_count 1\n`).join('');
  const kindsAfter = async (type: (n: number) => string) => (await target.read(page(type))).kinds;
  const apart = (n: number) => [
    [`h${n}_bucket`, 'untyped'],
    [`h${n}_count`, 'untyped'],
  ];
  const typed = (n: number) => `# TYPE h${n} histogram\n`;
  expect(await kindsAfter(typed)).toEqual(Object.fromEntries(families.map((h) => [h, 'histogram'])));
  const odd = await kindsAfter((n) => (n % 2 === 1 ? typed(n) : ''));
  expect(odd).toEqual(
    Object.fromEntries(families.flatMap((h, n) => (n % 2 === 1 ? [[h, 'histogram']] : apart(n)))),
  );
});

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
  ['an exemplar without labels', 'x_total 1 # 1\n'],
  ['an exemplar without its brace', 'x_total 1 # ,a="b"} 1\n'],
  ['an exemplar with the label of a name', 'x_total 1 # {"a"} 1\n'],
  ['an exemplar whose value is none', 'x_total 1 # {a="b"} one\n'],
  ['an exemplar whose time is none', 'x_total 1 # {a="b"} 1 soon\n'],
  ['more behind an exemplar', 'x_total 1 # {a="b"} 1 2 3\n'],
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
  const body = `<body>${'It works! '.repeat(1_200)}`;
  const broken = (page: string, what: string) =>
    expect(read(page)).rejects.toMatchObject({
      reason: 'invalid_body',
      message: `no line is a sample; ${what}`,
    });
  await broken('\n<html>\n<body>It works!</body>\n</html>\n', 'line 2 is "<html>"');
  await broken(`# HELP x X.\n${body}\n</html>\n`, `line 2 is "${body.slice(0, 8192)}"`);
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

/** Limits, a page with as much as they allow, a page with more, and the reason why that page is refused. */
const limited: Record<string, [limits: object, page: string, over: string, reason: string]> = {
  bytes: [{ bodyBytes: 8 }, 'a 1\nb 1\n', 'a 1\nb 10\n', 'too_large'],
  samples: [{ samples: 2 }, 'a 1\nb 1\n', 'a 1\nb 1\nc 1\n', 'too_many_samples'],
  'a label': [{ labelBytes: 3 }, 'a{b="two"} 1\n', 'a{b="four"} 1\n', 'label_too_long'],
  'the name of a label': [{ labelBytes: 3 }, 'a{two="b"} 1\n', 'a{four="b"} 1\n', 'label_too_long'],
  'a name': [{ labelBytes: 3 }, 'two{a="b"} 1\n', 'four{a="b"} 1\n', 'label_too_long'],
  'a name without labels': [{ labelBytes: 3 }, 'two 1\n', 'four 1\n', 'label_too_long'],
  'a name in quotes': [{ labelBytes: 3 }, '{"two"} 1\n', '{"four"} 1\n', 'label_too_long'],
};

test.each(Object.entries(limited))('a page over its limit of %s is not taken', async (_, row) => {
  const [limits, page, over, reason] = row;
  const target = pageTarget(limits);
  // Each page may use all that is allowed.
  for (const __ of [1, 2]) expect(await target.read(page)).toMatchObject({ invalidLines: 0 });
  const held = target.intake.samples();
  await expect(target.read(over)).rejects.toMatchObject({ reason });
  expect(target.intake.samples()).toEqual(held);
  expect((await target.read(page)).samples).toEqual(held);
});

test('1 MiB of a line may wait for its end, and no more', async () => {
  const target = pageTarget();
  const waiting = (bytes: number) => `a 1\n# HELP x ${'v'.repeat(bytes - 9)}\nx 1\n`;
  await target.read(waiting(2 ** 20), 'text', 4 + 2 ** 20);
  await expect(target.read(waiting(2 ** 20 + 1), 'text', 4 + 2 ** 20 + 1)).rejects.toMatchObject({
    ...{ reason: 'label_too_long', message: 'line 2 is over 1048576 bytes' },
  });
});

test('a page that failed within a line leaves nothing to the next one', async () => {
  const target = pageTarget({ bodyBytes: 20 });
  await expect(target.read('a 1\nb 1\nc{d="a long label"} 1\n', 'text', 7)).rejects.toMatchObject({
    reason: 'too_large',
  });
  const taken = await target.read('a 1\n', 'text', 2);
  expect([taken.samples, taken.invalidLines]).toEqual([{ [s('a', {})]: 1 }, 0]);
});

test.each<[string, string[], boolean[]]>([
  ['alike', ['a 1\nb 1\n', 'a 2\nb 2\n'], [true, false]],
  ['without a line', ['a 1\nb 1\nc 1\n', 'a 1\nc 1\n', 'a 1\nc 1\n'], [true, true, false]],
  ['with one line for another', ['a 1\nb 1\n', 'a 1\nc 1\n'], [true, true]],
  ['in another order', ['a 1\nb 1\nc 1\n', 'c 1\na 1\nb 1\n', 'c 1\na 1\nb 1\n'], [true, true, false]],
  ['with a line back in its place', ['a 1\nb 1\n', 'b 1\n', 'a 1\nb 1\n'], [true, true, true]],
  ['with a broken line more', ['a 1\nb 1\n', 'a 1\nx{ 1\nb 1\n'], [true, false]],
  ['with a repeated line', ['a 1\nb 1\n', 'a 1\na 1\nb 1\n'], [true, false]],
  ['with another spelling of values', ['a 1\nb 1\n', 'a NaN\nb 1e0 5\n'], [true, false]],
])('a page %s: whether its lines changed', async (_, pages, changed) => {
  const target = pageTarget();
  const seen: boolean[] = [];
  for (const page of pages) seen.push((await target.read(page)).changed);
  expect(seen).toEqual(changed);
});

test('lines that come and go among 200 keep their values, on a page of any order', async () => {
  const target = pageTarget();
  const names = Array.from({ length: 200 }, (_, n) => `m${n}`);
  const orders = [names, names.filter((_, n) => n % 3 > 0), [...names].reverse(), names];
  for (const [round, order] of orders.entries()) {
    const taken = await target.read(order.map((name, n) => `${name} ${n * round}\n`).join(''));
    expect(taken.samples).toEqual(Object.fromEntries(order.map((name, n) => [s(name, {}), n * round])));
  }
});

test('who asks for values while a page is taken gets those of the whole page afterwards', async () => {
  const target = pageTarget({}, undefined, { begin() {}, isOver: () => true, next: async () => {} });
  const page = Array.from({ length: 9 }, (_, n) => `m{a="${n}"} ${n}\n`).join('');
  await target.read('m{a="0"} 0\n');
  let isTaken = false;
  const reading = target.read(page).then(() => {
    isTaken = true;
  });
  for (; !isTaken; await Promise.resolve()) target.relay.values('m');
  await reading;
  expect([...target.relay.values('m')].map(({ value }) => value)).toEqual([0, 1, 2, 3, 4, 5, 6, 7, 8]);
});

test('131,072 comments are the most of a page', () => {
  const { limits } = scrapeDefaults;
  const reader = createPageReader(createLineTable(), createRefusedLines(1), limits);
  reader.begin('text');
  const comments = Array.from({ length: 131_072 }, (_, n) => `# HELP m${n}\n`).join('');
  reader.write(Buffer.from(comments));
  expect(() => reader.write(Buffer.from('# HELP m\n'))).toThrow('more than 131072 HELP and TYPE lines');
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
    // The sum, the count and +Inf are included.
    expect(Object.keys(taken.samples)).toHaveLength(10_000 + 1);
  }
  const after = await target.read('x 3\n');
  expect(after).toMatchObject({ invalidLines: 0, samples: { [s('x', {})]: 3 } });
});
