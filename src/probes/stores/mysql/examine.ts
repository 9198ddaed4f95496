import type { StoreLook, StoreTarget, StoreVerdict } from '../store.ts';
import {
  type Answer,
  type Ask,
  answerOf,
  byName,
  identifier,
  listed,
  type Named,
  numberOf,
} from './answer.ts';
import { enginesOf } from './engines.ts';
import { flavourOf, restrain } from './flavour.ts';
import { isReadOnly, postureOf, variableNames } from './posture.ts';
import { replicationOf } from './replication.ts';
import { schemaOf } from './schema.ts';
import { connectionsOf, type Status, startedAtMs, statusOf } from './status.ts';

const noCluster = /^[0-]*$/;

/**
 * A Galera cluster's own id, for its nodes hold the same data; else MySQL's server_uuid, which stands in the data
 * directory. MariaDB has nothing like it: its server_id differs among servers that copy each other, and the place of
 * the data among those that do not. The host's name is left out: that of a container changes over the same data.
 */
function identityOf(variables: Named, { values }: Status): string | undefined {
  const cluster = values.get('wsrep_cluster_state_uuid') ?? '';
  if (!noCluster.test(cluster)) return cluster;
  const uuid = variables.get('server_uuid');
  if (uuid) return uuid;
  const [id, place] = [variables.get('server_id'), variables.get('datadir')];
  return id && place ? `${id}:${place}` : undefined;
}

/** What depends on the database: its schema's version and the engines of its tables. */
async function databaseFacts(
  ask: Ask,
  { database, schemaQuery }: StoreTarget,
): Promise<Partial<StoreLook> & { verdicts: StoreVerdict[] }> {
  if (database === undefined) return { verdicts: [] };
  const used = await answerOf(ask, `USE ${identifier(database)}`);
  if (used.rows === undefined) {
    const verdict: StoreVerdict = { check: 'storage_engine', holds: 'unknown', found: used.unknown };
    return { schemaUnknown: used.unknown, verdicts: [verdict] };
  }
  return { ...(await schemaOf(ask, schemaQuery, database)), verdicts: [await enginesOf(ask, database)] };
}

/** Where the binary log stands, for people and for backups. */
function positionOf({ rows }: Answer): { file: string; position: number } | undefined {
  const { File: file, Position: position } = rows?.[0] ?? {};
  return file ? { file, position: Number(position) } : undefined;
}

const usualTimeoutMs = 10_000;

/** Everything that is asked in one look, over a connection that is logged in. Throws what `ask` throws. */
export async function examine(ask: Ask, target: StoreTarget): Promise<StoreLook> {
  const askedMs = performance.now();
  const [server] = await ask('SELECT VERSION() AS version, @@version_comment AS comment');
  const roundTripMs = performance.now() - askedMs;
  const serverVersion = server?.version ?? '';
  const flavour = flavourOf(serverVersion, server?.comment ?? '');
  await restrain(ask, flavour, target.timeoutMs ?? usualTimeoutMs);
  const { rows = [] } = await answerOf(
    ask,
    `SHOW GLOBAL VARIABLES WHERE Variable_name IN (${listed(variableNames)})`,
  );
  const variables = byName(rows);
  const status = await statusOf(ask, flavour);
  const { replica, channels, verdicts } = replicationOf(await answerOf(ask, ...flavour.replication));
  const position = positionOf(await answerOf(ask, ...flavour.position));
  const database = await databaseFacts(ask, target);
  return {
    serverVersion,
    roundTripMs,
    readOnly: isReadOnly(variables),
    replica,
    connections: connectionsOf(status),
    connectionsMax: numberOf(variables.get('max_connections')),
    startedAtMs: startedAtMs(status),
    identity: identityOf(variables, status),
    ...database,
    verdicts: [...postureOf(variables), ...verdicts, ...database.verdicts],
    details: {
      flavour: flavour.name,
      distribution: server?.comment ?? undefined,
      binaryLog: position,
      sources: channels.length > 0 ? channels : undefined,
      connectionsMaxUsed: numberOf(status.values.get('max_used_connections')),
      connectsAborted: numberOf(status.values.get('aborted_connects')),
    },
  };
}
