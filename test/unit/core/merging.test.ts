import { describe, expect, it } from 'vitest';
import type { Kind, Shape } from '../../../src/core/model.ts';
import { testRegistry } from '../../registry.ts';

const backlog = 'svc_matching_tasklist_backlog';

describe('a counter alone in its series', () => {
  it('is shown as its sender has it, falls included', () => {
    const { intake, shown } = testRegistry();
    const counter = intake().counter('x', {});
    for (const total of [5, 9, 2]) {
      counter.set(total);
      expect(shown()).toEqual({ x: total });
    }
  });

  it('refuses what is no increase, and counts that', () => {
    const { intake, shown, dropped } = testRegistry();
    const counter = intake().counter('x', {});
    for (const delta of [1, 0, -1, Number.NaN, Infinity, -Infinity, 0.5]) counter.add(delta);
    expect(shown()).toEqual({ x: 1.5 });
    expect([dropped('negative_delta'), dropped('not_finite')]).toEqual([1, 3]);
  });

  it('is shown in the unit of the catalog', () => {
    const { intake, shown } = testRegistry();
    const source = intake({ translate: (_, name, tags) => ({ name, tags, divisor: 1000 }) });
    const [total, sum] = [source.counter('total', {}), source.counter('sum', {})];
    for (const ms of [2500, 4000]) {
      total.set(ms);
      sum.add(ms);
    }
    expect(shown()).toEqual({ total: 4, sum: 6.5 });
  });

  it('shares its handle with whoever asks for the same raw series', () => {
    const { intake, shown } = testRegistry();
    const source = intake();
    const [one, two] = [source.counter('x', { a: '1', b: '2' }), source.counter('x', { b: '2', a: '1' })];
    one.set(5);
    two.set(6);
    one.release();
    expect(shown()).toEqual({ 'x{a="1",b="2"}': 6 });
    two.release();
    two.release();
    expect(shown()).toEqual({});
  });

  it('says when it began again', () => {
    const { registry, intake, clock } = testRegistry();
    const counter = intake().counter('x', {});
    const startMs = () => {
      const view = registry.view();
      const [series] = view.families.find((family) => family.name === 'x')!.series;
      view.release();
      return series!.startMs - clock.nowMs();
    };
    counter.set(5);
    clock.advance(1000);
    counter.set(6);
    expect(startMs()).toBe(-1000);
    counter.set(1);
    expect(startMs()).toBe(0);
  });

  it('as a part of a histogram starts again when it falls, and not when it rises', () => {
    const { registry, clock, intake } = testRegistry();
    const histogram = intake().histogram('x', {}, { bounds: [1] });
    const startMs = clock.nowMs();
    const starts = [
      [1, 2, 3, 2],
      [1, 3, 5, 3],
      [0, 1, 2, 1],
    ].map((parts) => {
      histogram.set(parts);
      const view = registry.view();
      const [series] = view.families.find(({ name }) => name === 'x')!.series;
      view.release();
      clock.advance(1000);
      return series!.startMs - startMs;
    });
    expect(starts).toEqual([0, 0, 2000]);
  });

  it('has another start after a fall; a gauge keeps its start', () => {
    const { registry, clock, intake } = testRegistry();
    const gauge = intake().gauge('x', {});
    const startMs = clock.nowMs();
    for (const value of [5, 1]) {
      clock.advance(1000);
      gauge.set(value);
    }
    const view = registry.view();
    expect(view.families.find(({ name }) => name === 'x')!.series[0]!.startMs).toBe(startMs);
    view.release();
  });

  it('beside others is not changed when they are set', () => {
    const { intake, shown } = testRegistry();
    const source = intake();
    const [first, second] = ['a', 'b'].map((name) => source.histogram(name, {}, { bounds: [1] }));
    second!.set([1, 2, 3, 4]);
    first!.set([5, 6, 7, 8]);
    expect(shown()).toEqual({ a: [5, 6, 7, 8], b: [1, 2, 3, 4] });
  });
});

describe('counters that meet because a tag was dropped', () => {
  const meeting = () => {
    const test = testRegistry();
    const source = test.intake();
    return { ...test, member: (user: string) => source.counter('x', { user_id: user }) };
  };

  it('add up', () => {
    const { member, shown, dropped } = meeting();
    const [a, b] = [member('a'), member('b')];
    a.set(10);
    b.set(4);
    a.set(11);
    expect(shown()).toEqual({ x: 15 });
    expect(dropped('forbidden_tag')).toBe(2);
  });

  it('count a fall as a restart from 0', () => {
    const { member, shown } = meeting();
    const [a, b] = [member('a'), member('b')];
    a.set(10);
    b.set(4);
    a.set(3);
    expect(shown()).toEqual({ x: 17 });
  });

  it('never fall when a member vanishes, and count it on when it comes back', () => {
    const { member, shown } = meeting();
    const [a, b] = [member('a'), member('b')];
    a.set(10);
    b.set(4);
    a.release();
    expect(shown()).toEqual({ x: 14 });
    b.set(5);
    expect(shown()).toEqual({ x: 15 });
    member('a').set(12);
    expect(shown()).toEqual({ x: 17 });
  });

  it('take increases and totals side by side', () => {
    const { member, shown } = meeting();
    const [a, b] = [member('a'), member('b')];
    a.add(2);
    b.set(5);
    a.add(1);
    b.set(6);
    expect(shown()).toEqual({ x: 9 });
  });

  it('refuse totals that are none, and count them', () => {
    const { member, shown, dropped } = meeting();
    const [a, b] = [member('a'), member('b')];
    a.set(3);
    b.set(Number.NaN);
    b.set(-1);
    expect(shown()).toEqual({ x: 3 });
    expect([dropped('not_finite'), dropped('negative_delta')]).toEqual([1, 1]);
  });

  it('take a member that was forgotten as a beginning, never twice', () => {
    const { member, shown } = meeting();
    const stays = member('stays');
    stays.set(1);
    for (let i = 0; i < 5000; i++) {
      const passing = member(`m${i}`);
      passing.set(1);
      passing.release();
    }
    const sum = shown().x as number;
    expect(sum).toBeLessThanOrEqual(5001);
    const back = member('m0');
    back.set(1);
    expect(shown()).toEqual({ x: sum });
    back.set(3);
    expect(shown()).toEqual({ x: sum + 2 });
  });

  it('merge two raw names of a kind as well', () => {
    const { intake, shown } = testRegistry();
    const source = intake();
    source.counter('a.b', {}).set(1);
    source.counter('a-b', {}).set(2);
    expect(shown()).toEqual({ a_b: 3 });
  });
});

describe('histograms that meet', () => {
  it('add up part by part, a fall of a part counting from 0', () => {
    const { intake, shown } = testRegistry();
    const source = intake();
    const shape = { bounds: [1, 2] };
    const a = source.histogram('h', { run_id: 'a' }, shape);
    const b = source.histogram('h', { run_id: 'b' }, shape);
    a.set([1, 2, 3, 4.5, 3]);
    b.set([0, 1, 1, 2, 1]);
    expect(shown()).toEqual({ h: [1, 3, 4, 6.5, 4] });
    b.set([0, 0, 1, 9, 1]);
    expect(shown()).toEqual({ h: [1, 3, 4, 13.5, 4] });
    a.release();
    expect(shown()).toEqual({ h: [1, 3, 4, 13.5, 4] });
  });

  it('of unequal buckets: the smallest raw identity keeps the place until it goes', () => {
    const { intake, shown, refused, dropped } = testRegistry();
    const source = intake();
    const b = source.histogram('h', { run_id: 'b' }, { bounds: [1] });
    b.observe(0.5);
    const a = source.histogram('h', { run_id: 'a' }, { bounds: [2] });
    b.observe(0.5);
    a.observe(3);
    expect(shown()).toEqual({ h: [0, 1, 3, 1] });
    expect([refused('h', 'unequal_buckets'), dropped('refused_series')]).toEqual([1, 1]);
    a.release();
    b.observe(0.25);
    expect(shown()).toEqual({ h: [1, 1, 0.25, 1] });
  });

  it('refuse observations that are no numbers', () => {
    const { intake, shown, dropped } = testRegistry();
    const histogram = intake().histogram('h', {}, { bounds: [1] });
    histogram.observe(Number.NaN);
    histogram.observe(Infinity);
    histogram.set([1, 2]);
    expect(shown()).toEqual({ h: [0, 0, 0, 0] });
    expect([dropped('not_finite'), dropped('refused_series')]).toEqual([2, 1]);
  });
});

describe('gauges', () => {
  it('alone are shown as they are, whatever that is', () => {
    const { intake, shown } = testRegistry();
    const gauge = intake().gauge('g', {});
    for (const value of [1, Number.NaN, -Infinity, 0.25]) {
      gauge.set(value);
      expect(shown()).toEqual({ g: value });
    }
    gauge.add(-1);
    expect(shown()).toEqual({ g: -0.75 });
  });

  it.each(['ab', 'ba'])(
    'that meet and are not additive: the smallest raw identity is shown (arrival %s)',
    (order) => {
      const { intake, shown, refused } = testRegistry();
      const source = intake();
      const gauges = new Map([...order].map((user) => [user, source.gauge('g', { user_id: user })]));
      gauges.get('a')!.set(1);
      gauges.get('b')!.set(2);
      expect(shown()).toEqual({ g: 1 });
      expect(refused('g', 'not_additive')).toBe(1);
    },
  );

  it('that the catalog calls additive are added, and what leaves is taken away', () => {
    const { intake, shown } = testRegistry();
    const source = intake();
    const [a, b] = [source.gauge(backlog, { user_id: 'a' }), source.gauge(backlog, { user_id: 'b' })];
    a.set(5);
    b.set(7);
    a.set(4);
    b.add(1);
    expect(shown()).toEqual({ [backlog]: 12 });
    b.set(Number.NaN);
    a.release();
    expect(shown()).toEqual({ [backlog]: 8 });
  });
});

describe('series that one source opens in turn', () => {
  // Most sources pass the same arrays each time.
  const bounds = [1];
  const usual = { kind: 'histogram', shape: { bounds }, layout: [['1'], true, true] } as const;
  it.each<[Kind, Shape, [string[], boolean, boolean]]>([
    ['histogram', { bounds: [1, 2] }, [['1', '2'], true, true]],
    ['histogram', { bounds, boundTexts: ['1.0'] }, [['1.0'], true, true]],
    ['histogram', { bounds, hasSum: false }, [['1'], false, true]],
    ['histogram', { bounds, hasCount: false }, [['1'], true, false]],
    ['summary', { quantiles: ['0.5'] }, [['0.5'], true, true]],
  ])('a %s of %j has its own layout between two others', (kind, shape, layout) => {
    const { registry, intake } = testRegistry();
    const source = intake();
    source.parts(usual.kind, 'a', {}, usual.shape);
    source.parts(kind, 'b', {}, shape);
    source.parts(usual.kind, 'c', {}, usual.shape);
    const view = registry.view();
    const shown = ['a', 'b', 'c'].map((name) => {
      const series = view.families.find((one) => one.name === name)!.series[0]!;
      return [series.bounds, series.hasSum, series.hasCount];
    });
    view.release();
    expect(shown).toEqual([usual.layout, layout, usual.layout]);
  });

  it('without a sum or a count are other raw series', () => {
    const source = testRegistry().intake();
    const handles = [{}, { hasSum: false }, { hasCount: false }, {}].map((own) =>
      source.parts('histogram', 'a', {}, { bounds, ...own }),
    );
    expect(new Set(handles).size).toBe(3);
    expect(handles[3]).toBe(handles[0]);
  });

  it('summaries of other quantiles', () => {
    const { registry, intake } = testRegistry();
    const source = intake();
    for (const text of ['0.5', '0.9']) source.parts('summary', `s${text}`, {}, { quantiles: [text] });
    const view = registry.view();
    expect(
      ['s0_5', 's0_9'].map((name) => view.families.find((one) => one.name === name)?.series[0]?.bounds),
    ).toEqual([['0.5'], ['0.9']]);
    view.release();
  });
});

describe('a page', () => {
  it('merges parts as it merges whole series', () => {
    const { page, shown } = testRegistry();
    const { intake, store } = page();
    const shape = { quantiles: ['0.5'] };
    const [a, b] = [intake.parts('counter', 'x', { ts: '1' }), intake.parts('counter', 'x', { ts: '2' })];
    const summary = intake.parts('summary', 's', {}, shape);
    const [pa, pb] = [a.part(0), b.part(0)];
    pa.set(3);
    pb.set(4);
    for (const [i, value] of [0.25, 9, 3].entries()) summary.part(i).set(value);
    store.swap();
    expect(shown()).toEqual({ x: 7, s: [0.25, 9, 3] });
    pa.set(1);
    pb.set(6);
    store.swap();
    expect(shown()).toEqual({ x: 10, s: [0.25, 9, 3] });
    b.release();
    store.swap();
    expect(shown()).toEqual({ x: 10, s: [0.25, 9, 3] });
  });

  it('that was dropped half-way loses nothing of merged series', () => {
    const { page, shown } = testRegistry();
    const { intake, store } = page();
    const [a, b] = ['1', '2'].map((ts) => intake.parts('counter', 'x', { ts }).part(0));
    a!.set(3);
    b!.set(4);
    store.swap();
    a!.set(5);
    a!.set(6);
    b!.set(4);
    store.swap();
    expect(shown()).toEqual({ x: 10 });
  });
});

describe('a vocabulary', () => {
  it('renames, converts, and leaves doubles out without a drop or a refusal', () => {
    const { registry, intake, shown, dropped } = testRegistry();
    const source = intake({
      translate(_kind, name, tags) {
        if (tags.domain === 'all') return 'left_out';
        if (name === 'lat_ns') return { name: 'svc_persistence_latency', tags, divisor: 1e9 };
        return name === 'gcs'
          ? { name: 'svc_memory_num_gc', tags: { ...tags, host: 'h' }, kind: 'counter' }
          : undefined;
      },
    });
    const latency = source.histogram('lat_ns', {}, { bounds: [1e6, 5e6] });
    latency.observe(2e6);
    latency.set([1, 2, 2, 3e6, 2]);
    source.gauge('gcs', {}).set(4);
    source.counter('other', {}).add(1);
    source.counter('lat', { domain: 'all' }).add(1);
    expect(shown()).toEqual({
      svc_persistence_latency: [1, 2, 2, 0.003, 2],
      'svc_memory_num_gc{host="h"}': 4,
      other: 1,
    });
    expect(registry.status().refusals).toEqual([]);
    expect(dropped('refused_series')).toBe(0);
  });
});
