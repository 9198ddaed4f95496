import { describe, expect, it } from 'vitest';
import type { Intake } from '../../../src/core/model.ts';
import { createDurableStore } from '../../../src/core/registry/durable-store.ts';
import { createPageStore } from '../../../src/core/registry/value-stores.ts';
import { testRegistry, wideLimits } from '../../registry.ts';

const limits = (seriesPerMetric: number, series = 1000) => ({ ...wideLimits, seriesPerMetric, series });

describe('over the limit of a family', () => {
  it('counters add up in one series per service, beside the global tags, on top of the limit', () => {
    const { registry, intake, shown, refused } = testRegistry({ limits: limits(2) });
    const source = intake({ tagService: true, globalTags: { cluster: 'dc1' } });
    for (let i = 0; i < 6; i++) source.counter('x', { i: `${i}` }).set(10 + i);
    source.counter('x', { i: '5' }).set(20);
    expect(shown()).toEqual({
      'x{cluster="dc1",i="0",svc_service="frontend"}': 10,
      'x{cluster="dc1",i="1",svc_service="frontend"}': 11,
      'x{cluster="dc1",overflow="true",svc_service="frontend"}': 12 + 13 + 14 + 20,
    });
    expect(refused('x', 'limit_metric')).toBe(4);
    expect(registry.status()).toMatchObject({ series: 2, overflow: 1 });
  });

  it('there is one in all where no series has a service', () => {
    const { intake, shown } = testRegistry({ limits: limits(1) });
    const source = intake();
    for (let i = 0; i < 3; i++) source.counter('x', { i: `${i}` }).add(1);
    expect(shown()).toEqual({ 'x{i="0"}': 1, 'x{overflow="true"}': 2 });
  });

  it('services that a sender makes up count for its own', () => {
    const { intake, shown } = testRegistry({ limits: limits(1) });
    const source = intake({ tagService: true });
    for (let i = 0; i < 50; i++) source.counter('x', { svc_service: `s${i}` }).add(1);
    expect(shown()).toEqual({ 'x{svc_service="s0"}': 1, 'x{overflow="true",svc_service="frontend"}': 49 });
  });

  it('the sum never falls, whoever vanishes, restarts or comes back', () => {
    const { intake, shown } = testRegistry({ limits: limits(1) });
    const source = intake();
    const [, b, c] = ['a', 'b', 'c'].map((i) => source.counter('x', { i }));
    b!.set(5);
    c!.set(7);
    b!.set(2);
    c!.release();
    expect(shown()['x{overflow="true"}']).toBe(14);
    source.counter('x', { i: 'c' }).set(8);
    expect(shown()['x{overflow="true"}']).toBe(15);
  });

  it('histograms of equal buckets add up, others are refused', () => {
    const { intake, shown, refused } = testRegistry({ limits: limits(1) });
    const source = intake();
    for (const i of ['a', 'b', 'c']) source.histogram('h', { i }, { bounds: [1] }).observe(0.5);
    source.histogram('h', { i: 'd' }, { bounds: [2] }).observe(0.5);
    expect(shown()).toEqual({ 'h{i="a"}': [1, 1, 0.5, 1], 'h{overflow="true"}': [2, 2, 1, 2] });
    expect([refused('h', 'limit_metric'), refused('h', 'unequal_buckets')]).toEqual([2, 1]);
  });

  it.each(['gauge', 'summary', 'untyped'] as const)('a %s is refused and its updates are counted', (kind) => {
    const { intake, shown, refused, dropped } = testRegistry({ limits: limits(1) });
    const source = intake();
    for (const i of ['a', 'b', 'c']) source.parts(kind, 'g', { i }).part(0).set(1);
    expect(Object.keys(shown())).toEqual(['g{i="a"}']);
    expect([refused('g', 'limit_metric'), dropped('refused_series')]).toEqual([2, 2]);
  });

  it('a freed slot makes room for who asks next', () => {
    const { intake, shown } = testRegistry({ limits: limits(1) });
    const source = intake();
    const first = source.gauge('g', { i: 'a' });
    const second = source.gauge('g', { i: 'b' });
    first.release();
    second.release();
    source.gauge('g', { i: 'b' }).set(3);
    expect(shown()).toEqual({ 'g{i="b"}': 3 });
  });

  it('two sources do not share a sum', () => {
    const { intake, shown, refused } = testRegistry({ limits: limits(1) });
    const [low, high] = [intake({ rank: 0 }), intake({ rank: 1 })];
    low.counter('x', { i: 'a' }).add(1);
    low.counter('x', { i: 'b' }).add(2);
    high.counter('x', { i: 'c' }).add(4);
    expect(shown()).toEqual({ 'x{i="a"}': 1, 'x{overflow="true"}': 2 });
    expect(refused('x', 'duplicate_source')).toBe(1);
  });

  it('of the state: what was there before is in first, and the sum goes on', () => {
    const of = ({ registry, intake }: ReturnType<typeof testRegistry>) => intake({ store: registry.durable });
    const first = testRegistry({ limits: limits(2) });
    for (const i of ['a', 'b', 'c']) of(first).counter('x', { i }).add(1);
    const { table, values } = first.registry.durable.freeze();
    const durable = createDurableStore();
    durable.restore(table, values);
    const second = testRegistry({ limits: limits(2), durable });
    const source = of(second);
    expect(source.restore('counter', 'x', { tags: ['i'] })).toEqual([{ i: 'a' }, { i: 'b' }]);
    for (const i of ['d', 'c', 'b']) source.counter('x', { i }).add(1);
    second.commit();
    expect(second.shown()).toEqual({ 'x{i="a"}': 1, 'x{i="b"}': 2, 'x{overflow="true"}': 3 });
    expect(second.registry.status()).toMatchObject({ series: 2, overflow: 1 });
  });
});

describe('the heap that series may take', () => {
  it('bounds families, whose first series are refused', () => {
    const { registry, intake, shown, refused } = testRegistry({
      limits: { ...limits(2000, 50_000), heapBytes: 1e6 },
    });
    const source = intake();
    for (let i = 0; i < 5000; i++) source.gauge(`g_${i}`, {}).set(1);
    const families = Object.keys(shown()).filter((key) => key.startsWith('g_')).length;
    expect(families).toBeGreaterThan(100);
    expect(families).toBeLessThan(1e6 / 2000);
    const counted = registry.status().refusals.filter(({ reason }) => reason === 'limit_memory');
    expect(counted.reduce((sum, { count }) => sum + count, 0)).toBe(5000 - families);
    expect(refused('other', 'limit_memory')).toBeGreaterThan(0);
  });

  it('bounds text: long values leave room for fewer series, and their sum stays right', () => {
    const sumOf = (length: number) => {
      const { intake, shown } = testRegistry({ limits: { ...limits(2000), heapBytes: 1e6 } });
      const source = intake();
      for (let i = 0; i < 1000; i++) source.counter('c', { i: `${i}${'x'.repeat(length)}` }).add(1);
      const values = Object.entries(shown()).filter(([key]) => key.startsWith('c{'));
      return { series: values.length, sum: values.reduce((sum, [, value]) => sum + Number(value), 0) };
    };
    const [short, long] = [sumOf(10), sumOf(4000)];
    expect([short.sum, long.sum]).toEqual([1000, 1000]);
    expect(long.series * 10).toBeLessThan(short.series);
  });

  it('is free again for others when series are released', () => {
    const { intake, shown } = testRegistry({ limits: { ...limits(2000), heapBytes: 1e5 } });
    const source = intake();
    for (let round = 0; round < 20; round++) {
      const handles = Array.from({ length: 100 }, (_, i) => source.gauge(`g_${round}_${i}`, {}));
      expect(Object.keys(shown()).some((key) => key.startsWith(`g_${round}_`))).toBe(true);
      for (const handle of handles) handle.release();
    }
  });
});

describe('a source that starts after another has taken all it can', () => {
  /** Opens up to `count` gauges, each in a separate family; returns how many are shown. */
  const fill = ({ gauge }: Intake, shown: () => object, prefix: string, count: number) => {
    for (let i = 0; i < count; i++) gauge(`${prefix}_${i}`, {}).set(1);
    return Object.keys(shown()).filter((key) => key.startsWith(`${prefix}_`)).length;
  };

  it('has its share of the series: a quarter of the limit, divided among the sources', () => {
    const { registry, intake, shown } = testRegistry({ limits: limits(2000, 400) });
    const [hostile, honest, other, last] = Array.from({ length: 4 }, () => intake());
    expect(fill(hostile!, shown, 'hostile', 1000)).toBe(325);
    expect(fill(honest!, shown, 'honest', 1000)).toBe(25);
    expect(fill(other!, shown, 'other', 10)).toBe(10);
    expect(fill(last!, shown, 'last', 25)).toBe(25);
    expect(fill(other!, shown, 'other_more', 1000)).toBe(15);
    expect(registry.status().series).toBe(400);
  });

  it('has its share of the heap, families included', () => {
    const { intake, shown } = testRegistry({ limits: { ...limits(2000, 50_000), heapBytes: 4e6 } });
    const [hostile, honest] = [intake(), intake()];
    const most = fill(hostile, shown, 'hostile', 5000);
    expect(fill(hostile, shown, 'again', 100)).toBe(0);
    const share = fill(honest, shown, 'honest', 5000);
    expect(share / (most + share)).toBeGreaterThan(0.1);
    expect(share / (most + share)).toBeLessThan(0.15);
  });

  it('takes no room from the others while it has its own, nor once it has ended', () => {
    const { intake, shown } = testRegistry({ limits: limits(2000, 400) });
    const [first, second] = [intake(), intake()];
    expect(fill(second, shown, 'second', 50)).toBe(50);
    expect(fill(first, shown, 'first', 1000)).toBe(350);
    second.close();
    expect(fill(first, shown, 'more', 1000)).toBe(50);
  });
});

describe('what the agent finds itself', () => {
  it('is not refused by the limits of what senders send, and takes no room from it', () => {
    const { registry, intake, shown } = testRegistry({ limits: limits(2, 3) });
    const own = intake({ received: false });
    for (let i = 0; i < 10; i++) own.counter('svc_probe_failures_total', { i: `${i}` }).add(1);
    for (let i = 0; i < 2; i++)
      intake()
        .counter('x', { i: `${i}` })
        .add(1);
    expect(Object.keys(shown()).filter((key) => key.startsWith('svc_probe_failures_total{'))).toHaveLength(
      10,
    );
    expect(registry.status()).toMatchObject({ series: 2, overflow: 0 });
  });
});

describe('over the limit of all', () => {
  it('every family has its sum still', () => {
    const { intake, shown, refused } = testRegistry({ limits: limits(10, 2) });
    const source = intake();
    for (const name of ['a', 'b', 'c', 'd']) source.counter(name, {}).add(1);
    source.gauge('e', {}).set(1);
    expect(shown()).toEqual({ a: 1, b: 1, 'c{overflow="true"}': 1, 'd{overflow="true"}': 1 });
    expect([refused('c', 'limit_total'), refused('e', 'limit_total')]).toEqual([1, 1]);
  });

  it('names that a sender makes up end as well', () => {
    const { registry, intake } = testRegistry({ limits: limits(10, 10) });
    const source = intake();
    for (let i = 0; i < 3000; i++) source.counter(`x${i}`, {}).add(1);
    expect(registry.status()).toMatchObject({ series: 10, overflow: 1000 });
    const view = registry.view();
    expect(view.families.filter((family) => family.name.startsWith('x'))).toHaveLength(1010);
    view.release();
  });

  it('the agent’s own closed sets are not limited', () => {
    const { dropped, intake } = testRegistry({ limits: limits(1, 1) });
    intake().counter('x', {}).add(-1);
    expect(dropped('negative_delta')).toBe(1);
  });
});

describe('what is there after a flood', () => {
  it('a million tag values leave the limit, one sum that is right, and no memory of names once released', () => {
    const { registry, intake, shown } = testRegistry({ limits: limits(100) });
    const source = intake();
    const n = 20_000;
    const handles = Array.from({ length: n }, (_, i) => source.counter('x', { i: `${i}` }));
    for (const handle of handles) handle.add(1);
    expect(Object.values(shown()).reduce((sum: number, value) => sum + (value as number), 0)).toBe(n);
    expect(Object.keys(shown())).toHaveLength(101);
    for (const handle of handles) handle.release();
    expect(shown()).toEqual({});
    expect(registry.status()).toMatchObject({ series: 0, overflow: 0 });
  });

  it('a closed intake takes nothing in, and counts what it is told still', () => {
    const { page, registry, shown, dropped } = testRegistry();
    const { intake, store } = page();
    const part = intake.parts('counter', 'x', {}).part(0);
    intake.close();
    part.set(1);
    const late = intake.counter('y', {});
    late.add(1);
    late.release();
    store.swap();
    expect(shown()).toEqual({});
    expect([dropped('refused_series'), registry.status().series]).toEqual([2, 0]);
  });

  it('a closed intake leaves nothing', () => {
    const { registry, intake, shown } = testRegistry();
    const before = registry.status();
    const store = createPageStore();
    const source = intake({ store });
    for (let i = 0; i < 300; i++) source.gauge('g', { user_id: `${i}` }).set(i);
    for (let i = 0; i < 300; i++) source.counter('c', { user_id: `${i}` }).set(i);
    source.histogram('c', {});
    source.close();
    store.swap();
    expect(shown()).toEqual({});
    expect(registry.status()).toMatchObject({ series: before.series, overflow: 0, conflicts: [] });
  });
});

it('the overflow of a refused series is of the role that it names, while that role has a series in the family', () => {
  const { intake, shown } = testRegistry({ limits: limits(2) });
  const source = intake({ service: 'frontend', tagService: true });
  const open = (tags: Record<string, string>) => {
    const handle = source.counter('c', tags);
    handle.add(1);
    return handle;
  };
  const overflow = () => Object.keys(shown()).filter((name) => name.includes('overflow'));
  const worker = open({ svc_service: 'worker', i: 'a' });
  open({ i: 'b' });
  const refused = open({ svc_service: 'worker', i: 'c' });
  expect(overflow()).toEqual(['c{overflow="true",svc_service="worker"}']);
  refused.release();
  worker.release();
  open({ i: 'd' });
  open({ svc_service: 'worker', i: 'e' });
  expect(overflow()).toContain('c{overflow="true",svc_service="frontend"}');
});
