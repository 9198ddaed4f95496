import { expect, test } from 'vitest';
import { hashText } from '../../../src/core/hashes.ts';
import type { Kind, RawTags, Shape } from '../../../src/core/model.ts';
import type { HandlePair } from '../../../src/core/registry/handles.ts';
import type { IntakeOptions, OpenIntake } from '../../../src/core/registry/intake.ts';
import { type TestRegistry, testRegistry, wideLimits } from '../../registry.ts';

/** A registry with room for one series of each family: all further ones are over the limit. */
function full(own: Partial<Parameters<TestRegistry['intake']>[0]> = {}, series = 1000) {
  const bed = testRegistry({
    limits: { ...wideLimits, seriesPerMetric: 1, series, forbiddenTags: ['secret'] },
  });
  const source = bed.intake(own);
  return { ...bed, source };
}

/** Opens a series over the limit, so that the intake knows the overflow series of its family. */
function openOverflow(source: OpenIntake, kind: Kind, name: string, shape?: Shape) {
  source.parts(kind, name, { i: 'first' }, shape);
  const over = source.parts(kind, name, { i: 'second' }, shape);
  return source.overflowOf(over)!;
}

const all = () => true;
const decide = (
  source: OpenIntake,
  kind: Kind,
  name: string,
  tags: RawTags = { i: 'x' },
  shape: Shape = {},
) => source.overLimitAs(kind, name, tags, shape, all);

test('a gauge over the limit is refused without being opened, and counted', () => {
  const { source, refused } = full();
  expect(decide(source, 'gauge', 'g')).toBeUndefined();
  source.gauge('g', { i: 'a' });
  expect(decide(source, 'gauge', 'g', { i: 'a' })).toBeUndefined();
  expect(refused('g', 'limit_metric')).toBe(0);
  expect(decide(source, 'gauge', 'g', { i: 'b' })).toBe('refused');
  expect(refused('g', 'limit_metric')).toBe(1);
  expect(source.overLimitAs('gauge', 'g', { i: 'c' }, {}, () => false)).toBeUndefined();
  expect(refused('g', 'limit_metric')).toBe(1);
});

test('a counter over the limit has the overflow series of its family while that is there', () => {
  const { source, refused } = full();
  source.counter('x', { i: 'a' });
  expect(decide(source, 'counter', 'x')).toBeUndefined();
  const overflow = openOverflow(source, 'counter', 'y');
  const counted = refused('y', 'limit_metric');
  expect(decide(source, 'counter', 'y')).toBe(overflow);
  expect(refused('y', 'limit_metric')).toBe(counted + 1);
  expect(
    source.overLimitAs('counter', 'y', { i: 'z' }, {}, (target) => target === 'refused'),
  ).toBeUndefined();
  expect(refused('y', 'limit_metric')).toBe(counted + 1);
  // Another member that ends is not the overflow series.
  source.counter('y', { i: 'third' }).release();
  expect(decide(source, 'counter', 'y')).toBe(overflow);
  overflow.release();
  expect(decide(source, 'counter', 'y')).toBeUndefined();
});

test('a histogram with other buckets has no overflow series', () => {
  const { source } = full();
  const overflow = openOverflow(source, 'histogram', 'h', { bounds: [1] });
  expect(decide(source, 'histogram', 'h', { i: 'x' }, { bounds: [1] })).toBe(overflow);
  expect(decide(source, 'histogram', 'h', { i: 'x' }, { bounds: [2] })).toBeUndefined();
});

test('only opening decides about a name that another kind has, or a part of a histogram', () => {
  const { source } = full({}, 1);
  source.histogram('h', {}, { bounds: [1] });
  expect(decide(source, 'gauge', 'h')).toBeUndefined();
  expect(decide(source, 'gauge', 'h_count')).toBeUndefined();
  expect(decide(source, 'gauge', 'h_other')).toBe('refused');
});

test('over the limit of all, the first series of a family is refused if it would not be added up', () => {
  const { source, refused } = full({}, 1);
  source.gauge('a', {});
  expect(decide(source, 'counter', 'c')).toBeUndefined();
  expect(source.overLimitAs('gauge', 'g', {}, {}, () => false)).toBeUndefined();
  expect([refused('c', 'limit_total'), refused('g', 'limit_total')]).toEqual([0, 0]);
  expect(decide(source, 'gauge', 'g')).toBe('refused');
  expect(refused('g', 'limit_total')).toBe(1);
  // A thousand families have an overflow series, so no further family gets one.
  for (let i = 0; i < 1000; i++) source.counter(`c${i}`, {}).add(1);
  expect(decide(source, 'counter', 'c')).toBe('refused');
});

test('a closed intake leaves all to opening', () => {
  const { source } = full();
  source.gauge('g', { i: 'a' });
  const form = source.overLimitForm('gauge', 'g', new Map([['i', '?']]), {}, true)!;
  source.close();
  expect(decide(source, 'gauge', 'g')).toBeUndefined();
  expect(source.overLimitForm('gauge', 'g', new Map([['i', '?']]), {}, true)).toBeUndefined();
  expect(form.takes(Int32Array.of(hashText('b')))).toBe(false);
});

const hashes = (...values: string[]) => Int32Array.from(values, hashText);

test('a form knows which values are over the limit', () => {
  const { source, refused } = full({ globalTags: { cluster: 'dc1' } });
  const first = source.gauge('g', { i: 'a', j: 'b' });
  const tags = new Map([
    ['i', '?1'],
    ['j', '?2'],
  ]);
  expect(source.overLimitForm('gauge', 'g', tags, {}, false)).toBeUndefined();
  const form = source.overLimitForm('gauge', 'g', tags, {}, true)!;
  expect(form.target).toBe('refused');
  expect(form.takes(hashes('a', 'b'))).toBe(false);
  expect(refused('g', 'limit_metric')).toBe(0);
  expect(form.takes(hashes('b', 'a'))).toBe(true);
  expect(form.takes(hashes('a', 'c'))).toBe(true);
  expect(form.takes(hashes('c', 'b'))).toBe(true);
  expect(refused('g', 'limit_metric')).toBe(3);
  first.release();
  expect(form.takes(hashes('b', 'a'))).toBe(false);
});

test('a form of a counter ends with its overflow series', () => {
  const { source } = full();
  const overflow = openOverflow(source, 'counter', 'y');
  const form = source.overLimitForm('counter', 'y', new Map([['i', '?']]), {}, false)!;
  expect(form.target).toBe(overflow);
  expect([form.takes(hashes('first')), form.takes(hashes('x'))]).toEqual([false, true]);
  overflow.release();
  expect(form.takes(hashes('x'))).toBe(false);
});

test('a form takes nothing while there is room', () => {
  const { source, refused } = full();
  const first = source.counter('y', { i: 'first' });
  const over = source.parts('counter', 'y', { i: 'second' });
  source.overflowOf(over);
  const form = source.overLimitForm('counter', 'y', new Map([['i', '?']]), {}, false)!;
  first.release();
  over.release();
  const counted = refused('y', 'limit_metric');
  expect(form.takes(hashes('x'))).toBe(false);
  expect(refused('y', 'limit_metric')).toBe(counted);
});

test('only opening decides about a series that cannot be, that is left out, or that is a pair', () => {
  const translate: IntakeOptions['translate'] = (_, name, tags) => {
    if (name === 'dropped') return 'left_out';
    return name === 'pair' ? { name: 'g', tags, also: { name: 'k', tags } } : undefined;
  };
  const { source, refused } = full({ translate });
  source.gauge('g', { i: 'a' });
  source.gauge('dropped', { i: 'a' });
  for (const name of ['pair', 'dropped', 'svc_agent_own', '']) {
    expect(decide(source, 'gauge', name)).toBeUndefined();
    expect(source.overLimitForm('gauge', name, new Map([['i', '?']]), {}, true)).toBeUndefined();
  }
  expect(refused('g', 'limit_metric')).toBe(0);
});

test('a pair is refused only if both of its series are', () => {
  const translate: IntakeOptions['translate'] = (_, name, tags) =>
    name === 'pair' ? { name: 'g', tags, also: { name: 'k', tags } } : undefined;
  const isRefused = (taken: string[]) => {
    const { source } = full({ translate });
    for (const name of taken) source.gauge(name, { i: 'a' });
    return (source.gauge('pair', { i: 'x' }) as unknown as HandlePair).refused;
  };
  expect([[], ['g'], ['k'], ['g', 'k']].map(isRefused)).toEqual([false, false, false, true]);
});

test('tags that are dropped on the way are counted as opening counts them', () => {
  const tags = { i: 'b', secret: 'x' };
  const reasons = ['forbidden_tag', 'tag_collision'];
  const counts = (take: (source: OpenIntake) => unknown) => {
    const { source, dropped } = full();
    source.gauge('g', { i: 'a' });
    take(source);
    return reasons.map((reason) => dropped(reason));
  };
  expect(counts((source) => decide(source, 'gauge', 'g', tags))).toEqual(
    counts((source) => source.gauge('g', tags)),
  );
});

test.each<[string, Record<string, string>]>([
  ['a tag is the service', { svc_service: '?' }],
  ['a tag among others is the service', { i: '?1', svc_service: '?2' }],
  ['a tag is dropped', { secret: '?' }],
  ['a tag among others is dropped', { i: '?1', secret: '?2' }],
  ['a tag without a name is dropped', { '': '?' }],
])('there is no form where %s', (_, tags) => {
  const { source } = full({ tagService: true });
  source.gauge('g', { i: 'a' });
  expect(source.overLimitForm('gauge', 'g', new Map(Object.entries(tags)), {}, true)).toBeUndefined();
});
