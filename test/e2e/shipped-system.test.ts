import { mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, test } from 'vitest';
import { parse } from 'yaml';
import { folder } from '../run-folder.ts';
import { bySize } from '../size.ts';
import { stopsAtEnd } from '../test-end.ts';
import { root } from '../unit/house/imports.ts';
import { until } from '../until.ts';
import { startLivePrometheus } from './live/prometheus.ts';
import { type FakeRole, startRole } from './live/role.ts';
import { startAgent } from './process.ts';
import { hasPrometheus } from './prometheus.ts';

/**
 * The shipped configurations of one cluster, run together: the agents beside the roles, the agent of the cluster, Prometheus with
 * the shipped jobs. An alert that fires for ever in a healthy system is a fault of the shipped files.
 */

const roles = ['frontend', 'history', 'matching', 'worker'] as const;
const deploy = join(root, 'deploy');
const rulesFile = join(root, 'rules/recommended.rules.yml');

const systems = [
  {
    name: 'Kubernetes, logs in a shared volume',
    beside: 'kubernetes/components/log-volume/agent.yaml',
    ofCluster: 'kubernetes/cluster-agent/agent.yaml',
    isPerRole: true,
  },
  {
    name: 'Kubernetes, logs read by the node’s agent',
    beside: 'kubernetes/components/sidecar/agent.yaml',
    ofCluster: 'kubernetes/cluster-agent/agent.yaml',
    isPerRole: true,
  },
  {
    name: 'systemd',
    beside: 'systemd/agent.yaml',
    ofCluster: 'systemd/cluster.yaml',
    isPerRole: false,
  },
];

/** The systems that are tried: each agent is a process, and the first two systems have five. */
const tried = bySize({ short: systems.slice(-1), long: systems.slice(0, -1), nightly: systems });

const exprOf = (alert: string): string => {
  const { groups } = parse(readFileSync(rulesFile, 'utf8')) as {
    groups: { rules: { alert?: string; expr: string }[] }[];
  };
  return groups.flatMap(({ rules }) => rules).find((rule) => rule.alert === alert)!.expr;
};

const stops = stopsAtEnd();

/** A shipped file with the addresses and folders of this test. */
function localized(file: string, directory: string, service: Readonly<Record<string, FakeRole>>): string {
  mkdirSync(directory, { recursive: true });
  const secret = join(directory, 'secret');
  writeFileSync(secret, 'secret\n', { mode: 0o600 });
  let text = readFileSync(join(deploy, file), 'utf8')
    .replace(/0\.0\.0\.0:9464|127\.0\.0\.1:9465/g, '127.0.0.1:0')
    .replace(/\/etc\/svc(?:-agent)?\/service\.yaml/, join(deploy, 'kubernetes/cluster-agent/service.yaml'))
    .replace(/\/etc\/svc-agent-secrets\/main-password|\$\{CREDENTIALS_DIRECTORY\}\/main-password/, secret)
    .replaceAll('/var/log/svc', directory);
  for (const role of roles) {
    const { healthUrl, metricsUrl } = service[role]!;
    // The block of the role extends up to the next key that is not below it.
    text = text.replace(new RegExp(`^  ${role}:\\n(?: {4}.*\\n)+`, 'm'), (block) =>
      block.replace(/(health: )\S+/, `$1${healthUrl}`).replace(/(scrape: )\S+/, `$1${metricsUrl}`),
    );
  }
  const path = join(directory, 'agent.yaml');
  writeFileSync(path, `stateDirectory: ${join(directory, 'state')}\n${text}`);
  return path;
}

describe.skipIf(!hasPrometheus).each(tried)('$name', ({ beside, ofCluster, isPerRole }) => {
  test('the replication lag is known', async () => {
    const { path, remove } = folder();
    stops.push(remove);
    const started = await Promise.all(
      roles.map(async (role) => [role, await startRole(path, role)] as const),
    );
    const service = Object.fromEntries(started);
    for (const role of Object.values(service)) stops.push(() => role.stop());
    // The metric is as the product sends it: nanoseconds, by shard, from the history of the active cluster.
    service.history!.page.gauge(
      'replication_latency',
      { cadence_service: 'cadence_history', active_cluster: 'dc1', target_cluster: 'dc2', instance: '3' },
      2e9,
    );
    const run = async (file: string, name: string, args: readonly string[] = []) => {
      const agent = await startAgent(localized(file, join(path, name), service), args);
      stops.push(() => agent.end());
      return agent.address('metrics');
    };
    const addresses = isPerRole
      ? await Promise.all(
          roles.map(async (role) => [role, await run(beside, role, ['--role', role])] as const),
        )
      : await run(beside, 'host').then((address) => roles.map((role) => [role, address] as const));
    const cluster = await run(ofCluster, 'cluster');
    const target = (address: string) => ({ address, cluster: 'dc1' });
    const all = [...new Set([...addresses.map(([, address]) => address), cluster])];
    const prometheus = await startLivePrometheus(path, {
      targets: {
        ...Object.fromEntries(addresses.map(([role, address]) => [role, [target(address)]])),
        'svc-agent': all.map(target),
      },
      ruleFiles: [],
      alertmanager: '127.0.0.1:9',
    });
    stops.push(() => prometheus.end());
    await until('all is scraped', async () => (await prometheus.value('sum(up)')) === all.length + 4);
    await until('the group is known', async () => (await prometheus.value('max(svc_clusters)')) === 2);
    await until(
      'the lag is known',
      async () => (await prometheus.value('max(svc_replication_lag_seconds)')) === 2,
    );
    expect(await prometheus.value(`count(${exprOf('SvcReplicationLagUnknown')})`)).toBe(0);
    // The same expression finds the gap if there is one.
    expect(await prometheus.value('count(max by (cluster) (svc_clusters) > 1)')).toBe(1);
  });
});
