import { describe, expect, test } from 'vitest';
import type { LogRule } from '../../../src/sources/logs/options.ts';
import { createCounting, feed } from '../../counting.ts';

function run(rule: LogRule, entries: readonly unknown[]) {
  const counting = createCounting({ history: { rules: [rule] } });
  const sink = counting.open();
  const take = (...more: unknown[]) => feed(sink, ...more.map((entry) => `${JSON.stringify(entry)}\n`));
  take(...entries);
  const ofRule = () =>
    Object.fromEntries(
      [...counting.intake().values].filter(
        ([name]) => name === rule.name || name.startsWith(`${rule.name}{`),
      ),
    );
  return { counting, take, ofRule, drops: Object.fromEntries(counting.drops) };
}

describe('a rule matches', () => {
  test.each<[LogRule['match'], unknown, boolean]>([
    [undefined, {}, true],
    [{ level: 'error' }, { level: 'error' }, true],
    [{ level: 'error' }, { level: 'errors' }, false],
    [{ level: 'error' }, {}, false],
    [{ level: ['error', 'fatal'] }, { level: 'fatal' }, true],
    [{ level: ['error', 'fatal'] }, { level: 'warn' }, false],
    [{ level: 'error', component: 'shard' }, { level: 'error', component: 'shard' }, true],
    [{ level: 'error', component: 'shard' }, { level: 'error', component: 'x' }, false],
    [{ code: 500 }, { code: 500 }, true],
    [{ code: 500 }, { code: '500' }, true],
    [{ code: 500 }, { code: 500.5 }, false],
    [{ code: 0.5 }, { code: 0.5 }, true],
    [{ ok: true }, { ok: true }, true],
    [{ ok: true }, { ok: false }, false],
    [{ ok: 'null' }, { ok: null }, false],
    [{ msg: 'say "ü"' }, { msg: 'say "ü"' }, true],
    [{ msg: '' }, { msg: '' }, true],
    [{ msg: '' }, {}, false],
  ])('%j: %j is %s', (match, entry, isMatch) => {
    const { ofRule } = run({ name: 'hits', type: 'counter', match }, [entry]);
    expect(ofRule()).toEqual({ hits: isMatch ? 1 : 0 });
  });
});

describe('a counter', () => {
  test('without a value adds 1 an entry, by label', () => {
    const { ofRule } = run({ name: 'hits', type: 'counter', labels: { who: 'domain', kind: 'type' } }, [
      { domain: 'a', type: 1 },
      { domain: 'a', type: 1 },
      { domain: 'a' },
      { domain: 'a', type: null },
      { domain: '', type: [] },
    ]);
    expect(ofRule()).toEqual({ 'hits{kind="1",who="a"}': 2, 'hits{who="a"}': 2, hits: 1 });
  });

  test('adds a field that is a number or spells one', () => {
    const values = [1, 0.25, '2', '1e1', ' 3 ', '-0', 0.1, '123456789012345678'];
    const { ofRule, drops } = run(
      { name: 'bytes', type: 'counter', value: 'n' },
      values.map((n) => ({ n })),
    );
    expect(ofRule()).toEqual({ bytes: values.reduce<number>((sum, value) => sum + Number(value), 0) });
    expect(drops).toEqual({});
  });

  test('refuses what is no number and what is negative, counted', () => {
    const entries = [
      {},
      { n: '' },
      { n: 'x' },
      { n: '1 2' },
      { n: '0x10' },
      { n: true },
      { n: null },
      { n: [1] },
    ];
    const { ofRule, drops } = run({ name: 'bytes', type: 'counter', value: 'n' }, [
      ...entries,
      { n: -1 },
      { n: '-0.5' },
    ]);
    expect(ofRule()).toEqual({ bytes: 0 });
    expect(drops).toEqual({ 'rules/no_value': entries.length, 'rules/negative_value': 2 });
  });

  test('refuses a number beyond every float', () => {
    const counting = createCounting({ history: { rules: [{ name: 'n', type: 'counter', value: 'n' }] } });
    feed(counting.open(), '{"n":1e400}\n{"n":"1e400"}\n{"n":-1e400}\n');
    expect(Object.fromEntries(counting.drops)).toEqual({ 'rules/no_value': 3 });
  });
});

test('a gauge shows the last value, negative ones too', () => {
  const { ofRule } = run({ name: 'depth', type: 'gauge', value: 'n', labels: { queue: 'queue' } }, [
    { n: 3, queue: 'a' },
    { n: -2.5, queue: 'a' },
    { n: 7, queue: 'b' },
  ]);
  expect(ofRule()).toEqual({ 'depth{queue="a"}': -2.5, 'depth{queue="b"}': 7 });
});

test.each([
  [undefined, [0.001, 0.005, 0.01, 0.05, 0.1, 0.5, 1, 5, 10]],
  [
    [1, 2],
    [1, 2],
  ],
])('a histogram with buckets %j observes every value', (buckets, bounds) => {
  const { counting } = run({ name: 'took', type: 'histogram', value: 'n', help: 'Time.', buckets }, [
    { n: 0.5 },
    { n: '2.5' },
    { n: 'x' },
  ]);
  expect(counting.intake().observed.get('took')).toEqual([0.5, 2.5]);
  expect(counting.intake().shapes.get('took')).toMatchObject({ help: 'Time.', bounds });
});

test("a series goes when it was idle for the rule's time, and begins at 0 when it comes back", () => {
  const rule: LogRule = { name: 'hits', type: 'counter', labels: { who: 'who' }, expireMs: 1000 };
  const { counting, take, ofRule } = run(rule, [{ who: 'a' }, { who: 'a' }, { who: 'b' }]);
  counting.clock.advance(600);
  take({ who: 'b' });
  counting.clock.advance(399);
  counting.sinks.sweep(counting.clock.monotonicMs());
  expect(ofRule()).toEqual({ 'hits{who="a"}': 2, 'hits{who="b"}': 2 });
  counting.clock.advance(1);
  counting.sinks.sweep(counting.clock.monotonicMs());
  expect(ofRule()).toEqual({ 'hits{who="b"}': 2 });
  take({ who: 'a' }, { who: 'b' });
  expect(ofRule()).toEqual({ 'hits{who="a"}': 1, 'hits{who="b"}': 3 });
});
