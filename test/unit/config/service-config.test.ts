import { fileURLToPath } from 'node:url';
import { describe, expect, test } from 'vitest';
import { loadConfig } from '../../../src/agent/config/load.ts';
import type { PlacedFault, Scope } from '../../../src/agent/config/types.ts';
import { faultLine } from '../../../src/core/errors.ts';
import { agentFile } from './agent-file.ts';

const folder = fileURLToPath(new URL('../../fixtures/config/service', import.meta.url));

async function load(
  agent: string,
  env: Record<string, string> = {},
  serviceConfig = ['base.yaml', 'production.yaml'],
) {
  return await loadConfig({ file: agentFile(agent), serviceConfig, env, cwd: folder });
}

const all = 'roles: [frontend, history, matching, worker]\n';

describe('what is beside the roles', () => {
  test('files are merged in order, null removes, variables have defaults', async () => {
    const { config, faults } = await load(all);
    expect(faults).toEqual([]);
    const sources = config!.services.map(({ name, scrape, statsd }) => [name, scrape?.url, statsd?.listen]);
    expect(sources).toEqual([
      ['frontend', 'http://127.0.0.1:8000/metrics', undefined],
      ['history', 'http://10.1.2.3:8002/metrics', undefined],
      ['matching', undefined, '127.0.0.1:8125'],
      ['worker', undefined, undefined], // its port is not on this host
    ]);
  });

  test('a variable changes the scrape target', async () => {
    const { config } = await load(all, { SVC_LISTEN: '10.9.9.9' });
    expect(config!.services[0]!.scrape?.url).toBe('http://10.9.9.9:8000/metrics');
  });

  test('log file, encoding and level key are those of the service', async () => {
    const { config } = await load('roles: [history]\n');
    expect(config!.services.map(({ name }) => name)).toEqual(['history']);
    expect(config!.services[0]!.logs).toMatchObject({
      paths: ['/var/log/svc/service.log'],
      encoding: 'json',
      levelKey: 'severity',
      roleField: 'service',
      startAt: 'end',
    });
  });

  test('the service’s files add no role', async () => {
    const { config } = await load('services: {frontend: ~}\n');
    expect(config!.roles).toEqual(['frontend']);
    expect(config!.services.map(({ name }) => name)).toEqual(['frontend']);
  });

  test('what stands in agent.yaml wins, null included', async () => {
    const { config, discovered } = await load(
      'services:\n  frontend: {scrape: "http://127.0.0.1:1/m", logs: ~}\n  history: {scrape: ~, logs: {encoding: auto}}\n',
    );
    const [frontend, history] = config!.services;
    expect(frontend).toMatchObject({ scrape: { url: 'http://127.0.0.1:1/m' } });
    expect(frontend!.logs).toBeUndefined();
    expect(history!.scrape).toBeUndefined();
    expect(history!.logs).toMatchObject({ paths: ['/var/log/svc/service.log'], encoding: 'auto' });
    expect(discovered.map(({ path }) => path)).toEqual([
      'services.history.logs.paths',
      'services.history.logs.levelKey',
    ]);
  });

  test('every discovery names its place', async () => {
    const { discovered } = await load('roles: [matching]\n');
    const port = discovered.find(({ path }) => path === 'services.matching.statsd.listen');
    expect(port).toEqual({
      path: 'services.matching.statsd.listen',
      value: '127.0.0.1:8125',
      place: { file: 'production.yaml', line: 8, column: 31 },
    });
  });

  test('a listener of ours in the place of a role is a fault', async () => {
    const { faults } = await load(`${all}metrics: {pullmetrics: {listenAddress: "0.0.0.0:8000"}}\n`);
    expect(faults.map(({ path, what }) => [path, what])).toEqual([
      [
        'metrics.pullmetrics.listenAddress',
        'the address of the watched role frontend (services.frontend.scrape, 127.0.0.1:8000)',
      ],
    ]);
  });
});

describe('the words of real files', () => {
  const vendor = (scope: Scope, more = '') =>
    load(`scope: ${scope}\nroles: [frontend, history]\n${more}`, {}, ['vendor.yaml']);

  test('are judged by the spec, each with its place', async () => {
    const { findings } = await vendor('cluster');
    expect(findings.map(faultLine)).toEqual([
      'vendor.yaml:2:28: log.level: unknown level, got "INFO"; use debug, info, warn, error or fatal (lower case)',
      'vendor.yaml:25:48: archival.visibility.enableRead: reads are on while archival is disabled, got true; enable archival, or set enableRead to false',
      'vendor.yaml:36:74: services.frontend.metrics.pullmetrics.defaultHistogramBuckets[2]: not above the bound before it, got 0.005; use each bound once, the smallest first',
      'vendor.yaml:41:7: services.history.metrics: more than one reporter, pullmetrics and pushmetrics, with which the service refuses to start; keep one',
      'vendor.yaml:41:31: services.history.metrics.pullmetrics.timerType: not histogram, so latency alerts see nothing, got "summary"; use histogram',
    ]);
  });

  test('an address without host is every address, dialled on loopback', async () => {
    const { config } = await vendor('host');
    expect(config!.services.map(({ scrape }) => scrape?.url)).toEqual([
      'http://127.0.0.1:8000/metrics',
      undefined, // two reporters: it does not start
    ]);
    expect(config!.stores).toEqual([]);
  });

  test('stores and clusters belong to the cluster; credentials stay where they are', async () => {
    const { config } = await vendor('all');
    expect(config!.stores).toMatchObject([
      {
        name: 'wide-default',
        kind: 'widecolumn',
        address: '10.0.0.7:9042',
        databases: { persistence: 'svc', visibility: 'svc_visibility' },
        credentials: 'own',
      },
    ]);
    expect(JSON.stringify(config)).not.toContain('hunter2');
    expect(config!.metrics.tags).toEqual({ cluster: 'dc2' });
    expect(config!.clusterGroupMetadata).toEqual({
      failoverVersionIncrement: 10,
      primaryClusterName: 'dc1',
      currentClusterName: 'dc2',
      clusters: [
        {
          name: 'dc1',
          enabled: true,
          initialFailoverVersion: 0,
          newInitialFailoverVersion: 1,
          rpcName: 'svc-frontend',
          rpcAddress: 'dc1.example:7833',
          rpcTransport: 'grpc',
        },
        {
          name: 'dc2',
          enabled: true,
          initialFailoverVersion: 2,
          rpcName: 'svc-frontend',
          rpcAddress: 'localhost:7833',
          rpcTransport: 'grpc',
        },
      ],
    });
  });

  test('credentials: service takes them, and shows them nowhere else', async () => {
    const { config, ...rest } = await vendor('all', 'stores: [{name: wide-default, credentials: service}]\n');
    expect(config!.stores[0]).toMatchObject({
      user: 'watcher',
      password: 'hunter2',
      address: '10.0.0.7:9042',
    });
    expect(JSON.stringify(rest)).not.toContain('hunter2');
  });

  test('cluster tag is known in every scope', async () => {
    expect((await vendor('host')).config!.metrics.tags).toEqual({ cluster: 'dc2' });
    expect((await vendor('host', 'metrics: {tags: {cluster: mine}}\n')).config!.metrics.tags).toEqual({
      cluster: 'mine',
    });
  });
});

describe('what the spec allows is no fault', () => {
  const allowed = async (text: string, agent = all) =>
    loadConfig({ file: agentFile(agent), serviceConfig: [agentFile(text)], env: {}, cwd: folder });
  const lines = (faults: readonly PlacedFault[]) =>
    faults.map((fault) => faultLine(fault).replace(/^\S*:\d+:\d+: /, ''));

  test.each([
    [
      'timerType by its default',
      'services: {frontend: {metrics: {pullmetrics: {listenAddress: "127.0.0.1:8000"}}}}',
      'timerType',
    ],
    ['stdout with console', 'log: {stdout: true, level: info, encoding: console}', 'log.stdout'],
    [
      'stdout beside a file',
      'log: {stdout: true, level: info, encoding: json, outputFile: /tmp/service.log}',
      'log.stdout',
    ],
    ['debug', 'log: {level: debug}', 'log.level'],
    ['console', 'log: {encoding: console}', 'log.encoding'],
    [
      'a peer with another transport',
      'clusterGroupMetadata: {failoverVersionIncrement: 10, primaryClusterName: a, currentClusterName: a, clusterGroup: {a: {enabled: true, initialFailoverVersion: 0, rpcTransport: tchannel}}}',
      'clusterGroup.a.rpcTransport',
    ],
    [
      'an archive of another scheme',
      'domainDefaults: {archival: {history: {status: enabled, URI: "r2://bucket/path/"}}}\narchival: {history: {status: enabled, provider: {r2store: {}}}}',
      'history.URI',
    ],
    [
      'a hosted platform',
      'services: {frontend: {metrics: {hostedmetrics: {}}}}',
      'frontend.metrics.hostedmetrics',
    ],
  ])('%s: advice', async (_, text, about) => {
    const { faults, findings, advice } = await allowed(text, 'services: {frontend: ~}');
    expect([lines(faults), lines(findings)]).toEqual([[], []]);
    expect(lines(advice)).toContainEqual(expect.stringContaining(`${about}: `));
  });

  test('a hosted platform is none where the agent is sent the metrics as well', async () => {
    const text = 'services: {frontend: {metrics: {hostedmetrics: {}}}}';
    const { advice } = await allowed(text, 'services: {frontend: {scrape: "http://127.0.0.1:8000/metrics"}}');
    expect(advice).toEqual([]);
  });

  test.each([
    ['s3', 'blobs: {account: x}'],
    ['file', 'ownfiles: {}'],
    ['azblob', 'azure: {key: hunter2}'],
  ])('a provider of its own name for %s', async (scheme, provider) => {
    const uri = scheme === 'file' ? 'file:///archive/' : `${scheme}://bucket/path/`;
    const text = `archival: {history: {status: enabled, enableRead: true, provider: {${provider}}}}
domainDefaults: {archival: {history: {status: enabled, URI: "${uri}"}}}
`;
    for (const loaded of [
      await allowed(text, `scope: all\n${all}`),
      await allowed('log: {level: info}', `${all}${text}`),
    ]) {
      expect([lines(loaded.faults), lines(loaded.findings)]).toEqual([[], []]);
      expect(loaded.config!.archival!.history!.providers.map(({ kind }) => kind)).toEqual([
        provider.split(':')[0],
      ]);
      expect(JSON.stringify(loaded)).not.toContain('hunter2');
    }
  });

  test('an archive with faults is not watched, and the other one is', async () => {
    const text = `archival:
  history: {status: enabled, provider: {objectstore: {region: r}}}
  visibility: {status: enabled}
domainDefaults:
  archival:
    history: {status: enabled, URI: "s3://bucket/path"}
    visibility: {status: enabled, URI: "s3://bucket/other"}
`;
    const { config, findings } = await allowed(text, `scope: all\n${all}`);
    expect(findings.map(faultLine)).toEqual([
      expect.stringMatching(/visibility\.provider: missing while archival is enabled; name a provider$/),
      expect.stringMatching(/visibility: has faults, so the agent does not watch the visibility archive; /),
    ]);
    expect(Object.keys(config!.archival!)).toEqual(['history']);
  });

  test('an archive whose URI is no URI is a finding, not a fault, and is not watched', async () => {
    const text = `archival: {history: {status: enabled, provider: {filestore: {fileMode: "0666"}}}}
domainDefaults: {archival: {history: {status: enabled, URI: "not a URI"}}}
`;
    const { config, findings } = await allowed(text, `scope: all\n${all}`);
    expect(lines(findings)).toEqual([
      expect.stringMatching(/history: has faults, so the agent does not watch the history archive; /),
      expect.stringMatching(/history\.URI: not an archival URI, got "not a URI"; /),
    ]);
    expect(config!.archival?.history).toBeUndefined();
  });

  test.each([
    ['sqlite', 'sql: {pluginName: sqlite, databaseName: svc.db}', 'its plugin is sqlite'],
    [
      'several databases',
      'sql: {pluginName: mysql, useMultipleDatabases: true, nShards: 2, multipleDatabasesConfig: [{connectAddr: "a:3306"}, {connectAddr: "b:3306"}]}',
      'spread over 2 databases',
    ],
    [
      'a search index',
      'elasticsearch: {url: {scheme: http, host: "127.0.0.1:9200"}}',
      'of the kind elasticsearch',
    ],
    ['Pinot', 'pinot: {broker: "127.0.0.1:8099"}', 'of the kind pinot'],
    [
      'another wide-column store',
      'nosql: {pluginName: mongodb, hosts: "127.0.0.1"}',
      'its plugin is mongodb',
    ],
  ])('a store that is not watched is named: %s', async (_, datastore, why) => {
    const text = `persistence: {defaultStore: one, advancedVisibilityStore: two, datastores: {one: {sql: {pluginName: postgres, connectAddr: "10.0.0.5"}}, two: {${datastore}}}}`;
    const { config, advice } = await allowed(text, `scope: all\n${all}`);
    expect(config!.stores.map(({ name }) => name)).toEqual(['one']);
    expect(lines(advice)).toEqual([
      expect.stringContaining('persistence.datastores.two: not watched, because'),
    ]);
    expect(lines(advice)[0]).toContain(why);
  });
});

describe('a file for each role', () => {
  const real = fileURLToPath(new URL('../../fixtures/real-service/config', import.meta.url));
  const names = ['frontend', 'history', 'matching', 'worker'];
  const files = ['base.yaml', 'production.yaml', ...names.map((name) => `production_${name}.yaml`)];

  test('belongs to its role, whatever the order', async () => {
    for (const serviceConfig of [files, [...files.slice(0, 2), ...files.slice(2).reverse()]]) {
      const { config, faults } = await loadConfig({
        file: agentFile(all),
        serviceConfig,
        env: {},
        cwd: real,
      });
      expect(faults).toEqual([]);
      const logs = config!.services.map(({ name, logs }) => [name, logs?.paths, logs?.encoding]);
      expect(logs).toEqual(names.map((name) => [name, [`/srv/svc/log/${name}.log`], 'json']));
    }
  });

  test('one alone is that of its role alone', async () => {
    const serviceConfig = ['base.yaml', 'production.yaml', 'production_history.yaml'];
    const { config } = await loadConfig({ file: agentFile(all), serviceConfig, env: {}, cwd: real });
    expect(config!.services.map(({ logs }) => logs?.paths)).toEqual([
      ['/srv/svc/log/cadence.log'],
      ['/srv/svc/log/history.log'],
      ['/srv/svc/log/cadence.log'],
      ['/srv/svc/log/cadence.log'],
    ]);
  });
});

describe('the service’s own prefix', () => {
  const files = `services:
  frontend: {metrics: {prefix: acme.svc, pullmetrics: {listenAddress: "127.0.0.1:8000", timerType: histogram}}}
  history: {metrics: {prefix: acme, pushmetrics: {hostPort: "127.0.0.1:8125", prefix: svc-history}}}
  matching: {metrics: {pushmetrics: {hostPort: "127.0.0.1:8125", prefix: svc-matching}}}
`;
  const sources = async (agent: string) => {
    const { config, faults } = await loadConfig({
      file: agentFile(agent),
      serviceConfig: [agentFile(files)],
      env: {},
      cwd: folder,
    });
    expect(faults).toEqual([]);
    return config!.services.map(({ scrape, statsd }) => scrape?.prefix ?? statsd?.prefixes);
  };

  test('is taken from its files, for all that push to one port', async () => {
    expect(await sources('roles: [frontend, history, matching]\n')).toEqual([
      'acme_svc',
      ['svc-history.acme', 'svc-matching'],
      undefined,
    ]);
  });

  test('holds for a source that agent.yaml names', async () => {
    const short =
      'services: {frontend: {scrape: "http://127.0.0.1:1/metrics"}, history: {statsd: "127.0.0.1:2"}}\n';
    expect(await sources(short)).toEqual(['acme_svc', ['svc-history.acme']]);
    const own =
      'services: {frontend: {scrape: {url: "http://127.0.0.1:1/metrics", prefix: mine}}, history: {statsd: {listen: "127.0.0.1:2", prefix: b}}}\n';
    expect(await sources(own)).toEqual(['mine', ['b']]);
  });
});

describe('files that are at fault', () => {
  test('files of something else are a finding where agent.yaml names them', async () => {
    const file = agentFile('history.enableSyncActivity: [{value: true}]\n');
    const { config, findings } = await loadConfig({
      file: agentFile(`serviceConfig: [${JSON.stringify(file)}]\n${all}`),
      env: {},
      cwd: folder,
    });
    expect(config!.roles).toHaveLength(4);
    expect(findings.map(faultLine)).toEqual([
      expect.stringMatching(
        /:1:17: serviceConfig\[0\]: no configuration of the service: none of log, services/,
      ),
    ]);
  });

  test('are findings, and the rest is taken', async () => {
    const { config, faults, findings } = await load(all, {}, [
      'nowhere.yaml',
      '../bad/unclosed-list.yaml',
      'base.yaml',
    ]);
    expect(faults).toEqual([]);
    const ofFiles = findings.filter(({ path }) => path === '');
    expect(ofFiles.map(({ where }) => where)).toEqual(['nowhere.yaml', '../bad/unclosed-list.yaml:2:1']);
    expect(config!.services[1]!.scrape?.url).toBe('http://10.1.2.3:8002/metrics');
  });

  test('a discovery that is no configuration is left out alone', async () => {
    const file = agentFile(
      'log: {outputFile: /var/log/svc/x.log}\nclusterGroupMetadata: {currentClusterName: 7}\n',
    );
    const { config, findings } = await load(`scope: all\n${all}`, {}, [file]);
    expect(config!.services[0]!.logs?.paths).toEqual(['/var/log/svc/x.log']);
    expect(config!.clusterGroupMetadata).toBeUndefined();
    expect(findings.some(({ path }) => path === 'clusterGroupMetadata.currentClusterName')).toBe(true);
  });
});
