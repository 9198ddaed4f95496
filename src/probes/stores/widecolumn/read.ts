import type { StoreLook, StoreTarget, StoreVerdict } from '../store.ts';
import type { CqlConnection, Row } from './connection.ts';
import { CqlFailure, errorCode, errorCodes } from './failure.ts';
import { quotedName, quotedText } from './grants.ts';
import {
  agreementVerdict,
  durableWritesVerdict,
  replicationVerdict,
  type Settings,
  settingsOf,
  settingVerdicts,
} from './posture.ts';

/**
 * The node looks up the name of each of its clients' addresses before it answers, which may take it for ever where
 * names are slow; the look does not wait that long.
 */
const clientsWithinMs = 2000;

const connectionLimit = 'native_transport_max_concurrent_connections';

const selects = {
  local: `SELECT release_version, cluster_name, host_id, data_center, rack, schema_version, gossip_generation
    FROM system.local WHERE key = 'local'`,
  peers: 'SELECT schema_version FROM system.peers_v2',
  /** Before 4.0. */
  oldPeers: 'SELECT schema_version FROM system.peers',
  settings: `SELECT name, value FROM system_views.settings
    WHERE name IN ('incremental_backups', 'auto_snapshot', '${connectionLimit}')`,
  clients: 'SELECT connection_stage FROM system_views.clients',
  keyspace: 'SELECT replication, durable_writes FROM system_schema.keyspaces WHERE keyspace_name = ',
};

type Answer = { rows: readonly Row[] } | { unknown: string };

/** Rows that may be kept from this user, or not be there in this version. */
async function ask(connection: CqlConnection, cql: string): Promise<Answer> {
  try {
    return { rows: await connection.query(cql) };
  } catch (error) {
    const code = errorCode(error);
    const msg = (error as Error).message;
    if (code === errorCodes.unauthorized) return { unknown: `too few rights: ${msg}` };
    if (code === errorCodes.invalid || code === errorCodes.syntax) return { unknown: msg };
    throw error;
  }
}

async function readPeers(connection: CqlConnection): Promise<readonly Row[]> {
  const peers = await ask(connection, selects.peers);
  return 'rows' in peers ? peers.rows : connection.query(selects.oldPeers);
}

async function readSettings(connection: CqlConnection): Promise<Settings> {
  const settings = await ask(connection, selects.settings);
  return 'rows' in settings ? settingsOf(settings.rows) : settings;
}

/** Unlimited, which is the default, is no limit. */
function limitOf(settings: Settings): number | undefined {
  const limit = 'values' in settings ? Number(settings.values.get(connectionLimit)) : Number.NaN;
  return limit > 0 ? limit : undefined;
}

/** Connections by their stage; nothing when the node does not tell. */
async function readClients(connection: CqlConnection): Promise<Record<string, number> | undefined> {
  const stages: Record<string, number> = {};
  try {
    for (const { connection_stage } of await connection.query(selects.clients, clientsWithinMs)) {
      const stage = String(connection_stage).toLowerCase().replaceAll(' ', '_');
      stages[stage] = (stages[stage] ?? 0) + 1;
    }
  } catch (error) {
    const late = (error as Error).name === 'OperationTimedOutError';
    const kept = [errorCodes.unauthorized, errorCodes.invalid].some((code) => code === errorCode(error));
    if (late || kept) return undefined;
    throw error;
  }
  return stages;
}

async function useKeyspace(connection: CqlConnection, keyspace: string): Promise<void> {
  try {
    await connection.query(`USE ${quotedName(keyspace)}`);
  } catch (error) {
    if (errorCode(error) !== errorCodes.invalid) throw error;
    throw new CqlFailure('database_missing', (error as Error).message, error);
  }
}

async function readKeyspace(connection: CqlConnection, keyspace: string): Promise<StoreVerdict[]> {
  const [row] = await connection.query(selects.keyspace + quotedText(keyspace));
  // Virtual keyspaces are not in that table.
  return row === undefined ? [] : [replicationVerdict(row), durableWritesVerdict(row)];
}

async function readSchema(
  connection: CqlConnection,
  { schemaQuery }: StoreTarget,
  keyspace: string,
): Promise<Pick<StoreLook, 'schemaVersion' | 'schemaUnknown'>> {
  const answer = await ask(
    connection,
    schemaQuery.replaceAll('{database}', () => quotedText(keyspace)),
  );
  if ('unknown' in answer) return { schemaUnknown: answer.unknown };
  const [version] = Object.values(answer.rows[0] ?? {});
  if (version == null) return { schemaUnknown: `the schema's table has no version of ${keyspace}` };
  return { schemaVersion: String(version) };
}

function nodeOf(local: Row, roundTripMs: number): Omit<StoreLook, 'verdicts'> {
  const { release_version, cluster_name, host_id, data_center, rack, gossip_generation } = local;
  return {
    serverVersion: String(release_version),
    roundTripMs,
    identity: `${cluster_name}/${host_id}`,
    // Set at each start of the node, in seconds.
    ...(typeof gossip_generation === 'number' && { startedAtMs: gossip_generation * 1000 }),
    details: { cluster: cluster_name, node: String(host_id), datacenter: data_center, rack },
  };
}

/**
 * Everything of one look, over one connection. What the user may not read, or the version does not have, is unknown;
 * a keyspace that is missing is a `CqlFailure` (`database_missing`); whatever else fails is thrown as it came.
 */
export async function read(connection: CqlConnection, target: StoreTarget): Promise<StoreLook> {
  const { database } = target;
  const startMs = performance.now();
  const [local] = await connection.query(selects.local);
  const roundTripMs = performance.now() - startMs;
  if (local === undefined) throw new CqlFailure('query_failed', 'system.local has no row');
  if (database !== undefined) await useKeyspace(connection, database);
  const [peers, settings, keyspace, schema] = await Promise.all([
    readPeers(connection),
    readSettings(connection),
    database === undefined ? [] : readKeyspace(connection, database),
    database === undefined ? {} : readSchema(connection, target, database),
  ]);
  const { details, ...node } = nodeOf(local, roundTripMs);
  return {
    ...node,
    ...schema,
    connections: await readClients(connection),
    connectionsMax: limitOf(settings),
    tlsNotAfterMs: connection.tlsNotAfterMs,
    verdicts: [...settingVerdicts(settings), ...keyspace, agreementVerdict(local, peers)],
    details: { ...details, peers: peers.length },
  };
}
