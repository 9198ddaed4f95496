import { appendFileSync, readFileSync, renameSync, truncateSync, writeFileSync } from 'node:fs';
import { type AddressInfo, createServer, type Server } from 'node:net';
import { join } from 'node:path';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { type Agent, startAgent } from '../../src/agent/agent.ts';
import { loadConfig } from '../../src/agent/config/load.ts';
import type { ReadyConfig } from '../../src/agent/config/types.ts';
import { systemClock } from '../../src/core/clock.ts';
import { listenersIn } from '../entries.ts';
import { newFolder } from '../folder.ts';
import { sumOn } from '../page-sum.ts';
import { until } from '../until.ts';

let directory: string;
let agent: Agent;
let metrics: string;
let taken: Server;
const path = (name: string) => join(directory, name);
const load = () => loadConfig({ file: path('agent.yaml'), env: {}, cwd: directory });
const good = () => `stateDirectory: ${path('state')}
metrics:
  pullmetrics: {listenAddress: 127.0.0.1:0}
admin: {listenAddress: 127.0.0.1:0}
log: {outputFile: ${path('agent.log')}, level: info}
services:
  history: {logs: {paths: ['${path('history*.log')}'], startAt: beginning}}
`;

/** The address on which the agent listens, from its log. */
const listening = () => listenersIn(readFileSync(path('agent.log'), 'utf8')).get('metrics');

const sum = (name: string) => sumOn(`http://${metrics}/metrics`, name);
const entries = () => sum('svc_log_entries_total');
const isTaken = () => sum('svc_agent_config_last_reload_successful');

let written = 0;
/** Writes entries of which no two are equal, as in a real log. */
const writeEntries = (count: number) =>
  appendFileSync(
    path('history.log'),
    Array.from({ length: count }, () => `{"level":"error","msg":"x ${written++}"}\n`).join(''),
  );

beforeEach(async () => {
  directory = newFolder();
  taken = createServer();
  await new Promise<void>((resolve) => taken.listen(0, '127.0.0.1', resolve));
  writeFileSync(path('agent.yaml'), good());
  writeEntries(100);
  const first = await load();
  expect(first.faults).toEqual([]);
  agent = await startAgent(first as ReadyConfig, { clock: systemClock, load });
  metrics = await until('it says where it listens', listening);
  await until('100 entries are counted', async () => (await entries()) === 100);
});
afterEach(async () => {
  await agent.stop();
  await new Promise((resolve) => taken.close(resolve));
});

const takenPort = () => (taken.address() as AddressInfo).port;
const bad: [name: string, edit: (text: string) => string, says: string][] = [
  [
    'two reporters',
    (text) => text.replace('metrics:\n', 'metrics:\n  pushmetrics: {hostPort: "127.0.0.1:9"}\n'),
    'pushmetrics',
  ],
  ['an unknown key', (text) => `${text}nonsense: true\n`, 'nonsense: unknown key'],
  ['an invalid level', (text) => text.replace('level: info', 'level: loud'), 'loud'],
  ['a file that is no YAML', (text) => `${text}roles: [history\n`, 'is not closed'],
  ['an empty list of paths', (text) => text.replace(/paths: \[.*\],/, 'paths: [],'), 'paths'],
  [
    'a port in use',
    (text) =>
      text.replace('admin: {listenAddress: 127.0.0.1:0}', `admin: {listenAddress: 127.0.0.1:${takenPort()}}`),
    'address already in use',
  ],
];

test.each(bad)(
  '%s: the old configuration stays at work, and the repaired file is taken',
  async (_, edit, says) => {
    const edited = edit(good());
    expect(edited).not.toBe(good());
    writeFileSync(path('agent.yaml'), edited);
    agent.reload();
    await until('the failure shows', async () => (await isTaken()) === 0);
    await until('the log says why', () => readFileSync(path('agent.log'), 'utf8').includes(says));
    expect((await fetch(`http://${metrics}/ready`)).status).toBe(200);
    writeEntries(10);
    await until('it still counts', async () => (await entries()) === 110);

    writeFileSync(path('agent.yaml'), good());
    agent.reload();
    await until('the repair shows', async () => (await isTaken()) === 1);
    expect(await entries()).toBe(110);
  },
);

test('a log rotated and truncated while a bad file waits for its repair: each entry counts once', async () => {
  writeFileSync(path('agent.yaml'), `${good()}nonsense: true\n`);
  agent.reload();
  await until('the failure shows', async () => (await isTaken()) === 0);
  writeEntries(50);
  renameSync(path('history.log'), path('history-1.log'));
  writeEntries(7);
  await until('both files are read', async () => (await entries()) === 157);
  truncateSync(path('history.log'));
  writeEntries(3);
  await until('what came after the truncation is read', async () => (await entries()) === 160);
  writeFileSync(path('agent.yaml'), good());
  agent.reload();
  await until('the repair shows', async () => (await isTaken()) === 1);
  writeEntries(1);
  await until('it goes on', async () => (await entries()) === 161);
});
