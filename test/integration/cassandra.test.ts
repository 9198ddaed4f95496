import { Client } from 'cassandra-driver';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import type { WatchedNodes } from '../../src/probes/stores/cassandra-checks.ts';
import { grantStatements } from '../../src/probes/stores/store-grants.ts';
import { type Cassandra, hasCassandra, startCassandra, superuser } from '../cassandra.ts';
import { between, startServer } from '../cql-server.ts';
import { pollCassandra, type Seen, verdict } from '../poll-cassandra.ts';
import { until } from '../until.ts';

const keyspace = (name: string, replication: string, more = '') =>
  `CREATE KEYSPACE "${name}" WITH replication = {'class': ${replication}} ${more}`;
const schemaTable = (name: string) =>
  `CREATE TABLE "${name}".schema_version (keyspace_name text PRIMARY KEY, curr_version text)`;
const version = (name: string, value: string) =>
  `INSERT INTO "${name}".schema_version (keyspace_name, curr_version) VALUES ('${name}', '${value}')`;

describe.skipIf(!hasCassandra)('Apache Cassandra that asks for users and grants', () => {
  let server: Cassandra;
  let beforeStartMs: number;
  beforeAll(async () => {
    beforeStartMs = Date.now();
    server = await startCassandra({ authenticates: true });
    await server.run(
      keyspace('svc', `'SimpleStrategy', 'replication_factor': 1`),
      schemaTable('svc'),
      version('svc', '0.10'),
      keyspace('Safe', `'NetworkTopologyStrategy', 'datacenter1': 3`),
      schemaTable('Safe'),
      keyspace('risky', `'NetworkTopologyStrategy', 'datacenter1': 2`, 'AND durable_writes = false'),
      keyspace('three', `'SimpleStrategy', 'replication_factor': 3`),
      "CREATE ROLE bare WITH LOGIN = true AND PASSWORD = 'pw'",
      ...grantStatements('widecolumn', 'Agent', ['svc', 'Safe']).map((statement) =>
        statement.replace('<password>', 'pw'),
      ),
    );
  });
  afterAll(() => server?.remove());

  const as = (user: string, password: string, database?: string): Promise<Seen> =>
    pollCassandra({ port: server.port, user, password, database });
  const asAgent = (database?: string) => as('Agent', 'pw', database);
  /** Waits for a check with the clients: a busy machine may be late with them, and then a check omits them. */
  const withClients = (user: string, password: string) =>
    until('the clients are told', async () => {
      const { found } = await as(user, password, 'svc');
      return found?.connections && found;
    });

  test('a check sees the node as the driver’s own client does', async () => {
    const client = new Client({
      contactPoints: [`127.0.0.1:${server.port}`],
      localDataCenter: 'datacenter1',
      credentials: superuser,
    });
    const { rows } = await client.execute('SELECT * FROM system.local');
    await client.shutdown();
    const found = await withClients(superuser.username, superuser.password);
    expect(found).toMatchObject({
      serverVersion: rows[0]!.release_version,
      // The identity is the cluster's: any of its nodes may answer.
      identity: 'svc-agent-test',
      node: String(rows[0]!.host_id),
      schemaVersion: '0.10',
      details: { cluster: 'svc-agent-test', datacenter: 'datacenter1', rack: 'rack1', peers: 0 },
    });
    expect(found.roundTripMs).toBeGreaterThan(0);
    expect(found.startedAtMs).toBeGreaterThanOrEqual(beforeStartMs - 1000);
    expect(found.startedAtMs).toBeLessThanOrEqual(Date.now());
    expect(found.connections!.ready).toBeGreaterThanOrEqual(1);
    expect(found.connectionsMax).toBeUndefined();
  });

  test('the printed grants show all that a superuser sees', async () => {
    const every = await withClients(superuser.username, superuser.password);
    const found = await withClients('Agent', 'pw');
    const same = {
      askedAtMonotonicMs: 0,
      answeredAtMonotonicMs: 0,
      roundTripMs: 0,
      connections: {},
      phasesMs: {},
      watched: {},
    };
    expect({ ...found, ...same }).toEqual({ ...every, ...same });
    expect(found.connections!.ready).toBeGreaterThanOrEqual(1);
    expect(found.checks.map(({ holds }) => holds)).not.toContain('unknown');
    const { gossip, snapshots } = found.watched as WatchedNodes;
    expect(gossip.rows).toMatchObject([
      { heartbeat: expect.any(Number), status_with_port: expect.stringMatching(/^NORMAL/) },
    ]);
    expect(String(gossip.rows![0]!.address)).toBe('127.0.0.1');
    expect(snapshots).toEqual({ rows: [] });
  });

  test('the printed grants give no right beside', async () => {
    const client = new Client({
      contactPoints: [`127.0.0.1:${server.port}`],
      localDataCenter: 'datacenter1',
      credentials: { username: 'Agent', password: 'pw' },
    });
    await expect(client.execute(version('svc', '9'))).rejects.toThrow(/no MODIFY permission/);
    await expect(client.execute('SELECT role FROM system_auth.roles')).rejects.toThrow(
      /no SELECT permission/,
    );
    await client.shutdown();
  });

  test('with nothing but a login it is up, and what cannot be read is unknown', async () => {
    const { found } = await as('bare', 'pw', 'svc');
    expect(found!.schemaVersion).toBeUndefined();
    expect(found!.schemaUnknown).toMatch(/^too few rights: .*svc\.schema_version/);
    expect(found!.connections).toBeUndefined();
    for (const check of ['incremental_backups', 'auto_snapshot'] as const)
      expect(verdict(found, check)).toMatchObject({
        holds: 'unknown',
        found: expect.stringMatching(/^too few rights: .*system_views\.settings/),
      });
    expect(verdict(found, 'replication_factor')).toMatchObject({ holds: false });
    expect(verdict(found, 'durable_writes')).toMatchObject({ holds: true });
    expect(verdict(found, 'schema_agreement')).toMatchObject({ holds: true });
  });

  test.each([
    ['svc', 'replication_factor = 1 (SimpleStrategy)', false, true],
    ['three', 'replication_factor = 3 on 1 node (SimpleStrategy)', false, true],
    ['Safe', 'replication_factor = 3 in datacenter1 on 1 node (NetworkTopologyStrategy)', true, true],
    ['risky', 'replication_factor = 2 in datacenter1 on 1 node (NetworkTopologyStrategy)', true, false],
  ])('keyspace %s: %s, strategy %s, durable writes %s', async (name, found, byDatacenter, durable) => {
    const seen = await asAgent(name);
    expect(verdict(seen.found, 'replication_factor')).toMatchObject({ holds: false, found });
    expect(verdict(seen.found, 'replication_strategy')).toMatchObject({ holds: byDatacenter });
    expect(verdict(seen.found, 'durable_writes')).toMatchObject({ holds: durable });
  });

  test('a table or a row that is missing is a finding, a column that is missing is unknown', async () => {
    const found = async (database: string, schemaQuery?: string) =>
      (await pollCassandra({ port: server.port, user: 'Agent', password: 'pw', database, schemaQuery }))
        .found!;
    expect((await found('three')).schemaMissing).toMatch(/schema_version does not exist/);
    expect((await found('Safe')).schemaMissing).toBe('schema_version has no row for Safe');
    const other = await found('svc', 'SELECT version FROM schema_version');
    expect(other.schemaUnknown).toMatch(/Undefined column name version/);
    expect(other.schemaMissing).toBeUndefined();
  });

  test('a keyspace or a user that is missing, a wrong password, no password', async () => {
    expect(await asAgent('nope')).toEqual({
      fault: { reason: 'database_missing', msg: 'keyspace "nope" does not exist' },
    });
    expect(await asAgent('safe')).toMatchObject({ fault: { reason: 'database_missing' } });
    for (const [user, password] of [
      ['Agent', 'hunter2'],
      ['nobody', 'hunter2'],
      ['Agent', ''],
    ] as const) {
      const { fault } = await as(user, password, 'svc');
      expect(fault).toMatchObject({ reason: 'credentials' });
      expect(fault!.msg).not.toContain('hunter2');
    }
    expect(await pollCassandra({ port: server.port, database: 'svc' })).toEqual({
      fault: {
        reason: 'credentials',
        msg: 'the server requires a user and a password; none are configured',
      },
    });
  });

  test('without a keyspace only the node is judged', async () => {
    const { found } = await asAgent();
    expect(found!.checks.map(({ check }) => check)).toEqual([
      'incremental_backups',
      'auto_snapshot',
      'schema_agreement',
    ]);
    expect(found!.schemaVersion ?? found!.schemaUnknown).toBeUndefined();
  });

  test('a node that does not tell its clients in time is well all the same', async () => {
    const asked: string[] = [];
    const front = await startServer(
      between(server.port, (request) => {
        if (!request.includes('system_views.clients')) return undefined;
        asked.push(request);
        return 'drop';
      }),
    );
    const { found } = await pollCassandra({
      port: front.port,
      user: 'Agent',
      password: 'pw',
      database: 'svc',
    });
    await front.close();
    expect(asked).toHaveLength(1);
    expect(found).toMatchObject({ schemaVersion: '0.10' });
    expect(found!.connections).toBeUndefined();
  });

  test('a node with another schema, up or not, is seen', async () => {
    await server.run(
      `INSERT INTO system.peers_v2 (peer, peer_port, schema_version) VALUES ('127.0.0.99', 7000, uuid())`,
    );
    const { found } = await asAgent('svc');
    expect(verdict(found, 'schema_agreement')).toEqual({
      check: 'schema_agreement',
      holds: false,
      found: 'schema versions: 2, on nodes: 2; nodes that are down count too',
    });
    expect(found!.details).toMatchObject({ peers: 1 });
  });

  test('no check leaves a connection behind', async () => {
    await asAgent('svc');
    // The node forgets a closed connection after a while.
    await until('the check’s own connection is the only one', async () => {
      const { found } = await asAgent('svc');
      return found?.connections?.ready === 1;
    });
  });
});
