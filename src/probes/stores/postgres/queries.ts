/** What of the settings is looked at; of those that may hold a secret only whether there is anything. */
export const settingNames = [
  'archive_mode',
  'archive_timeout',
  'archive_command',
  'archive_library',
  'wal_level',
  'max_connections',
  'superuser_reserved_connections',
  'reserved_connections',
  'data_checksums',
  'fsync',
  'full_page_writes',
  'synchronous_commit',
  'default_transaction_read_only',
] as const;

const listed = (names: readonly string[]) => names.map((name) => `'${name}'`).join(', ');

/** Every question that is asked, by name. Numbers that may be large come as float8: the driver gives int8 as text. */
export const questions = {
  server: `SELECT current_setting('server_version') AS version, pg_is_in_recovery() AS standby,
    extract(epoch FROM pg_postmaster_start_time())::float8 AS started`,
  settings: `SELECT name, source,
    CASE WHEN name IN ('archive_command', 'archive_library')
      THEN CASE WHEN setting IN ('', '(disabled)') THEN '' ELSE 'set' END ELSE setting END AS setting
    FROM pg_settings WHERE name IN (${listed(settingNames)})`,
  identity: 'SELECT system_identifier::text AS id FROM pg_control_system()',
  // The control file names a new timeline only at the next checkpoint; the log does so at once.
  timeline: `SELECT CASE WHEN pg_is_in_recovery() THEN (SELECT timeline_id FROM pg_control_checkpoint())
    ELSE ('x' || left(pg_walfile_name(pg_current_wal_lsn()), 8))::bit(32)::int END AS timeline`,
  archiver: `SELECT failed_count::float8 AS failures, last_failed_wal AS failed_wal,
    coalesce(last_failed_time >= coalesce(last_archived_time, '-infinity'), false) AS failing
    FROM pg_stat_archiver`,
  backlog: `SELECT count(*)::float8 AS waiting, extract(epoch FROM min(modification))::float8 AS oldest,
    extract(epoch FROM clock_timestamp() - min(modification))::float8 AS age
    FROM pg_ls_archive_statusdir() WHERE name LIKE '%.ready'`,
  slots:
    'SELECT slot_name AS name, slot_type AS type, active, wal_status AS status FROM pg_replication_slots',
  senders: 'SELECT application_name AS application FROM pg_stat_replication',
  receiver: `SELECT (SELECT count(*) FROM pg_stat_wal_receiver)::int AS receivers,
    pg_is_wal_replay_paused() AS paused,
    CASE WHEN pg_last_wal_receive_lsn() = pg_last_wal_replay_lsn() THEN 0
      ELSE extract(epoch FROM clock_timestamp() - pg_last_xact_replay_timestamp()) END::float8 AS lag`,
  // Of others' sessions a plain role sees only which database they are in.
  connections: `SELECT coalesce(state, 'unknown') AS state, count(*)::float8 AS count FROM pg_stat_activity
    WHERE backend_type = 'client backend' OR (backend_type IS NULL AND datid IS NOT NULL) GROUP BY 1`,
  checksums: `SELECT sum(checksum_failures)::float8 AS failures FROM pg_stat_database
    WHERE datname = current_database() OR datid = 0`,
  wraparound: `SELECT max(greatest(age(datfrozenxid), mxid_age(datminmxid)))::float8 AS age FROM pg_database`,
} as const;

export type Question = keyof typeof questions;
