/**
 * How much a failing store check matters. `data_at_risk`: data can be lost or damaged in the present state; `recovery_weak`:
 * recovery is weaker than the backup schedule demands; `advice`: the rest. Alerts select checks by severity, and no alert selects
 * `advice`.
 */
export const storeCheckSeverities = ['data_at_risk', 'recovery_weak', 'advice'] as const;
export type StoreCheckSeverity = (typeof storeCheckSeverities)[number];

/** Every check of a store with its severity; the checks are values of a label of `svc_store_check_ok`. */
export const storeCheckSeverity = {
  // every kind
  schema: 'data_at_risk',
  connections: 'advice', // SvcStoreConnections alerts on the ratio itself
  identity: 'data_at_risk',
  uptime: 'advice',
  free_space: 'data_at_risk',
  // PostgreSQL
  archive_mode: 'recovery_weak',
  archive_timeout: 'recovery_weak',
  archiver: 'recovery_weak',
  wal_backlog: 'recovery_weak',
  wal_archive: 'recovery_weak',
  wal_level: 'recovery_weak',
  slots: 'recovery_weak',
  timeline: 'recovery_weak',
  data_checksums: 'advice',
  checksum_failures: 'data_at_risk',
  durable_settings: 'data_at_risk',
  replica: 'recovery_weak', // MySQL too
  standbys: 'recovery_weak', // MySQL too
  open_transactions: 'recovery_weak', // MySQL too
  lock_waits: 'advice', // SvcStoreLockWaits alerts on it; MySQL too
  wraparound: 'data_at_risk',
  // MySQL-compatible
  log_bin: 'recovery_weak',
  sync_binlog: 'recovery_weak',
  binlog_retention: 'recovery_weak',
  flush_log_at_commit: 'data_at_risk',
  storage_engine: 'data_at_risk',
  // wide-column
  incremental_backups: 'recovery_weak',
  replication_factor: 'recovery_weak',
  replication_strategy: 'recovery_weak',
  durable_writes: 'data_at_risk',
  schema_agreement: 'recovery_weak',
  nodes: 'recovery_weak',
  snapshots: 'advice',
  auto_snapshot: 'advice',
} as const satisfies Readonly<Record<string, StoreCheckSeverity>>;
export type StoreCheck = keyof typeof storeCheckSeverity;
export const storeChecks = Object.keys(storeCheckSeverity) as readonly StoreCheck[];

/**
 * Checks that concern backups of one type. They alert only for a store that has such backups configured; without such backups a
 * setting like `archive_mode = off` is the owner's decision.
 */
export const storeCheckNeededBy = {
  archive_mode: 'log',
  archive_timeout: 'log',
  wal_level: 'log',
  log_bin: 'log',
  sync_binlog: 'log',
  binlog_retention: 'log',
  incremental_backups: 'incremental',
} as const satisfies Partial<Record<StoreCheck, string>>;

/** The checks of one severity, in the order of the table. */
export function storeChecksOf(severity: StoreCheckSeverity): readonly StoreCheck[] {
  return storeChecks.filter((check) => storeCheckSeverity[check] === severity);
}
