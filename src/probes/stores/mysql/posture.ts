import type { StoreVerdict } from '../store.ts';
import { type Named, numberOf } from './answer.ts';

/** The variables that are looked at, of every version of MySQL and MariaDB; what one lacks is not in its answer. */
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
] as const;

const daySeconds = 86_400;
/** The spec's schedule keeps logs for seven days. */
const leastRetentionSeconds = 7 * daySeconds;

/** Off is `OFF` or `0`; what is on has more than one word for it in newer versions. */
export function isOn(text: string | undefined): boolean | undefined {
  if (text === undefined || text === '') return undefined;
  return !/^(?:OFF|0)$/i.test(text);
}

function shown(variables: Named, ...names: readonly string[]): string {
  const there = names.filter((name) => variables.has(name));
  return there.map((name) => `${name} = ${variables.get(name)}`).join(', ') || `${names[0]} is not shown`;
}

function oneOf(
  variables: Named,
  name: string,
  good: readonly number[],
): Pick<StoreVerdict, 'holds' | 'found'> {
  const value = numberOf(variables.get(name));
  return { holds: value === undefined ? 'unknown' : good.includes(value), found: shown(variables, name) };
}

/** How long logs are kept, in seconds; 0 is for ever. Of the two settings the one in seconds goes first. */
function retentionSeconds(variables: Named): number | undefined {
  if (isOn(variables.get('binlog_expire_logs_auto_purge')) === false) return 0;
  const seconds = numberOf(variables.get('binlog_expire_logs_seconds'));
  const days = numberOf(variables.get('expire_logs_days'));
  return seconds || (days === undefined ? seconds : days * daySeconds);
}

const sizeLimits = ['max_binlog_total_size', 'binlog_space_limit'];

function retention(variables: Named): Pick<StoreVerdict, 'holds' | 'found'> {
  const limit = sizeLimits.find((name) => (numberOf(variables.get(name)) ?? 0) > 0);
  const seconds = retentionSeconds(variables);
  const found = shown(
    variables,
    'binlog_expire_logs_seconds',
    'expire_logs_days',
    'binlog_expire_logs_auto_purge',
  );
  if (seconds === undefined) return { holds: 'unknown', found };
  if (seconds > 0 && seconds < leastRetentionSeconds) return { holds: false, found };
  // How many days fit into it depends on what is written.
  if (limit !== undefined) return { holds: 'unknown', found: `${found}, ${shown(variables, limit)}` };
  return { holds: true, found };
}

/** What the variables say of the binary log, which recovery to a point in time needs, and of what a commit is worth. */
export function postureOf(variables: Named): StoreVerdict[] {
  const logs = isOn(variables.get('log_bin'));
  const verdicts: StoreVerdict[] = [
    { check: 'log_bin', holds: logs ?? 'unknown', found: shown(variables, 'log_bin') },
    // 3 is MariaDB's, and safer still.
    { check: 'flush_log_at_commit', ...oneOf(variables, 'innodb_flush_log_at_trx_commit', [1, 3]) },
  ];
  // Settings of a log that is not written say nothing.
  if (logs === false) return verdicts;
  return [
    ...verdicts,
    { check: 'sync_binlog', ...oneOf(variables, 'sync_binlog', [1]) },
    { check: 'binlog_retention', ...retention(variables) },
  ];
}

/** Whether the server refuses writes, of most users at least. */
export function isReadOnly(variables: Named): boolean | undefined {
  const states = ['read_only', 'super_read_only', 'innodb_read_only'].map((name) =>
    isOn(variables.get(name)),
  );
  if (states.includes(true)) return true;
  return states.includes(false) ? false : undefined;
}
