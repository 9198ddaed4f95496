import pg from 'pg';
import { archives, checksumCheck, logState, postgresChecks } from './postgres-checks.ts';
import {
  openSession,
  type PostgresAnswer,
  type PostgresRow,
  type PostgresSession,
  postgresFault,
  type Statement,
} from './postgres-connection.ts';
import type { Blocker, Known, OpenTransaction, PostgresFacts, Slot, Standby } from './postgres-facts.ts';
import { databaseQuestions, type ServerQuestion, serverQuestions } from './postgres-questions.ts';
import { type Replay, watchReplay } from './postgres-replica.ts';
import {
  type CheckResult,
  type DatabaseReport,
  type PollAnswer,
  type PollRequest,
  type ServerReport,
  type StorageDirectory,
  type StoreConnection,
  type StoreKind,
  type StoreTarget,
  versionIn,
} from './store-report.ts';

/** PostgreSQL, by the `pg` driver. A connection belongs to one database. */
export const postgres: StoreKind = {
  async connect(target, database, trace, signal) {
    const session = await openSession(target, database, trace, signal);
    const connection: StoreConnection = {
      tlsNotAfterMs: session.tlsNotAfterMs,
      sessionId: session.processId,
      stillOpen: (ids) => stillOpen(session, ids),
      poll: (request) => poll(session, request, target),
      close: () => session.close(),
    };
    return connection;
  },
  faultOf: postgresFault,
  watch: watchReplay,
};

/** The process behind a pooler may serve another role by now. A role sees its own sessions without any right. */
async function stillOpen(session: PostgresSession, ids: readonly number[]): Promise<number[]> {
  const { answers } = await session.ask([
    {
      sql: `SELECT pid FROM pg_stat_activity WHERE pid IN (${ids.join(', ')}) AND usename = current_user
        AND pid <> pg_backend_pid() AND state <> 'idle'`,
    },
  ]);
  return (answers[0]?.rows ?? []).map(({ pid }) => pid as number);
}

const usualSchemaQuery = 'SELECT curr_version FROM schema_version WHERE db_name = {database}';

async function poll(
  session: PostgresSession,
  { database, schema, server }: PollRequest,
  { databases, isServiceUser = false }: Pick<StoreTarget, 'databases' | 'isServiceUser'>,
): Promise<PollAnswer> {
  const own: Record<string, string> = {
    ...(server && serverQuestions(databases)),
    ...(database !== undefined && databaseQuestions),
  };
  const statements: Statement[] = Object.values(own).map((sql) => ({ sql }));
  const asksSchema = schema !== undefined && database !== undefined;
  if (asksSchema) {
    const sql = (schema.query ?? usualSchemaQuery).replaceAll('{database}', () => pg.escapeLiteral(database));
    // The configured statement comes last: it may be any statement, and nothing may follow it.
    statements.push({ sql, isConfigured: true });
  }
  const { answers, roundTripMs } = await session.ask(statements);
  const answered = Object.fromEntries(Object.keys(own).map((name, index) => [name, answers[index]!]));
  return {
    roundTripMs,
    ...(server && {
      server: {
        ...serverReport(factsOf(answered as Record<ServerQuestion, PostgresAnswer>, isServiceUser)),
        readOnly: isReadOnly(answered.serverWrites),
      },
    }),
    database: {
      ...(asksSchema && schemaReport(answers.at(-1)!, answered.tables!, database, schema.query)),
      ...(answered.writes && { readOnly: isReadOnly(answered.writes) }),
      tables: namesIn(answered.tables, 'names'),
      unlogged: namesIn(answered.tables, 'unlogged'),
      checks: answered.checksums ? [checksumCheck(known(answered.checksums, readChecksums))] : [],
    },
  };
}

/** The names in the form `SCHEMA.TABLE`. */
function namesIn(
  answer: PostgresAnswer | undefined,
  column: 'names' | 'unlogged',
): readonly string[] | undefined {
  const [row] = answer?.rows ?? [];
  if (row === undefined) return undefined;
  const names = row[column] ?? [];
  return (typeof names === 'string' ? JSON.parse(names) : names) as string[];
}

function schemaReport(
  answer: PostgresAnswer,
  tables: PostgresAnswer,
  database: string,
  query: string | undefined,
): Omit<DatabaseReport, 'checks'> {
  if (answer.rows === undefined) {
    const { all, version } = (tables.rows?.[0] ?? {}) as { all?: number; version?: number };
    const isMissing = answer.sqlState === '42P01' && (all === 0 || (query === undefined && version === 0));
    return isMissing
      ? { schemaMissing: all === 0 ? `${database} has no tables` : `${database} has no table schema_version` }
      : { schemaUnknown: answer.unknown };
  }
  return versionIn(answer.rows[0]?.['0'], database, query);
}

function known<T>(answer: PostgresAnswer, read: (rows: readonly PostgresRow[]) => T): Known<T> {
  return answer.rows === undefined ? { unknown: answer.unknown } : read(answer.rows);
}

/** A column of the first row; undefined if there is no answer. */
function first<T>({ rows }: PostgresAnswer, column: string): T | undefined {
  return (rows?.[0]?.[column] ?? undefined) as T | undefined;
}

function factsOf(answers: Record<ServerQuestion, PostgresAnswer>, isServiceUser: boolean): PostgresFacts {
  const started = first<number>(answers.server, 'started');
  const now = first<number>(answers.server, 'now');
  return {
    version: first<string>(answers.server, 'version') ?? 'unknown',
    standby: first<boolean>(answers.server, 'standby') ?? false,
    ...(started !== undefined && { startedAtMs: started * 1000 }),
    ...(now !== undefined && { nowMs: now * 1000 }),
    settings: byName(answers.settings, 'setting'),
    sources: byName(answers.settings, 'source'),
    isServiceUser,
    identity: first<string>(answers.identity, 'id'),
    timeline: first<number>(answers.timeline, 'timeline'),
    archiver: known(answers.archiver, readArchiver),
    lsn: first<string>(answers.position, 'lsn'),
    passes: first<number>(answers.passes, 'passes'),
    standbys: known(answers.standbys, (rows) => ({ list: rows as unknown as Standby[] })),
    transactions: known(answers.transactions, readTransactions),
    blockers: known(answers.blockers, (rows) => ({ list: rows as unknown as Blocker[] })),
    backlog: known(answers.backlog, readBacklog),
    slots: known(answers.slots, (rows) => ({ list: rows as unknown as Slot[] })),
    receivers: known(answers.receivers, readReceivers),
    replication: known(answers.replication, readReplication),
    connections: known(answers.connections, readConnections),
    wraparound: known(answers.wraparound, ([row]) => ({ age: row!.age as number })),
    asynchronous: known(answers.asynchronous, (rows) => ({
      // Sessions of the agent commit nothing, so its own role does not count.
      roles: rows.flatMap(({ role, own }) => (own && !isServiceUser ? [] : [role as string])),
    })),
  };
}

function byName({ rows = [] }: PostgresAnswer, column: string): Readonly<Record<string, string>> {
  return Object.fromEntries(rows.map((row) => [row.name as string, row[column] as string]));
}

const readChecksums = ([row]: readonly PostgresRow[]) => ({ failures: row!.failures as number | null });

function readArchiver([row]: readonly PostgresRow[]) {
  return {
    failures: row!.failures as number,
    failing: row!.failing as boolean,
    failedWal: row!.failed_wal as string | null,
    archivedWal: row!.archived_wal as string | null,
    archivedAtS: (row!.archived_at as number | null) ?? undefined,
  };
}

function readTransactions(rows: readonly PostgresRow[]) {
  const seen = rows.filter(({ what }) => what !== null) as unknown as OpenTransaction[];
  return { list: seen, isPartial: seen.length < rows.length };
}

function readBacklog([row]: readonly PostgresRow[]) {
  const oldest = row!.oldest as number | null;
  return {
    waiting: row!.waiting as number,
    ...(oldest !== null && { oldestMs: oldest * 1000 }),
    ageS: (row!.age as number | null) ?? 0,
  };
}

function readReceivers([row]: readonly PostgresRow[]) {
  return { hidden: row!.hidden as number, archiving: row!.archiving as string | null };
}

function readReplication([row]: readonly PostgresRow[]) {
  return {
    receivers: row!.receivers as number,
    paused: row!.paused === true,
    ageS: row!.age as number | null,
    received: row!.received as number | null,
    replayed: row!.replayed as number | null,
  };
}

function readConnections(rows: readonly PostgresRow[]) {
  const byState: Record<string, number> = {};
  for (const { state, count } of rows) {
    const name = (state as string).replace(/[^a-z]+/g, '_').replace(/^_|_$/g, '');
    byState[name] = (byState[name] ?? 0) + (count as number);
  }
  return { byState };
}

function serverReport(facts: PostgresFacts): ServerReport {
  const { version, identity, timeline, startedAtMs, standby } = facts;
  return {
    serverVersion: `PostgreSQL ${version}`,
    replica: standby,
    ...connectionsOf(facts),
    ...archivingOf(facts),
    directories: directoriesOf(facts),
    ...(archives(facts) && { log: logState(facts) }),
    identity,
    timeline,
    startedAtMs,
    nowMs: facts.nowMs,
    startTimeIsExact: true,
    watched: replayOf(facts),
    checks: [...postgresChecks(facts), ...hiddenReplay(facts)],
    // A standby has the identity of its primary.
    ...(standby && identity !== undefined && { details: { follows: [identity] } }),
  };
}

/** How a standby replays; undefined on a primary, and if that is hidden. */
function replayOf({ standby, replication, settings }: PostgresFacts): Replay | undefined {
  if (!standby || 'unknown' in replication) return undefined;
  const { restore_command: restore = '', primary_conninfo: primary } = settings;
  return { ...replication, restore, ...(primary !== undefined && { primary }) };
}

const hiddenReplay = ({ standby, replication }: PostgresFacts): CheckResult[] =>
  standby && 'unknown' in replication
    ? [{ check: 'replica', holds: 'unknown', found: replication.unknown }]
    : [];

function directoriesOf({ settings: { data_directory: data } }: PostgresFacts): StorageDirectory[] {
  if (data === undefined || data === '') return [];
  return [
    { holds: 'data', path: data },
    // This directory is often a link to another disk.
    { holds: 'WAL', path: `${data}/pg_wal` },
  ];
}

/**
 * Whether writes are refused; undefined if that is unknown. A role that is itself set to read-only shows nothing about other
 * roles.
 */
function isReadOnly(answer: PostgresAnswer | undefined): boolean | undefined {
  const [row] = answer?.rows ?? [];
  if (row === undefined) return undefined;
  const { standby, setting, source } = row as { standby: boolean; setting: string; source: string };
  const ofTheRole = source.includes('user') || source === 'client' || source === 'session';
  return standby || (setting === 'on' && !ofTheRole);
}

function connectionsOf({
  connections,
  settings,
}: PostgresFacts): Pick<ServerReport, 'connections' | 'connectionsMax'> {
  const reserved = +(settings.superuser_reserved_connections ?? 0) + +(settings.reserved_connections ?? 0);
  return {
    ...(!('unknown' in connections) && { connections: connections.byState }),
    ...(settings.max_connections !== undefined && { connectionsMax: +settings.max_connections - reserved }),
  };
}

/**
 * The state of archiving. Only a segment with a .ready file waits: an idle server closes no segments, however long ago the last
 * segment was archived.
 */
function archivingOf(
  facts: PostgresFacts,
): Pick<ServerReport, 'walOldestUnarchivedMs' | 'walArchiveFailures'> {
  const { archiver, backlog } = facts;
  return {
    ...(archives(facts) && !('unknown' in backlog) && { walOldestUnarchivedMs: backlog.oldestMs }),
    ...(!('unknown' in archiver) && { walArchiveFailures: archiver.failures }),
  };
}
