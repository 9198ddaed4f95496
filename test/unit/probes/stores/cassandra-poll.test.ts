import { errors } from 'cassandra-driver';
import { expect, test } from 'vitest';
import {
  type CassandraRow,
  type CqlConnection,
  cassandraFault,
} from '../../../../src/probes/stores/cassandra-connection.ts';
import { createCassandraPoll } from '../../../../src/probes/stores/cassandra-poll.ts';
import type { PollRequest } from '../../../../src/probes/stores/store-report.ts';

const invalid = (msg: string) => new errors.ResponseError(0x2200, msg);
const unauthorized = (msg: string) => new errors.ResponseError(0x2100, msg);

const local: CassandraRow = {
  release_version: '5.0.5',
  cluster_name: 'c',
  host_id: 'h',
  data_center: 'dc1',
  rack: 'r1',
  schema_version: 's1',
  gossip_generation: 1_700_000_000,
};
const byDatacenter = { class: 'org.apache.cassandra.locator.NetworkTopologyStrategy', dc1: '3' };

/** The answers of a healthy node of Cassandra 4 or 5, by the text after FROM. */
const healthy: Record<string, readonly CassandraRow[] | Error> = {
  'system.local': [local],
  'system.peers_v2': [
    { data_center: 'dc1', schema_version: 's1' },
    { data_center: 'dc1', schema_version: 's1' },
  ],
  'system_views.settings': [
    { name: 'auto_snapshot', value: 'true' },
    { name: 'incremental_backups', value: 'true' },
    { name: 'data_file_directories', value: '[/one, /two]' },
    { name: 'commitlog_directory', value: '/log' },
    { name: 'native_transport_max_concurrent_connections', value: '-1' },
  ],
  'system_views.clients': [
    { connection_stage: 'READY' },
    { connection_stage: 'ready' },
    { connection_stage: 'in handshake' },
  ],
  'system_schema.keyspaces': [{ replication: byDatacenter, durable_writes: true }],
  schema_version: [{ curr_version: '0.10', other: 1 }],
  'system_views.gossip_info': [{ address: '10.0.0.1', generation: 1, heartbeat: 1 }],
};

/** Polls of a node that gives scripted answers; each statement that it gets is recorded. */
function scripted(changes: Record<string, readonly CassandraRow[] | Error> = {}) {
  const answers = { ...healthy, ...changes };
  const sent: string[] = [];
  const connection: CqlConnection = {
    async query(cql) {
      sent.push(cql);
      const [, from = cql.split(' ')[0]!] = /\bFROM (?:"[^"]+"\.)?([\w.]+)/.exec(cql) ?? [];
      const answer = answers[from] ?? [];
      if (answer instanceof Error) throw answer;
      return answer;
    },
    close: () => Promise.resolve(),
  };
  const poll = createCassandraPoll(connection);
  const usual: PollRequest = { database: "it's", schema: {}, server: true };
  return {
    sent,
    async pollStore(over: Partial<PollRequest> = {}) {
      const { server, database } = await poll({ ...usual, ...over });
      return { ...server!, ...database, checks: [...server!.checks, ...database.checks] };
    },
  };
}

const holds = ({ checks }: { checks: readonly { check: string; holds: unknown }[] }) =>
  Object.fromEntries(checks.map((result) => [result.check, result.holds]));

test('everything that a healthy node tells', async () => {
  const { pollStore, sent } = scripted();
  const found = await pollStore();
  expect(found).toMatchObject({
    serverVersion: '5.0.5',
    identity: 'c',
    node: 'h',
    startedAtMs: 1_700_000_000_000,
    schemaVersion: '0.10',
    connections: { ready: 2, in_handshake: 1 },
    details: { cluster: 'c', node: 'h', datacenter: 'dc1', rack: 'r1', peers: 2 },
    directories: [
      { holds: 'data', path: '/one' },
      { holds: 'data', path: '/two' },
      { holds: 'commit log', path: '/log' },
    ],
    watched: { peers: 2, gossip: { rows: [{ address: '10.0.0.1' }] }, snapshots: { rows: [] } },
  });
  expect(found.connectionsMax).toBeUndefined();
  expect(holds(found)).toEqual({
    incremental_backups: true,
    auto_snapshot: true,
    replication_factor: true,
    replication_strategy: true,
    durable_writes: true,
    schema_agreement: true,
  });
  expect(sent).toContain(`SELECT curr_version FROM "it's".schema_version WHERE keyspace_name = 'it''s'`);
});

test('Cassandra 3 has older peers and no settings', async () => {
  const { pollStore } = scripted({
    'system.peers_v2': invalid('unconfigured table peers_v2'),
    'system.peers': [{ data_center: 'dc1', schema_version: 's2' }],
    'system_views.settings': invalid('Keyspace system_views does not exist'),
    'system_views.clients': invalid('Keyspace system_views does not exist'),
    'system_views.gossip_info': invalid('Keyspace system_views does not exist'),
    'system_views.snapshots': invalid('Keyspace system_views does not exist'),
  });
  const found = await pollStore();
  expect(holds(found)).toMatchObject({
    incremental_backups: 'unknown',
    auto_snapshot: 'unknown',
    schema_agreement: false,
  });
  expect(found.connections).toBeUndefined();
  expect(found.checks[0]!.found).toBe('Keyspace system_views does not exist');
});

test('a limit of connections', async () => {
  const settings = [{ name: 'native_transport_max_concurrent_connections', value: '128' }];
  expect((await scripted({ 'system_views.settings': settings }).pollStore()).connectionsMax).toBe(128);
});

test.each([
  ['the table', invalid('table schema_version does not exist'), 'table schema_version does not exist'],
  [
    'the table, in older words',
    invalid('unconfigured table schema_version'),
    'unconfigured table schema_version',
  ],
  ['the row', [], "schema_version has no row for it's"],
  ['the version', [{ curr_version: null }], "schema_version has no row for it's"],
])('what is missing of the schema is a finding: %s', async (_, answer, schemaMissing) => {
  const found = await scripted({ schema_version: answer }).pollStore();
  expect(found).toMatchObject({ schemaMissing });
  expect(found.schemaVersion).toBeUndefined();
});

test('a configured query runs in the keyspace, which is chosen once', async () => {
  const { pollStore, sent } = scripted({ versions: [{ version: '7' }], USE: [] });
  const schema = { query: 'SELECT version FROM versions WHERE name = {database}' };
  for (const _ of [1, 2]) expect((await pollStore({ schema })).schemaVersion).toBe('7');
  expect(sent.filter((cql) => cql.startsWith('USE'))).toEqual([`USE "it's"`]);
  expect(sent).toContain(`SELECT version FROM versions WHERE name = 'it''s'`);
});

test.each([
  ['the rights are missing', unauthorized('no SELECT'), 'too few rights: no SELECT'],
  ['the statement is wrong', new errors.ResponseError(0x2000, 'line 1:0'), 'line 1:0'],
])('the schema’s version is unknown: %s', async (_, answer, schemaUnknown) => {
  const found = await scripted({ schema_version: answer }).pollStore();
  expect(found).toMatchObject({ schemaUnknown });
  expect(found.schemaVersion).toBeUndefined();
});

test.each([
  [
    'a keyspace is missing',
    { 'system_schema.keyspaces': [], schema_version: invalid('Keyspace x does not exist') },
    'database_missing',
  ],
  ['keyspaces may not be read', { 'system_schema.keyspaces': unauthorized('no') }, 'denied'],
  [
    'replicas are missing',
    { schema_version: new errors.ResponseError(0x1000, 'unavailable') },
    'query_failed',
  ],
  ['peers cannot be read', { 'system.peers_v2': new errors.ResponseError(0, 'oops') }, 'query_failed'],
  ['clients cannot be read', { 'system_views.clients': new errors.ResponseError(0, 'oops') }, 'query_failed'],
  ['the node has no row of itself', { 'system.local': [] }, 'query_failed'],
])('the check fails: %s', async (_, answers, reason) => {
  const thrown = await scripted(answers as Record<string, readonly CassandraRow[] | Error>)
    .pollStore()
    .catch((error: unknown) => error);
  expect(cassandraFault(thrown)).toMatchObject({ reason });
});

test('without a keyspace nothing is asked of one', async () => {
  const { pollStore, sent } = scripted();
  expect(holds(await pollStore({ database: undefined, schema: undefined }))).toEqual({
    incremental_backups: true,
    auto_snapshot: true,
    schema_agreement: true,
  });
  expect(sent.filter((cql) => /^USE|system_schema|schema_version WHERE/.test(cql))).toEqual([]);
});
