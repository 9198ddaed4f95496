import { describe, expect, it } from 'vitest';
import type { Kind } from '../../../src/core/model.ts';
import type { OpenIntake } from '../../../src/core/registry/intake.ts';
import { testRegistry } from '../../registry.ts';

/** Opens a series of a kind and gives it the value 1 in the way that the kind allows. */
function put(intake: OpenIntake, kind: Kind, name: string) {
  const handle = intake.parts(kind, name, {}, { bounds: [1], quantiles: ['0.5'] });
  handle.part(0).set(1);
  return handle;
}

const orders = <T>(list: readonly T[]): T[][] =>
  list.length < 2
    ? [[...list]]
    : list.flatMap((one, i) => orders(list.toSpliced(i, 1)).map((rest) => [one, ...rest]));

describe('two raw names that meet', () => {
  it.each<[string, string, Kind]>([
    ['the catalog’s kind wins', 'gauge svc-workflow-failed, counter svc.workflow.failed', 'counter'],
    ['the catalog’s gauge wins', 'counter svc-memory-heap, gauge svc_memory_heap', 'gauge'],
    [
      'a kind that the catalog does not have: the smallest name',
      'gauge svc-memory_heapx, counter svc.memory_heapx',
      'gauge',
    ],
    ['the smallest raw name wins', 'untyped a-b, counter a.b, gauge a_b', 'untyped'],
    ['of one name, counter before gauge', 'gauge a, counter a', 'counter'],
    ['of one name, gauge before histogram', 'histogram a, gauge a', 'gauge'],
    ['of one name, histogram before summary', 'summary a, histogram a', 'histogram'],
    ['of one name, summary before untyped', 'untyped a, summary a', 'summary'],
  ])('%s, whichever comes first', (_, claimed, winner) => {
    const claims = claimed.split(', ').map((claim) => claim.split(' ') as [Kind, string]);
    for (const sequence of orders(claims)) {
      const { registry, intake, shown } = testRegistry();
      const source = intake();
      for (const [kind, name] of sequence) put(source, kind, name);
      expect(Object.keys(shown())).toHaveLength(1);
      const [conflict] = registry.status().conflicts;
      expect(conflict?.kind).toBe(winner);
      const named = claims.map(([kind, rawName]) => ({ rawName, kind }));
      const order = ({ rawName, kind }: { rawName: string; kind: Kind }) => `${rawName} ${kind}`;
      expect(conflict?.claims).toEqual(named.sort((a, b) => (order(a) < order(b) ? -1 : 1)));
      const family = conflict!.family;
      expect(registry.status().refusals).toEqual([
        { family, reason: 'kind_conflict', count: claims.length - 1 },
      ]);
    }
  });

  it('the loser’s updates count as dropped, and it comes back when the winner goes', () => {
    const { intake, shown, dropped } = testRegistry();
    const source = intake();
    const loser = source.counter('a.b', { x: '1' });
    loser.add(3);
    const winner = source.gauge('a-b', {});
    winner.set(7);
    loser.add(2);
    expect([shown(), dropped('refused_series')]).toEqual([{ a_b: 7 }, 1]);
    winner.release();
    loser.add(1);
    expect(shown()).toEqual({ 'a_b{x="1"}': 1 });
  });

  it('the conflict is over when no claim of another kind is left, though two raw names are', () => {
    const { registry, intake } = testRegistry();
    const source = intake();
    put(source, 'counter', 'a.b');
    put(source, 'counter', 'a-b');
    const other = put(source, 'gauge', 'a_b');
    expect(registry.status().conflicts).toHaveLength(1);
    other.release();
    expect(registry.status().conflicts).toEqual([]);
  });

  it('untyped is shown as untyped', () => {
    const { registry, intake } = testRegistry();
    intake().untyped('u', { le: '1' }).set(2);
    const view = registry.view();
    expect(view.families.find((family) => family.name === 'u')?.kind).toBe('untyped');
    view.release();
  });
});

describe('the suffixes of a distribution', () => {
  it.each<[Kind, string]>([
    ['histogram', '_bucket'],
    ['histogram', '_sum'],
    ['histogram', '_count'],
    ['summary', '_bucket'],
    ['summary', '_sum'],
    ['summary', '_count'],
  ])('of a %s: %s is taken, whoever comes first', (kind, suffix) => {
    for (const first of [true, false]) {
      const { registry, intake, shown, refused } = testRegistry();
      const source = intake();
      if (first) put(source, kind, 'x');
      source.counter(`x${suffix}`, {}).add(5);
      const distribution = first ? undefined : put(source, kind, 'x');
      expect(Object.keys(shown())).toEqual(['x']);
      expect(refused(`x${suffix}`, 'suffix_taken')).toBe(1);
      expect(registry.status().conflicts.map((conflict) => conflict.family)).toEqual([`x${suffix}`]);
      distribution?.release();
      expect(Object.keys(shown())).toEqual(first ? ['x'] : [`x${suffix}`]);
    }
  });

  it('a name that is itself taken takes nothing', () => {
    for (const order of orders(['x', 'x_sum', 'x_sum_count'])) {
      const { intake, shown } = testRegistry();
      const source = intake();
      for (const name of order) put(source, name === 'x_sum_count' ? 'counter' : 'histogram', name);
      expect(Object.keys(shown()).sort()).toEqual(['x', 'x_sum_count']);
    }
  });

  it('a counter x and a counter x_count do not hinder each other', () => {
    const { intake, shown } = testRegistry();
    const source = intake();
    source.counter('x', {}).add(1);
    source.counter('x_count', {}).add(2);
    expect(shown()).toEqual({ x: 1, x_count: 2 });
  });
});

describe('two services that send the same series', () => {
  const shared = { svc_service: 'frontend' };

  it.each([true, false])('the first in order keeps it (it comes first: %s)', (first) => {
    const { intake, shown, refused, page } = testRegistry();
    const low = page({ service: 'frontend', rank: 0 });
    const high = page({ service: 'history', rank: 1, tagService: true });
    const open = [
      () => low.intake.counter('x', shared).set(1),
      () => high.intake.counter('x', shared).set(2),
    ];
    for (const one of first ? open : open.reverse()) one();
    low.intake.counter('x', shared).set(1);
    low.store.swap();
    high.store.swap();
    expect(shown()).toEqual({ 'x{svc_service="frontend"}': 1 });
    expect(refused('x', 'duplicate_source')).toBe(1);
    low.intake.close();
    high.intake.counter('x', shared).set(3);
    high.store.swap();
    expect(shown()).toEqual({ 'x{svc_service="frontend"}': 3 });
    intake().close();
  });

  it('different series of theirs share a family', () => {
    const { intake, shown } = testRegistry();
    intake({ tagService: true }).counter('x', {}).add(1);
    intake({ tagService: true, service: 'history', rank: 1 }).counter('x', {}).add(2);
    expect(shown()).toEqual({ 'x{svc_service="frontend"}': 1, 'x{svc_service="history"}': 2 });
  });
});

describe('names', () => {
  it.each(['', 'svc_agent_build_info', 'svc.agent.series'])('%j is nobody else’s', (name) => {
    const { intake, registry, dropped } = testRegistry();
    intake().gauge(name, {}).set(1);
    expect(registry.status().refusals.map((refusal) => refusal.reason)).toEqual(['reserved_name']);
    expect(dropped('refused_series')).toBe(1);
  });

  it('the agent itself may use its own', () => {
    const { intake, registry } = testRegistry();
    intake({ received: false }).gauge('svc_agent_build_info', {}).set(1);
    expect(registry.status().refusals).toEqual([]);
  });

  it('tags that meet are listed and counted', () => {
    const { intake, shown, refused, dropped } = testRegistry();
    intake().counter('x', { 'k.1': 'dot', 'k-1': 'dash' }).add(1);
    expect(shown()).toEqual({ 'x{k_1="dash"}': 1 });
    expect([refused('x', 'tag_collision'), dropped('tag_collision')]).toEqual([1, 1]);
  });
});
