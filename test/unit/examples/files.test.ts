import { readFileSync } from 'node:fs';
import { describe, expect, it } from 'vitest';
import { parse } from 'yaml';
import { parseOptions, type ServiceOptions } from '../../../examples/service/options.ts';
import { roles } from '../../../src/core/catalog.ts';

const read = (name: string) => readFileSync(new URL(`../../../examples/${name}`, import.meta.url), 'utf8');
const defaults = parseOptions([]) as ServiceOptions;

describe('examples/agent.yaml', () => {
  const config = parse(read('agent.yaml'));

  it.each(roles.map((role, index) => ({ role, index })))(
    'finds $role of the example service',
    ({ role, index }) => {
      expect(config.services[role]).toMatchObject({
        logs: { paths: [`${defaults.directory}/${role}.log*`], startAt: 'beginning' },
        health: `http://127.0.0.1:${defaults.healthPort + index}/health`,
        scrape: `http://127.0.0.1:${defaults.metricsPort + index}/metrics`,
      });
    },
  );

  it('watches every role', () => {
    expect(config.roles).toEqual([...roles]);
    expect(Object.keys(config.services)).toEqual([...roles]);
  });

  it('finds the store, its databases and what their schemas have to be', () => {
    expect(config.stores).toMatchObject([
      {
        kind: 'postgres',
        address: `127.0.0.1:${defaults.storePort}`,
        databases: { persistence: 'svc', visibility: 'svc_visibility' },
        schema: { persistence: '0.8', visibility: '0.9' },
      },
    ]);
  });

  it('finds the clusters, their domains and the client that describes them', () => {
    expect(config.clusterGroupMetadata.clusterGroup).toMatchObject({
      dc1: { rpcAddress: `127.0.0.1:${defaults.rpcPort}` },
      dc2: { rpcAddress: `127.0.0.1:${defaults.rpcPort + 1}` },
    });
    expect(config.domains.watch).toEqual(['orders', 'payments']);
    expect(config.domains.describe.command.slice(0, 2)).toEqual(['node', 'dist/example-cli.js']);
  });

  it('finds the archives in the directory of the example service', () => {
    for (const archive of ['history', 'visibility']) {
      expect(config.archival[archive].status).toBe('enabled');
      expect(config.domainDefaults.archival[archive].URI).toBe(
        `file://\${PWD:/tmp}/${defaults.directory}/archive/${archive}/`,
      );
    }
  });
});

describe('examples/service.yaml', () => {
  const config = parse(read('service.yaml'));

  it('has the scrape endpoints of the example service', () => {
    expect(roles.map((role) => config.services[role].metrics.pullmetrics.listenAddress)).toEqual(
      roles.map((_role, index) => `127.0.0.1:${defaults.metricsPort + index}`),
    );
  });

  it('says the same of the store, the clusters and the archives as the agent’s own file', () => {
    const agent = parse(read('agent.yaml'));
    const { main, visibility } = config.persistence.datastores;
    const [store] = agent.stores;
    expect([main.sql.connectAddr, visibility.sql.connectAddr]).toEqual([store.address, store.address]);
    expect([main.sql.databaseName, visibility.sql.databaseName]).toEqual(Object.values(store.databases));
    expect(config.clusterGroupMetadata).toMatchObject(agent.clusterGroupMetadata);
    expect(config.archival).toMatchObject(agent.archival);
    expect(config.domainDefaults).toEqual(agent.domainDefaults);
  });

  it('is without the faults that the specification names', () => {
    expect(['debug', 'info', 'warn', 'error', 'fatal']).toContain(config.log.level);
    const versions = Object.values<{ initialFailoverVersion: number }>(
      config.clusterGroupMetadata.clusterGroup,
    );
    expect(new Set(versions.map((cluster) => cluster.initialFailoverVersion)).size).toBe(versions.length);
    for (const role of roles)
      expect(Object.keys(config.services[role].metrics)).toEqual(['tags', 'pullmetrics']);
  });
});
