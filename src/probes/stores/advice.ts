import type { StoreCheck } from '../../core/reasons.ts';
import { type StoreKind, storeKinds } from './options.ts';

/** What a person needs to know of a check that fails. */
export interface Advice {
  /** What is lost or at risk. */
  why: string;
  /** What to set or to do, in the store's own words. */
  set: string;
  /** Whether that needs a restart, and of what. */
  restart: string;
}

const none = 'no restart';
const reload = 'no restart; a reload of the configuration';
const server = 'a restart of the server';
const nodes = 'a restart of each node, one after another';

const general: Readonly<Record<StoreCheck, Advice>> = {
  schema: {
    why: 'The service does not start, or fails at run time, on a schema older than it was built for.',
    set: 'Update the schema with the service’s schema tool, before the service itself is updated.',
    restart: none,
  },
  connections: {
    why: 'Once the limit is reached the service gets no connection, and its requests fail.',
    set: 'Find who keeps connections open; lower the maxConns of the service, or raise the limit of the store.',
    restart: 'no restart, except for the limit of a PostgreSQL',
  },
  identity: {
    why: 'Another server answers at this address: it may hold other data, an older copy or none at all.',
    set: 'Find out who changed it: a restore, a failover, a name that leads elsewhere. It shows for an hour.',
    restart: none,
  },
  uptime: {
    why: 'The store was restarted: what was in flight was lost, and nobody may have asked for it.',
    set: 'Read the store’s log for the reason: a crash, the kernel out of memory, an update. It shows for an hour.',
    restart: none,
  },
  archive_mode: {
    why: 'Without an archive of its log the database can be brought back only as it was at the last full backup.',
    set: 'archive_mode = on and an archive_command, or stream the log with pg_receivewal and a slot.',
    restart: server,
  },
  archive_timeout: {
    why: 'A segment of the log is archived only when it is full: with few writes hours can be lost.',
    set: 'archive_timeout = 300 or less, but not 0.',
    restart: reload,
  },
  archiver: {
    why: 'The last attempt to archive a segment failed: what is written since cannot be brought back.',
    set: 'Repair what archive_command writes to; the server’s log has its error. Then it goes on by itself.',
    restart: none,
  },
  wal_backlog: {
    why: 'Closed segments wait longer than the objective allows; with the server they are lost, and they fill its disk.',
    set: 'Repair or speed up archive_command.',
    restart: none,
  },
  wal_level: {
    why: 'With the level minimal the log cannot be replayed on a backup, and no replica can follow.',
    set: 'wal_level = replica.',
    restart: server,
  },
  slots: {
    why: 'A slot that nobody reads keeps the log until the disk is full; one that is lost has a replica to be rebuilt.',
    set: 'Start its reader again, or drop it: SELECT pg_drop_replication_slot(NAME); limit it by max_slot_wal_keep_size.',
    restart: none,
  },
  timeline: {
    why: 'The server was promoted or restored: what its predecessor had and it had not is gone.',
    set: 'Make sure that the old primary is off, and take a full backup on the new timeline. It shows for an hour.',
    restart: none,
  },
  data_checksums: {
    why: 'Pages that the disk has damaged are handed out, and backed up, as if they were right.',
    set: 'Stop the server and run pg_checksums --enable.',
    restart: server,
  },
  checksum_failures: {
    why: 'Pages of this database are damaged on the disk.',
    set: 'Check the disk, fail over, and restore from a backup from before. The count is cleared by pg_stat_reset().',
    restart: none,
  },
  durable_settings: {
    why: 'What was confirmed to the service can be lost, or the data damaged, when the machine loses its power.',
    set: 'fsync = on, full_page_writes = on, and synchronous_commit not off.',
    restart: reload,
  },
  replica: {
    why: 'The replica does not follow: a failover to it would lose what it lacks.',
    set: 'Look at its connection to the primary, its log and its disk; rebuild it if the log it needs is gone.',
    restart: none,
  },
  wraparound: {
    why: 'When the oldest transaction is two billion old, the server refuses every write to save its data.',
    set: 'Run VACUUM (FREEZE) in the database with the greatest age; end old transactions, slots and prepared ones.',
    restart: none,
  },
  log_bin: {
    why: 'Without a binary log the database can be brought back only as it was at the last full backup.',
    set: 'log_bin in the server’s file.',
    restart: server,
  },
  sync_binlog: {
    why: 'The end of the binary log can be lost with the machine’s power: replicas and restores lack what was confirmed.',
    set: 'SET GLOBAL sync_binlog = 1, and in the server’s file.',
    restart: none,
  },
  binlog_retention: {
    why: 'Binary logs that go before they are copied leave a gap that no restore gets over.',
    set: 'binlog_expire_logs_seconds = 604800 or more (0 keeps them until they are purged), and in the server’s file.',
    restart: none,
  },
  flush_log_at_commit: {
    why: 'What was confirmed to the service in the last second can be lost when the machine loses its power.',
    set: 'SET GLOBAL innodb_flush_log_at_trx_commit = 1, and in the server’s file.',
    restart: none,
  },
  storage_engine: {
    why: 'Tables of another engine have no transactions, do not survive a crash and are not in a consistent backup.',
    set: 'ALTER TABLE … ENGINE = InnoDB.',
    restart: none,
  },
  incremental_backups: {
    why: 'Without them only the last snapshot can be brought back.',
    set: 'incremental_backups: true in cassandra.yaml; nodetool enablebackup does so until the next restart.',
    restart: nodes,
  },
  replication_factor: {
    why: 'With fewer than three copies one node that is down makes writes fail or data unavailable.',
    set: 'ALTER KEYSPACE … WITH replication with 3 in each data centre, then nodetool repair --full on every node.',
    restart: none,
  },
  durable_writes: {
    why: 'Writes to this keyspace pass by the commit log: those in memory are gone when a node stops.',
    set: 'ALTER KEYSPACE … WITH durable_writes = true.',
    restart: none,
  },
  replication_strategy: {
    why: 'SimpleStrategy ignores racks and data centres: all copies of a row can be in the part that fails.',
    set: "ALTER KEYSPACE … WITH replication = {'class': 'NetworkTopologyStrategy', …}, then nodetool repair --full on every node.",
    restart: none,
  },
  schema_agreement: {
    why: 'The nodes have different schemas: changes of the schema fail, and rows can be refused by some nodes.',
    set: 'Find the node that differs with nodetool describecluster; bring it up, or remove it if it is gone.',
    restart: 'no restart, unless that node keeps its old schema',
  },
  auto_snapshot: {
    why: 'A table that is dropped or truncated by mistake is gone at once.',
    set: 'auto_snapshot: true in cassandra.yaml.',
    restart: nodes,
  },
};

/** Where a kind has words of its own. */
const ofKind: Readonly<Partial<Record<StoreKind, Partial<Record<StoreCheck, Partial<Advice>>>>>> = {
  mysql: {
    replica: {
      set: 'Look at SHOW REPLICA STATUS for the last error of both threads; repair it, then START REPLICA.',
    },
    connections: {
      set: 'Find who keeps connections open; lower the maxConns of the service, or SET GLOBAL max_connections.',
      restart: none,
    },
  },
  postgres: {
    connections: {
      set: 'Find who keeps connections open; lower the maxConns of the service, or raise max_connections.',
      restart: server,
    },
  },
};

/** Why a check matters to a store of this kind, and what to do about it. */
export function adviceOn(check: StoreCheck, kind: StoreKind): Advice {
  return { ...general[check], ...ofKind[kind]?.[check] };
}

const every = storeKinds;
const kindsOf: Readonly<Record<StoreCheck, readonly StoreKind[]>> = {
  schema: every,
  connections: every,
  identity: every,
  uptime: every,
  archive_mode: ['postgres'],
  archive_timeout: ['postgres'],
  archiver: ['postgres'],
  wal_backlog: ['postgres'],
  wal_level: ['postgres'],
  slots: ['postgres'],
  timeline: ['postgres'],
  data_checksums: ['postgres'],
  checksum_failures: ['postgres'],
  durable_settings: ['postgres'],
  replica: ['postgres', 'mysql'],
  wraparound: ['postgres'],
  log_bin: ['mysql'],
  sync_binlog: ['mysql'],
  binlog_retention: ['mysql'],
  flush_log_at_commit: ['mysql'],
  storage_engine: ['mysql'],
  incremental_backups: ['widecolumn'],
  replication_factor: ['widecolumn'],
  replication_strategy: ['widecolumn'],
  durable_writes: ['widecolumn'],
  schema_agreement: ['widecolumn'],
  auto_snapshot: ['widecolumn'],
};

/** Whether stores of this kind have the check. */
export const isCheckOf = (check: StoreCheck, kind: StoreKind): boolean => kindsOf[check].includes(kind);
