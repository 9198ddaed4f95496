/**
 * Measures what a start does with 50,000 durable series: decode the snapshot, read its table into a store, restore the series,
 * own them. Prints medians of CPU milliseconds; argument: series.
 *
 *   npm run bench -- restore [SERIES]
 */

import { createEncoder, decodeSnapshot } from '../src/agent/state/snapshot.ts';
import { systemClock } from '../src/core/clock.ts';
import { createDurableStore, type DurableStore } from '../src/core/registry/durable-store.ts';
import { createRegistry } from '../src/core/registry/registry.ts';
import { numberAt } from './arguments.ts';
import { cpuMs, median } from './figures.ts';

const seriesCount = numberAt(0, 'SERIES', 50_000);
const rounds = 9;
const familyCount = 25;
const limits = { seriesPerMetric: seriesCount, series: seriesCount * 2, forbiddenTags: [], allowValues: [] };
const familyName = (i: number) => `svc_log_events_${i}_total`;
const shape = { tags: ['level', 'logger', 'domain'], help: 'Entries.' };

function open(durable: DurableStore) {
  const registry = createRegistry({ limits, durable, serviceKeys: ['history'] }, { clock: systemClock });
  return registry.intake({
    service: 'history',
    component: 'logs',
    relayed: false,
    rank: 0,
    store: durable,
    globalTags: { region: 'north' },
    received: true,
    tagService: true,
  });
}

const tags = (i: number) => ({ level: 'info', logger: `history.queue-${i}`, domain: `domain-${i % 97}` });

function written(): Uint8Array {
  const store = createDurableStore();
  const intake = open(store);
  for (let i = 0; i < seriesCount; i++) intake.counter(familyName(i % familyCount), tags(i), shape).add(i);
  const { table, values } = store.freeze();
  return createEncoder().encode({ table, values, sections: new Map() }, 1).slice();
}

const spans = new Map<string, number[]>();
function timed<T>(name: string, work: () => T): T {
  const before = process.cpuUsage();
  const result = work();
  spans.set(name, [...(spans.get(name) ?? []), cpuMs(before)]);
  return result;
}

const bytes = written();
for (let round = 0; round < rounds; round++) {
  globalThis.gc?.();
  const snapshot = timed('decode', () => decodeSnapshot(bytes));
  const store = createDurableStore();
  timed('restore', () => store.restore(snapshot.table, snapshot.values));
  const intake = open(store);
  const back = timed('bring back', () =>
    Array.from({ length: familyCount }, (_, i) => intake.restore('counter', familyName(i), shape)),
  );
  timed('own again', () => {
    for (const [i, all] of back.entries()) for (const one of all) intake.counter(familyName(i), one, shape);
  });
  timed('freeze', () => store.freeze());
}
console.log(`${seriesCount} series, ${bytes.length} bytes, Node ${process.version}`);
for (const [name, all] of spans) {
  console.log(`${name.padEnd(12)} first ${all[0]!.toFixed(0)} ms   median ${median(all).toFixed(0)} ms`);
}
