import { describe, expect, it } from 'vitest';
import { createDurableStore } from '../../../src/core/registry/durable-store.ts';
import { testRegistry } from '../../registry.ts';

const bytes = (text: string) => new TextEncoder().encode(text);

describe('immediate values', () => {
  it('are shown as they are, and a view of them does not move', () => {
    const { registry, intake, shown } = testRegistry();
    const counter = intake().counter('x', {});
    const view = registry.view();
    const before = view.families.find((family) => family.name === 'x')!.series[0]!;
    counter.add(3);
    expect(view.numbers(before)[before.at]).toBe(0);
    expect(shown()).toEqual({ x: 3 });
    view.release();
  });

  it('leave views that hold them alone when their cells are used again', () => {
    const { registry, intake, shown } = testRegistry();
    const source = intake();
    const old = source.counter('x', { a: '1' });
    old.add(1);
    const view = registry.view();
    old.release();
    source.counter('x', { a: '2' }).add(50);
    const seen = view.families.find((family) => family.name === 'x')!.series;
    expect(seen.map((series) => [series.labels, view.numbers(series)[series.at]])).toEqual([
      [[['a', '1']], 1],
    ]);
    expect(shown()).toEqual({ 'x{a="2"}': 50 });
  });
});

/** A page with the counter `a`. */
function onePart() {
  const bed = testRegistry();
  const { intake, store } = bed.page();
  return { ...bed, intake, store, part: intake.parts('counter', 'a', {}).part(0) };
}

describe('a page', () => {
  it('is shown whole, or not at all', () => {
    const { page, shown } = testRegistry();
    const { intake, store } = page();
    const a = intake.parts('counter', 'a', {}).part(0);
    const b = intake.parts('gauge', 'b', {}).part(0);
    a.set(1);
    expect(shown()).toEqual({});
    b.set(2);
    store.swap();
    expect(shown()).toEqual({ a: 1, b: 2 });
    a.set(10);
    expect(shown()).toEqual({ a: 1, b: 2 });
    store.swap();
    expect(shown()).toEqual({ a: 10, b: 2 });
  });

  it('goes with its target and comes back with the next page', () => {
    const { shown, intake, store, part } = onePart();
    part.set(1);
    store.swap();
    store.hide();
    expect(shown()).toEqual({});
    part.set(2);
    expect(shown()).toEqual({});
    store.swap();
    expect(shown()).toEqual({ a: 2 });
    intake.close();
    expect(shown()).toEqual({});
  });

  it('does not move under a view, over any number of later pages and when it grows', () => {
    const { registry, intake, store, part } = onePart();
    part.set(7);
    store.swap();
    const view = registry.view();
    const series = view.families.find((family) => family.name === 'a')!.series[0]!;
    for (let round = 0; round < 5; round++) {
      for (let i = 0; i < 400; i++)
        intake
          .parts('counter', 'b', { i: `${round} ${i}` })
          .part(0)
          .set(9);
      part.set(100 + round);
      store.swap();
      expect(view.numbers(series)[series.at]).toBe(7);
    }
    view.release();
    const later = registry.view();
    expect(later.numbers(series)[series.at]).toBe(104);
    later.release();
  });

  it('does not move under a view while later pages of the same size take turns', () => {
    const { registry, store, part } = onePart();
    for (const value of [5, 6, 7]) {
      part.set(value);
      store.swap();
    }
    const [other, view] = [registry.view(), registry.view()];
    // The other view alone protects the page.
    other.release();
    const series = view.families.find((family) => family.name === 'a')!.series[0]!;
    for (let round = 0; round < 4; round++) {
      part.set(100 + round);
      store.swap();
      expect(view.numbers(series)[series.at]).toBe(7);
    }
    view.release();
  });

  it('uses two arrays in turn as long as nobody holds one', () => {
    const { store, part } = onePart();
    const seen = new Set<Float64Array>();
    for (let round = 0; round < 6; round++) {
      part.set(round);
      store.swap();
      const held = store.hold();
      if (round > 0) seen.add(held.values);
      held.release();
    }
    expect(seen.size).toBe(2);
  });

  it('says when a counter began again only once that is shown', () => {
    const { registry, clock, store, part } = onePart();
    part.set(7);
    store.swap();
    const view = registry.view();
    const series = view.families.find((family) => family.name === 'a')!.series[0]!;
    const began = series.startMs;
    clock.advance(1000);
    part.set(2);
    expect(series.startMs).toBe(began);
    store.swap();
    expect(series.startMs).toBe(began + 1000);
  });
});

describe('durable values', () => {
  const durable = (options = {}) => {
    const test = testRegistry(options);
    const intake = test.intake({
      store: test.registry.durable,
      component: 'logs',
      relayed: false,
      tagService: true,
    });
    return { ...test, logs: intake };
  };

  it('move only when a freeze is published', () => {
    const { registry, logs, shown } = durable();
    const counter = logs.counter('x', {});
    counter.add(1);
    expect(shown()).toEqual({});
    const frozen = registry.durable.freeze();
    counter.add(1);
    logs.counter('x', { later: '1' }).add(5);
    expect(shown()).toEqual({});
    registry.durable.publish(frozen);
    expect(shown()).toEqual({ 'x{svc_service="frontend"}': 1 });
    registry.durable.publish(registry.durable.freeze());
    expect(shown()).toEqual({ 'x{svc_service="frontend"}': 2, 'x{later="1",svc_service="frontend"}': 5 });
  });

  it('do not show a series through another one’s cell', () => {
    const { registry, logs, shown, commit } = durable();
    const old = logs.counter('x', { a: '1' });
    old.add(7);
    commit();
    const frozen = registry.durable.freeze();
    old.release();
    logs.counter('x', { a: '2' });
    registry.durable.publish(frozen);
    expect(shown()).toEqual({});
    commit();
    expect(shown()).toEqual({ 'x{a="2",svc_service="frontend"}': 0 });
  });

  it('never go back to an older freeze', () => {
    const { registry, logs, shown } = durable();
    const counter = logs.counter('x', {});
    const first = registry.durable.freeze();
    counter.add(4);
    registry.durable.publish(registry.durable.freeze());
    registry.durable.publish(first);
    expect(shown()).toEqual({ 'x{svc_service="frontend"}': 4 });
  });

  it('give the same table until a series comes or goes', () => {
    const { registry, logs } = durable();
    const counter = logs.counter('x', {});
    const { table, seq } = registry.durable.freeze();
    counter.add(1);
    const next = registry.durable.freeze();
    expect([next.table === table, next.seq]).toEqual([true, seq + 1]);
    logs.counter('y', {});
    expect(registry.durable.freeze().table).not.toBe(table);
  });

  /** A second run with the state: what a restart reads from the last freeze. */
  const restart = (registry: ReturnType<typeof durable>['registry']) => {
    const { table, values } = registry.durable.freeze();
    const store = createDurableStore();
    store.restore(table.slice(), values.slice());
    return durable({ durable: store });
  };

  it('come back after a restart, before anybody asks for them', () => {
    const first = durable();
    first.logs.counter('x', { a: '1' }).add(3);
    first.logs.histogram('h', { a: '😀"\n' }, { bounds: [1, 2] }).observe(1.5);
    const { logs, shown, commit, registry } = restart(first.registry);
    expect(logs.restore('counter', 'x', { tags: ['a'] })).toEqual([{ a: '1' }]);
    logs.restore('histogram', 'h', { bounds: [1, 2], tags: ['a'] });
    expect(shown()).toEqual({});
    commit();
    const both = {
      'x{a="1",svc_service="frontend"}': 3,
      'h{a="😀\\"\\n",svc_service="frontend"}': [0, 1, 1, 1.5, 1],
    };
    expect(shown()).toEqual(both);
    logs.counter('x', { a: '1' }).add(1);
    commit();
    expect(shown()).toEqual({ ...both, 'x{a="1",svc_service="frontend"}': 4 });
    expect(registry.durable.retainedCount).toBe(0);
  });

  it('come back when they are asked for without a declaration', () => {
    const first = durable();
    first.logs.counter('x', {}).add(3);
    const { logs, shown, commit } = restart(first.registry);
    logs.counter('x', {}).add(1);
    commit();
    expect(shown()).toEqual({ 'x{svc_service="frontend"}': 4 });
  });

  it('keep when a counter began', () => {
    const first = durable();
    first.logs.counter('x', {});
    const second = restart(first.registry);
    second.clock.advance(60_000);
    second.logs.restore('counter', 'x');
    second.commit();
    const view = second.registry.view();
    expect(view.families.find((family) => family.name === 'x')!.series[0]!.startMs).toBe(first.clock.nowMs());
  });

  it.each<[string, Parameters<ReturnType<typeof durable>['logs']['restore']>]>([
    ['kind', ['gauge', 'x', { tags: ['a'] }]],
    ['labels', ['counter', 'x', { tags: ['b'] }]],
  ])('start at 0 when the rule’s %s changed', (_, declaration) => {
    const first = durable();
    first.logs.counter('x', { a: '1' }).add(3);
    const { logs, registry, commit, shown } = restart(first.registry);
    logs.restore(...declaration);
    commit();
    expect([shown(), registry.durable.retainedCount]).toEqual([{}, 0]);
  });

  it.each([[[1, 3]], [[1]], [[1, 2, 3]]])('start at 0 when the buckets changed to %j', (bounds) => {
    const nothing = Array<number>(bounds.length + 3).fill(0);
    for (const isRestored of [true, false]) {
      const first = durable();
      first.logs.histogram('h', {}, { bounds: [1, 2] }).observe(1.5);
      const { logs, commit, shown } = restart(first.registry);
      if (isRestored) logs.restore('histogram', 'h', { bounds });
      logs.histogram('h', {}, { bounds });
      commit();
      expect(shown()).toEqual({ 'h{svc_service="frontend"}': nothing });
    }
  });

  it('start at 0 when the global tags changed and no other family shows which they were', () => {
    const first = durable();
    first
      .intake({ store: first.registry.durable, globalTags: { cluster: 'a' } })
      .counter('x', {})
      .add(3);
    const second = restart(first.registry);
    const now = second.intake({ store: second.registry.durable, globalTags: { cluster: 'b' } });
    now.restore('counter', 'x');
    now.counter('x', {});
    second.commit();
    expect(second.shown()).toEqual({ 'x{cluster="b"}': 0 });
  });

  it('of services that are not watched stay in the state over any number of restarts, unseen', () => {
    const first = durable();
    const history = first.intake({ store: first.registry.durable, service: 'history', tagService: true });
    history.counter('x', {}).add(9);
    first.logs.counter('x', {}).add(1);
    const second = restart(first.registry);
    second.logs.restore('counter', 'x');
    second.commit();
    expect(second.shown()).toEqual({ 'x{svc_service="frontend"}': 1 });
    const third = restart(second.registry);
    third.logs.restore('counter', 'x');
    third
      .intake({ store: third.registry.durable, service: 'history', tagService: true })
      .restore('counter', 'x');
    third.commit();
    expect(third.shown()).toEqual({ 'x{svc_service="frontend"}': 1, 'x{svc_service="history"}': 9 });
  });

  it('are given up for a service when told so', () => {
    const first = durable();
    first.logs.counter('x', {}).add(1);
    first.intake({ store: first.registry.durable }).counter('y', {}).add(1);
    const { registry } = restart(first.registry);
    const before = registry.durable.retainedCount;
    registry.durable.forget('frontend');
    expect(before - registry.durable.retainedCount).toBe(1);
  });

  it('stay through a reload that closes and opens their intake', () => {
    const { registry, intake, logs, commit, shown } = durable();
    logs.counter('x', { a: '1' }).add(5);
    commit();
    logs.close();
    expect(shown()).toEqual({});
    const next = intake({ store: registry.durable, component: 'logs', relayed: false, tagService: true });
    next.restore('counter', 'x', { tags: ['a'] });
    expect(shown()).toEqual({ 'x{a="1",svc_service="frontend"}': 5 });
    next.counter('x', { a: '1' }).add(1);
    commit();
    expect(shown()).toEqual({ 'x{a="1",svc_service="frontend"}': 6 });
  });

  it('stay through a reload that comes before anybody asked for them, and give their name back', () => {
    const first = durable();
    first.logs.counter('x', { a: '1' }).add(3);
    first.logs.counter('x', { a: '2' }).add(4);
    const { logs, intake, shown, commit, registry } = restart(first.registry);
    const open = () =>
      intake({ store: registry.durable, component: 'logs', relayed: false, tagService: true });
    logs.restore('counter', 'x', { tags: ['a'] });
    commit();
    const both = { 'x{a="1",svc_service="frontend"}': 3, 'x{a="2",svc_service="frontend"}': 4 };
    expect([shown(), registry.durable.retainedCount]).toEqual([both, 0]);
    logs.close();
    expect([shown(), registry.durable.retainedCount]).toEqual([{}, 2]);
    const other = intake();
    other.gauge('x', {}).set(7);
    expect(shown()).toEqual({ x: 7 });
    other.close();
    const next = open();
    expect(next.restore('counter', 'x', { tags: ['a'] })).toEqual([{ a: '1' }, { a: '2' }]);
    commit();
    expect(shown()).toEqual(both);
    // A series that was requested belongs to its handle.
    next.counter('x', { a: '2' }).add(1);
    commit();
    next.close();
    const last = open();
    last.restore('counter', 'x', { tags: ['a'] });
    commit();
    expect(shown()).toEqual({ ...both, 'x{a="2",svc_service="frontend"}': 5 });
  });

  it('stay in the state while their name is a part of a histogram', () => {
    const first = durable();
    first.logs.counter('h_count', {}).add(3);
    const { logs, intake, shown, commit, registry } = restart(first.registry);
    const other = intake();
    other.histogram('h', {}, { bounds: [1] }).observe(0.5);
    expect(logs.restore('counter', 'h_count')).toEqual([]);
    commit();
    expect([shown(), registry.durable.retainedCount]).toEqual([{ h: [1, 1, 0.5, 1] }, 1]);
    other.close();
    expect(logs.restore('counter', 'h_count')).toEqual([{}]);
  });

  it('keep the help of their declaration', () => {
    const first = durable();
    first.logs.counter('x', {}).add(3);
    const { logs, registry, commit } = restart(first.registry);
    logs.restore('counter', 'x', { help: 'What it counts.' });
    commit();
    const view = registry.view();
    expect(view.families.find(({ name }) => name === 'x')?.help).toBe('What it counts.');
    view.release();
  });

  it('refuse to be restored over series that are open', () => {
    const { registry } = durable();
    expect(() => registry.durable.restore(bytes(''), new Float64Array(0))).toThrow(/restored after/);
  });
});
