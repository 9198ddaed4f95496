import { type MysqlAnswer, type MysqlRow, mysqlNumber, type NamedValues } from './mysql-questions.ts';
import { escapedText } from './sql-text.ts';
import type { CheckResult, LogState, StorageDirectory } from './store-report.ts';

/** The variables that are read, of every version of MySQL and MariaDB; one that a server lacks is not in its answer. */
export const variableNames = [
  'read_only',
  'super_read_only',
  'innodb_read_only',
  'log_bin',
  'sync_binlog',
  'binlog_expire_logs_seconds',
  'binlog_expire_logs_auto_purge',
  'expire_logs_days',
  'max_binlog_total_size',
  'binlog_space_limit',
  'innodb_flush_log_at_trx_commit',
  'max_connections',
  'server_uuid',
  'server_id',
  'datadir',
  'log_bin_basename',
  'rpl_semi_sync_source_enabled',
  'rpl_semi_sync_master_enabled',
  'wsrep_cluster_address',
] as const;

/** Status variables of semi-synchronous replication, by MySQL 8.0.26's names and the older ones. */
export const semiSyncStatus: readonly string[] = [
  'rpl_semi_sync_source_status',
  'rpl_semi_sync_source_clients',
  'rpl_semi_sync_master_status',
  'rpl_semi_sync_master_clients',
];

const daySeconds = 86_400;
/** The spec's schedule keeps logs for seven days. */
const leastRetentionSeconds = 7 * daySeconds;

/** Off is `OFF` or `0`; newer versions have several words for on. */
function isOn(text: string | undefined): boolean | undefined {
  if (text === undefined || text === '') return undefined;
  return !/^(?:OFF|0)$/i.test(text);
}

function shown(variables: NamedValues, ...names: readonly string[]): string {
  const there = names.filter((name) => variables.has(name));
  return there.map((name) => `${name} = ${variables.get(name)}`).join(', ') || `${names[0]} is hidden`;
}

function oneOf(
  variables: NamedValues,
  name: string,
  good: readonly number[],
): Pick<CheckResult, 'holds' | 'found'> {
  const value = mysqlNumber(variables.get(name));
  return { holds: value === undefined ? 'unknown' : good.includes(value), found: shown(variables, name) };
}

/** How long logs are kept, in seconds; 0 is for ever. The setting in seconds takes precedence. */
function retentionSeconds(variables: NamedValues): number | undefined {
  if (isOn(variables.get('binlog_expire_logs_auto_purge')) === false) return 0;
  const seconds = mysqlNumber(variables.get('binlog_expire_logs_seconds'));
  const days = mysqlNumber(variables.get('expire_logs_days'));
  return seconds || (days === undefined ? seconds : days * daySeconds);
}

const sizeLimits = ['max_binlog_total_size', 'binlog_space_limit'];

function retention(variables: NamedValues): Pick<CheckResult, 'holds' | 'found'> {
  const limit = sizeLimits.find((name) => (mysqlNumber(variables.get(name)) ?? 0) > 0);
  const seconds = retentionSeconds(variables);
  const found = shown(
    variables,
    'binlog_expire_logs_seconds',
    'expire_logs_days',
    'binlog_expire_logs_auto_purge',
  );
  if (seconds === undefined) return { holds: 'unknown', found };
  if (seconds > 0 && seconds < leastRetentionSeconds) return { holds: false, found };
  // How many days fit into a size depends on what is written.
  if (limit !== undefined) return { holds: 'unknown', found: `${found}, ${shown(variables, limit)}` };
  return { holds: true, found };
}

/** The checks of the binary log, which point-in-time recovery needs, and of the durability of a commit. */
export function mysqlChecks(variables: NamedValues, leavesOut: readonly string[] = []): CheckResult[] {
  const logs = isOn(variables.get('log_bin'));
  const checks: CheckResult[] = [
    logs && leavesOut.length > 0
      ? { check: 'log_bin', holds: false, found: `log_bin = ON, but not of ${leavesOut.join(', ')}` }
      : { check: 'log_bin', holds: logs ?? 'unknown', found: shown(variables, 'log_bin') },
    // MariaDB has 3, too, which is safer.
    { check: 'flush_log_at_commit', ...oneOf(variables, 'innodb_flush_log_at_trx_commit', [1, 3]) },
  ];
  // Settings of a log that is not written do not matter.
  if (logs === false) return checks;
  return [
    ...checks,
    { check: 'sync_binlog', ...oneOf(variables, 'sync_binlog', [1]) },
    { check: 'binlog_retention', ...retention(variables) },
  ];
}

/** Whether the server refuses writes, of most users at least. */
export function isReadOnly(variables: NamedValues): boolean | undefined {
  const states = ['read_only', 'super_read_only', 'innodb_read_only'].map((name) =>
    isOn(variables.get(name)),
  );
  if (states.includes(true)) return true;
  return states.includes(false) ? false : undefined;
}

/** One source that the server replicates. */
interface Channel {
  name: string;
  ioRunning: string;
  sqlRunning: string;
  /** Number of the last error that stopped it; 0 without an error. */
  errno: number;
  /** Null while it does not replicate: unknown, not 0. */
  secondsBehind: number | null;
}

/** MySQL 8.0.22 gave the columns new names. */
function column(row: MysqlRow, ...names: readonly string[]): string {
  return names.map((name) => row[name]).find((value) => value !== undefined && value !== null) ?? '';
}

const errnos = ['Last_Errno', 'Last_SQL_Errno', 'Last_IO_Errno'];

function channelOf(row: MysqlRow): Channel {
  return {
    name: column(row, 'Connection_name', 'Channel_Name'),
    ioRunning: column(row, 'Replica_IO_Running', 'Slave_IO_Running'),
    sqlRunning: column(row, 'Replica_SQL_Running', 'Slave_SQL_Running'),
    errno: errnos.map((name) => mysqlNumber(row[name]) ?? 0).find((errno) => errno !== 0) ?? 0,
    secondsBehind: mysqlNumber(column(row, 'Seconds_Behind_Source', 'Seconds_Behind_Master')) ?? null,
  };
}

/** The spec's RPO for the log: a replica that is further behind would lose more than that in a failover. */
const longestLagSeconds = 300;

function isReplicating({ ioRunning, sqlRunning, errno, secondsBehind }: Channel): boolean {
  const isRunning = ioRunning === 'Yes' && sqlRunning === 'Yes' && errno === 0;
  return isRunning && secondsBehind !== null && secondsBehind <= longestLagSeconds;
}

/** The text of the server may contain the statement that failed, and with it user data: only its number is shown. */
function described({ name, ioRunning, sqlRunning, errno, secondsBehind }: Channel): string {
  const lead = name === '' ? '' : `${name}: `;
  const failed = errno === 0 ? '' : `, error ${errno}`;
  return `${lead}IO thread ${ioRunning}, SQL thread ${sqlRunning}${failed}, ${secondsBehind ?? 'unknown'} s behind`;
}

interface Replication {
  replica?: boolean;
  channels: readonly Channel[];
  checks: readonly CheckResult[];
}

/** The sources that the server replicates and their check; a server that replicates none has no check. */
export function replicationOf(status: MysqlAnswer): Replication {
  if (status.rows === undefined) {
    return { channels: [], checks: [{ check: 'replica', holds: 'unknown', found: status.unknown }] };
  }
  const channels = status.rows.map(channelOf);
  if (channels.length === 0) return { replica: false, channels, checks: [] };
  const found = channels.map(described).join('; ');
  return {
    replica: true,
    channels,
    checks: [{ check: 'replica', holds: channels.every(isReplicating), found }],
  };
}

/** Engines that a dump in one transaction catches at one moment, and that survive a crash. */
const transactional = ['innodb', 'rocksdb', 'ndbcluster'];

/**
 * Whether every table has an engine with transactions. A user only sees the tables that it has a right to: of fewer
 * than all, the result is unknown.
 */
export function enginesCheck(engines: MysqlAnswer, rights: MysqlAnswer): CheckResult {
  const check = 'storage_engine';
  if (engines.rows === undefined) return { check, holds: 'unknown', found: engines.unknown };
  const found = `tables: ${engines.rows
    .map(({ engine, tables }) => `${tables} of ${engine ?? 'no known engine'}`)
    .join(', ')}`;
  const isGood = engines.rows.every(({ engine }) => transactional.includes((engine ?? '').toLowerCase()));
  if (!isGood) return { check, holds: false, found };
  const seesAll = (rights.rows?.length ?? 0) > 0;
  const count = engines.rows.reduce((sum, { tables }) => sum + (mysqlNumber(tables) ?? 0), 0);
  if (seesAll && count > 0) return { check, holds: true, found };
  return {
    check,
    holds: 'unknown',
    found: seesAll ? 'there is no table' : 'the user does not see every table',
  };
}

/** The end of the binary log, for people and for backups. */
export function binlogPosition({ rows }: MysqlAnswer): { file: string; position: number } | undefined {
  const { File: file, Position: position } = rows?.[0] ?? {};
  return file ? { file, position: Number(position) } : undefined;
}

/** Whether binlog_do_db and binlog_ignore_db leave a database out of the log. */
export function isLeftOut({ rows }: MysqlAnswer, database: string): boolean {
  const [logged, ignored] = [rows?.[0]?.Binlog_Do_DB, rows?.[0]?.Binlog_Ignore_DB].map((text) =>
    text ? text.split(',') : [],
  );
  return ignored!.includes(database) || (logged!.length > 0 && !logged!.includes(database));
}

/** A copy of the current file that reaches as far as the server has written holds everything, unless that is a replica. */
export const logState = (
  { file, position }: { file: string; position: number },
  replica: boolean | undefined,
): LogState => ({
  archived: file,
  archivedBytes: position,
  position: `${file}:${position}`,
  isArchivedWhole: Number.isFinite(position) && replica === false,
});

/** The directory of the data, and that of the binary log where it is another one. */
export function directoriesOf(variables: NamedValues): StorageDirectory[] {
  const [data, binaryLog] = [variables.get('datadir'), variables.get('log_bin_basename')];
  return [
    ...(data ? [{ holds: 'data', path: data }] : []),
    // A path without the number at its end.
    ...(binaryLog?.includes('/')
      ? [{ holds: 'binary log', path: binaryLog.replace(/\/[^/]*$/, '') || '/' }]
      : []),
  ];
}

/**
 * The copies that a commit waits for, if the server has any: replicas in semi-synchronous replication, nodes of
 * Galera. The user of `--print-grants` cannot see on a primary how far its replicas are; they are polled
 * themselves.
 */
export function standbysCheck(variables: NamedValues, status: NamedValues): CheckResult[] {
  const check = 'standbys';
  if (status.get('wsrep_cluster_status') && clusterOf(status) !== undefined)
    return galeraChecks(variables, status);
  for (const role of ['source', 'master']) {
    if (isOn(variables.get(`rpl_semi_sync_${role}_enabled`)) !== true || isReadOnly(variables)) continue;
    const clients = mysqlNumber(status.get(`rpl_semi_sync_${role}_clients`));
    const state = status.get(`rpl_semi_sync_${role}_status`);
    const found = `semi-synchronous replicas: ${clients ?? 'unknown'}, rpl_semi_sync_${role}_status = ${state ?? 'unknown'}`;
    if (clients === undefined || state === undefined) return [{ check, holds: 'unknown', found }];
    return [{ check, holds: clients > 0 && isOn(state) === true, found }];
  }
  return [];
}

/**
 * Whether this node of a Galera cluster takes and applies every write, and whether all nodes that are configured are
 * there. One that was desynchronized, as the donor of a copy is, does not hold the others back and may lag behind
 * (galeracluster.com/library/documentation/monitoring-cluster.html).
 */
function galeraChecks(variables: NamedValues, status: NamedValues): CheckResult[] {
  const state = ['wsrep_cluster_status', 'wsrep_ready', 'wsrep_local_state_comment'];
  const [component, ready, local] = state.map((name) => (status.get(name) ?? '').toLowerCase());
  const found = state.map((name) => `${name} = ${status.get(name) ?? 'unknown'}`).join(', ');
  const isWhole = component === 'primary' && isOn(ready) === true;
  const isSynced = local === '' ? 'unknown' : local === 'synced';
  return [
    { check: 'standbys', holds: isWhole && isSynced, found },
    galeraNodes(mysqlNumber(status.get('wsrep_cluster_size')), variables.get('wsrep_cluster_address') ?? ''),
  ];
}

/** The address of a node that founds the cluster names no other. */
function galeraNodes(size: number | undefined, address: string): CheckResult {
  const check = 'nodes';
  const named = address
    .replace(/^\w+:\/\//, '')
    .replace(/\?.*$/, '')
    .split(',')
    .filter((one) => one.trim() !== '').length;
  if (size === undefined) return { check, holds: 'unknown', found: 'wsrep_cluster_size is hidden' };
  const of = named > size ? ` of ${named} that wsrep_cluster_address names` : '';
  return { check, holds: size >= named, found: `nodes: ${size}${of}` };
}

/** The id of the Galera cluster that the server belongs to. */
export function clusterOf(status: NamedValues): string | undefined {
  const id = status.get('wsrep_cluster_state_uuid') ?? '';
  return /^[0-]*$/.test(id) ? undefined : id;
}

/** Longer than any transaction of the service, seconds. */
const longestIdleSeconds = 900;
const namedAtMost = 3;

/** ER_SPECIFIC_ACCESS_DENIED_ERROR. */
const accessDenied = 1227;

/** `name@host` of CURRENT_USER() as a statement takes it. */
function accountName(user: string): string {
  const at = user.lastIndexOf('@');
  return at < 0 ? 'the agent’s user' : `${escapedText(user.slice(0, at))}@${escapedText(user.slice(at + 1))}`;
}

/** Transactions that wait for their client, oldest first; a prepared one that outlived its session has no session. */
export function transactionsCheck({ rows, unknown, ...refusal }: MysqlAnswer, user: string): CheckResult {
  const check = 'open_transactions';
  if (rows === undefined) {
    const isDenied = 'errno' in refusal && refusal.errno === accessDenied;
    const advice = isDenied ? `; run GRANT PROCESS ON *.* TO ${accountName(user)}` : '';
    return { check, holds: 'unknown', found: `${unknown}${advice}` };
  }
  const idle = rows.map(({ id, age }) => ({ id: mysqlNumber(id), seconds: mysqlNumber(age) ?? 0 }));
  const named = idle.slice(0, namedAtMost).map(({ id, seconds }) => {
    const what = id ? `session ${id}` : 'a prepared transaction';
    return `${what} has been idle for ${seconds} s`;
  });
  const more = idle.length > namedAtMost ? ` and ${idle.length - namedAtMost} more` : '';
  return {
    check,
    holds: idle.every(({ seconds }) => seconds <= longestIdleSeconds),
    found: named.join(', ') + more || 'no transaction is idle',
  };
}
