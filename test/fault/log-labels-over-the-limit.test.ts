import { expect, test } from 'vitest';
import { createLineSinks } from '../../src/sources/logs/metrics/line-sinks.ts';
import type { LogRule } from '../../src/sources/logs/options.ts';
import { feed } from '../counting.ts';
import { logDefaults } from '../log-defaults.ts';
import { testRegistry, wideLimits } from '../registry.ts';

const count = 5000;
const limit = 50;

const hits = { name: 'hits', type: 'counter', value: 'n', labels: { who: 'logger' } } as const;
const otherRules = [
  { name: 'took', type: 'histogram', value: 'n', labels: { who: 'logger' }, buckets: [1, 5] },
  { name: 'size', type: 'gauge', value: 'n', labels: { who: 'logger' } },
] as const;

function open({ seriesPerMetric = limit, rules = [hits, ...otherRules] as readonly LogRule[] } = {}) {
  const bed = testRegistry({ limits: { ...wideLimits, seriesPerMetric, series: 1_000_000 } });
  const intake = bed.intake({
    service: 'history',
    component: 'logs',
    store: bed.registry.durable,
    relayed: false,
    tagService: true,
  });
  const sinks = createLineSinks(
    { services: { history: { ...logDefaults, rules } }, selected: new Set(['history']) },
    { intakes: () => intake, drops: bed.registry.drops, clock: bed.clock },
  );
  return { ...bed, sink: sinks.open({ path: 'a.log', claimants: ['history'] }) };
}

const sum = (shown: Record<string, number | number[]>, name: string) =>
  Object.entries(shown)
    .filter(([key]) => key.startsWith(`${name}{`))
    .reduce((total, [, value]) => total + (typeof value === 'number' ? value : value.at(-1)!), 0);

test('loggers and labels over the limit add up in overflow series, however often they come', () => {
  const { sink, commit, shown } = open();
  const lines = Array.from(
    { length: count },
    (_, n) =>
      `${JSON.stringify({ level: n % 2 ? 'error' : 'info', logger: `shard-${n}`, msg: 'persistence error', n: 2 })}\n`,
  );
  feed(sink, lines.join(''));
  feed(sink, lines.toReversed().join(''));
  commit();
  const all = shown();
  expect(sum(all, 'svc_log_entries_total')).toBe(2 * count);
  expect(sum(all, 'svc_log_persistence_errors_total')).toBe(count);
  expect(sum(all, 'hits')).toBe(2 * 2 * count);
  expect(sum(all, 'took')).toBe(2 * count);
  for (const name of ['svc_log_entries_total', 'hits', 'took']) {
    const series = Object.keys(all).filter((key) => key.startsWith(`${name}{`));
    expect(series.length).toBeLessThanOrEqual(limit + 1);
    expect(series.some((key) => key.includes('overflow="true"'))).toBe(true);
  }
});

test('a rule counts every label set that the limits allow, past 65,536 of them', () => {
  const sets = 70_000;
  const { sink, commit, shown, dropped } = open({ seriesPerMetric: sets + 1, rules: [hits] });
  const lines = Array.from({ length: sets }, (_, n) => `{"level":"info","logger":"l-${n}","n":1}\n`);
  feed(sink, lines.join(''));
  feed(sink, lines.join(''));
  commit();
  expect(sum(shown(), 'hits')).toBe(2 * sets);
  expect(dropped('refused_series')).toBe(0);
});

test('values with ids count in the series that they share, however many there are', () => {
  const { sink, commit, shown, dropped } = open({ rules: [hits] });
  const ids = 70_000;
  const hex = (n: number) => n.toString(16).padStart(12, '0');
  const line = (n: number) => `{"level":"info","logger":"job 12345678-1234-1234-1234-${hex(n)}","n":1}\n`;
  const lines = Array.from({ length: ids }, (_, n) => line(n)).join('');
  feed(sink, lines);
  feed(sink, lines);
  commit();
  const counted = Object.entries(shown()).filter(([key]) => key.startsWith('hits{'));
  expect(counted).toEqual([['hits{svc_service="history",who="job _id_"}', 2 * ids]]);
  expect(dropped('refused_series')).toBe(0);
});
