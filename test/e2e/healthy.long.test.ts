import { mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { expect, test } from 'vitest';
import { stringify } from 'yaml';
import { roles } from '../../src/core/catalog.ts';
import { hasMariadb, schemaStatements, startMariadb } from '../mariadb.ts';
import { hasPostgres, startPostgres } from '../postgres.ts';
import { folder } from '../run-folder.ts';
import { bySize } from '../size.ts';
import { stopsAtEnd } from '../test-end.ts';
import { until } from '../until.ts';
import { type Example, startExample } from './example.ts';
import { startLivePrometheus } from './live/prometheus.ts';
import { writeRules } from './live/rules.ts';
import { command, startAgent } from './process.ts';
import { hasPrometheus } from './prometheus.ts';

/**
 * A healthy example service with the product's metric names, beside it a PostgreSQL and a MariaDB with the settings of their
 * installation, the built agent and a real Prometheus: no alert fires. It runs for a minute, with the windows shortened as in the
 * live run of the alerts, and `for` set to two windows; at night for ten minutes, with the rules, the intervals and the windows
 * as shipped.
 */

const wholeSeconds = bySize({ short: 0, long: 0, nightly: 600 });
const seconds = wholeSeconds || 60;
const every = wholeSeconds ? '15s' : '1s';
/** In ten seconds a single failed request burns the error budget, so the short run has no objectives. */
const packs = wholeSeconds ? ['recommended', 'recording', 'slo'] : ['recommended', 'recording'];
/**
 * This is two of the short windows: the share of the few workflows that close within one window may be above its limit by chance.
 */
const forSeconds = 20;

const stops = stopsAtEnd();
const kept = <T extends { stop(): unknown } | { end(): unknown }>(part: T): T => {
  stops.push(() => ('stop' in part ? part.stop() : part.end()));
  return part;
};

const versions = { persistence: '0.8', visibility: '0.8' };
const databases = { persistence: 'svc_main', visibility: 'svc_visibility' };

async function startPostgresStore(): Promise<object> {
  // startPostgres turns off what makes its tests slow; an installation has it on.
  const server = kept(await startPostgres({ settings: ['fsync=on', 'autovacuum=on'] }));
  for (const database of Object.values(databases)) {
    await server.query(`CREATE DATABASE ${database}`);
    await server.query('CREATE TABLE schema_version (db_name text, curr_version text)', database);
    await server.query(`INSERT INTO schema_version VALUES ('${database}', '0.8')`, database);
  }
  return { name: 'main', kind: 'postgres', address: `127.0.0.1:${server.port}`, user: 'postgres' };
}

async function startMariadbStore(): Promise<object> {
  const server = kept(await startMariadb());
  for (const database of Object.values(databases)) await server.sql(schemaStatements(database));
  await server.sql(
    `CREATE USER watcher@'%' IDENTIFIED BY 'secret'; GRANT SELECT, PROCESS ON *.* TO watcher@'%'`,
  );
  const login = { user: 'watcher', password: 'secret' };
  return { name: 'second', kind: 'mysql', address: `127.0.0.1:${server.port}`, ...login };
}

const cli = fileURLToPath(new URL('../../dist/example-cli.js', import.meta.url));

const configOf = (example: Example, stores: readonly object[], directory: string) => ({
  stateDirectory: join(directory, 'state'),
  metrics: { pullmetrics: { listenAddress: '127.0.0.1:0' } },
  admin: { listenAddress: '127.0.0.1:0' },
  services: Object.fromEntries(
    Object.entries(example.roles).map(([role, { health, metrics, log }]) => [
      role,
      {
        health,
        logs: { paths: [`${log}*`], startAt: 'beginning' },
        scrape: { url: metrics, interval: every, timeout: every },
      },
    ]),
  ),
  stores: stores.map((store) => ({ ...store, databases, schema: versions })),
  clusterGroupMetadata: {
    ...{ failoverVersionIncrement: 10, primaryClusterName: 'dc1', currentClusterName: 'dc1' },
    clusterGroup: Object.fromEntries(
      Object.entries(example.clusters).map(([name, rpcAddress], index) => [
        name,
        { enabled: true, initialFailoverVersion: index + 1, rpcAddress, rpcTransport: 'grpc' },
      ]),
    ),
  },
  domains: {
    watch: example.domains,
    describe: {
      command: [
        process.execPath,
        cli,
        'domain',
        'describe',
        '--address',
        '{address}',
        '--domain',
        '{domain}',
        '--print_json',
      ],
    },
  },
  archival: Object.fromEntries(
    Object.keys(example.archives).map((name) => [
      name,
      { status: 'enabled', enableRead: true, provider: { filestore: {} } },
    ]),
  ),
  domainDefaults: {
    archival: Object.fromEntries(
      Object.entries(example.archives).map(([name, URI]) => [name, { status: 'enabled', URI }]),
    ),
  },
});

const needs = hasPrometheus && hasPostgres && hasMariadb;

test.skipIf(!needs)(
  'in health no alert fires, beside stores as they are installed',
  { timeout: seconds * 1000 + 300_000 },
  async () => {
    const { path, remove } = folder();
    stops.push(remove);
    const example = kept(
      await startExample(path, ['--names', 'cadence', ...(wholeSeconds ? [] : ['--rate', '30'])]),
    );
    const stores = [await startPostgresStore(), await startMariadbStore()];
    const config = join(path, 'agent.yaml');
    writeFileSync(config, stringify(configOf(example, stores, path), { aliasDuplicateObjects: false }));
    const agent = kept(await startAgent(config));
    // The roles warm up for some seconds, and say so.
    for (const { health } of Object.values(example.roles))
      await until('the role is well', async () => (await fetch(health)).ok);

    const rules = join(path, 'rules');
    mkdirSync(rules);
    if (wholeSeconds) expect(command(['rules', '--out', rules])).toMatchObject({ status: 0 });
    else writeRules(rules, { forSeconds });
    const target = [{ address: agent.address('metrics'), cluster: 'dc1' }];
    const get = async (path: string) => (await fetch(`http://${agent.address('admin')}/${path}`)).text();
    for (const { name } of JSON.parse(await get('probes')))
      await get(`probe?name=${encodeURIComponent(name)}`);
    // What the agent saw of roles that were warming up is an incident until its next report.
    const page = async () => (await fetch(`http://${agent.address('metrics')}/metrics`)).text();
    await until('no role has an incident', async () => !/^svc_incident\{.*"role_/m.test(await page()));
    const prometheus = kept(
      await startLivePrometheus(path, {
        targets: Object.fromEntries([...roles, 'svc-agent'].map((job) => [job, target])),
        ruleFiles: packs.map((pack) => join(rules, `${pack}.rules.yml`)),
        alertmanager: '127.0.0.1:9',
        every,
        evaluateEvery: every,
      }),
    );
    const since = Date.now();
    const evaluated = await until(
      `every rule was evaluated ${seconds} s later`,
      async () => {
        const rules = await prometheus.rules();
        const oldest = Math.min(...rules.map(({ lastEvaluation }) => Date.parse(lastEvaluation)));
        return oldest >= since + seconds * 1000 && rules;
      },
      { everyMs: 500, withinMs: seconds * 1000 + 240_000 },
    );
    expect(evaluated.length).toBeGreaterThan(60);
    expect(evaluated.filter(({ health }) => health !== 'ok')).toEqual([]);
    // The metrics that the rules read are there, so the silence is meaningful.
    for (const metric of [
      ...[
        'svc_role_up',
        'svc_persistence_requests',
        'svc_matching_tasklist_backlog',
        'svc_log_entries_total',
      ],
      ...['svc_domain_active_cluster', 'svc_cluster_up', 'svc_archival_up', 'svc_replication_lag_seconds'],
    ])
      expect(await prometheus.value(`count(${metric})`), metric).toBeGreaterThan(0);
    // Both stores are as they were installed: archiving and the binary log are off.
    const off = await prometheus.series('svc_store_check_ok{check=~"archive_mode|log_bin"} == 0');
    expect(off.map(({ store }) => store)).toEqual(expect.arrayContaining(['main', 'second']));

    const fired = await prometheus.series(
      `count_over_time(ALERTS{alertstate="firing"}[${seconds + (wholeSeconds ? 120 : 0)}s])`,
    );
    expect(fired).toEqual([]);
  },
);
