import { formatAddress } from '../../core/address.ts';
import type { StoreCheck } from '../../core/check-severity.ts';
import { type MysqlAnswer, type MysqlRow, mysqlNumber, type NamedValues } from './mysql-questions.ts';
import { escapedText } from './sql-text.ts';
import type { CheckResult, LogState, StorageDirectory } from './store-report.ts';

/** The variables that are read, for every version of MySQL and MariaDB. A variable that a server lacks is not in its answer. */
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
  'gtid_binlog_pos',
  'rpl_semi_sync_source_enabled',
  'rpl_semi_sync_master_enabled',
  'wsrep_cluster_address',
] as const;

/** The status variables of semi-synchronous replication, with the names since MySQL 8.0.26 and the older names. */
export const semiSyncStatus: readonly string[] = [
  'rpl_semi_sync_source_status',
  'rpl_semi_sync_source_clients',
  'rpl_semi_sync_master_status',
  'rpl_semi_sync_master_clients',
];

const daySeconds = 86_400;
/** The spec's schedule retains logs for seven days. */
const leastRetentionSeconds = 7 * daySeconds;

/** Whether a variable is on. Off is `OFF` or `0`; newer versions have several words for on. */
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

/** For how many seconds logs are retained; 0 is for ever. The setting in seconds takes precedence. */
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
  // How many days of log fit into a size depends on the number of writes.
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
    // MariaDB also has the value 3, which is safer.
    { check: 'flush_log_at_commit', ...oneOf(variables, 'innodb_flush_log_at_trx_commit', [1, 3]) },
  ];
  // If the log is off, its settings do not matter.
  if (logs === false) return checks;
  return [
    ...checks,
    { check: 'sync_binlog', ...oneOf(variables, 'sync_binlog', [1]) },
    { check: 'binlog_retention', ...retention(variables) },
  ];
}

/** Whether the server refuses writes, at least those of most users. */
export function isReadOnly(variables: NamedValues): boolean | undefined {
  const states = ['read_only', 'super_read_only', 'innodb_read_only'].map((name) =>
    isOn(variables.get(name)),
  );
  if (states.includes(true)) return true;
  return states.includes(false) ? false : undefined;
}

/** A source that the server replicates. */
interface Channel {
  name: string;
  ioRunning: string;
  sqlRunning: string;
  /** The number of the last error that stopped replication; 0 without an error. */
  errno: number;
  /** Null while the channel does not replicate: the lag is unknown then, not 0. */
  secondsBehind: number | null;
}

/** The value of a column, under the first name that exists: MySQL 8.0.22 gave the columns new names. */
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

/** The spec's RPO for the log: with a replica that is further behind, a failover would lose more than that. */
const longestLagSeconds = 300;

function isReplicating({ ioRunning, sqlRunning, errno, secondsBehind }: Channel): boolean {
  const isRunning = ioRunning === 'Yes' && sqlRunning === 'Yes' && errno === 0;
  return isRunning && secondsBehind !== null && secondsBehind <= longestLagSeconds;
}

/**
 * A channel as text. The server's own text may contain the statement that failed, and with it user data, so only the number of
 * the error is shown.
 */
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

/** The sources that the server replicates, and the check of them. A server without sources has no such check. */
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

/**
 * The servers that a replica follows: their identities, which MariaDB does not know, and their addresses as the replica was told
 * them.
 */
export function sourcesOf({ rows = [] }: MysqlAnswer): string[] | undefined {
  const known = rows.flatMap((row) => {
    const host = column(row, 'Source_Host', 'Master_Host').toLowerCase();
    const port = mysqlNumber(column(row, 'Source_Port', 'Master_Port'));
    const address = host && port ? formatAddress({ host, port }) : '';
    return [column(row, 'Source_UUID', 'Master_UUID'), address].filter(Boolean);
  });
  return known.length > 0 ? known : undefined;
}

/** Engines whose tables a dump in one transaction reads at one moment, and which survive a crash. */
const transactional = ['innodb', 'rocksdb', 'ndbcluster'];

/**
 * Checks whether every table has an engine with transactions. A user sees only the tables for which it has a right. If it may not
 * see all tables, the result is unknown.
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

/**
 * The state of the log. A copy of the current file that reaches as far as the server has written contains everything, unless the
 * server is a replica.
 */
export const logState = (
  { file, position }: { file: string; position: number },
  replica: boolean | undefined,
  gtids?: string,
): LogState => ({
  archived: file,
  archivedBytes: position,
  ...(gtids !== undefined && { archivedGtids: domainPositions(gtids) }),
  position: `${file}:${position}`,
  isArchivedWhole: Number.isFinite(position) && replica === false,
});

/** MariaDB's positions, `DOMAIN-SERVER-NUMBER`, in the order of their domains and without the servers. */
const domainPositions = (gtids: string): string =>
  (gtids.match(/\d+-\d+-\d+/g) ?? [])
    .map((gtid) => gtid.split('-'))
    .sort(([one], [other]) => Number(one) - Number(other))
    .map(([domain, , number]) => `${domain}-${number}`)
    .join();

/** The directory of the data, and the directory of the binary log if it is a different one. */
export function directoriesOf(variables: NamedValues): StorageDirectory[] {
  const [data, binaryLog] = [variables.get('datadir'), variables.get('log_bin_basename')];
  return [
    ...(data ? [{ holds: 'data', path: data }] : []),
    // The path is used without the number at its end.
    ...(binaryLog?.includes('/')
      ? [{ holds: 'binary log', path: binaryLog.replace(/\/[^/]*$/, '') || '/' }]
      : []),
  ];
}

/**
 * Checks the copies that a commit waits for, if the server has any: replicas in semi-synchronous replication, or nodes of Galera.
 * On a primary, the user of `--print-grants` cannot see how far its replicas are; the replicas are polled themselves.
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
 * Checks whether this node of a Galera cluster accepts and applies every write, and whether all configured nodes are there. A
 * desynchronized node, such as the donor of a copy, does not slow the others down and may lag behind
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

/** Checks the number of nodes. The address of a node that founds the cluster names no other node. */
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

/** In seconds, longer than any transaction of the service. */
const longestIdleSeconds = 900;
const namedAtMost = 3;

/** The number of ER_SPECIFIC_ACCESS_DENIED_ERROR. */
const accessDenied = 1227;

/** An account in the form for a statement, from the `name@host` of CURRENT_USER(). */
function accountName(user: string): string {
  const at = user.lastIndexOf('@');
  return at < 0 ? 'the agent’s user' : `${escapedText(user.slice(0, at))}@${escapedText(user.slice(at + 1))}`;
}

type Refused = Extract<MysqlAnswer, { rows?: undefined }>;

/** The result of a check of other sessions if the server refused the statement. */
function refusedCheck(check: StoreCheck, { unknown, ...refusal }: Refused, user: string): CheckResult {
  const isDenied = refusal.errno === accessDenied;
  const advice = isDenied ? `; run GRANT PROCESS ON *.* TO ${accountName(user)}` : '';
  return { check, holds: 'unknown', found: `${unknown}${advice}` };
}

/** In seconds, longer than a session of the service waits for a lock. */
const longestWaitSeconds = 10;

/** Checks for sessions that wait for locks. Clients that give up end their wait, so that a wait may be no longer than their patience. */
export function lockWaitsCheck(answer: MysqlAnswer, user: string): CheckResult {
  const check = 'lock_waits';
  if (answer.rows === undefined) return refusedCheck(check, answer, user);
  const waits = answer.rows
    .filter(({ kind }) => kind === 'wait')
    .map(({ what, age }) => ({ what: what?.replace('Waiting for ', ''), seconds: mysqlNumber(age) ?? 0 }))
    .sort((a, b) => b.seconds - a.seconds);
  const [longest] = waits;
  if (longest === undefined) return { check, holds: true, found: 'no session waits for a lock' };
  const { what, seconds } = longest;
  return {
    check,
    holds: seconds <= longestWaitSeconds,
    lastsS: seconds,
    found:
      waits.length === 1
        ? `1 session has waited for ${seconds} s (${what})`
        : `${waits.length} sessions wait for locks, one of them for ${seconds} s (${what})`,
  };
}

/** Checks for transactions that wait for their client. A prepared transaction that outlived its session has no session. */
export function transactionsCheck(answer: MysqlAnswer, user: string): CheckResult {
  const check = 'open_transactions';
  const { rows } = answer;
  if (rows === undefined) return refusedCheck(check, answer, user);
  const transactions = rows.filter(({ kind }) => kind === 'transaction');
  const idle = transactions.map(({ id, age }) => ({ id: mysqlNumber(id), seconds: mysqlNumber(age) ?? 0 }));
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
