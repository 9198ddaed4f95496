import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { wideHash } from '../../../src/core/hashes.ts';
import type { PartedSeries } from '../../../src/core/registry/intake.ts';
import { createRefusedLines } from '../../../src/core/registry/refused-series.ts';
import { testRegistry, wideLimits } from '../../registry.ts';

const hashOf = (text: string) => {
  const bytes = Buffer.from(text);
  return wideHash(new DataView(bytes.buffer, bytes.byteOffset, bytes.length), 0, bytes.length);
};

/** A source of one counter family, like a scrape: handles for admitted series, hashes for the rest. */
function source(seriesPerMetric: number, mostLines = 1000) {
  const bed = testRegistry({ limits: { ...wideLimits, seriesPerMetric } });
  const { intake, store } = bed.page();
  const refused = createRefusedLines(mostLines);
  const held = new Map<string, PartedSeries>();
  const line = (name: string, value: number) => {
    const known = held.get(name);
    if (known) known.part(0).set(value);
    else if (!refused.set(hashOf(name), value)) {
      const opened = intake.parts('counter', 'x', { i: name });
      if (!opened.refused) {
        held.set(name, opened);
        opened.part(0).set(value);
        return;
      }
      refused.add(hashOf(name), value, intake.overflowOf(opened), 0);
      opened.release();
    }
  };
  return {
    ...bed,
    refused,
    close: () => intake.close(),
    page(values: Record<string, number>, isComplete = true) {
      for (const [name, value] of Object.entries(values)) line(name, value);
      if (!isComplete) return;
      refused.endPage();
      store.swap();
    },
    sum: () => bed.shown()['x{overflow="true"}'],
  };
}

describe('lines over the limit', () => {
  it('add their increases to the overflow series, through restarts, absence and return', () => {
    const { page, sum } = source(1);
    page({ a: 100, b: 5, c: 7 });
    expect(sum()).toBe(12);
    page({ a: 101, b: 6, c: 3 });
    expect(sum()).toBe(12 + 1 + 3);
    page({ a: 102, b: 6 });
    page({ a: 103, b: 6, c: 4 });
    expect(sum()).toBe(12 + 1 + 3 + 1);
  });

  it('count each of them once as refused, and hold neither handle nor claim for it', () => {
    const { page, refused, registry } = source(2, 20_000);
    const values = Object.fromEntries(Array.from({ length: 10_000 }, (_, i) => [`s${i}`, i]));
    page(values);
    page(values);
    expect(refused.size).toBe(9998);
    const status = registry.status();
    expect(status.refusals).toEqual([{ family: 'x', reason: 'limit_metric', count: 9998 }]);
    expect(status).toMatchObject({ series: 2, overflow: 1 });
  });

  it('never lower the sum, whatever is sent, and agree with increases counted one by one', () => {
    const pageOf = fc.dictionary(fc.constantFrom('b', 'c', 'd', 'e'), fc.nat(100));
    fc.assert(
      fc.property(fc.array(pageOf, { maxLength: 12 }), (pages) => {
        const { page, sum } = source(1);
        page({ a: 1 });
        const last = new Map<string, number>();
        let expected = 0;
        for (const values of pages) {
          page({ a: 1, ...values });
          for (const [name, value] of Object.entries(values)) {
            const before = last.get(name) ?? 0;
            expected += value >= before ? value - before : value;
            last.set(name, value);
          }
          expect(sum() ?? 0).toBe(expected);
        }
      }),
    );
  });

  it('past the bound count the increases of their sum; a fall adds nothing', () => {
    const { page, sum, refused } = source(1, 2);
    page({ a: 1, b: 10, c: 10, d: 10, e: 10 });
    expect([refused.size, sum()]).toEqual([2, 40]);
    page({ a: 1, b: 11, c: 10, d: 12, e: 13 });
    expect(sum()).toBe(40 + 1 + 5);
    page({ a: 1, b: 11, c: 10, d: 12 });
    expect(sum()).toBe(46);
    page({ a: 1, b: 11, c: 10, d: 13 });
    expect(sum()).toBe(47);
  });

  it('that are not sent any more make room for new ones', () => {
    const { page, sum, refused } = source(1, 2);
    page({ a: 1, b: 1, c: 1 });
    for (let i = 0; i < 3; i++) page({ a: 1 });
    const before = sum();
    page({ a: 1, d: 5, e: 5 });
    page({ a: 1, d: 6, e: 6 });
    expect(refused.size).toBe(2);
    // The earlier counts of d and e are unknown: they may be lines that were forgotten.
    expect(sum()).toBe(Number(before) + 2);
  });

  it.each([
    ['before', ['b', 'd']],
    ['after', ['d', 'b']],
  ])('that are still sent stay when others make room, %s the new line', (_, order) => {
    const { page, sum, refused } = source(1, 2);
    const ofPage = (values: Record<string, number>) =>
      Object.fromEntries(order.flatMap((name) => (name in values ? [[name, values[name]!]] : [])));
    page({ a: 1, b: 1, c: 1 });
    page({ a: 1, b: 2 });
    page({ a: 1, b: 3 });
    page({ a: 1, ...ofPage({ b: 4, d: 5 }) });
    expect(refused.size).toBe(2);
    page({ a: 1, ...ofPage({ b: 7, d: 6 }) });
    // b has counted 7 and c 1; the first value of d may have been counted before.
    expect(sum()).toBe(7 + 1 + 1);
  });

  it('count their first value again once their source has forgotten all of them', () => {
    const { page, sum, refused } = source(1, 1);
    page({ a: 1, b: 1, c: 1 });
    for (let i = 0; i < 2; i++) page({ a: 1 });
    page({ a: 1, c: 2 });
    refused.clear();
    page({ a: 1, c: 4 });
    expect([refused.size, sum()]).toEqual([1, 4]);
    page({ a: 1, c: 5 });
    expect(sum()).toBe(5);
  });

  it('without a finite value are known, and begin with the next that is', () => {
    const { page, sum, refused } = source(1);
    page({ a: 1, b: Number.NaN, c: 3 });
    expect(refused.size).toBe(2);
    page({ a: 1, b: 5, c: Number.POSITIVE_INFINITY });
    page({ a: 1, b: 7, c: 4 });
    // The total of b is not known before 5; c continues from 3.
    expect(sum()).toBe(3 + 2 + 1);
    const full = source(1, 1);
    full.page({ a: 1, b: 1, c: Number.NaN, d: 2 });
    expect(full.sum()).toBe(1 + 2);
  });

  it('of a page that is discarded add what their next page adds', () => {
    const { page, sum } = source(1);
    page({ a: 1, b: 5 });
    page({ a: 1, b: 8 }, false);
    page({ a: 1, b: 9 });
    expect(sum()).toBe(9);
  });

  it('of a kind without a sum are known as refused and cost no series', () => {
    const bed = testRegistry({ limits: { ...wideLimits, seriesPerMetric: 1 } });
    const intake = bed.intake();
    intake.gauge('g', { i: '1' }).set(1);
    const over = intake.parts('gauge', 'g', { i: '2' });
    const refused = createRefusedLines(10);
    refused.add(hashOf('2'), 5, intake.overflowOf(over), 0);
    over.release();
    expect(refused.set(hashOf('2'), 6)).toBe(true);
    expect(refused.countedNowhere).toBe(true);
    expect(bed.shown()).toEqual({ 'g{i="1"}': 1 });
  });

  it('without a target count nowhere, nor when there is no room for them', () => {
    const refused = createRefusedLines(1);
    for (const name of ['1', '2']) refused.add(hashOf(name), 5, undefined, 0);
    refused.endPage();
    expect(refused.size).toBe(1);
    expect([refused.set(hashOf('1'), 6), refused.countedNowhere, refused.set(hashOf('2'), 6)]).toEqual([
      true,
      true,
      false,
    ]);
  });

  it('leave no series behind when their source forgets them', () => {
    const { page, refused, close, registry } = source(1);
    page({ a: 1, b: 5, c: 5 });
    refused.clear();
    expect(registry.status()).toMatchObject({ series: 1, overflow: 0 });
    close();
    expect(registry.status()).toMatchObject({ series: 0, overflow: 0 });
  });
});

it('hashes of 300,000 lines are distinct', () => {
  const hashes = new Set<number>();
  for (let i = 0; i < 300_000; i++) hashes.add(hashOf(`svc_requests{operation="Op${i}",domain="d${i % 7}"}`));
  expect(hashes.size).toBe(300_000);
  expect([...hashes].every((hash) => Number.isSafeInteger(hash) && hash > 0)).toBe(true);
});
