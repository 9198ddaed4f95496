import { execFileSync } from 'node:child_process';
import { mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { init } from '../../../src/agent/cli/init.ts';
import { loadConfig } from '../../../src/agent/config/load.ts';
import { fakeIo } from './fake-io.ts';

let folder: string;
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'svc-agent-init-'));
  mkdirSync(join(folder, 'log'));
  mkdirSync(join(folder, 'archive'));
  const logged = ['pay-ments', 'orders', 'cadence-system', 'orders'];
  const lines = logged.map((name) => `{"level":"info","msg":"x","wf-domain-name":"${name}"}\n`);
  writeFileSync(join(folder, 'log/svc.log'), lines.join(''));
  writeFileSync(
    join(folder, 'service.yaml'),
    `log: {level: info, encoding: json, outputFile: ${join(folder, 'log/svc.log')}}
persistence:
  defaultStore: one
  visibilityStore: two
  datastores:
    one: {sql: {pluginName: postgres, databaseName: svc, connectAddr: "10.0.0.5:5432", user: svc, password: hunter2}}
    two: {sql: {pluginName: postgres, databaseName: svc_visibility, connectAddr: "10.0.0.5:5432", user: svc, password: hunter2}}
services:
  frontend:
    rpc: {port: 7933, grpcPort: 7833, bindOnLocalHost: true}
    metrics: {prometheus: {timerType: histogram, listenAddress: "127.0.0.1:8000"}}
    pprof: {port: 7936}
  matching:
    rpc: {port: 7935, grpcPort: 7835, bindOnIP: 10.0.0.9}
    metrics: {prometheus: {timerType: histogram, listenAddress: "127.0.0.1:8001"}}
  worker:
    rpc: {port: 7939}
    metrics: {prometheus: {timerType: histogram, listenAddress: "127.0.0.1:8003"}}
clusterGroupMetadata:
  failoverVersionIncrement: 10
  primaryClusterName: dc1
  currentClusterName: dc1
  clusterGroup: {dc1: {enabled: true, initialFailoverVersion: 0, rpcAddress: "127.0.0.1:7833", rpcTransport: grpc}}
archival: {history: {status: enabled, enableRead: true, provider: {filestore: {fileMode: "0666", dirMode: "0766"}}}}
domainDefaults: {archival: {history: {status: enabled, URI: "file://${join(folder, 'archive')}"}}}
`,
  );
});
afterEach(() => rmSync(folder, { recursive: true, force: true }));

test('with the service’s own files everything is on, and credentials alone are missing', async () => {
  const io = fakeIo(folder);
  expect(await init(['--service-config', 'service.yaml', '--out', 'agent.yaml'], io)).toBe(0);
  const text = readFileSync(join(folder, 'agent.yaml'), 'utf8');
  expect(text).not.toContain('hunter2');
  const { config, faults, findings } = await loadConfig({ file: 'agent.yaml', env: {}, cwd: folder });
  expect(faults).toEqual([]);
  expect(findings.map(({ where, what }) => `${where} ${what}`)).toEqual([
    expect.stringContaining('environment variable SVC_AGENT_DB_PASSWORD is not set'),
  ]);
  expect(
    config!.services.map(({ name, health, scrape, logs }) => [name, health?.url, scrape?.url, logs?.paths]),
  ).toEqual([
    ['frontend', 'grpc://127.0.0.1:7833', 'http://127.0.0.1:8000/metrics', [join(folder, 'log/svc.log')]],
    ['matching', 'grpc://10.0.0.9:7835', 'http://127.0.0.1:8001/metrics', [join(folder, 'log/svc.log')]],
    ['worker', undefined, 'http://127.0.0.1:8003/metrics', [join(folder, 'log/svc.log')]],
  ]);
  expect(config!.stores).toMatchObject([
    {
      name: 'one',
      kind: 'postgres',
      address: '10.0.0.5:5432',
      user: 'svc_agent',
      password: { env: 'SVC_AGENT_DB_PASSWORD' },
      databases: { persistence: 'svc', visibility: 'svc_visibility' },
    },
  ]);
  expect(config!.domains).toMatchObject({
    watch: ['orders', 'pay-ments'],
    describe: { command: expect.arrayContaining(['{address}', '{domain}', 'describe']) },
  });
  expect(config!.clusterGroupMetadata?.clusters).toHaveLength(1);
  expect(config!.archival?.history?.status).toBe('enabled');
});

test.each([
  ['has not logged yet', () => {}],
  ['writes to a pipe', () => execFileSync('mkfifo', [join(folder, 'log/svc.log')])],
  ['has a directory for a log', () => mkdirSync(join(folder, 'log/svc.log'))],
])('the domains of a service that %s have to be added', async (_, make) => {
  rmSync(join(folder, 'log/svc.log'));
  make();
  const io = fakeIo(folder);
  expect(await init(['--service-config', 'service.yaml', '--out', 'agent.yaml'], io)).toBe(0);
  expect(readFileSync(join(folder, 'agent.yaml'), 'utf8')).toContain(
    'watch: []  # none in the log of the service',
  );
  const { config, faults } = await loadConfig({ file: 'agent.yaml', env: {}, cwd: folder });
  expect([faults, config!.domains!.watch]).toEqual([[], []]);
});

test('without them it is a configuration that check accepts', async () => {
  const io = fakeIo(folder);
  expect(await init([], io)).toBe(0);
  writeFileSync(join(folder, 'plain.yaml'), io.out());
  expect((await loadConfig({ file: 'plain.yaml', env: {}, cwd: folder })).faults).toEqual([]);
});

test.each([
  ['a service file that is missing', ['--service-config', 'nowhere.yaml', '--out', 'agent.yaml']],
  ['a file of something else', ['--service-config', 'dynamicconfig.yaml', '--out', 'agent.yaml']],
  ['a directory that is missing', ['--out', 'nowhere/agent.yaml']],
])('%s: no file is left behind', async (_, args) => {
  writeFileSync(join(folder, 'dynamicconfig.yaml'), 'history.enableSyncActivity: [{value: true}]\n');
  const before = readdirSync(folder);
  await expect(init(args, fakeIo(folder))).rejects.toThrow();
  expect(readdirSync(folder)).toEqual(before);
});

test('a file that is there stays as it was', async () => {
  writeFileSync(join(folder, 'agent.yaml'), 'instance: mine\n');
  await expect(init(['agent.yaml'], fakeIo(folder))).rejects.toThrow('already exists');
  expect(readFileSync(join(folder, 'agent.yaml'), 'utf8')).toBe('instance: mine\n');
  expect(readdirSync(folder).filter((name) => name.includes('.new-'))).toEqual([]);
});

test('a file for each role gives each role its log, and init says so', async () => {
  const real = new URL('../../fixtures/real-service/config/', import.meta.url).pathname;
  const names = ['frontend', 'history', 'matching', 'worker'];
  const files = ['base', 'production', ...names.map((name) => `production_${name}`)];
  const io = fakeIo(folder);
  const options = files.flatMap((name) => ['--service-config', join(real, `${name}.yaml`)]);
  expect(await init([...options, '--out', 'agent.yaml'], io)).toBe(0);
  const text = readFileSync(join(folder, 'agent.yaml'), 'utf8');
  for (const name of names) {
    expect(text).toContain(`logs.paths: /srv/svc/log/${name}.log\n`);
  }
  const { config } = await loadConfig({ file: 'agent.yaml', env: {}, cwd: folder });
  expect(config!.services.map(({ name, logs }) => [name, logs?.paths]).sort()).toEqual(
    names.map((name) => [name, [`/srv/svc/log/${name}.log`]]),
  );
});
