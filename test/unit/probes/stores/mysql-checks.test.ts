import { describe, expect, test } from 'vitest';
import { isReadOnly, mysqlChecks } from '../../../../src/probes/stores/mysql-checks.ts';

const verdictOf = (check: string, values: Readonly<Record<string, string>>) =>
  mysqlChecks(new Map(Object.entries({ log_bin: 'ON', ...values }))).find(
    (verdict) => verdict.check === check,
  );

const week = '604800';

describe('how long binary logs are kept', () => {
  test.each<[Record<string, string>, boolean | 'unknown']>([
    [{ binlog_expire_logs_seconds: week }, true],
    [{ binlog_expire_logs_seconds: '604799' }, false],
    [{ binlog_expire_logs_seconds: '0' }, true],
    [{ expire_logs_days: '7.000000' }, true],
    [{ expire_logs_days: '6.999' }, false],
    [{ expire_logs_days: '0' }, true],
    // The one in seconds goes first; where it is 0 the one in days counts.
    [{ binlog_expire_logs_seconds: '3600', expire_logs_days: '30' }, false],
    [{ binlog_expire_logs_seconds: '0', expire_logs_days: '3' }, false],
    [{ binlog_expire_logs_seconds: '0', expire_logs_days: '0' }, true],
    // MySQL 8.0.29: nothing is purged by itself.
    [{ binlog_expire_logs_seconds: '60', binlog_expire_logs_auto_purge: 'OFF' }, true],
    [{ binlog_expire_logs_seconds: '60', binlog_expire_logs_auto_purge: 'ON' }, false],
    // MariaDB 11.4 and Percona also purge by size.
    [{ binlog_expire_logs_seconds: week, max_binlog_total_size: '1073741824' }, 'unknown'],
    [{ binlog_expire_logs_seconds: week, binlog_space_limit: '1' }, 'unknown'],
    [{ binlog_expire_logs_seconds: week, max_binlog_total_size: '0' }, true],
    [{ binlog_expire_logs_seconds: '60', max_binlog_total_size: '1' }, false],
    [{}, 'unknown'],
    [{ binlog_expire_logs_seconds: 'soon' }, 'unknown'],
  ])('%o: %s', (values, expected) => {
    expect(verdictOf('binlog_retention', values)?.holds).toBe(expected);
  });

  test('what was found names the settings', () => {
    expect(
      verdictOf('binlog_retention', { binlog_expire_logs_seconds: '60', expire_logs_days: '0' })?.found,
    ).toBe('binlog_expire_logs_seconds = 60, expire_logs_days = 0');
    expect(verdictOf('sync_binlog', {})).toEqual({
      check: 'sync_binlog',
      holds: 'unknown',
      found: 'sync_binlog is hidden',
    });
  });
});

describe('whether it refuses writes', () => {
  test.each<[Record<string, string>, boolean | undefined]>([
    [{ read_only: 'OFF' }, false],
    [{ read_only: '0' }, false],
    [{ read_only: 'ON' }, true],
    [{ read_only: '1' }, true],
    // MariaDB 12
    [{ read_only: 'NO_LOCK' }, true],
    [{ read_only: 'OFF', super_read_only: 'ON' }, true],
    [{ read_only: 'OFF', innodb_read_only: 'ON' }, true],
    [{ read_only: '' }, undefined],
    [{}, undefined],
  ])('%o: %s', (values, expected) => {
    expect(isReadOnly(new Map(Object.entries(values)))).toBe(expected);
  });
});
