import { describe, expect, test } from 'vitest';
import { createDurableStore, type DurableStore } from '../../src/core/registry/durable-store.ts';
import { createLineSinks } from '../../src/sources/logs/metrics/line-sinks.ts';
import type { LogRule } from '../../src/sources/logs/options.ts';
import type { LineSink } from '../../src/sources/logs/sink.ts';
import { feed } from '../counting.ts';
import { logDefaults } from '../log-defaults.ts';
import { testRegistry } from '../registry.ts';

/** One run of the agent: the real registry with sinks over it. If there are several services, the log has the lines of all. */
function live(
  rules: readonly LogRule[],
  durable?: DurableStore,
  claimants: readonly string[] = ['history'],
  globalTags: Record<string, string> = {},
) {
  const under = testRegistry(durable ? { durable } : {});
  const { registry, clock } = under;
  const intakes = (service: string) =>
    under.intake({
      service,
      component: 'logs',
      relayed: false,
      store: registry.durable,
      tagService: true,
      globalTags,
    });
  const sinks = createLineSinks(
    {
      services: Object.fromEntries(claimants.map((service) => [service, { ...logDefaults, rules }])),
      selected: new Set(claimants),
    },
    { intakes, drops: registry.drops, clock },
  );
  let sink: LineSink | undefined;
  return {
    sinks,
    clock,
    /** Opens the sink at the first line, as the tailer does. */
    take(...entries: unknown[]) {
      sink ??= sinks.open({ path: 'a.log', claimants });
      feed(sink, ...entries.map((entry) => `${JSON.stringify(entry)}\n`));
    },
    shown() {
      under.commit();
      return Object.fromEntries(Object.entries(under.shown()).filter(([, value]) => value !== 0));
    },
    restart(nextRules = rules, nextTags = globalTags) {
      const { table, values } = registry.durable.freeze();
      const next = createDurableStore();
      next.restore(table, values);
      return live(nextRules, next, claimants, nextTags);
    },
  };
}

const perDomain: LogRule = { name: 'hits', type: 'counter', labels: { domain: 'domain' }, expireMs: 1000 };
const entry = {
  level: 'error',
  logger: 'shard',
  msg: 'persistence error',
  operation: 'GetShard',
  domain: 'd',
};

describe('counts of log lines in the registry', () => {
  test('come back after a restart before any line is read, and go on', () => {
    const first = live([perDomain]);
    first.take(entry, entry, { level: 'info', ts: '2025-12-31T03:04:05Z', domain: '' });
    const shown = first.shown();
    expect(shown).toMatchObject({
      'svc_log_entries_total{level="error",logger="shard",svc_service="history"}': 2,
      'svc_log_persistence_errors_total{operation="PersistenceGetShard",svc_service="history"}': 2,
      'svc_log_newest_entry_timestamp_seconds{svc_service="history"}': Date.UTC(2025, 11, 31, 3, 4, 5) / 1000,
      'hits{domain="d",svc_service="history"}': 2,
      'hits{svc_service="history"}': 1,
    });
    const second = first.restart();
    expect(second.shown()).toEqual(shown);
    second.take(entry);
    expect(second.shown()).toMatchObject({
      'svc_log_entries_total{level="error",logger="shard",svc_service="history"}': 3,
      'hits{domain="d",svc_service="history"}': 3,
    });
  });

  test('of a log of several services come back too, those of lines without a service included', () => {
    const first = live([], undefined, ['history', 'matching']);
    first.take(entry, { ...entry, service: 'matching' });
    const shown = first.shown();
    expect(shown).toMatchObject({
      'svc_log_entries_total{level="error",logger="shard",svc_service="matching"}': 1,
      'svc_log_entries_total{level="error",logger="shard",svc_service="unknown"}': 1,
    });
    const second = first.restart();
    expect(second.shown()).toEqual(shown);
    second.take(entry);
    expect(second.shown()).toMatchObject({
      'svc_log_entries_total{level="error",logger="shard",svc_service="unknown"}': 2,
    });
  });

  test('of a rule that expires go when no entry asks for them after the restart', () => {
    const first = live([perDomain]);
    first.take(entry, { level: 'info', domain: 'e' });
    first.shown();
    const second = first.restart();
    second.clock.advance(999);
    second.take(entry);
    second.clock.advance(1);
    second.sinks.sweep(second.clock.monotonicMs());
    const hits = () => Object.entries(second.shown()).filter(([name]) => name.startsWith('hits'));
    expect(hits()).toEqual([['hits{domain="d",svc_service="history"}', 2]]);
    second.clock.advance(999);
    second.sinks.sweep(second.clock.monotonicMs());
    expect(hits()).toEqual([]);
  });

  test('keep their totals when the global tags change, and when they change back', () => {
    const first = live([perDomain], undefined, ['history'], { cluster: 'dc1' });
    first.take(entry, entry);
    const withTags = (shown: Record<string, unknown>, from: string, to: string) =>
      Object.fromEntries(Object.entries(shown).map(([name, value]) => [name.replace(from, to), value]));
    const shown = first.shown();
    expect(
      shown['svc_log_entries_total{cluster="dc1",level="error",logger="shard",svc_service="history"}'],
    ).toBe(2);
    const second = first.restart(undefined, { cluster: 'dc2' });
    expect(second.shown()).toEqual(withTags(shown, 'cluster="dc1"', 'cluster="dc2"'));
    second.take(entry);
    expect(
      second.shown()[
        'svc_log_entries_total{cluster="dc2",level="error",logger="shard",svc_service="history"}'
      ],
    ).toBe(3);
    const third = second.restart(undefined, { cluster: 'dc1' });
    expect(
      third.shown()[
        'svc_log_entries_total{cluster="dc1",level="error",logger="shard",svc_service="history"}'
      ],
    ).toBe(3);
    // Then one tag is added, and then all tags are removed.
    const fourth = third.restart(undefined, { cluster: 'dc1', region: 'eu' });
    expect(
      fourth.shown()[
        'svc_log_entries_total{cluster="dc1",level="error",logger="shard",region="eu",svc_service="history"}'
      ],
    ).toBe(3);
    const last = fourth.restart(undefined, {});
    expect(last.shown()['svc_log_entries_total{level="error",logger="shard",svc_service="history"}']).toBe(3);
    expect(Object.keys(last.shown()).filter((name) => /cluster|region/.test(name))).toEqual([]);
  });

  test('with other global tags they come back also if the state has series of a rule that is gone', () => {
    const total = (shown: Record<string, unknown>, tags: string) =>
      shown[`svc_log_entries_total{${tags}level="error",logger="shard",svc_service="history"}`];
    const gone: LogRule = { name: 'gone', type: 'counter', labels: {} };
    let agent = live([perDomain, gone], undefined, ['history'], {});
    agent.take(entry);
    for (const cluster of ['dc1', 'dc2', undefined]) {
      agent = agent.restart([perDomain], cluster === undefined ? {} : { cluster });
      agent.take(entry);
    }
    expect(total(agent.shown(), '')).toBe(4);
    expect(agent.shown()['hits{domain="d",svc_service="history"}']).toBe(4);
  });

  test('with other global tags and another rule, the rule alone begins at 0', () => {
    const first = live([perDomain], undefined, ['history'], { cluster: 'dc1' });
    first.take(entry);
    const second = first.restart([{ ...perDomain, labels: { shard: 'shard' } }], { cluster: 'dc2' });
    const shown = second.shown();
    expect(
      shown['svc_log_entries_total{cluster="dc2",level="error",logger="shard",svc_service="history"}'],
    ).toBe(1);
    expect(Object.keys(shown).filter((name) => name.startsWith('hits'))).toEqual([]);
  });

  test.each<LogRule['type']>(['counter', 'gauge', 'histogram'])(
    'of a %s rule that got a further label begin at 0, although its series could be of entries without that field',
    (type) => {
      const rule: LogRule = { name: 'hits', type, value: 'n', labels: { domain: 'domain' } };
      const counted = { ...entry, n: 3 };
      const hits = ({ shown }: ReturnType<typeof live>) =>
        Object.keys(shown()).filter((name) => name.startsWith('hits'));
      const first = live([rule]);
      first.take(counted);
      expect(hits(first)).toEqual(['hits{domain="d",svc_service="history"}']);
      const wider = first.restart([{ ...rule, labels: { domain: 'domain', kind: 'level' } }]);
      expect(hits(wider)).toEqual([]);
      wider.take(counted, { domain: 'd', n: 1 });
      const both = [
        'hits{domain="d",kind="error",svc_service="history"}',
        'hits{domain="d",svc_service="history"}',
      ];
      expect(hits(wider).sort()).toEqual(both);
      expect(hits(wider.restart()).sort()).toEqual(both);
      // The order of the labels in the configuration says nothing.
      expect(hits(wider.restart([{ ...rule, labels: { kind: 'level', domain: 'domain' } }])).sort()).toEqual(
        both,
      );
    },
  );

  test('of a rule whose labels changed begin at 0', () => {
    const first = live([perDomain]);
    first.take(entry);
    first.shown();
    const second = first.restart([{ ...perDomain, labels: { kind: 'level' } }]);
    second.take(entry);
    expect(Object.entries(second.shown()).filter(([name]) => name.startsWith('hits'))).toEqual([
      ['hits{kind="error",svc_service="history"}', 1],
    ]);
  });
});
