import { describe, expect, test } from 'vitest';
import { cursor } from '../../../src/core/decimal.ts';
import { wideHash } from '../../../src/core/hashes.ts';
import { createRefusedLines } from '../../../src/core/registry/refused-series.ts';
import { scrapeDefaults } from '../../../src/sources/scrape/block.ts';
import { createBucketRun } from '../../../src/sources/scrape/exposition/bucket-run.ts';
import { createLineTable } from '../../../src/sources/scrape/exposition/line-table.ts';
import { createPageReader } from '../../../src/sources/scrape/exposition/page-reader.ts';

const viewOf = (bytes: Buffer) => new DataView(bytes.buffer, bytes.byteOffset, bytes.length);
const valueAt = (line: string) => line.lastIndexOf(' ') + 1;

/**
 * Whether `second` counts as another bucket of the histogram to which the bucket `first` belongs; `before` is the text before
 * both.
 */
function goesOn(first: string, second: string, before = ''): boolean {
  const bytes = Buffer.from(`${before}${first}\n${second}\n`);
  const view = viewOf(bytes);
  const run = createBucketRun();
  const start = before.length;
  run.begin(view, start, start + valueAt(first));
  const at = start + first.length + 1;
  const does = run.continues(bytes, view, at);
  if (does) expect(cursor.at).toBe(bytes.length - 1);
  return does;
}

const bucket = 'latency_bucket{domain="all",le="0.5"} 1';

describe('a bucket that follows one that is left out', () => {
  test.each([
    'latency_bucket{domain="all",le="1"} 2',
    'latency_bucket{domain="all",le="+Inf"} 1.5e+06',
    'latency_bucket{domain="all",le="0.5"} 1',
    'latency_bucket{domain="all",le="-2e-05"} -0.5',
    'latency_bucket{domain="all",le="\u007f"} 1',
  ])('is left out: %s', (line) => {
    expect(goesOn(bucket, line)).toBe(true);
    expect(goesOn(bucket, line, '# the lines before it\n')).toBe(true);
  });

  test.each([
    ['another label', 'latency_bucket{domain="one",le="1"} 2'],
    ['a label more', 'latency_bucket{domain="all",le="1",operation="x"} 2'],
    ['another metric', 'latencies_bucket{domain="all",le="1"} 2'],
    ['the count', 'latency_count{domain="all"} 2'],
    ['a quote in the bound', 'latency_bucket{domain="all",le="1\\""} 2'],
    ['a bound that is no number of a histogram', `latency_bucket{domain="all",le="${'1'.repeat(40)}"} 2`],
    ['a bound beyond ASCII', 'latency_bucket{domain="all",le="1\u00e9"} 2'],
    ['a timestamp', 'latency_bucket{domain="all",le="1"} 2 1700000000000'],
    ['a value that needs the exact parser', 'latency_bucket{domain="all",le="1"} NaN'],
    ['no value', 'latency_bucket{domain="all",le="1"} '],
    ['two blanks', 'latency_bucket{domain="all",le="1"}  2'],
    ['a comment', '# TYPE latency histogram'],
    ['a shorter line', 'a 1'],
    ['a quote that does not end the bound', 'latency_bucket{domain="all",le="1\\"} 2'],
    ['a line break in the bound', 'latency_bucket{domain="all",le="1\n"} 2'],
    ['more behind the bound', 'latency_bucket{domain="all",le="1"], 2'],
    ['no blank behind the labels', 'latency_bucket{domain="all",le="1"},2'],
  ])('is read as any line: %s', (_, line) => {
    expect(goesOn(bucket, line)).toBe(false);
    // The value before it does not count as its own.
    expect(goesOn(bucket, line, 'x1\n')).toBe(false);
  });

  test.each([
    ['a gauge with a label le', 'latency{domain="all",le="0.5"} 1'],
    ['a gauge of a longer name', 'latencies_of_all_calls{domain="all",le="0.5"} 1'],
    ['le is not the last label', 'latency_bucket{le="0.5",domain="all"} 1'],
    ['le is within a value', 'latency_bucket{domain="x,le=\\"0.5"} 1'],
    ['a label that ends like le', 'latency_bucket{domain="all",role="0.5"} 1'],
    ['blanks after a label', 'latency_bucket{domain="all",le="0.5" } 1'],
    ['the count', 'latency_count{domain="all"} 1'],
    ['another label of two letters', 'latency_bucket{domain="all",go="0.5"} 1'],
    ['a name in quotes alone', '{"a"} 1'],
    ['no labels', 'a 1'],
    ['a name of a suffix alone', '_bucket{le="0.5"} 1'],
    ['a shorter name', 'bucket{le="0.5"} 1'],
  ])('begins no run: %s', (_, line) => {
    expect(goesOn(line, line)).toBe(false);
    expect(goesOn(line, line, `${bucket}\n`)).toBe(false);
  });

  test('goes on over the first label', () =>
    expect(goesOn('a_bucket{le="1"} 1', 'a_bucket{le="2"} 2')).toBe(true));

  test('the run ends with the first line that is none, and with the bytes', () => {
    const bytes = Buffer.from(`${bucket}\na 1\n${bucket}\n`);
    const view = viewOf(bytes);
    const run = createBucketRun();
    run.begin(view, 0, valueAt(bucket));
    expect(run.continues(bytes, view, bucket.length + 1)).toBe(false);
    expect(run.continues(bytes, view, bucket.length + 5)).toBe(false);
    run.begin(view, 0, valueAt(bucket));
    const next = Buffer.from(bytes);
    expect(run.continues(next, viewOf(next), bucket.length + 5)).toBe(false);
  });
});

describe('a page with histograms that are left out', () => {
  const bounds = ['0.5', '1', '+Inf'];
  const histogram = (domain: string, value: number) =>
    [
      ...bounds.map((le) => `latency_bucket{domain="${domain}",le="${le}"} ${value}`),
      `latency_sum{domain="${domain}"} ${value}`,
      `latency_count{domain="${domain}"} ${value}`,
    ].join('\n');
  const page = (value: number) =>
    `${histogram('all', value)}\n${histogram('one', value)}\n${histogram('all', value)}\n${histogram('two', value)}\n`;

  /** The values of the known lines after a page in chunks of this many bytes, and the number of its samples. */
  function read(chunkBytes: number, isEnding = false) {
    const table = createLineTable();
    const refused = createRefusedLines(100);
    const reader = createPageReader(table, refused, scrapeDefaults.limits);
    for (const line of histogram('all', 1).split('\n')) {
      const key = Buffer.from(line.slice(0, valueAt(line)));
      refused.add(wideHash(viewOf(key), 0, key.length), 1, undefined, 0);
    }
    let samples = 0;
    const values: number[] = [];
    for (const round of [1, 2, 3]) {
      reader.begin(isEnding ? 'openmetrics' : 'text');
      const bytes = Buffer.from(isEnding ? `${page(round)}# EOF\n` : page(round));
      for (let at = 0; at < bytes.length; at += chunkBytes)
        reader.write(Buffer.from(bytes.subarray(at, at + chunkBytes)));
      const taken = reader.end(true);
      samples = taken.samples;
      values.length = 0;
      for (const id of taken.order.subarray(0, taken.count)) values.push(table.incoming[id]!);
      reader.take(taken);
    }
    return { samples, values, refused: refused.size };
  }

  test.each([1, 7, 50, 113, 1000])('has the values of the others, in chunks of %i bytes', (chunkBytes) =>
    expect(read(chunkBytes)).toEqual({ samples: 20, values: Array(10).fill(3), refused: 5 }),
  );

  test('in OpenMetrics too', () => {
    const { samples, values } = read(1000, true);
    expect([samples, values.slice(0, 10)]).toEqual([20, Array(10).fill(3)]);
  });

  test('nothing may follow the end of an OpenMetrics page', () => {
    const table = createLineTable();
    const refused = createRefusedLines(100);
    const reader = createPageReader(table, refused, scrapeDefaults.limits);
    const key = Buffer.from(bucket.slice(0, valueAt(bucket)));
    refused.add(wideHash(viewOf(key), 0, key.length), 1, undefined, 0);
    reader.begin('openmetrics');
    reader.write(Buffer.from(`${bucket}\n# EOF\n`));
    expect(() => reader.write(Buffer.from(`${bucket}\n`))).toThrow('continues after # EOF');
  });

  test('a bound that is not UTF-8 makes an invalid line', () => {
    const refused = createRefusedLines(100);
    const reader = createPageReader(createLineTable(), refused, scrapeDefaults.limits);
    const key = Buffer.from(bucket.slice(0, valueAt(bucket)));
    refused.add(wideHash(viewOf(key), 0, key.length), 1, undefined, 0);
    reader.begin('text');
    reader.write(Buffer.from(`${bucket}\n${bucket.replace('0.5', '\xff')}\n${bucket}\n`, 'latin1'));
    const { samples, invalidLines } = reader.end(true);
    expect({ samples, invalidLines }).toEqual({ samples: 2, invalidLines: 1 });
  });
});
