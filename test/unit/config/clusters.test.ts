import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, expect, test } from 'vitest';
import { loadConfig } from '../../../src/agent/config/load.ts';
import { faultLine } from '../../../src/core/errors.ts';
import { newFolder } from '../../folder.ts';

const cwd = newFolder(afterAll);

const load = (agent: string, service = '') => {
  writeFileSync(join(cwd, 'agent.yaml'), agent);
  writeFileSync(join(cwd, 'service.yaml'), service);
  return loadConfig({ file: 'agent.yaml', env: {}, cwd });
};

const groupText = (increment: number, dc2: string, current = 'dc1') => `clusterGroupMetadata:
  failoverVersionIncrement: ${increment}
  primaryClusterName: dc1
  currentClusterName: ${current}
  clusterGroup:
    dc1: {initialFailoverVersion: 0, rpcAddress: "10.0.0.1:7833"}
    dc2: {${dc2}}
`;

test.each([
  [
    groupText(0, 'initialFailoverVersion: 2'),
    'service.yaml:2:29: clusterGroupMetadata.failoverVersionIncrement: too small, got 0; use 1 or more',
  ],
  [
    groupText(10, 'initialFailoverVersion: -1'),
    'service.yaml:7:35: clusterGroupMetadata.clusterGroup.dc2.initialFailoverVersion: too small, got -1; use 0 or more',
  ],
  [
    groupText(10, 'initialFailoverVersion: 2, enabled: false', 'dc2'),
    'service.yaml:4:23: clusterGroupMetadata.currentClusterName: not enabled in clusterGroup, got "dc2"; enable it, or name another cluster',
  ],
])('the service’s own group is judged in every scope, and not taken at fault: %#', async (service, line) => {
  for (const scope of ['host', 'cluster']) {
    const { config, faults, findings } = await load(
      `serviceConfig: [service.yaml]\nscope: ${scope}\n`,
      service,
    );
    expect(faults).toEqual([]);
    const unwatched =
      'service.yaml:1:1: clusterGroupMetadata: has faults, so the agent does not watch the other clusters; correct them, or set clusterGroupMetadata in the agent’s configuration';
    expect(findings.map(faultLine)).toEqual(scope === 'host' ? [line] : [unwatched, line]);
    expect(config!.clusterGroupMetadata).toBeUndefined();
  }
});

const warned = async (agent: string) => {
  const { faults, warnings } = await load(agent);
  expect(faults).toEqual([]);
  return warnings.map(faultLine).filter((line) => !line.includes('no reporter'));
};

test('an enabled peer without an address is warned of, the own cluster and a disabled one are not', async () => {
  const missing =
    'clusterGroupMetadata.clusterGroup.dc2.rpcAddress: missing, so the agent does not check whether the cluster answers; set host:port';
  expect(await warned(groupText(10, 'initialFailoverVersion: 2'))).toEqual([`agent.yaml:7:5: ${missing}`]);
  expect(await warned(groupText(10, 'initialFailoverVersion: 2, enabled: false'))).toEqual([]);
  expect(await warned(groupText(10, 'initialFailoverVersion: 2, rpcAddress: "a:1"'))).toEqual([]);
});

test('the agent of a host that scrapes a role may leave the peers to the agent of the cluster', async () => {
  const scraped = 'services: {history: {scrape: "http://127.0.0.1:1/metrics"}}\n';
  const group = groupText(10, 'initialFailoverVersion: 2');
  expect(await warned(`${group}${scraped}`)).toEqual([]);
  expect(await warned(`${group}${scraped}scope: all\n`)).toHaveLength(1);
});

test('watched domains without a command are warned of', async () => {
  expect(await warned('domains: {watch: [orders]}\n')).toEqual([
    'agent.yaml:1:1: domains.describe: missing, so the watched domains are not checked; set command',
  ]);
  expect(await warned('domains: {watch: [a], describe: {command: [describe, a]}}\n')).toEqual([]);
});

test('replication has its defaults', async () => {
  const { config } = await load(
    'domains: {replication: {lag: {metric: behind}, failures: {metric: lost, sourceLabel: from}}}\n',
  );
  expect(config!.domains).toEqual({
    watch: [],
    replication: {
      intervalMs: 15_000,
      lag: { metric: 'behind', unit: 'seconds' },
      failures: { metric: 'lost', sourceLabel: 'from' },
    },
  });
});
