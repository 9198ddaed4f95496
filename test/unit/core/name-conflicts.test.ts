import { describe, expect, it } from 'vitest';
import type { OpenIntake } from '../../../src/core/registry/intake.ts';
import { testRegistry, wideLimits } from '../../registry.ts';

/** Raw names that all sanitize to `a_a_a_…`: each separator is one of two characters. */
const rawName = (i: number) =>
  Array.from({ length: 16 }, (_, bit) => ((i >> bit) & 1 ? 'a.' : 'a-')).join('');

const count = 8_192;

/** The order in which the raw names arrive. */
const orders: [string, (i: number) => number][] = [
  ['ascending', (i) => i],
  ['descending', (i) => count - 1 - i],
  ['mixed', (i) => (i * 12_345) % count],
];

describe('8,192 raw names that sanitize to one family', () => {
  it.each(orders)('of one kind, %s, merge and close', (_, at) => {
    const { registry, intake, shown } = testRegistry();
    const source = intake();
    for (let i = 0; i < count; i++) source.counter(rawName(at(i)), {}).add(1);
    expect(Object.values(shown())).toEqual([count]);
    source.close();
    expect(registry.status()).toMatchObject({ series: 0, overflow: 0, conflicts: [] });
  });

  it.each(orders)('of two kinds, %s, leave the name to the smallest and close', (_, at) => {
    const { registry, intake, shown } = testRegistry({ limits: { ...wideLimits, seriesPerMetric: 200 } });
    const source = intake();
    // Half of the names are gauges, each of which is a separate series.
    for (let i = 0; i < count; i++) {
      const n = at(i);
      if (n % 2) source.gauge(rawName(n), { n: `${n}` }).set(1);
      else source.counter(rawName(n), { n: `${n}` }).add(1);
    }
    const view = registry.view();
    // "-" sorts before ".": name 0 is the smallest, and a counter.
    expect(view.families.filter(({ name }) => name.startsWith('a_')).map(({ kind }) => kind)).toEqual([
      'counter',
    ]);
    view.release();
    expect(Object.keys(shown()).length).toBeLessThanOrEqual(201);
    source.close();
    expect(registry.status()).toMatchObject({ series: 0, overflow: 0, conflicts: [] });
  });
});

it.each([20, 21])('a view decides about a name whose winner has changed %i times', (count) => {
  const { intake, shown } = testRegistry();
  const source = intake();
  // Each raw name is smaller than those before it, and of another kind than the last one.
  const names = Array.from({ length: count }, (_, i) =>
    [...(count - 1 - i).toString(2).padStart(5, '0')].map((bit) => (bit === '1' ? 'a.' : 'a-')).join(''),
  );
  for (const [i, name] of names.entries()) {
    if (i % 2 === 0) source.gauge(name, {}).set(7);
    else source.counter(name, {}).add(1);
  }
  shown();
  const last = names.at(-1)!;
  if (count % 2 === 1) source.gauge(last, {}).set(9);
  else source.counter(last, {}).add(3);
  expect(Object.values(shown())).toEqual([count % 2 === 1 ? 9 : 3]);
});

it('handles that wait are bounded by the limits, and the first of them return', () => {
  const { registry, intake, shown } = testRegistry({ limits: { ...wideLimits, seriesPerMetric: 150 } });
  const source = intake();
  const winner = source.counter('a-b', {});
  for (let i = 0; i < 1000; i++) source.gauge('a.b', { i: `${i}` });
  expect(registry.status().refusals).toEqual([{ family: 'a_b', reason: 'kind_conflict', count: 1000 }]);
  winner.release();
  expect(Object.keys(shown())).toHaveLength(150);
});

describe('closing an intake in slices', () => {
  const many = (intake: OpenIntake) => {
    for (let i = 0; i < 5000; i++) intake.counter('x', { i: `${i}` }).add(1);
  };

  it('pauses each 5 ms, and opens nothing meanwhile', async () => {
    const { registry, intake, clock } = testRegistry({ limits: { ...wideLimits, seriesPerMetric: 10_000 } });
    const source = intake();
    many(source);
    const left: number[] = [];
    // Each read of the clock, after 64 series, advances it by 3 ms.
    const nowMs = clock.monotonicMs;
    let lookups = 0;
    clock.monotonicMs = () => nowMs() + 3 * lookups++;
    await source.closeInSlices(async () => {
      left.push(registry.status().series);
      expect(source.parts('counter', 'x', { i: 'new' }).refused).toBe(true);
    });
    expect(left.length).toBeGreaterThan(30);
    expect(left[0]).toBe(5000 - 128);
    expect(registry.status().series).toBe(0);
  });

  it('keeps durable series for the successor', async () => {
    const { registry, intake, shown, commit } = testRegistry({
      limits: { ...wideLimits, seriesPerMetric: 10_000 },
    });
    const options = { store: registry.durable, component: 'logs', relayed: false } as const;
    const before = intake(options);
    many(before);
    commit();
    await before.closeInSlices(async () => {});
    const after = intake(options);
    expect(after.restore('counter', 'x')).toHaveLength(5000);
    commit();
    expect(Object.keys(shown())).toHaveLength(5000);
  });
});
