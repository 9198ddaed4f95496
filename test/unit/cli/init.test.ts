import { execFileSync } from 'node:child_process';
import { mkdirSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { beforeEach, expect, test } from 'vitest';
import { init } from '../../../src/agent/cli/init.ts';
import { loadConfig } from '../../../src/agent/config/load.ts';
import { newFolder } from '../../folder.ts';
import { fakeIo } from './fake-io.ts';

let folder: string;
beforeEach(() => {
  folder = newFolder();
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

/** A folder with the service's client, as a PATH. */
function withClient(): Record<string, string> {
  mkdirSync(join(folder, 'bin'));
  writeFileSync(join(folder, 'bin/cadence'), '#!/bin/sh\n', { mode: 0o755 });
  return { PATH: `/nowhere:${join(folder, 'bin')}` };
}

test('with the service’s own files everything is on, and credentials alone are missing', async () => {
  const io = fakeIo(folder, withClient());
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
    ['worker', 'tcp://127.0.0.1:7939', 'http://127.0.0.1:8003/metrics', [join(folder, 'log/svc.log')]],
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

test('without the service’s client on this host, the command that needs it is a comment', async () => {
  const io = fakeIo(folder, { PATH: '/nowhere' });
  expect(await init(['--service-config', 'service.yaml', '--out', 'agent.yaml'], io)).toBe(0);
  const text = readFileSync(join(folder, 'agent.yaml'), 'utf8');
  expect(text).toContain('#   describe:  # cadence is not in the PATH here');
  const { config, faults } = await loadConfig({ file: 'agent.yaml', env: {}, cwd: folder });
  expect(faults).toEqual([]);
  expect(config!.domains!.watch).toEqual(['orders', 'pay-ments']);
  expect(config!.domains!.describe).toBeUndefined();
});

test('bench and canary are scraped where their configuration is among the files', async () => {
  writeFileSync(
    join(folder, 'bench.yaml'),
    'bench: {name: cadence-bench, domains: [cadence-bench]}\nmetrics: {prometheus: {listenAddress: "0.0.0.0:8006"}}\n',
  );
  const io = fakeIo(folder);
  const files = ['--service-config', 'service.yaml', '--service-config', 'bench.yaml'];
  expect(await init([...files, '--out', 'agent.yaml'], io)).toBe(0);
  const { config, faults } = await loadConfig({ file: 'agent.yaml', env: {}, cwd: folder });
  expect(faults).toEqual([]);
  expect(config!.services.map(({ name, selected }) => [name, selected])).toContainEqual(['bench', true]);
  expect(config!.services.find(({ name }) => name === 'bench')!.scrape!.url).toMatch(
    /^http:.*:80\d\d\/metrics$/,
  );
});

test('the dynamic configuration that the service’s files name is found, relative to where the service runs', async () => {
  mkdirSync(join(folder, 'config/dynamicconfig'), { recursive: true });
  writeFileSync(join(folder, 'config/dynamicconfig/production.yaml'), '{}\n');
  writeFileSync(
    join(folder, 'config/base.yaml'),
    'log: {level: info}\ndynamicconfig: {client: filebased, filebased: {filepath: config/dynamicconfig/production.yaml}}\n',
  );
  writeFileSync(
    join(folder, 'agent.yaml'),
    'serviceConfig: [config/base.yaml]\nroles: [frontend]\nservices: {frontend: {}}\n',
  );
  const { config } = await loadConfig({ file: 'agent.yaml', env: {}, cwd: folder });
  expect(config!.dynamicConfig).toBe(join(folder, 'config/dynamicconfig/production.yaml'));
});
