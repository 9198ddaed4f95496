import { mkdirSync, writeFileSync } from 'node:fs';
import { join, resolve } from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { hasPostgres, type Postgres, startPostgres } from '../postgres.ts';
import { folder } from '../run-folder.ts';
import { until } from '../until.ts';
import { type RunningAgent, startAgent } from './process.ts';
import { hasPrometheus, type Prometheus, startPrometheus } from './prometheus.ts';

// docs/sizing.md, "Two cluster agents": both check the same store and domain, and Prometheus runs the shipped rules.

const instances = ['a', 'b'] as const;
type Instance = (typeof instances)[number];

describe.skipIf(!hasPrometheus || !hasPostgres)('two agents with scope: cluster', () => {
  const endings: (() => unknown)[] = [];
  const agents = new Map<Instance, RunningAgent>();
  let directory: string;
  let store: Postgres;
  let prometheus: Prometheus;

  const describeDomain = (activeCluster: string, failoverVersion: number) => {
    const described = {
      name: 'orders',
      isGlobal: true,
      activeCluster,
      clusters: ['dc1', 'dc2'],
      failoverVersion,
    };
    for (const cluster of ['dc1', 'dc2']) writeFileSync(join(directory, cluster), JSON.stringify(described));
  };
  const startOne = async (instance: Instance) => {
    const place = join(directory, instance);
    mkdirSync(place, { recursive: true });
    const file = join(place, 'agent.yaml');
    writeFileSync(
      file,
      `scope: cluster
stateDirectory: ${place}
services: {}
metrics: {tags: {cluster: dc1}, pullmetrics: {listenAddress: 127.0.0.1:0}}
admin: {listenAddress: 127.0.0.1:0}
stores: [{name: main, kind: postgres, address: 127.0.0.1:${store.port}, user: postgres, databases: {persistence: postgres}, interval: 1s, timeout: 1s}]
clusterGroupMetadata:
  failoverVersionIncrement: 10
  primaryClusterName: dc1
  currentClusterName: dc1
  clusterGroup: {dc1: {initialFailoverVersion: 0}, dc2: {initialFailoverVersion: 1, rpcAddress: '127.0.0.1:9'}}
domains: {watch: [orders], describe: {command: [cat, '${directory}/{cluster}'], interval: 1s, timeout: 1s}}
`,
    );
    agents.set(instance, await startAgent(file));
  };
  const valueNow = async (expression: string) => (await prometheus.query(expression))[0]?.value;
  const becomes = (expression: string, wanted: number) =>
    until(`${expression} is ${wanted}`, async () => (await valueNow(expression)) === wanted);
  /** The alerts with this name, including pending ones. */
  const alerts = (name: string) => `count(ALERTS{alertname="${name}"}) or vector(0)`;

  beforeAll(async () => {
    const { path, remove } = folder();
    endings.push(remove);
    directory = path;
    store = await startPostgres();
    endings.push(() => store.stop());
    describeDomain('dc1', 10);
    for (const instance of instances) await startOne(instance);
    endings.push(() => Promise.all([...agents.values()].map((agent) => agent.end())));
    const targets = instances.map(
      (instance) =>
        `{targets: ['${agents.get(instance)!.address('metrics')}'], labels: {instance: ${instance}}}`,
    );
    const rules = resolve('rules/recommended.rules.yml');
    prometheus = await startPrometheus(
      directory,
      {},
      `  - job_name: svc-agent
    honor_labels: true
    static_configs: [${targets.join(', ')}]
rule_files: ['${rules}']
`,
    );
    endings.push(() => prometheus.end());
  });
  afterAll(async () => {
    for (const end of endings.reverse()) await end();
  });

  test('report each series twice, and no alert for what is well', async () => {
    await becomes('count(svc_store_up == 1)', 2);
    await becomes('count(svc_domain_active_cluster{active_cluster="dc1"})', 2);
    expect(await valueNow(alerts('SvcStoreDown'))).toBe(0);
  });

  test('a failover is one alert; a sum counts it twice, a maximum once', async () => {
    describeDomain('dc2', 11);
    await becomes('sum(svc_domain_failovers_total{domain="orders"})', 2);
    expect(await valueNow('max by (domain) (svc_domain_failovers_total{domain="orders"})')).toBe(1);
    await becomes(alerts('SvcDomainFailover'), 1);
  });

  test('a store that is down is one alert, also while one of them is away', async () => {
    await store.stop();
    await becomes('count(svc_store_up == 0)', 2);
    await becomes(alerts('SvcStoreDown'), 1);
    await agents.get('a')!.end();
    await becomes('sum(up{job="svc-agent"})', 1);
    await becomes('count(svc_store_up)', 1);
    await becomes(alerts('SvcStoreDown'), 1);
  });
});
