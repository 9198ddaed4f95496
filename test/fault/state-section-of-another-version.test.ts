import { appendFileSync, cpSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, afterEach, beforeAll, beforeEach, expect, test } from 'vitest';
import { type Agent, startAgent } from '../../src/agent/agent.ts';
import { loadConfig } from '../../src/agent/config/load.ts';
import type { ReadyConfig } from '../../src/agent/config/types.ts';
import { createEncoder, decodeSnapshot } from '../../src/agent/state/snapshot.ts';
import { systemClock } from '../../src/core/clock.ts';
import { newFolder } from '../folder.ts';
import { until } from '../until.ts';

let directory: string;
let agent: Agent | undefined;
const path = (name: string) => join(directory, name);
const load = () => loadConfig({ file: path('agent.yaml'), env: {}, cwd: directory });

async function start(): Promise<void> {
  const loaded = await load();
  expect(loaded.faults).toEqual([]);
  agent = await startAgent(loaded as ReadyConfig, { clock: systemClock, load });
}
async function stop(): Promise<void> {
  await agent?.stop();
  agent = undefined;
}

const sections = ['log-positions', 'roles', 'probes', 'push-metrics'];
const snapshots = () => readdirSync(path('state')).filter((name) => /^snapshot-[ab]$/.test(name));
const sectionsOf = (snapshot: string) => decodeSnapshot(readFileSync(path(`state/${snapshot}`))).sections;

/** State with every section, which two agents left one after the other; each test changes a copy. */
beforeAll(async () => {
  directory = newFolder(afterAll);
  writeFileSync(
    path('agent.yaml'),
    `stateDirectory: ${path('state')}
metrics: {pushmetrics: {hostPort: "127.0.0.1:9", flushInterval: 100ms}}
admin: {listenAddress: 127.0.0.1:0}
log: {outputFile: ${path('agent.log')}}
services:
  history:
    logs: {paths: ['${path('history*.log')}'], startAt: beginning}
    health: {url: "tcp://127.0.0.1:9", interval: 1s}
`,
  );
  appendFileSync(path('history.log'), '{"level":"info","msg":"x"}\n'.repeat(10));
  await start();
  await stop();
  await start();
  appendFileSync(path('history.log'), '{"level":"info","msg":"x"}\n'.repeat(10));
  await until('both snapshots have every section', () => {
    const kept = snapshots().map(sectionsOf);
    return kept.length === 2 && kept.every((held) => sections.every((section) => held.has(section)));
  });
  await stop();
  cpSync(path('state'), path('kept'), { recursive: true });
});
beforeEach(() => {
  rmSync(path('state'), { recursive: true });
  cpSync(path('kept'), path('state'), { recursive: true });
});
afterEach(stop);

/** Writes both snapshots again with one section changed. */
function change(section: string, edit: (bytes: Buffer) => Buffer): number {
  let changed = 0;
  for (const name of snapshots()) {
    const snapshot = decodeSnapshot(readFileSync(path(`state/${name}`)));
    const before = snapshot.sections.get(section);
    if (!before) continue;
    changed += 1;
    const sections = new Map(snapshot.sections).set(section, edit(Buffer.from(before)));
    const bytes = createEncoder().encode({ ...snapshot, sections }, snapshot.sequence);
    writeFileSync(path(`state/${name}`), bytes);
  }
  return changed;
}

/** Changes a version that is written as a number, at the beginning or in JSON. */
const versionTo = (version: number) => (bytes: Buffer) => {
  if (bytes[0] === 0x7b)
    return Buffer.from(bytes.toString().replace(/"version":\d+/, `"version":${version}`));
  const other = Buffer.from(bytes);
  other.writeUInt32LE(version, 0);
  return other;
};

const edits: [what: string, edit: (bytes: Buffer) => Buffer][] = [
  ['of a later version', versionTo(4_000_000)],
  ['of an earlier version', versionTo(0)],
  ['that is garbage', () => Buffer.from('garbage')],
  ['that is cut off', (bytes) => bytes.subarray(0, Math.max(1, bytes.length - 3))],
];

test.each(sections.flatMap((section) => edits.map(([what, edit]) => [section, what, edit] as const)))(
  'section %s %s: one start, and the next one too',
  async (section, _, edit) => {
    expect(change(section, edit)).toBeGreaterThan(0);
    await start();
    await stop();
    const aside = readdirSync(path('state')).filter((name) => name.includes('.corrupt-'));
    await start();
    await stop();
    expect(readdirSync(path('state')).filter((name) => name.includes('.corrupt-'))).toEqual(aside);
    expect(snapshots().length).toBeGreaterThan(0);
  },
);
