import { expect, test } from 'vitest';
import { createState } from '../../../src/agent/state/state.ts';
import { AgentError } from '../../../src/core/errors.ts';
import type { Clock, Durable, Log } from '../../../src/core/ports.ts';
import { createDurableStore } from '../../../src/core/registry/durable-store.ts';
import { createRegistry } from '../../../src/core/registry/registry.ts';
import { createPush, type PushDeps } from '../../../src/reporters/push/push.ts';
import { manualClock } from '../../clock.ts';
import { newFolder } from '../../folder.ts';
import { type Aggregator, aggregator, startPush } from '../../push.ts';
import { decodeLine } from '../../push-lines.ts';
import { wideLimits } from '../../registry.ts';
import { atTestEnd } from '../../test-end.ts';
import { until } from '../../until.ts';

const quiet: Log = { write: () => {}, named: () => quiet };

/** One run of an agent: state on disk, registry, and a push reporter to `target`. */
async function live(directory: string, target: Aggregator, clock: Clock & { advance(ms: number): void }) {
  const sinceMs = clock.nowMs();
  const durable = createDurableStore();
  let push: ReturnType<typeof createPush> | undefined;
  let restored: Uint8Array | undefined;
  const section: Durable = {
    name: 'push-metrics',
    freeze: () => push!.durable.freeze(),
    restore: (bytes) => {
      restored = bytes;
    },
  };
  const state = createState(
    { directory, fsync: false },
    { values: durable, durables: [section], clock, log: quiet },
  );
  await state.load();
  const registry = createRegistry({ limits: wideLimits, durable }, { clock });
  let delivered = 0;
  const deps: PushDeps = {
    takes: ({ service }) => service === 'frontend',
    hasExternalTotals: () => false,
    commit: () => state.commit(),
    sinceMs,
    reported: {
      delivered: () => {
        delivered += 1;
      },
      failed: () => {},
    },
    clock,
    drops: registry.drops,
    log: quiet,
  };
  push = createPush(
    {
      hostPort: `localhost:${target.port}`,
      prefix: 'svc',
      metricsPrefix: 'prod',
      flushIntervalMs: 1000,
      flushBytes: 512,
      tagFormat: 'suffix',
      block: 'metrics',
      instance: 'host1.example',
    },
    deps,
  );
  if (restored) push.durable.restore(restored);
  const common = {
    service: 'frontend',
    relayed: false,
    rank: 0,
    globalTags: {},
    received: false,
    tagService: true,
  };
  const logs = registry.intake({ ...common, component: 'logs', store: durable });
  const statsd = registry.intake({ ...common, component: 'statsd', store: registry.immediate });
  const stop = await push.start(async ({ takes }) => {
    await state.commit();
    return registry.view(takes);
  });
  return {
    entries: logs.counter('svc_log_entries_total', { level: 'error' }),
    latency: statsd.histogram('svc_persistence_latency', {}, { bounds: [0.1, 1] }),
    async flush() {
      const before = delivered;
      clock.advance(1000);
      await until('a flush is delivered', () => delivered > before);
    },
    async end() {
      await stop();
      await state.close();
    },
    /** Ends without a last flush, as after a kill. */
    kill: () => state.close(),
  };
}

test('log counts and a histogram over two restarts: the deltas add up, none twice', async () => {
  const directory = newFolder();
  const target = await aggregator();
  const clock = manualClock();

  const first = await live(directory, target, clock);
  first.entries.add(5);
  first.latency.observe(0.05);
  await first.flush();
  first.entries.add(2);
  await first.flush();
  await first.kill();

  clock.advance(10);
  const second = await live(directory, target, clock);
  second.entries.add(1);
  second.latency.observe(0.5);
  second.latency.observe(5);
  await second.flush();
  second.entries.add(1);
  await second.end();

  clock.advance(10);
  const third = await live(directory, target, clock);
  third.entries.add(3);
  await third.end();

  const sums = () => {
    const totals: Record<string, number> = {};
    for (const line of target.lines()) {
      const { name, tags, value, type } = decodeLine(line, 'suffix', 'svc.prod.');
      expect(type).toBe('c');
      expect(tags).toMatchObject({ svc_service: 'frontend', instance: 'host1_example' });
      const key = tags.le === undefined ? name : `${name} ${tags.le}`;
      totals[key] = (totals[key] ?? 0) + value;
    }
    return totals;
  };
  await until('all of it arrives', () => sums().svc_log_entries_total === 12);
  expect(sums()).toEqual({
    svc_log_entries_total: 12,
    'svc_persistence_latency_bucket 0_1': 1,
    'svc_persistence_latency_bucket 1': 2,
    'svc_persistence_latency_bucket +Inf': 3,
    svc_persistence_latency_sum: 5.55,
    svc_persistence_latency_count: 3,
  });
  for (const datagram of target.datagrams) expect(Buffer.byteLength(datagram)).toBeLessThanOrEqual(512);
});

test('the socket keeps no process alive', async () => {
  const target = await aggregator();
  const ours = () => process.getActiveResourcesInfo().filter((kind) => kind === 'UDPWrap').length;
  const before = ours();
  expect(before).toBeGreaterThan(0);
  const rig = await startPush({ hostPort: `127.0.0.1:${target.port}` });
  atTestEnd(rig.stop);
  rig.show([{ name: 'a', kind: 'counter', series: [{ numbers: [1] }] }]);
  await rig.flush();
  await until('the line arrives', () => target.lines().length === 1);
  // There are fewer if a socket of an earlier test has been closed meanwhile.
  expect(ours()).toBeLessThanOrEqual(before);
});

test('a hostPort that is none is refused', async () => {
  await expect(startPush({ hostPort: 'nowhere' })).rejects.toThrow(AgentError);
  await expect(startPush({ hostPort: 'nowhere' })).rejects.toThrow(
    'pushmetrics.hostPort: not an address, got "nowhere"',
  );
});
