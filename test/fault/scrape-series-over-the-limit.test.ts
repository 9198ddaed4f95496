import fc from 'fast-check';
import { expect, test } from 'vitest';
import { createRefusedLines } from '../../src/core/registry/refused-series.ts';
import { createSlice } from '../../src/core/slices.ts';
import { createVocabularyDetector } from '../../src/core/vocabulary-detector.ts';
import { scrapeDefaults } from '../../src/sources/scrape/block.ts';
import { createLineTable } from '../../src/sources/scrape/exposition/line-table.ts';
import { createPageReader } from '../../src/sources/scrape/exposition/page-reader.ts';
import { createPageSeries } from '../../src/sources/scrape/series/page-series.ts';
import { testRegistry, wideLimits } from '../registry.ts';
import { bySize, testOnce } from '../size.ts';

/** A target whose pages go through the real registry. */
function target(seriesPerMetric: number) {
  const bed = testRegistry({ limits: { ...wideLimits, seriesPerMetric } });
  const { intake: opened, store } = bed.page();
  let lookUps = 0;
  const intake = {
    ...opened,
    overflowOf(refused: { release(): void }) {
      lookUps += 1;
      return opened.overflowOf(refused);
    },
  };
  const table = createLineTable();
  const refusedLines = createRefusedLines(scrapeDefaults.limits.samples);
  const reader = createPageReader(table, refusedLines, scrapeDefaults.limits);
  const detector = createVocabularyDetector([]);
  const pageSeries = createPageSeries(table, { intake, refusedLines, detector, slice: createSlice() });
  return {
    ...bed,
    table,
    refusedLines,
    overflowLookUps: () => lookUps,
    async read(text: string, isCut = false) {
      reader.begin('text');
      const bytes = Buffer.from(text);
      for (let at = 0; at < bytes.length; at += 65_536) reader.write(bytes.subarray(at, at + 65_536));
      if (isCut) {
        reader.discard();
        return;
      }
      const page = reader.end(true);
      await pageSeries.arrange(page);
      pageSeries.fill(page);
      pageSeries.endPage();
      reader.take(page);
      store.swap();
    },
  };
}

const counterPage = (values: Iterable<[string, number]>) =>
  `# TYPE c counter\n${Array.from(values, ([id, value]) => `c{i="${id}"} ${value}\n`).join('')}`;

testOnce(
  'whatever comes and goes: admitted series have their values, the overflow series adds all increases',
  async () => {
    const ids = ['a', 'b', 'c', 'd', 'e', 'f'];
    const pageOf = fc.dictionary(fc.constantFrom(...ids), fc.nat(50), { noNullPrototype: true });
    await fc.assert(
      fc.asyncProperty(fc.array(fc.tuple(pageOf, fc.boolean()), { maxLength: 10 }), async (pages) => {
        const limit = 2;
        const { read, shown } = target(limit);
        const admitted = new Set<string>();
        const refused = new Map<string, number>();
        let overflow = 0;
        for (const [values, isCut] of pages) {
          const page = Object.entries(values);
          await read(counterPage(page), isCut);
          for (const [id, value] of page) {
            const before = refused.get(id);
            if (before === undefined) continue;
            overflow += value >= before ? value - before : value;
            refused.set(id, value);
          }
          if (isCut) continue;
          for (const id of admitted) if (!(id in values)) admitted.delete(id);
          for (const [id, value] of page) {
            if (admitted.has(id) || refused.has(id)) continue;
            if (admitted.size < limit) admitted.add(id);
            else {
              refused.set(id, value);
              overflow += value;
            }
          }
          const expected = Object.fromEntries([...admitted].map((id) => [`c{i="${id}"}`, values[id]]));
          const all = refused.size > 0 ? { ...expected, 'c{overflow="true"}': overflow } : expected;
          expect(shown()).toEqual(all);
        }
      }),
    );
  },
);

testOnce('histograms over the limit add up, bucket by bucket', async () => {
  const { read, shown, table, refusedLines } = target(1);
  const series = (id: string, [a, b, sum]: [number, number, number]) =>
    `h_bucket{i="${id}",le="1"} ${a}\nh_bucket{i="${id}",le="+Inf"} ${b}\nh_sum{i="${id}"} ${sum}\nh_count{i="${id}"} ${b}\n`;
  await read(
    `# TYPE h histogram\n${series('a', [1, 2, 3])}${series('b', [1, 2, 3])}${series('c', [4, 5, 6])}`,
  );
  expect(shown()).toEqual({ 'h{i="a"}': [1, 2, 3, 2], 'h{overflow="true"}': [5, 7, 9, 7] });
  await read(
    `# TYPE h histogram\n${series('a', [1, 2, 3])}${series('b', [2, 4, 5])}${series('c', [1, 1, 1])}`,
  );
  expect(shown()['h{overflow="true"}']).toEqual([5 + 1 + 1, 7 + 2 + 1, 9 + 2 + 1, 7 + 2 + 1]);
  expect(refusedLines.size).toBe(8);
  expect(table.keys.size).toBe(1 + 4);
});

const pageSeries = bySize({ short: 20_000, long: 200_000, nightly: 200_000 });
test(`a page of ${pageSeries} series with a limit of 2,000 keeps 2,000 lines, and hashes of the rest`, async () => {
  const refusedSeries = pageSeries - 2000;
  const { read, shown, table, refusedLines, refused } = target(2000);
  const page = (value: number) =>
    counterPage(Array.from({ length: pageSeries }, (_, n): [string, number] => [`client-${n}`, value]));
  await read(page(1));
  await read(page(2));
  expect(table.keys.size).toBe(2001);
  expect(table.keys.arena.length).toBeLessThan(100_000);
  expect(table.seen.length).toBeLessThan(5000);
  expect(refusedLines.size).toBe(refusedSeries);
  expect(refused('c', 'limit_metric')).toBe(refusedSeries);
  expect(shown()['c{overflow="true"}']).toBe(2 * refusedSeries);
  await read(counterPage([['client-0', 5]]));
  expect(shown()).toEqual({ 'c{i="client-0"}': 5, 'c{overflow="true"}': 2 * refusedSeries });
});

testOnce(
  'lines that stay among many refused ones keep their values, and hold no memory for the others',
  async () => {
    const { read, shown, table } = target(2);
    const families = Array.from({ length: 40 }, (_, n) => `c${n}`);
    const callers = Array.from({ length: 20 }, (_, n) => `client-${n}`);
    // The buckets of a distribution come before the refused lines, its sum and count after them.
    const page = (value: number) =>
      [
        '# TYPE h histogram',
        ...[1, 2, 3].flatMap((i) => [
          `h_bucket{i="${i}",le="1"} ${value}`,
          `h_bucket{i="${i}",le="+Inf"} ${3 * value}`,
        ]),
        ...families.flatMap((c) => [
          `# HELP ${c} Calls.`,
          `# TYPE ${c} counter`,
          ...callers.map((i, n) => `${c}{i="${i}"} ${n * value}`),
        ]),
        ...[1, 2, 3].flatMap((i) => [`h_sum{i="${i}"} ${value}`, `h_count{i="${i}"} ${3 * value}`]),
        `last ${value}\n`,
      ].join('\n');
    // The third to the last caller are refused, and the third histogram.
    const refusedCalls = callers.reduce((sum, _, n) => sum + (n >= 2 ? n : 0), 0);
    for (const value of [1, 2, 5]) {
      await read(page(value));
      expect(shown()).toEqual({
        'h{i="1"}': [value, 3 * value, value, 3 * value],
        'h{i="2"}': [value, 3 * value, value, 3 * value],
        'h{overflow="true"}': [value, 3 * value, value, 3 * value],
        ...Object.fromEntries(
          families.flatMap((c) => [
            [`${c}{i="client-0"}`, 0],
            [`${c}{i="client-1"}`, value],
            [`${c}{overflow="true"}`, refusedCalls * value],
          ]),
        ),
        last: value,
      });
      // Each family has two comments and two lines; then come the histograms, and the last line.
      expect(table.keys.size).toBe(4 * 40 + 1 + 8 + 1);
      expect(table.keys.keyAt.length).toBe(256);
    }
  },
);

testOnce(
  'refused lines count however they are written: times, odd numbers, blanks in values, a broken one',
  async () => {
    const { read, shown } = target(1);
    const page = (n: number) => `# TYPE c counter
c{i="a"} ${n}
c{i="b c 7"} ${n}
c{i="d"} ${n} 1700000000000
c{i="e"}\t${n}e0
c{i="f"} ${n} \n`;
    for (const n of [1, 3, 10]) await read(page(n));
    expect(shown()).toEqual({ 'c{i="a"}': 10, 'c{overflow="true"}': 40 });
    // A line that only ends like a refused one is not valid.
    await read(`${page(10)}c{i="b c 7"x} 99\n`);
    expect(shown()).toEqual({ 'c{i="a"}': 10, 'c{overflow="true"}': 40 });
  },
);

testOnce('a refused histogram asks for its overflow series once, however many buckets it has', async () => {
  const bounds = [...Array.from({ length: 500 }, (_, n) => String(n)), '+Inf'];
  const histogram = (id: number) =>
    `${bounds.map((le) => `h_bucket{i="${id}",le="${le}"} ${id}\n`).join('')}h_sum{i="${id}"} 7\nh_count{i="${id}"} ${id}\n`;
  const page = `# TYPE h histogram\n${[1, 2, 3].map(histogram).join('')}`;
  const { read, shown, overflowLookUps, registry } = target(1);
  await read(page);
  expect(overflowLookUps()).toBe(2);
  const count = () => (shown()['h{overflow="true"}'] as number[]).at(-1);
  expect(count()).toBe(2 + 3);
  await read(page.replaceAll('h_count{i="3"} 3', 'h_count{i="3"} 10'));
  expect(count()).toBe(2 + 10);
  await read('a 1\n');
  expect(registry.status()).toMatchObject({ series: 1, overflow: 1 });
});
