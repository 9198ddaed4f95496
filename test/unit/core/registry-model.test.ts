import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import type { Kind } from '../../../src/core/model.ts';
import { createDurableStore } from '../../../src/core/registry/durable-store.ts';
import type { OpenIntake, PartedSeries } from '../../../src/core/registry/intake.ts';
import { testRegistry, wideLimits } from '../../registry.ts';
import { runs } from '../../size.ts';

/**
 * What a place should show: the total of a single member unchanged, the increases of several; members that left are remembered.
 */
interface Place {
  key: string;
  members: Map<string, number>;
  gone: Map<string, number>;
  merged: boolean;
  value: number;
}

const cap = 2;

/** The registry's counters, computed in the slow and obvious way. */
function createModel() {
  const places = new Map<string, Place>();
  const seats = new Map<string, Place>();
  const placeFor = (tag: string): Place => {
    const key = places.has(`x{t="${tag}"}`) || places.size - Number(places.has('x{overflow="true"}')) < cap;
    const name = key ? `x{t="${tag}"}` : 'x{overflow="true"}';
    const place = places.get(name) ?? {
      key: name,
      members: new Map(),
      gone: new Map(),
      merged: !key,
      value: 0,
    };
    places.set(name, place);
    return place;
  };
  return {
    has: (raw: string) => seats.has(raw),
    open(raw: string, tag: string) {
      const place = placeFor(tag);
      if (place.members.size > 0 && !place.merged) {
        place.merged = true;
        for (const member of place.members.keys()) place.members.set(member, place.value);
      }
      place.members.set(raw, place.gone.get(raw) ?? 0);
      place.gone.delete(raw);
      seats.set(raw, place);
    },
    add(raw: string, n: number) {
      seats.get(raw)!.value += n;
    },
    set(raw: string, total: number) {
      const place = seats.get(raw)!;
      const last = place.members.get(raw)!;
      if (!place.merged) place.value = total;
      else place.value += total >= last ? total - last : total;
      if (place.merged) place.members.set(raw, total);
    },
    release(raw: string) {
      const place = seats.get(raw)!;
      const last = place.members.get(raw)!;
      if (place.merged && last > 0) place.gone.set(raw, last);
      place.members.delete(raw);
      seats.delete(raw);
      if (place.members.size === 0) places.delete(place.key);
    },
    shown: () => Object.fromEntries([...places.values()].map((place) => [place.key, place.value])),
  };
}

const member = fc.record({ tag: fc.constantFrom('1', '2', '3'), user: fc.constantFrom('a', 'b') });
const step = fc.oneof(
  fc.record({ do: fc.constant('open' as const), member }),
  fc.record({ do: fc.constant('add' as const), member, n: fc.nat(9) }),
  fc.record({ do: fc.constant('set' as const), member, n: fc.nat(50) }),
  fc.record({ do: fc.constant('release' as const), member }),
);

describe('counters', () => {
  it('keep their sums over meeting, restarts, leaving, coming back and the limit', () => {
    fc.assert(
      fc.property(fc.array(step, { maxLength: 60 }), fc.boolean(), (steps, addsOnly) => {
        const { intake, shown } = testRegistry({ limits: { ...wideLimits, seriesPerMetric: cap } });
        const source = intake();
        const model = createModel();
        const handles = new Map<string, ReturnType<typeof source.counter>>();
        for (const each of steps) {
          const { tag, user } = each.member;
          const raw = `${tag} ${user}`;
          const known = handles.get(raw);
          if (each.do === 'open' && !known) {
            handles.set(raw, source.counter('x', { t: tag, user_id: user }));
            model.open(raw, tag);
          } else if (known && each.do === 'release') {
            known.release();
            handles.delete(raw);
            model.release(raw);
          } else if (known && each.do === 'add' && addsOnly) {
            known.add(each.n);
            model.add(raw, each.n);
          } else if (known && each.do === 'set' && !addsOnly) {
            known.set(each.n);
            model.set(raw, each.n);
          }
          expect(shown()).toEqual(model.shown());
        }
      }),
      { numRuns: runs(300) },
    );
  });
});

const wish = fc.record({
  kind: fc.constantFrom<Kind>('counter', 'gauge', 'histogram', 'summary', 'untyped'),
  name: fc.constantFrom(
    'x',
    'x.count',
    'x-count',
    'x_sum',
    'svc_memory_heap',
    'svc-memory.heap',
    'svc.matching-tasklist-backlog',
  ),
  tags: fc.dictionary(fc.constantFrom('a', 'user_id', 'k.1', 'k-1'), fc.constantFrom('1', '2'), {
    maxKeys: 2,
  }),
  rank: fc.constantFrom(0, 1),
  bound: fc.constantFrom(1, 2),
});
type Wish = typeof wish extends fc.Arbitrary<infer T> ? T : never;

/** Opens every wish in this order, then gives each its numbers. */
function fulfil(wishes: readonly Wish[]) {
  const { registry, intake, shown } = testRegistry();
  const sources: OpenIntake[] = [intake({ rank: 0 }), intake({ rank: 1, service: 'history' })];
  const opened = new Map<string, PartedSeries>();
  for (const one of wishes) {
    const shape = { bounds: [one.bound], quantiles: ['0.5'] };
    const key = keyOf(one);
    opened.set(key, sources[one.rank]!.parts(one.kind, one.name, one.tags, shape));
  }
  for (const [key, parts] of opened) parts.part(0).set(key.length + key.charCodeAt(key.length - 2));
  return { shown: shown(), conflicts: registry.status().conflicts, registry, opened };
}

describe('who gets which place', () => {
  it('does not depend on who came first', () => {
    const twoOrders = fc
      .array(wish, { maxLength: 9 })
      .chain((wishes) =>
        fc.tuple(fc.constant(wishes), fc.shuffledSubarray(wishes, { minLength: wishes.length })),
      );
    fc.assert(
      fc.property(twoOrders, ([one, other]) => {
        const [a, b] = [fulfil(one), fulfil(other)];
        expect(b.shown).toEqual(a.shown);
        expect(b.conflicts).toEqual(a.conflicts);
      }),
      { numRuns: runs(500) },
    );
  });

  it('leaves nothing behind when all have gone', () => {
    fc.assert(
      fc.property(fc.array(wish, { maxLength: 9 }), (wishes) => {
        const { registry, opened } = fulfil(wishes);
        for (const [key, parts] of opened) {
          const times = wishes.filter((one) => keyOf(one) === key).length;
          for (let i = 0; i < times; i++) parts.release();
        }
        expect(registry.status()).toMatchObject({ series: 0, overflow: 0, conflicts: [] });
      }),
    );
  });
});

function keyOf(one: Wish): string {
  const tags = Object.entries(one.tags).sort();
  return JSON.stringify([one.kind, one.name, tags, one.rank, one.kind === 'histogram' && one.bound]);
}

const durableStep = fc.oneof(
  fc.record({
    do: fc.constantFrom('open' as const, 'release' as const),
    tag: fc.constantFrom('1', '2', '3'),
  }),
  fc.record({ do: fc.constant('add' as const), tag: fc.constantFrom('1', '2', '3'), n: fc.nat(9) }),
  fc.record({
    do: fc.constantFrom('freeze' as const, 'publish' as const, 'restart' as const, 'reload' as const),
  }),
);
interface Row {
  id: number;
  n: number;
}
type Rows = Map<string, Row>;
const copy = (rows: Rows): Rows => new Map([...rows].map(([tag, row]) => [tag, { ...row }]));

/** Durable counters as a table that is copied by hand. */
function createDurableModel() {
  let [live, frozen, published]: Rows[] = [new Map(), new Map(), new Map()];
  let sight: Rows = new Map();
  let ids = 0;
  return {
    open(tag: string) {
      if (!live!.has(tag)) live!.set(tag, { id: ids++, n: 0 });
    },
    add(tag: string, n: number) {
      live!.get(tag)!.n += n;
    },
    release: (tag: string) => void live!.delete(tag),
    freeze() {
      frozen = copy(live!);
    },
    publish() {
      published = frozen;
      sight = published!;
    },
    restart() {
      live = copy(published!);
      frozen = copy(published!);
      sight = new Map();
    },
    shown() {
      const rows = [...sight].filter(([tag, { id }]) => live!.get(tag)?.id === id);
      return Object.fromEntries(rows.map(([tag, { n }]) => [`x{t="${tag}"}`, n]));
    },
  };
}

describe('durable counters', () => {
  it('show what was published, whatever is frozen, lost, restarted or reloaded', () => {
    fc.assert(
      fc.property(fc.array(durableStep, { maxLength: 60 }), (steps) => {
        let test = testRegistry();
        const openSource = () => {
          const opened = test.intake({ store: test.registry.durable, received: false });
          opened.restore('counter', 'x', { tags: ['t'] });
          return opened;
        };
        let source = openSource();
        let handles = new Map<string, ReturnType<typeof source.counter>>();
        let frozen = test.registry.durable.freeze();
        let published = frozen;
        const model = createDurableModel();
        for (const each of steps) {
          if (each.do === 'open') {
            if (!handles.has(each.tag)) handles.set(each.tag, source.counter('x', { t: each.tag }));
            model.open(each.tag);
          } else if (each.do === 'add' && handles.has(each.tag)) {
            handles.get(each.tag)!.add(each.n);
            model.add(each.tag, each.n);
          } else if (each.do === 'release' && handles.has(each.tag)) {
            handles.get(each.tag)!.release();
            handles.delete(each.tag);
            model.release(each.tag);
          } else if (each.do === 'freeze') {
            frozen = test.registry.durable.freeze();
            model.freeze();
          } else if (each.do === 'publish') {
            published = frozen;
            test.registry.durable.publish(published);
            model.publish();
          } else if (each.do === 'restart') {
            const durable = createDurableStore();
            durable.restore(published.table.slice(), published.values.slice());
            test = testRegistry({ durable });
            source = openSource();
            handles = new Map();
            frozen = test.registry.durable.freeze();
            model.restart();
          } else if (each.do === 'reload') {
            source.close();
            source = openSource();
            handles = new Map();
          }
          expect(test.shown()).toEqual(model.shown());
        }
      }),
      { numRuns: runs(300) },
    );
  });
});
