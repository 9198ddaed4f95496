/**
 * Prints figures of the registry as one JSON line; each time is the median of some rounds. Bytes per series are reliable only if
 * the garbage collector can be called (`NODE_OPTIONS=--expose-gc`).
 *
 *   npm run bench -- core
 */
import { systemClock } from '../src/core/clock.ts';
import { createDurableStore } from '../src/core/registry/durable-store.ts';
import type { IntakeOptions } from '../src/core/registry/intake.ts';
import { createRegistry, type Registry } from '../src/core/registry/registry.ts';
import { createPageStore } from '../src/core/registry/value-stores.ts';
import { median } from './figures.ts';

const limits = { seriesPerMetric: 1e6, series: 1e6, forbiddenTags: [], allowValues: [] };

const medianMs = (rounds: number, work: () => void): number =>
  median(
    Array.from({ length: rounds }, () => {
      const startMs = performance.now();
      work();
      return performance.now() - startMs;
    }),
  );

const perSecond = (n: number, ms: number) => Math.round((n / ms) * 1000);
const rounded = (ms: number) => Math.round(ms * 1000) / 1000;

function opened(registry: Registry, options: Partial<IntakeOptions> = {}) {
  return registry.intake({
    service: 'frontend',
    component: 'scrape',
    relayed: true,
    rank: 0,
    store: registry.immediate,
    globalTags: { cluster: 'dc1' },
    received: true,
    tagService: true,
    ...options,
  });
}

const tagsOf = (i: number) => ({
  operation: `Operation${i % 50}`,
  domain: `domain-${i % 200}`,
  tasklist: `tasklist-${i}`,
});

function updates() {
  const registry = createRegistry({ limits }, { clock: systemClock });
  const intake = opened(registry);
  const [counter, histogram] = [intake.counter('c', {}), intake.histogram('h', {})];
  const part = intake.parts('counter', 'p', {}).part(0);
  const n = 20_000_000;
  const rate = (rounds: number, work: (i: number) => void) =>
    perSecond(
      n,
      medianMs(rounds, () => {
        for (let i = 0; i < n; i++) work(i);
      }),
    );
  return {
    counterAddPerSecond: rate(5, () => counter.add(1)),
    partSetPerSecond: rate(5, (i) => part.set(i)),
    observePerSecond: rate(3, (i) => histogram.observe((i & 15) / 10)),
  };
}

function page() {
  const registry = createRegistry({ limits }, { clock: systemClock });
  const store = createPageStore();
  const intake = opened(registry, { store });
  const n = 100_000;
  globalThis.gc?.();
  const heapBefore = process.memoryUsage().heapUsed;
  const parts = new Array(n);
  const resolveMs = medianMs(1, () => {
    for (let i = 0; i < n; i++)
      parts[i] = intake.parts('counter', `svc_family_${i % 100}`, tagsOf(i)).part(0);
  });
  globalThis.gc?.();
  const bytesPerSeries = (process.memoryUsage().heapUsed - heapBefore) / n;
  const fillMs = medianMs(9, () => {
    for (let i = 0; i < n; i++) parts[i].set(i);
    store.swap();
  });
  const firstViewMs = medianMs(1, () => registry.view().release());
  const viewMs = medianMs(9, () => registry.view().release());
  const roleViewMs = medianMs(9, () => registry.view(({ service }) => service === 'frontend').release());
  const closeMs = medianMs(1, () => intake.close());
  return {
    resolvePerSecond: perSecond(n, resolveMs),
    bytesPerSeries: Math.round(bytesPerSeries),
    fill100kMs: rounded(fillMs),
    firstView100kMs: rounded(firstViewMs),
    view100kMs: rounded(viewMs),
    roleView100kMs: rounded(roleViewMs),
    close100kMs: rounded(closeMs),
  };
}

function durable() {
  const registry = createRegistry({ limits }, { clock: systemClock });
  const intake = opened(registry, { store: registry.durable, component: 'logs' });
  const n = 50_000;
  for (let i = 0; i < n; i++) intake.counter('svc_log_entries_total', tagsOf(i)).add(1);
  const firstFreezeMs = medianMs(1, () => registry.durable.freeze());
  const freezeMs = medianMs(9, () => registry.durable.freeze());
  let next = n;
  const changedFreezeMs = medianMs(9, () => {
    intake.counter('svc_log_entries_total', tagsOf(next++));
    registry.durable.freeze();
  });
  const { table, values } = registry.durable.freeze();
  const restored = createDurableStore();
  const restoreMs = medianMs(1, () => restored.restore(table, values));
  return {
    firstFreeze50kMs: rounded(firstFreezeMs),
    freeze50kMs: rounded(freezeMs),
    freezeOneNewOf50kMs: rounded(changedFreezeMs),
    tableBytes: table.length,
    restore50kMs: rounded(restoreMs),
  };
}

console.log(JSON.stringify({ node: process.version, ...updates(), ...page(), ...durable() }));
