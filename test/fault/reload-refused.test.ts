import { appendFileSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { type AddressInfo, createServer, type Server } from 'node:net';
import { join } from 'node:path';
import { afterEach, beforeEach, expect, test, vi } from 'vitest';
import { type Agent, startAgent } from '../../src/agent/agent.ts';
import { loadConfig } from '../../src/agent/config/load.ts';
import type { ReadyConfig } from '../../src/agent/config/types.ts';
import { systemClock } from '../../src/core/clock.ts';
import { listenersIn } from '../entries.ts';
import { newFolder } from '../folder.ts';
import { sumOn } from '../page-sum.ts';
import { freePort } from '../ports.ts';
import { until } from '../until.ts';

/** Parts that cannot be built, which no configuration can cause by itself. */
const unbuildable = { logs: false, probes: false, push: false };
vi.mock('../../src/sources/logs/source.ts', async (original) => {
  const module = await original<typeof import('../../src/sources/logs/source.ts')>();
  const createLogs: typeof module.createLogs = (...args) => {
    if (unbuildable.logs) throw new Error('injected: log source');
    return module.createLogs(...args);
  };
  return { ...module, createLogs };
});
vi.mock('../../src/probes/plan.ts', async (original) => {
  const module = await original<typeof import('../../src/probes/plan.ts')>();
  const planProbes: typeof module.planProbes = (options) => {
    if (unbuildable.probes) throw new Error('injected: probes');
    return module.planProbes(options);
  };
  return { ...module, planProbes };
});
vi.mock('../../src/reporters/push/push.ts', async (original) => {
  const module = await original<typeof import('../../src/reporters/push/push.ts')>();
  const createPush: typeof module.createPush = (...args) => {
    if (unbuildable.push) throw new Error('injected: reporter');
    return module.createPush(...args);
  };
  return { ...module, createPush };
});

let directory: string;
let agent: Agent;
let metrics: string;
let taken: Server;
let [newPull, newStatsd] = [0, 0];
const path = (name: string) => join(directory, name);
const load = () => loadConfig({ file: path('agent.yaml'), env: {}, cwd: directory });

interface Edit {
  faulty?: keyof typeof unbuildable;
  history?: string;
  top?: string;
  admin?: string;
  state?: string;
  log?: string;
}
/** The first configuration, or one with more: another listener, a source with a port, and `edit`. */
const text = (edit?: Edit) => `stateDirectory: ${path(edit?.state ?? 'state')}
metrics:
  pullmetrics: {listenAddress: 127.0.0.1:0}
admin: ${edit?.admin ?? '{listenAddress: 127.0.0.1:0}'}
log: {outputFile: ${path(edit?.log ?? 'agent.log')}}
${edit?.top ?? ''}
services:
  history:
    logs: {paths: ['${path('history*.log')}'], startAt: beginning}
${
  edit
    ? `    statsd: {listen: 127.0.0.1:${newStatsd}}
    ${edit.history ?? ''}
  worker:
    metrics: {pullmetrics: {listenAddress: 127.0.0.1:${newPull}}}`
    : ''
}
`;

const sum = (name: string) => sumOn(`http://${metrics}/metrics`, name);
const ownLog = () => readFileSync(path('agent.log'), 'utf8');
const writeEntries = (count: number) =>
  appendFileSync(path('history.log'), '{"level":"error","msg":"x"}\n'.repeat(count));

const listen = (port = 0): Promise<Server> =>
  new Promise((resolve, reject) => {
    const server = createServer();
    server.once('error', reject);
    server.listen(port, '127.0.0.1', () => resolve(server));
  });
const portOf = (server: Server) => (server.address() as AddressInfo).port;
const close = (server: Server) => new Promise((resolve) => server.close(resolve));

beforeEach(async () => {
  directory = newFolder();
  taken = await listen();
  [newPull, newStatsd] = [await freePort(), await freePort()];
  mkdirSync(path('folder.log'));
  writeFileSync(path('agent.yaml'), text());
  writeEntries(100);
  const first = await load();
  expect(first.faults).toEqual([]);
  agent = await startAgent(first as ReadyConfig, { clock: systemClock, load });
  metrics = listenersIn(ownLog()).get('metrics')!;
  await until('100 entries are counted', async () => (await sum('svc_log_entries_total')) === 100);
});
afterEach(async () => {
  Object.assign(unbuildable, { logs: false, probes: false, push: false });
  await agent.stop();
  await close(taken);
});

const refused: [step: string, edit: () => Edit, says: string][] = [
  ['the state directory', () => ({ state: 'elsewhere' }), 'stateDirectory'],
  ['the agent’s own log', () => ({ log: 'folder.log' }), 'folder.log'],
  ['a vocabulary', () => ({ history: 'vocabulary: nosuch' }), 'unknown vocabulary'],
  ['log sources', () => ({ faulty: 'logs' }), 'injected: log source'],
  ['probes', () => ({ faulty: 'probes' }), 'injected: probes'],
  [
    'a reporter',
    () => ({ faulty: 'push', history: 'metrics: {pushmetrics: {hostPort: "127.0.0.1:9"}}' }),
    'injected: reporter',
  ],
  [
    'a stream of a role',
    () => ({
      top: '',
      history: `vocabulary: auto\n  matching:\n    statsd: {tcp: 127.0.0.1:${portOf(taken)}}`,
    }),
    'services.matching.statsd.tcp',
  ],
  [
    'certificates of a stream',
    () => ({
      history:
        'vocabulary: auto\n  matching:\n    statsd: {tcp: 127.0.0.1:0, tls: {certFile: nowhere.pem, keyFile: nowhere.pem}}',
    }),
    'nowhere.pem',
  ],
  [
    'a listener',
    () => ({ admin: `{listenAddress: 127.0.0.1:0, health: 127.0.0.1:${portOf(taken)}}` }),
    'admin.health',
  ],
];

test.each(refused)('%s cannot be built: nothing changes, and no line is lost', async (_, edit, says) => {
  const edited = edit();
  if (edited.faulty) unbuildable[edited.faulty] = true;
  writeFileSync(path('agent.yaml'), text(edited));
  agent.reload();
  await until('the failure shows', async () => (await sum('svc_agent_config_last_reload_successful')) === 0);
  await until('the log says why', () => ownLog().includes(says));
  writeEntries(10);
  await until('lines go on to be counted', async () => (await sum('svc_log_entries_total')) === 110);
  // What was built before the fault is released.
  await close(await listen(newPull));
  expect(await sum('svc_log_bytes_total')).toBe(readFileSync(path('history.log')).length);

  Object.assign(unbuildable, { logs: false, probes: false, push: false });
  writeFileSync(path('agent.yaml'), text({}));
  agent.reload();
  await until('the repair shows', async () => (await sum('svc_agent_config_last_reload_successful')) === 1);
  writeEntries(1);
  await until('lines go on to be counted', async () => (await sum('svc_log_entries_total')) === 111);
  expect((await fetch(`http://127.0.0.1:${newPull}/metrics`)).status).toBe(200);
});
