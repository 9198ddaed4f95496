/**
 * Measures one commit of 50,000 durable series without fsync: freeze, encode, write, rename; its parts; and the same commit when
 * nothing changed. Arguments: series, directory (default: a new one in the system's temporary directory).
 *
 *   npm run bench -- commit [SERIES] [DIRECTORY]
 */
import { statSync } from 'node:fs';
import { join } from 'node:path';
import { createEncoder, decodeSnapshot } from '../src/agent/state/snapshot.ts';
import { createState } from '../src/agent/state/state.ts';
import { systemClock } from '../src/core/clock.ts';
import type { Durable, Log } from '../src/core/ports.ts';
import type { DurableValues } from '../src/core/registry/durable-store.ts';
import { numberAt, textAt } from './arguments.ts';
import { median } from './figures.ts';
import { newPlace } from './process.ts';

const seriesCount = numberAt(0, 'SERIES', 50_000);
const directory = newPlace('commit', textAt(1));
const rounds = 60;

/** Identities of about a hundred bytes, like the identities of a log rule's series. */
const identities = Array.from({ length: seriesCount }, (_, i) =>
  JSON.stringify([
    'svc_log_entries_total',
    ['level', 'info'],
    ['logger', `history.queue-${i}`],
    ['svc_service', 'history'],
  ]),
);
const live = Float64Array.from({ length: seriesCount }, (_, i) => i);
let table = Buffer.from(identities.join('\n'));
let seq = 0;
const values: DurableValues = {
  freeze: () => ({ seq: ++seq, values: live.slice(), table }),
  publish: () => undefined,
  restore: () => undefined,
};
/** The offsets of a hundred files. */
const offsets = Buffer.alloc(100 * 200);
const durables: Durable[] = [{ name: 'logs', freeze: () => offsets, restore: () => undefined }];
const log: Log = { write: (level, msg, fields) => console.error(level, msg, fields), named: () => log };

const spans: Record<string, number[]> = {};
async function timed<T>(name: string, work: () => T | Promise<T>): Promise<T> {
  const startMs = performance.now();
  const result = await work();
  spans[name] ??= [];
  spans[name].push(performance.now() - startMs);
  return result;
}
const change = () => live.set(live.map((value) => value + 1));

const state = createState({ directory, fsync: false }, { values, durables, clock: systemClock, log });
await state.load();
await state.commit();
const encoder = createEncoder();
for (let round = 0; round < rounds; round++) {
  change();
  await timed('commit, values changed', () => state.commit());
  await timed('commit, nothing changed', () => state.commit());
  table = Buffer.from(table);
  await timed('commit, series changed', () => state.commit());
  change();
  const frozen = await timed('  freeze', () => values.freeze());
  const content = { table: frozen.table, values: frozen.values, sections: new Map([['logs', offsets]]) };
  encoder.encode(content, round);
  const bytes = await timed('  encode, same table', () => encoder.encode(content, round));
  await timed('  compare', () => encoder.holds(content));
  await timed('decode', () => decodeSnapshot(bytes));
}
console.log(
  `${seriesCount} series, ${statSync(join(directory, 'snapshot-a')).size} bytes, Node ${process.version}`,
);
for (const [name, all] of Object.entries(spans)) {
  const worst = Math.max(...all);
  console.log(`${name.padEnd(28)} median ${median(all).toFixed(2)} ms   worst ${worst.toFixed(2)} ms`);
}
await state.close();
