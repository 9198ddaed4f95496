import { ProbeError } from '../probe.ts';
import {
  agreementCheck,
  type CassandraAnswer,
  durableWritesCheck,
  nodeCounts,
  replicationChecks,
  type Settings,
  settingChecks,
  settingsOf,
  type WatchedNodes,
  watchNodes,
} from './cassandra-checks.ts';
import {
  type CassandraRow,
  type CqlConnection,
  cassandraFault,
  connect,
  cqlErrors,
  errorCode,
} from './cassandra-connection.ts';
import { sqlText } from './sql-text.ts';
import {
  type DatabaseReport,
  type PollAnswer,
  type PollRequest,
  type ServerReport,
  type StorageDirectory,
  type StoreKind,
  versionIn,
} from './store-report.ts';

/** Apache Cassandra and compatible stores. One node is polled; it reports on the others. */
export const cassandra: StoreKind = {
  async connect(target, _, trace, signal) {
    const connection = await connect(target, trace, signal);
    const poll = createCassandraPoll(connection);
    return {
      tlsNotAfterMs: connection.tlsNotAfterMs,
      poll,
      close: () => connection.close(),
    };
  },
  faultOf: cassandraFault,
  watch: watchNodes,
};

/**
 * How long the poll waits for slow answers. To list the clients, the node resolves the name of each client's address, which takes
 * long where name resolution is slow; for the snapshots it reads their directories.
 */
const slowAnswerWithinMs = 2000;

const connectionLimit = 'native_transport_max_concurrent_connections';

const directories = ['data_file_directories', 'commitlog_directory'];

const selects = {
  local: `SELECT release_version, cluster_name, host_id, data_center, rack, schema_version, gossip_generation
    FROM system.local WHERE key = 'local'`,
  peers: 'SELECT data_center, schema_version FROM system.peers_v2',
  /** The query for versions before 4.0. */
  oldPeers: 'SELECT data_center, schema_version FROM system.peers',
  settings: `SELECT name, value FROM system_views.settings
    WHERE name IN ('incremental_backups', 'auto_snapshot', '${connectionLimit}', '${directories.join("', '")}')`,
  /** The query for versions from 5.0 on. */
  gossip: 'SELECT address, generation, heartbeat, status_with_port FROM system_views.gossip_info',
  /** The query for versions from 5.0 on. It adds up the sizes of all files. */
  snapshots: `SELECT name, keyspace_name, created_at, expires_at, ephemeral, size_on_disk
    FROM system_views.snapshots`,
  clients: 'SELECT connection_stage FROM system_views.clients',
  tables: 'SELECT table_name, id FROM system_schema.tables WHERE keyspace_name = ',
  keyspace: 'SELECT replication, durable_writes FROM system_schema.keyspaces WHERE keyspace_name = ',
};

/** A name between double quotes, which preserve its case and special characters. */
const quotedName = (name: string): string => `"${name.replaceAll('"', '""')}"`;

/** The rows of a query; undefined rows if this user may not see them, or this version does not have them. */
async function ask(connection: CqlConnection, cql: string, withinMs?: number): Promise<CassandraAnswer> {
  try {
    return { rows: await connection.query(cql, withinMs) };
  } catch (error) {
    const code = errorCode(error);
    const msg = (error as Error).message;
    if (code === cqlErrors.unauthorized) return { unknown: `too few rights: ${msg}` };
    if (code === cqlErrors.invalid || code === cqlErrors.syntax) return { unknown: msg };
    throw error;
  }
}

/** The limit of a setting; undefined for unlimited, which is the default. */
function limitOf(settings: Settings): number | undefined {
  const limit = 'values' in settings ? Number(settings.values.get(connectionLimit)) : Number.NaN;
  return limit > 0 ? limit : undefined;
}

/** The number of connections by stage; undefined if the node does not report them. */
async function clientsOf(connection: CqlConnection): Promise<Record<string, number> | undefined> {
  const stages: Record<string, number> = {};
  try {
    for (const { connection_stage } of await connection.query(selects.clients, slowAnswerWithinMs)) {
      const stage = String(connection_stage).toLowerCase().replaceAll(' ', '_');
      stages[stage] = (stages[stage] ?? 0) + 1;
    }
  } catch (error) {
    const isLate = (error as Error).name === 'OperationTimedOutError';
    const isRefused = [cqlErrors.unauthorized, cqlErrors.invalid].some((code) => code === errorCode(error));
    if (isLate || isRefused) return undefined;
    throw error;
  }
  return stages;
}

/** Reads the snapshots, once for each connection, because it makes the node go through its directories. */
async function snapshotsOf(connection: CqlConnection): Promise<CassandraAnswer> {
  try {
    return await ask(connection, selects.snapshots, slowAnswerWithinMs);
  } catch (error) {
    if ((error as Error).name === 'OperationTimedOutError')
      return { unknown: 'the node does not answer in time' };
    throw error;
  }
}

/** The directories in settings such as `[/one, /other]` and `/one`. */
function directoriesOf(settings: Settings): StorageDirectory[] {
  if ('unknown' in settings) return [];
  return directories.flatMap((name, index) =>
    (settings.values.get(name) ?? '')
      .replace(/^\[|\]$/g, '')
      .split(', ')
      .filter((path) => path !== '' && path !== 'null')
      .map((path) => ({ holds: index === 0 ? 'data' : 'commit log', path })),
  );
}

/** The name of a table's directory. */
const directoryOf = ({ table_name, id }: CassandraRow) => `${table_name}-${String(id).replaceAll('-', '')}`;

/** Matches the message about a missing table; older versions word it differently. */
const noSuchTable = /unconfigured table|table \S+ does not exist/i;

function schemaReport(
  answer: CassandraAnswer,
  keyspace: string,
  query: string | undefined,
): Omit<DatabaseReport, 'checks'> {
  if (answer.rows === undefined)
    return noSuchTable.test(answer.unknown)
      ? { schemaMissing: answer.unknown }
      : { schemaUnknown: answer.unknown };
  return versionIn(Object.values(answer.rows[0] ?? {})[0], keyspace, query);
}

/**
 * The report on the server. The identity is the cluster's name, because any of its nodes may answer. The start time is the
 * node's.
 */
function serverReport(
  local: CassandraRow,
  peers: readonly CassandraRow[],
  settings: Settings,
  connections: Record<string, number> | undefined,
  watched: WatchedNodes,
): ServerReport {
  const { release_version, cluster_name, host_id, data_center, rack, gossip_generation } = local;
  return {
    serverVersion: String(release_version),
    identity: String(cluster_name),
    node: String(host_id),
    // The generation is set at each start of the node, in seconds.
    ...(typeof gossip_generation === 'number' && { startedAtMs: gossip_generation * 1000 }),
    connections,
    connectionsMax: limitOf(settings),
    directories: directoriesOf(settings),
    watched,
    checks: [...settingChecks(settings), agreementCheck(local, peers)],
    details: {
      cluster: cluster_name,
      node: String(host_id),
      datacenter: data_center,
      rack,
      peers: peers.length,
    },
  };
}

/**
 * The poll of one connection. All statements are sent together. Values that the user may not read, or that the version does not
 * have, are unknown; a keyspace that does not exist is a `ProbeError` (`database_missing`).
 */
export function createCassandraPoll(
  connection: CqlConnection,
): (request: PollRequest) => Promise<PollAnswer> {
  let peersQuery = selects.peers;
  let snapshots: Promise<CassandraAnswer> | undefined;
  /** The keyspace in which a configured statement runs. */
  let used: string | undefined;

  const peersOf = async (): Promise<readonly CassandraRow[]> => {
    const answer = await ask(connection, peersQuery);
    if (answer.rows !== undefined) return answer.rows;
    peersQuery = selects.oldPeers;
    return connection.query(peersQuery);
  };
  const settingsNow = async (): Promise<Settings> => {
    const answer = await ask(connection, selects.settings);
    return answer.rows === undefined ? answer : settingsOf(answer.rows);
  };
  const schemaOf = async (keyspace: string, query: string | undefined): Promise<CassandraAnswer> => {
    if (query === undefined)
      return ask(
        connection,
        `SELECT curr_version FROM ${quotedName(keyspace)}.schema_version WHERE keyspace_name = ${sqlText(keyspace)}`,
      );
    if (used !== keyspace) {
      const answer = await ask(connection, `USE ${quotedName(keyspace)}`);
      if (answer.rows === undefined) return answer;
      used = keyspace;
    }
    return ask(
      connection,
      query.replaceAll('{database}', () => sqlText(keyspace)),
    );
  };

  return async ({ database, schema, server }) => {
    const startedMs = performance.now();
    let roundTripMs = 0;
    const localOf = async () => {
      const [local] = await connection.query(selects.local);
      roundTripMs = performance.now() - startedMs;
      if (local === undefined) throw new ProbeError('query_failed', 'system.local has no row');
      return local;
    };
    // The first answer shows whether this server can be queried at all.
    const asked = localOf();
    if (server) snapshots ??= snapshotsOf(connection);
    const [local, peers, settings, clients, gossip, snapshot, keyspace, version, tables] = await Promise.all([
      asked,
      peersOf(),
      server ? settingsNow() : undefined,
      server ? clientsOf(connection) : undefined,
      server ? ask(connection, selects.gossip) : undefined,
      server ? snapshots : undefined,
      database === undefined ? undefined : connection.query(selects.keyspace + sqlText(database)),
      database === undefined || schema === undefined ? undefined : schemaOf(database, schema.query),
      database === undefined ? undefined : ask(connection, selects.tables + sqlText(database)),
    ]);
    const [row] = keyspace ?? [];
    if (database !== undefined && row === undefined)
      throw new ProbeError('database_missing', `keyspace ${quotedName(database)} does not exist`);
    return {
      roundTripMs,
      ...(settings && {
        server: serverReport(local, peers, settings, clients, {
          peers: peers.length,
          gossip: gossip!,
          snapshots: snapshot!,
        }),
      }),
      database: {
        ...(version && schemaReport(version, database!, schema?.query)),
        ...(tables?.rows && { tables: tables.rows.map(directoryOf) }),
        checks: row ? [...replicationChecks(row, nodeCounts(local, peers)), durableWritesCheck(row)] : [],
      },
    };
  };
}
