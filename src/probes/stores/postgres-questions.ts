import pg from 'pg';

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
export const serverQuestions = (databases: readonly string[]) => ({
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
export type ServerQuestion = keyof ReturnType<typeof serverQuestions>;

/** The questions about the database of the connection. */
export const databaseQuestions = {
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
