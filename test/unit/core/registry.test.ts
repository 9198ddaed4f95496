import { describe, expect, it } from 'vitest';
import { AgentError } from '../../../src/core/errors.ts';
import { type Component, dropReasons } from '../../../src/core/reasons.ts';
import { createDurableStore } from '../../../src/core/registry/durable-store.ts';
import { showAll, testRegistry, wideLimits } from '../../registry.ts';

const byService = (...services: string[]) => ({
  takes: ({ service }: { service: string }) => services.includes(service),
});

describe('a view', () => {
  const filled = () => {
    const test = testRegistry();
    const of = (service: string, relayed: boolean) => test.intake({ service, relayed, tagService: true });
    of('frontend', true).counter('b', {}).add(1);
    of('history', true).counter('b', {}).add(2);
    of('frontend', false).counter('b', { own: '1' }).add(3);
    of('history', true).counter('a', {}).add(4);
    return test;
  };
  const seen = (test: ReturnType<typeof filled>, takes?: Parameters<typeof test.registry.view>[0]) => {
    const view = test.registry.view(takes);
    const families = view.families
      .filter((family) => !family.name.startsWith('svc_agent_'))
      .map((family) => [family.name, ...family.series.map((series) => view.numbers(series)[series.at])]);
    view.release();
    return families;
  };

  it('has families by name and series in the order of their opening', () => {
    expect(seen(filled())).toEqual([
      ['a', 4],
      ['b', 1, 2, 3],
    ]);
  });

  it('has only what is taken, and no family without series', () => {
    expect(seen(filled(), byService('frontend').takes)).toEqual([['b', 1, 3]]);
    expect(seen(filled(), byService('history').takes)).toEqual([
      ['a', 4],
      ['b', 2],
    ]);
    expect(seen(filled(), ({ relayed }) => !relayed)).toEqual([['b', 3]]);
    expect(seen(filled(), () => false)).toEqual([]);
  });

  it('gives the same series objects each time, so that what is kept about them stays good', () => {
    const test = filled();
    const [one, two] = [test.registry.view(), test.registry.view()];
    const series = (view: typeof one) => view.families.flatMap((family) => [...family.series]);
    expect(series(one).every((each, i) => each === series(two)[i])).toBe(true);
    one.release();
    two.release();
  });

  it('does not change when series come and go', () => {
    const { registry, intake } = testRegistry();
    const source = intake();
    const old = source.counter('x', { i: '1' });
    old.add(1);
    const view = registry.view();
    old.release();
    source.counter('x', { i: '2' });
    source.counter('y', {});
    const names = view.families.map((family) => family.name);
    expect([names.includes('x'), names.includes('y')]).toEqual([true, false]);
    expect(
      view.families.find((family) => family.name === 'x')!.series.map((series) => series.labels),
    ).toEqual([[['i', '1']]]);
    view.release();
  });

  it('has the catalog’s help, else the sender’s', () => {
    const { registry, intake } = testRegistry();
    intake().counter('svc_workflow_failed', {}, { help: 'mine' });
    intake().counter('other', {}, { help: 'mine' });
    const view = registry.view();
    const help = (name: string) => view.families.find((family) => family.name === name)?.help;
    expect([help('svc_workflow_failed'), help('other')]).toEqual([
      'Workflow executions that failed.',
      'mine',
    ]);
    view.release();
  });
});

describe('drops', () => {
  it('are at 0 from the start for every pair of the closed lists', () => {
    const { registry, commit } = testRegistry();
    commit();
    const zeros = Object.entries(showAll(registry)).filter(([key]) =>
      key.startsWith('svc_agent_dropped_total'),
    );
    const pairs = (Object.keys(dropReasons) as Component[]).flatMap((component) =>
      dropReasons[component].map(
        (reason) => `svc_agent_dropped_total{component="${component}",reason="${reason}"}`,
      ),
    );
    expect(Object.fromEntries(zeros)).toEqual(Object.fromEntries(pairs.map((key) => [key, 0])));
  });

  it('of log lines are committed like the lines and survive a restart; others are shown at once', () => {
    const first = testRegistry();
    first.registry.drops.count('logs', 'invalid_json', 3);
    first.registry.drops.count('statsd', 'invalid_line');
    expect(first.dropped('invalid_json', 'logs')).toBeUndefined();
    expect(first.dropped('invalid_line', 'statsd')).toBe(1);
    first.commit();
    expect(first.dropped('invalid_json', 'logs')).toBe(3);

    const { table, values } = first.registry.durable.freeze();
    const durable = createDurableStore();
    durable.restore(table, values);
    const second = testRegistry({ durable });
    second.registry.drops.count('logs', 'invalid_json');
    second.commit();
    expect([second.dropped('invalid_json', 'logs'), second.dropped('invalid_line', 'statsd')]).toEqual([
      4, 0,
    ]);
  });

  it('of a reason that is not the component’s are a fault of ours', () => {
    expect(() => testRegistry().registry.drops.count('push', 'invalid_json')).toThrow(AgentError);
  });
});

describe('what the registry says of itself', () => {
  it('are the 20 largest families, the rest as other', () => {
    const { registry, intake } = testRegistry();
    const source = intake();
    for (let family = 0; family < 25; family++) {
      for (let i = 0; i < 30 + family; i++)
        source.counter(`f${String(family).padStart(2, '0')}`, { i: `${i}` });
    }
    const all = showAll(registry);
    const sizes = Object.entries(all).filter(([key]) => key.startsWith('svc_agent_series{'));
    expect(sizes).toHaveLength(21);
    expect(all['svc_agent_series{family="f24"}']).toBe(54);
    expect(all['svc_agent_series{family="f04"}']).toBeUndefined();
    const total = sizes.reduce((sum, [, n]) => sum + (n as number), 0);
    const status = registry.status();
    expect(status.families.slice(0, 2)).toEqual([
      { family: 'f24', series: 54 },
      { family: 'f23', series: 53 },
    ]);
    expect(total).toBeGreaterThanOrEqual(25 * 30 + (24 * 25) / 2);
    expect(status.series).toBe(25 * 30 + (24 * 25) / 2);
  });

  it('lists refusals, the newest last, bounded, with when and what', () => {
    const { registry, intake, clock } = testRegistry({ limits: { ...wideLimits, seriesPerMetric: 1 } });
    const source = intake();
    for (let i = 0; i < 150; i++) {
      clock.advance(1);
      source.gauge('g.x', { i: `${i}` });
    }
    const { latest, refusals } = registry.status();
    expect(refusals).toEqual([{ family: 'g_x', reason: 'limit_metric', count: 149 }]);
    expect(latest).toHaveLength(100);
    expect(latest.at(-1)).toEqual({
      family: 'g_x',
      reason: 'limit_metric',
      rawName: 'g.x',
      labels: [['i', '149']],
      service: '',
      atMs: clock.nowMs(),
    });
  });

  it('counts refusals of very many families together', () => {
    const { registry, intake, refused } = testRegistry({ limits: { ...wideLimits, series: 1 } });
    const source = intake();
    for (let i = 0; i < 150; i++) source.gauge(`g${i}`, {});
    expect(refused('other', 'limit_total')).toBe(49);
    expect(registry.status().refusals).toHaveLength(101);
  });
});

describe('a reload', () => {
  it('changes limits and tags for what opens afterwards', () => {
    const { registry, intake, shown, dropped } = testRegistry();
    const before = intake();
    before.counter('x', { i: '1', colour: 'red' }).add(1);
    registry.configure({
      limits: { ...wideLimits, seriesPerMetric: 1, forbiddenTags: ['Colour'] },
      globalTags: { cluster: 'dc1' },
    });
    intake().counter('y', { colour: 'red' }).add(1);
    before.counter('x', { i: '2' }).add(2);
    expect(shown()).toEqual({ 'x{colour="red",i="1"}': 1, y: 1, 'x{overflow="true"}': 2 });
    expect(dropped('forbidden_tag')).toBeUndefined();
    expect(
      showAll(registry)['svc_agent_dropped_total{cluster="dc1",component="registry",reason="forbidden_tag"}'],
    ).toBe(1);
  });

  it('keeps the agent’s own totals when its tags stay', () => {
    const { registry, dropped } = testRegistry();
    registry.drops.count('statsd', 'invalid_line');
    registry.configure({ limits: wideLimits });
    expect(dropped('invalid_line', 'statsd')).toBe(1);
  });
});
