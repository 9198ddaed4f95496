import pg from 'pg';
import {
  archives,
  type Blocker,
  checksumCheck,
  type Known,
  logState,
  type OpenTransaction,
  type PostgresFacts,
  postgresChecks,
  type Slot,
  type Standby,
} from './postgres-checks.ts';
import {
  openSession,
  type PostgresAnswer,
  type PostgresRow,
  type PostgresSession,
  postgresFault,
  type Statement,
} from './postgres-connection.ts';
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

/** The settings that are read. For settings that may contain a secret, the server returns only the kind of the value. */
const settingNames = [
  'archive_mode',
  'archive_timeout',
  'archive_command',
  'archive_library',
  'restore_command',
  'primary_conninfo',
  'wal_level',
  'max_wal_size',
  'wal_keep_size',
  'wal_segment_size',
  'bgwriter_delay',
  'data_directory',
  'synchronous_standby_names',
  'max_connections',
  'superuser_reserved_connections',
  'reserved_connections',
  'data_checksums',
  'fsync',
  'full_page_writes',
  'synchronous_commit',
];
const secretSettings = ['archive_command', 'archive_library', 'restore_command', 'primary_conninfo'];

const listed = (names: readonly string[]) => names.map((name) => pg.escapeLiteral(name)).join(', ');

/**
 * The SQL condition for a shell command that does nothing and succeeds, alone or with arguments: WAL is then removed as if it
 * were archived.
 */
const noOperation = `setting ~* ('^[[:space:]]*(/usr)?(/bin/)?(true|:|exit[[:space:]]+0|cd[[:space:]]+[.]|rem)([[:space:]][^;&|' || chr(10) || ']*)?$')`;

/** The question whether writes are refused. The setting may differ between databases (ALTER DATABASE … SET). */
const writesQuestion = `SELECT pg_is_in_recovery() AS standby, setting, source FROM pg_settings
  WHERE name = 'default_transaction_read_only'`;

/** The questions about the server. Numbers that may be large are cast to float8, because the driver returns int8 as text. */
const serverQuestions = (databases: readonly string[]) => ({
  server: `SELECT current_setting('server_version') AS version, pg_is_in_recovery() AS standby,
    extract(epoch FROM pg_postmaster_start_time())::float8 AS started,
    extract(epoch FROM clock_timestamp())::float8 AS now`,
  serverWrites: writesQuestion,
  settings: `SELECT name, source, CASE WHEN name NOT IN (${listed(secretSettings)}) THEN setting
    WHEN setting IN ('', '(disabled)') THEN '' WHEN ${noOperation} THEN 'nothing' ELSE 'set' END AS setting
    FROM pg_settings WHERE name IN (${listed(settingNames)})`,
  identity: 'SELECT system_identifier::text AS id FROM pg_control_system()',
  // The control file names a new timeline only at the next checkpoint; the log does so at once.
  timeline: `SELECT CASE WHEN pg_is_in_recovery() THEN (SELECT timeline_id FROM pg_control_checkpoint())
    ELSE ('x' || left(pg_walfile_name(pg_current_wal_lsn()), 8))::bit(32)::int END AS timeline`,
  archiver: `SELECT failed_count::float8 AS failures, last_failed_wal AS failed_wal, last_archived_wal AS archived_wal,
    extract(epoch FROM last_archived_time)::float8 AS archived_at,
    coalesce(last_failed_time >= coalesce(last_archived_time, '-infinity'), false) AS failing
    FROM pg_stat_archiver`,
  position: `SELECT CASE WHEN NOT pg_is_in_recovery() THEN pg_current_wal_insert_lsn()::text END AS lsn`,
  // Version 17 has moved the counts to another view. A view that is missing would be an error in the log of the server.
  passes: `SELECT substring(query_to_xml(CASE WHEN to_regclass('pg_catalog.pg_stat_checkpointer') IS NULL
      THEN 'SELECT checkpoints_timed + checkpoints_req AS n FROM pg_catalog.pg_stat_bgwriter'
      ELSE 'SELECT num_timed + num_requested AS n FROM pg_catalog.pg_stat_checkpointer' END,
    false, true, '')::text FROM '>([0-9]+)<')::float8 AS passes`,
  backlog: `SELECT count(*)::float8 AS waiting, extract(epoch FROM min(modification))::float8 AS oldest,
    extract(epoch FROM clock_timestamp() - min(modification))::float8 AS age
    FROM pg_ls_archive_statusdir() WHERE name LIKE '%.ready'`,
  // Version 12 has no column wal_status.
  slots: `SELECT slot_name AS name, active, to_jsonb(s) ->> 'wal_status' AS status, pg_wal_lsn_diff(
      CASE WHEN pg_is_in_recovery() THEN pg_last_wal_receive_lsn() ELSE pg_current_wal_lsn() END,
      restart_lsn)::float8 AS held FROM pg_replication_slots s`,
  // A standby and a logical subscription report what they replayed; a program that writes an archive replays nothing.
  receivers: `SELECT count(*) FILTER (WHERE r.state IS NULL)::int AS hidden, min(r.application_name) FILTER (WHERE
      r.state = 'streaming' AND r.replay_lsn IS NULL AND r.application_name <> 'pg_basebackup' AND NOT EXISTS
        (SELECT FROM pg_replication_slots s WHERE s.active_pid = r.pid AND s.slot_type = 'logical')) AS archiving
    FROM pg_stat_replication r`,
  // A plain role gets some rows without values, which have no state. A receiver that replays nothing is no standby.
  standbys: `SELECT coalesce(nullif(r.application_name, ''), r.client_addr::text, 'pid ' || r.pid) AS name,
      r.state IS NULL AS hidden, coalesce(r.sync_state IN ('sync', 'quorum'), false) AS synchronous,
      extract(epoch FROM r.replay_lag)::float8 AS lag, pg_wal_lsn_diff(CASE WHEN pg_is_in_recovery()
        THEN pg_last_wal_receive_lsn() ELSE pg_current_wal_lsn() END, r.replay_lsn)::float8 AS behind
    FROM pg_stat_replication r WHERE (r.state IS NULL OR r.replay_lsn IS NOT NULL) AND NOT EXISTS
      (SELECT FROM pg_replication_slots s WHERE s.active_pid = r.pid AND s.slot_type = 'logical') LIMIT 100`,
  // The leader of a parallel pg_dump is idle in its transaction while its workers read.
  transactions: `SELECT what, age FROM (
      SELECT 'session ' || pid || ' of ' || coalesce(usename, 'nobody') AS what,
        extract(epoch FROM clock_timestamp() - state_change)::float8 AS age FROM pg_stat_activity
        WHERE state LIKE 'idle in transaction%' AND application_name NOT IN ('pg_dump', 'pg_dumpall')
      UNION ALL SELECT 'prepared transaction ' || gid, extract(epoch FROM clock_timestamp() - prepared)::float8
        FROM pg_prepared_xacts
      UNION ALL SELECT NULL, 0 FROM pg_stat_activity
        WHERE state IS NULL AND backend_type IS NULL AND datid IS NOT NULL HAVING count(*) > 0) t
    ORDER BY age DESC LIMIT 100`,
  // Programs may wait for advisory locks as they like, and CREATE INDEX CONCURRENTLY waits for the end of transactions
  // (virtualxid). A session that waits behind a waiting session waits for the session that blocks both. The question covers only
  // the sessions that wait longest: each call of pg_blocking_pids stops all locking for a moment. Servers before 14 do not know
  // when a wait began; its statement began earlier.
  blockers: `SELECT CASE WHEN w.blocker = 0 THEN 'a prepared transaction'
      ELSE 'session ' || w.blocker || coalesce(' of ' || a.usename, '') || coalesce(', ' || a.state, '') END AS what,
      extract(epoch FROM statement_timestamp() - a.xact_start)::float8 AS age, max(w.waiting)::int AS waiting,
      extract(epoch FROM clock_timestamp() - min(w.since))::float8 AS waited
    FROM (SELECT unnest(pg_blocking_pids(s.pid)) AS blocker, s.waiting, coalesce((SELECT
            min((to_jsonb(l)->>'waitstart')::timestamptz) FROM pg_locks l WHERE l.pid = s.pid), s.query_start) AS since
        FROM (SELECT pid, query_start, count(*) OVER () AS waiting FROM pg_stat_activity
          WHERE wait_event_type = 'Lock' AND wait_event NOT IN ('advisory', 'virtualxid')
          ${databases.length === 0 ? '' : `AND datname IN (${listed(databases)})`}
          ORDER BY query_start LIMIT 10) s) w
      LEFT JOIN pg_stat_activity a ON a.pid = w.blocker
    WHERE a.wait_event_type IS DISTINCT FROM 'Lock' GROUP BY 1, 2 ORDER BY age DESC NULLS FIRST LIMIT 100`,
  replication: `SELECT (SELECT count(*) FROM pg_stat_wal_receiver)::int AS receivers,
    CASE WHEN pg_is_in_recovery() THEN pg_is_wal_replay_paused() END AS paused,
    extract(epoch FROM clock_timestamp() - pg_last_xact_replay_timestamp())::float8 AS age,
    pg_wal_lsn_diff(pg_last_wal_receive_lsn(), '0/0')::float8 AS received,
    pg_wal_lsn_diff(pg_last_wal_replay_lsn(), '0/0')::float8 AS replayed`,
  // An unprivileged role sees only the database of other sessions.
  connections: `SELECT coalesce(state, 'unknown') AS state, count(*)::float8 AS count FROM pg_stat_activity
    WHERE backend_type = 'client backend' OR (backend_type IS NULL AND datid IS NOT NULL) GROUP BY 1`,
  wraparound: `SELECT max(greatest(age(datfrozenxid), mxid_age(datminmxid)))::float8 AS age FROM pg_database`,
  // These are the settings that ALTER ROLE … SET and ALTER DATABASE … SET give to sessions.
  asynchronous: `SELECT DISTINCT coalesce(r.rolname, 'every role') AS role,
      coalesce(r.rolname = session_user, false) AS own FROM pg_db_role_setting s
    LEFT JOIN pg_roles r ON r.oid = s.setrole LEFT JOIN pg_database d ON d.oid = s.setdatabase
    WHERE EXISTS (SELECT FROM unnest(s.setconfig) c WHERE lower(c) ~ '^synchronous_commit=(off|false|no|0)$')
    ${databases.length === 0 ? '' : `AND (s.setdatabase = 0 OR d.datname IN (${listed(databases)}))`} ORDER BY 1`,
});
type ServerQuestion = keyof ReturnType<typeof serverQuestions>;

/** The questions about the database of the connection. */
const databaseQuestions = {
  writes: writesQuestion,
  checksums: `SELECT sum(checksum_failures)::float8 AS failures FROM pg_stat_database
    WHERE datname = current_database() OR datid = 0`,
  // This finds out whether there is a table that this role cannot find: without USAGE its schema is skipped. Tables of extensions
  // are in no dump.
  tables: `SELECT count(*)::int AS all, count(*) FILTER (WHERE c.relname = 'schema_version')::int AS version,
    json_agg(n.nspname || '.' || c.relname) FILTER (WHERE c.relkind IN ('r', 'p') AND NOT EXISTS
      (SELECT FROM pg_depend d WHERE d.objid = c.oid AND d.deptype = 'e')) AS names,
    json_agg(n.nspname || '.' || c.relname) FILTER (WHERE c.relkind = 'r' AND c.relpersistence = 'u') AS unlogged
    FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace WHERE c.relkind IN ('r', 'p', 'v', 'm', 'f')
    AND left(n.nspname, 3) <> 'pg_' AND n.nspname <> 'information_schema'`,
};

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
