import type { StoreCheck } from '../../core/check-severity.ts';
import { type StoreKindName, storeKinds } from './store-options.ts';

/** Advice for a check that fails. */
interface Advice {
  /** What is lost or at risk. */
  why: string;
  /** What to set or to do, with the store's own names. */
  set: string;
  /** Whether that needs a restart, and of which program. */
  restart: string;
}

const none = 'no restart';
const reload = 'no restart; a reload of the configuration';
const server = 'a restart of the server';
const nodes = 'a restart of each node, one after another';

const sql: readonly StoreKindName[] = ['postgres', 'mysql'];
const postgres: readonly StoreKindName[] = ['postgres'];
const mysql: readonly StoreKindName[] = ['mysql'];
const cassandra: readonly StoreKindName[] = ['widecolumn'];

type Row = Omit<Advice, 'restart'> & { restart?: string };

/** Adds the kinds of stores that have these checks. */
function forKinds<C extends StoreCheck>(kinds: readonly StoreKindName[], rows: Readonly<Record<C, Row>>) {
  const all = Object.entries<Row>(rows).map(([check, row]) => [check, { ...row, kinds }]);
  return Object.fromEntries(all) as Record<C, Row & { kinds: readonly StoreKindName[] }>;
}

/** The advice for every check, with the kinds of stores that have the check. Without `restart` no restart is needed. */
const general = {
  ...forKinds(storeKinds, {
    schema: {
      why: 'The service does not start, or fails at run time, on a schema older than it was built for. A database without a schema is empty.',
      set: 'Update the schema with the service’s schema tool before the service itself is updated; restore a database that is empty.',
    },
    connections: {
      why: 'Once the limit is reached, the service gets no connection and its requests fail.',
      set: 'Find who keeps connections open; lower the maxConns of the service, or raise the limit of the store.',
      restart: 'no restart, except for the limit of a PostgreSQL',
    },
    identity: {
      why: 'Another server answers at this address. It may hold other data, an older copy, or none.',
      set: 'Find out what changed: a restore, a failover, a DNS name. The check fails for an hour.',
    },
    uptime: {
      why: 'The store was restarted. Requests in flight failed, and it may have been a crash.',
      set: 'Look for the reason in the store’s log: a crash, out of memory, an update. The check fails for an hour.',
    },
    free_space: {
      why: 'A store whose disk is full stops accepting writes, or stops altogether. Dumps and archiving fail before that.',
      set: 'Grow the disk, or free space: old snapshots and backups, logs that a slot or a failed archiving holds back.',
    },
  }),
  ...forKinds(postgres, {
    archive_mode: {
      why: 'Without an archive of the log, the database can only be restored to the last full backup.',
      set: 'Set archive_mode = on and an archive_command that copies, or run pg_receivewal with a slot. A standby is not an archive.',
      restart: server,
    },
    archive_timeout: {
      why: 'A log segment is only archived when it is full. With few writes, hours of changes can be lost.',
      set: 'archive_timeout = 300 or less, but not 0.',
      restart: reload,
    },
    archiver: {
      why: 'The last attempt to archive a segment failed. Changes since then cannot be restored.',
      set: 'Repair the destination of archive_command; the server’s log has the error. Archiving then resumes by itself.',
    },
    wal_backlog: {
      why: 'Closed segments wait longer than the RPO allows. They are lost with the server, and they fill its disk.',
      set: 'Repair or speed up archive_command.',
    },
    wal_archive: {
      why: 'The server reports a segment as archived, but it, or one before it, is not in the archive. A restore ends at the gap.',
      set: 'Find out what archive_command really does and what deletes from the archive; then take a full backup.',
    },
    wal_level: {
      why: 'With the level minimal the log cannot be replayed on a backup, and no replica can follow.',
      set: 'wal_level = replica.',
      restart: server,
    },
    slots: {
      why: 'A slot without a reader keeps the log until the disk is full; if a slot is lost, its replica must be rebuilt.',
      set: 'Start its reader again, or drop it: SELECT pg_drop_replication_slot(NAME); limit it by max_slot_wal_keep_size.',
    },
    timeline: {
      why: 'The server was promoted or restored: changes that it had not received are lost.',
      set: 'Make sure that the old primary is off, and take a full backup on the new timeline. The check fails for an hour.',
    },
    data_checksums: {
      why: 'Without checksums, damaged pages are returned to clients and copied into backups unnoticed.',
      set: 'Stop the server and run pg_checksums --enable.',
      restart: server,
    },
    checksum_failures: {
      why: 'Pages of this database are damaged on disk.',
      set: 'Check the disk, fail over, and restore a backup from before the damage. pg_stat_reset() clears the count.',
    },
    durable_settings: {
      why: 'Commits that the service relies on can be lost, or the data damaged, when the machine loses power.',
      set: 'fsync = on, full_page_writes = on, and synchronous_commit not off, not for any role either (ALTER ROLE … RESET synchronous_commit).',
      restart: reload,
    },
    wraparound: {
      why: 'When the oldest transaction is two billion transactions old, the server refuses every write.',
      set: 'Run VACUUM (FREEZE) in the database with the greatest age. End old transactions, prepared transactions and slots.',
    },
  }),
  ...forKinds(sql, {
    replica: {
      why: 'The replica does not keep up. A failover to it loses the changes that it has not applied.',
      set: 'Check its connection to the primary, its log and its disk. Rebuild it if the log it needs is gone.',
    },
    standbys: {
      why: 'A failover to a standby that is behind loses data. Without the synchronous one that is configured, commits wait or lose their guarantee.',
      set: 'Check the standby and its connection; SELECT * FROM pg_stat_replication has its positions.',
    },
    open_transactions: {
      why: 'A transaction left open keeps vacuum or purge from removing old rows, and its locks can block a dump or a schema update.',
      set: 'End the session (pg_terminate_backend), or ROLLBACK PREPARED; set idle_in_transaction_session_timeout.',
    },
    lock_waits: {
      why: 'Requests of the service wait for a lock of another session until they time out. The sessions that wait use up the connections.',
      set: 'Find out what the session does: a dump, a schema change, a person. If it can be ended: SELECT pg_terminate_backend(PID).',
    },
  }),
  ...forKinds(mysql, {
    log_bin: {
      why: 'Without a binary log, the database can only be restored to the last full backup.',
      set: 'log_bin in the server’s configuration file.',
      restart: server,
    },
    sync_binlog: {
      why: 'The end of the binary log can be lost when the machine loses power. Replicas and restores then lack commits.',
      set: 'SET GLOBAL sync_binlog = 1, and in the server’s configuration file.',
    },
    binlog_retention: {
      why: 'Binary logs that are purged before they are copied leave a gap, at which a restore ends.',
      set: 'binlog_expire_logs_seconds = 604800 or more (0 keeps them until they are purged), also in the server’s configuration file.',
    },
    flush_log_at_commit: {
      why: 'Commits of the last second can be lost when the machine loses power.',
      set: 'SET GLOBAL innodb_flush_log_at_trx_commit = 1, and in the server’s configuration file.',
    },
    storage_engine: {
      why: 'Tables of other engines have no transactions, do not survive a crash, and are inconsistent in a backup.',
      set: 'ALTER TABLE … ENGINE = InnoDB.',
    },
  }),
  ...forKinds(cassandra, {
    incremental_backups: {
      why: 'Without them, only the last snapshot can be restored.',
      set: 'incremental_backups: true in cassandra.yaml; nodetool enablebackup does so until the next restart.',
      restart: nodes,
    },
    replication_factor: {
      why: 'With fewer than three copies, one node that is down makes writes fail or data unavailable. With more copies than nodes, writes fail.',
      set: 'ALTER KEYSPACE … WITH replication with 3 in each data centre, then nodetool repair --full on every node.',
    },
    durable_writes: {
      why: 'Writes to this keyspace bypass the commit log. Those in memory are lost when a node stops.',
      set: 'ALTER KEYSPACE … WITH durable_writes = true.',
    },
    replication_strategy: {
      why: 'SimpleStrategy ignores racks and data centres: all copies of a row can be in the part that fails.',
      set: "ALTER KEYSPACE … WITH replication = {'class': 'NetworkTopologyStrategy', …}, then nodetool repair --full on every node.",
    },
    schema_agreement: {
      why: 'The nodes have different schemas. Schema changes fail, and some nodes can refuse rows.',
      set: 'Find the node that differs with nodetool describecluster. Start it, or remove it if it is gone.',
      restart: 'no restart, unless that node keeps its old schema',
    },
    snapshots: {
      why: 'A snapshot keeps data files that compaction has replaced, so that the disk fills.',
      set: 'Copy it off the node, then nodetool clearsnapshot -t NAME; take snapshots with --ttl.',
    },
    auto_snapshot: {
      why: 'A table that is dropped or truncated by mistake cannot be restored from this node.',
      set: 'auto_snapshot: true in cassandra.yaml.',
      restart: nodes,
    },
  }),
  ...forKinds([...cassandra, ...mysql], {
    nodes: {
      why: 'Data on a node that is down has fewer copies. A snapshot or a repair taken meanwhile lacks that node.',
      set: 'Start the node; nodetool removenode if it is gone permanently, then nodetool repair --full.',
    },
  }),
};

const ofKind: Readonly<Partial<Record<StoreKindName, Partial<Record<StoreCheck, Partial<Advice>>>>>> = {
  mysql: {
    replica: {
      set: 'Look at SHOW REPLICA STATUS for the last error of both threads; repair it, then START REPLICA.',
    },
    connections: {
      set: 'Find who keeps connections open; lower the maxConns of the service, or SET GLOBAL max_connections.',
      restart: none,
    },
    standbys: {
      set: 'Check the replica and its connection; SHOW GLOBAL STATUS LIKE "rpl_semi_sync%" shows whether commits wait for one, LIKE "wsrep_%" the state of a Galera node.',
    },
    nodes: {
      why: 'A node of the Galera cluster is missing: fewer copies are left, and after another failure the rest may have no majority.',
      set: 'Start the node, or take it out of wsrep_cluster_address on all others if it is gone permanently.',
    },
    lock_waits: {
      set: 'Find the session that holds the lock: SHOW PROCESSLIST, sys.innodb_lock_waits, sys.schema_table_lock_waits. FLUSH TABLES WITH READ LOCK of a backup, ALTER TABLE and LOCK TABLES hold such locks. KILL it if it can be ended.',
    },
    open_transactions: {
      set: 'KILL the session that information_schema.INNODB_TRX shows, or XA ROLLBACK.',
    },
  },
  postgres: {
    connections: {
      set: 'Find who keeps connections open; lower the maxConns of the service, or raise max_connections.',
      restart: server,
    },
  },
};

/** Why a check matters for a store of this kind, and what to do if it fails. */
export function adviceOn(check: StoreCheck, kind: StoreKindName): Advice {
  const { kinds: _, ...advice } = general[check];
  return { restart: none, ...advice, ...ofKind[kind]?.[check] };
}

/** Whether stores of this kind have the check. */
export const isCheckOf = (check: StoreCheck, kind: StoreKindName): boolean =>
  general[check].kinds.includes(kind);
