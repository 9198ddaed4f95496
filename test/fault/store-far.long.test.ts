import { connect, createServer } from 'node:net';
import { afterEach, describe, expect, test } from 'vitest';
import type { Probe, ProbeRow } from '../../src/probes/probe.ts';
import type { StoreOptions } from '../../src/probes/stores/store-options.ts';
import { planStores } from '../../src/probes/stores/stores.ts';
import { hasCassandra, startCassandra } from '../cassandra.ts';
import { hasMariadb, schemaStatements, startMariadb, usersStatements } from '../mariadb.ts';
import { listening } from '../ports.ts';
import { hasPostgres, startPostgres } from '../postgres.ts';
import { bench, storeOn } from '../store-probe.ts';
import { until } from '../until.ts';

/** The delay in one direction. It is long enough for everything that is sent together to leave before an answer arrives. */
const delayMs = 150;

/** The goodbyes of PostgreSQL and MySQL. No answer follows, and a client need not wait until they are sent. */
const goodbyes = [Buffer.from('X\0\0\0\x04'), Buffer.from('\x01\0\0\0\x01')];

/** A far network in front of a server on loopback, which counts how often the client waits for an answer. */
async function farAway(port: number) {
  const far = { port: 0, roundTrips: 0, connections: 0, close: async () => {} };
  const proxy = createServer((client) => {
    far.connections += 1;
    const server = connect(port, '127.0.0.1');
    let hasHeard = true;
    // The end takes as long as what was sent before it.
    client.on('error', () => {}).on('close', () => setTimeout(() => server.destroy(), delayMs));
    server.on('error', () => {}).on('close', () => client.destroy());
    client.on('data', (chunk) => {
      if (hasHeard && !goodbyes.some((goodbye) => goodbye.equals(chunk))) far.roundTrips += 1;
      hasHeard = false;
      setTimeout(() => server.write(chunk), delayMs);
    });
    server.on('data', (chunk) =>
      setTimeout(() => {
        hasHeard = true;
        client.write(chunk);
      }, delayMs),
    );
  });
  far.port = (await listening(proxy)).port;
  far.close = async () => void proxy.close();
  return far;
}

const after: (() => Promise<unknown>)[] = [];
afterEach(async () => {
  for (const undo of after.splice(0).reverse()) await undo();
});

async function polls(port: number, options: Partial<StoreOptions>) {
  const far = await farAway(port);
  after.push(far.close);
  const store = storeOn(far.port, { timeoutMs: 20_000, ...options });
  const { deps } = bench();
  const probes: Probe[] = [];
  for (const row of planStores({ stores: [store] }) as ProbeRow[]) probes.push(await row.open(deps));
  after.push(async () => Promise.all(probes.map((probe) => probe.close?.())));
  return {
    far,
    /** The round trips of one poll of each database, in order. */
    async round(): Promise<number[]> {
      const counts: number[] = [];
      for (const probe of probes) {
        const before = far.roundTrips;
        const finding = await probe.check(AbortSignal.timeout(20_000), undefined);
        expect(finding.reason, finding.msg).toBeUndefined();
        expect(finding.details!.schema).toBe('0.8');
        counts.push(far.roundTrips - before);
      }
      return counts;
    },
  };
}

describe('a store behind a far network: round trips after the connection stands', () => {
  test.skipIf(!hasPostgres)('PostgreSQL', async () => {
    const server = await startPostgres();
    after.push(() => server.stop());
    for (const name of ['svc', 'svc_visibility']) {
      await server.query(`CREATE DATABASE ${name}`);
      await server.query('CREATE TABLE schema_version (db_name text, curr_version text)', name);
      await server.query(`INSERT INTO schema_version VALUES ('${name}', '0.8')`, name);
    }
    // SCRAM takes two more round trips than this server's trust.
    await server.query("CREATE ROLE agent LOGIN PASSWORD 'pw'; GRANT pg_monitor TO agent");
    for (const name of ['svc', 'svc_visibility'])
      await server.query('GRANT SELECT ON schema_version TO agent', name);
    const databases = { persistence: 'svc', visibility: 'svc_visibility' };
    const { far, round } = await polls(server.port, { user: 'agent', password: 'pw', databases });
    // One for the login, one for all questions.
    expect(await round()).toEqual([2, 2]);
    expect(await round()).toEqual([2, 2]);
    expect(far.connections).toBe(4);
    await until('no session is left', async () => {
      const { rows } = await server.query(
        "SELECT count(*)::int AS left FROM pg_stat_activity WHERE application_name = 'svc-agent'",
      );
      return rows[0].left === 0;
    });
  });

  test.skipIf(!hasMariadb)('MariaDB', async () => {
    const server = await startMariadb();
    after.push(() => server.stop());
    await server.sql(schemaStatements('svc_main'));
    await server.sql(schemaStatements('svc_visibility'));
    await server.sql(usersStatements);
    await server.sql("GRANT ALL ON svc_visibility.* TO full@'%'");
    const databases = { persistence: 'svc_main', visibility: 'svc_visibility' };
    const options = { kind: 'mysql', user: 'full', password: 'swordfish', databases } as const;
    const { far, round } = await polls(server.port, options);
    expect(await round()).toEqual([2, 2]);
    expect(await round()).toEqual([2, 2]);
    expect(far.connections).toBe(4);
    const [row] = await server.sql("SHOW GLOBAL STATUS LIKE 'Aborted_clients'");
    expect(Number(row!.Value)).toBe(0);
  });

  test.skipIf(!hasCassandra)('Cassandra', async () => {
    const server = await startCassandra();
    after.push(() => server.remove());
    for (const name of ['svc', 'svc_visibility'])
      await server.run(
        `CREATE KEYSPACE ${name} WITH replication = {'class': 'NetworkTopologyStrategy', 'datacenter1': 1}`,
        `CREATE TABLE ${name}.schema_version (keyspace_name text PRIMARY KEY, curr_version text)`,
        `INSERT INTO ${name}.schema_version (keyspace_name, curr_version) VALUES ('${name}', '0.8')`,
      );
    const databases = { persistence: 'svc', visibility: 'svc_visibility' };
    const { far, round } = await polls(server.port, { kind: 'widecolumn', databases });
    expect(await round()).toEqual([2, 2]);
    expect(await round()).toEqual([2, 2]);
    expect(far.connections).toBe(4);
  });
});
