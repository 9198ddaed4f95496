import fc from 'fast-check';
import { expect, test } from 'vitest';
import type { FamilyView, Kind } from '../../../src/core/model.ts';
import { createRenderer, type Format } from '../../../src/reporters/pull/exposition.ts';
import { runs } from '../../size.ts';
import { pageOf, viewOf } from '../../view.ts';

const seriesOf = (kind: Kind, count: number) =>
  viewOf([
    {
      name: `${kind}_s`,
      kind,
      series: Array.from({ length: count }, (_, i) => ({
        labels: { i: `${i}`, text: i % 3 === 0 ? 'ä"\\\n' : 'x'.repeat(i) },
        bounds: kind === 'histogram' || kind === 'summary' ? ['0.1', '0.5'].slice(i % 2) : [],
        hasSum: i % 4 !== 0,
        hasCount: i % 5 !== 0,
        numbers: [i, -i / 7, 1e300 * i, Number.NaN, 2 ** 31 - 1 + i],
      })),
    },
  ]);

test('whatever series come, go and change places, a page is that of a renderer which has no cache yet', async () => {
  const kinds = ['counter', 'histogram', 'summary'] as const;
  const all = kinds.map((kind) => seriesOf(kind, 40));
  const values = Float64Array.from(all.flatMap((view) => [...view.numbers(view.families[0]!.series[0]!)]));
  const selection = fc.uniqueArray(fc.nat(39), { minLength: 1, maxLength: 40 });
  const steps = fc.array(
    fc.record({
      picked: fc.array(selection, { minLength: 3, maxLength: 3 }),
      isSorted: fc.boolean(),
      format: fc.constantFrom<Format>('text', 'openmetrics'),
    }),
    { maxLength: 8 },
  );
  await fc.assert(
    fc.asyncProperty(steps, async (taken) => {
      const renderer = createRenderer('p_');
      const renderings = taken.map(async ({ picked, isSorted, format }) => {
        const families = all.map(({ families: [family] }, n): FamilyView => {
          const order = isSorted ? picked[n]!.toSorted((a, b) => a - b) : picked[n]!;
          return { ...family!, series: order.map((i) => family!.series[i]!) };
        });
        const view = { families, numbers: () => values, release() {} };
        return [await pageOf(view, format, renderer), await pageOf(view, format, createRenderer('p_'))];
      });
      for (const [kept, fresh] of await Promise.all(renderings)) expect(kept).toBe(fresh);
    }),
    { numRuns: runs(300) },
  );
});

test('two pages that are rendered at once do not mix their series', async () => {
  const view = seriesOf('counter', 5_000);
  const [family] = view.families;
  const odd = { ...view, families: [{ ...family!, series: family!.series.filter((_, i) => i % 2 === 0) }] };
  const renderer = createRenderer();
  const [whole, half] = await Promise.all([pageOf(view, 'text', renderer), pageOf(odd, 'text', renderer)]);
  expect(whole).toBe(await pageOf(view));
  expect(half).toBe(await pageOf(odd));
});

test.each([
  0,
  -0,
  9,
  10,
  99,
  2_147_483_647,
  2_147_483_648,
  -1,
  0.1,
  1e21,
  5e-324,
  Number.NaN,
  Number.POSITIVE_INFINITY,
])('the number %d is written as its text', async (value) => {
  const view = viewOf([{ name: 'a', kind: 'gauge', series: [{ numbers: [value] }] }]);
  const shown = value === Number.POSITIVE_INFINITY ? '+Inf' : String(value);
  expect(await pageOf(view)).toBe(`# TYPE a gauge\na ${shown}\n`);
});

test('a series of which one line is longer than a piece is shown whole', async () => {
  const labels = { long: 'ä'.repeat(100_000) };
  const view = viewOf([{ name: 'a', kind: 'gauge', series: [{ labels, numbers: [1] }, { numbers: [2] }] }]);
  expect(await pageOf(view)).toBe(`# TYPE a gauge\na{long="${labels.long}"} 1\na 2\n`);
});
