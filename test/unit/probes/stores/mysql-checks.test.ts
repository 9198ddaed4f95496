import { describe, expect, test } from 'vitest';
import {
  directoriesOf,
  isReadOnly,
  lockWaitsCheck,
  mysqlChecks,
  sourcesOf,
  standbysCheck,
  transactionsCheck,
} from '../../../../src/probes/stores/mysql-checks.ts';

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
    // The setting in seconds takes precedence; if it is 0, the setting in days is used.
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

describe('copies that commits wait for', () => {
  const semi = (role: string, clients: string, state: string) => ({
    [`rpl_semi_sync_${role}_clients`]: clients,
    [`rpl_semi_sync_${role}_status`]: state,
  });
  const node = (status: string, ready = 'ON', state = 'Synced') => ({
    wsrep_local_state_comment: state,
    wsrep_cluster_state_uuid: '6d1c7e4a-0000-11ee-8000-000000000001',
    wsrep_cluster_status: status,
    wsrep_cluster_size: '3',
    wsrep_ready: ready,
  });
  const on = { rpl_semi_sync_source_enabled: 'ON' };
  test.each<[string, Record<string, string>, Record<string, string>, boolean | 'unknown' | undefined]>([
    ['none of them', { rpl_semi_sync_master_enabled: 'OFF' }, semi('master', '0', 'OFF'), undefined],
    ['a replica that answers', on, semi('source', '1', 'ON'), true],
    ['none that answers', on, semi('source', '0', 'ON'), false],
    ['commits that no longer wait', on, semi('source', '1', 'OFF'), false],
    ['older names', { rpl_semi_sync_master_enabled: 'ON' }, semi('master', '0', 'OFF'), false],
    ['a status that is hidden', on, {}, 'unknown'],
    [
      'a replica that is itself set up as a source',
      { ...on, read_only: 'ON' },
      semi('source', '0', 'OFF'),
      undefined,
    ],
    ['a node of Galera', {}, node('Primary'), true],
    ['one that gives a copy to another', {}, node('Primary', 'ON', 'Donor/Desynced'), false],
    ['one that catches up', {}, node('Primary', 'ON', 'Joined'), false],
    ['a state that is hidden', {}, node('Primary', 'ON', ''), 'unknown'],
    ['one that lost the others', {}, node('non-Primary'), false],
    ['one that is not ready', {}, node('Primary', 'OFF'), false],
    [
      'Galera that is there and not in use',
      {},
      { ...node('Disconnected'), wsrep_cluster_state_uuid: '' },
      undefined,
    ],
  ])('%s', (_, variables, status, holds) => {
    const [check] = standbysCheck(new Map(Object.entries(variables)), new Map(Object.entries(status)));
    expect(check?.holds).toBe(holds);
  });
});

describe('nodes of Galera', () => {
  test.each<[string, string, boolean | 'unknown', string]>([
    ['gcomm://', '1', true, 'nodes: 1'],
    ['gcomm://a:4567,b:4567,c:4567', '3', true, 'nodes: 3'],
    ['gcomm://a,b,c?gmcast.segment=1,2', '2', false, 'nodes: 2 of 3 that wsrep_cluster_address names'],
    ['gcomm://one-name-for-all', '3', true, 'nodes: 3'],
    ['gcomm://a,b', '', 'unknown', 'wsrep_cluster_size is hidden'],
  ])('%s, %s of them there', (address, size, holds, found) => {
    const status = {
      wsrep_cluster_state_uuid: '6d1c7e4a-0000-11ee-8000-000000000001',
      wsrep_cluster_status: 'Primary',
      wsrep_cluster_size: size,
    };
    const checks = standbysCheck(
      new Map([['wsrep_cluster_address', address]]),
      new Map(Object.entries(status)),
    );
    expect(checks.find(({ check }) => check === 'nodes')).toEqual({ check: 'nodes', holds, found });
  });
});

describe('waits for locks', () => {
  test.each<[string, [string, string][], boolean, string, number?]>([
    ['none', [], true, 'no session waits for a lock'],
    ['ten seconds', [['row', '10']], true, '1 session has waited for 10 s (row lock)', 10],
    ['a second more', [['row', '11']], false, '1 session has waited for 11 s (row lock)', 11],
    [
      'many',
      [
        ['row', '2'],
        ['global read', '95'],
      ],
      false,
      '2 sessions wait for locks, one of them for 95 s (global read lock)',
      95,
    ],
  ])('%s', (_, rows, holds, found, lastsS) => {
    const seen = rows.map(([lock, age]) => ({ kind: 'wait', what: `Waiting for ${lock} lock`, age }));
    const idle = { kind: 'transaction', what: null, age: '95' };
    expect(lockWaitsCheck({ rows: [idle, ...seen] }, 'a@%')).toEqual({
      ...{ check: 'lock_waits', holds, found, lastsS },
    });
  });

  test('without the right to see them they are unknown', () => {
    expect(lockWaitsCheck({ unknown: 'Access denied', errno: 1227 }, 'a@%')).toEqual({
      check: 'lock_waits',
      holds: 'unknown',
      found: "Access denied; run GRANT PROCESS ON *.* TO 'a'@'%'",
    });
  });
});

describe('open transactions', () => {
  test.each<[string, [string | null, string | null][], boolean, string]>([
    ['none', [], true, 'no transaction is idle'],
    ['a quarter of an hour', [['7', '900']], true, 'session 7 has been idle for 900 s'],
    ['a second more', [['7', '901']], false, 'session 7 has been idle for 901 s'],
    ['a prepared one', [['0', '5000']], false, 'a prepared transaction has been idle for 5000 s'],
    [
      'many',
      [
        ['1', '9'],
        ['2', '8'],
        ['3', '7'],
        ['4', '6'],
        ['5', null],
      ],
      true,
      'session 1 has been idle for 9 s, session 2 has been idle for 8 s, session 3 has been idle for 7 s and 2 more',
    ],
  ])('%s', (_, rows, holds, found) => {
    const seen = rows.map(([id, age]) => ({ kind: 'transaction', id, age }));
    const wait = { kind: 'wait', id: '9', age: '5000' };
    expect(transactionsCheck({ rows: [...seen, wait] }, 'a@%')).toEqual({
      check: 'open_transactions',
      holds,
      found,
    });
  });

  test('without the right to see them they are unknown', () => {
    expect(transactionsCheck({ unknown: 'a lock', errno: 1205 }, 'a@%')).toEqual({
      check: 'open_transactions',
      holds: 'unknown',
      found: 'a lock',
    });
    expect(transactionsCheck({ unknown: 'Access denied', errno: 1227 }, "o'x@y@10.0.0.%").found).toBe(
      "Access denied; run GRANT PROCESS ON *.* TO 'o''x@y'@'10.0.0.%'",
    );
  });
});

test('directories are those of the data and of the binary log', () => {
  const variables = new Map([
    ['datadir', '/var/lib/mysql/'],
    ['log_bin_basename', '/srv/binlog/bin'],
  ]);
  expect(directoriesOf(variables)).toEqual([
    { holds: 'data', path: '/var/lib/mysql/' },
    { holds: 'binary log', path: '/srv/binlog' },
  ]);
  expect(directoriesOf(new Map([['log_bin_basename', '']]))).toEqual([]);
});

test.each([
  ['of MySQL 8.0.22', [{ Source_UUID: 'a' }, { Source_UUID: 'b' }], ['a', 'b']],
  ['of an older one', [{ Master_UUID: 'a' }], ['a']],
  ['of MariaDB, which does not know it', [{ Master_Server_Id: '1' }], undefined],
  ['that was never connected', [{ Source_UUID: '' }], undefined],
  [
    'of MariaDB, with its address',
    [{ Master_Host: 'DB-1.test', Master_Port: '3306', Master_Server_Id: '1' }],
    ['db-1.test:3306'],
  ],
  ['of MariaDB, over IPv6', [{ Master_Host: '::1', Master_Port: '3307' }], ['[::1]:3307']],
  [
    'of MySQL, with both',
    [{ Source_UUID: 'a', Source_Host: '10.0.0.1', Source_Port: '3306' }],
    ['a', '10.0.0.1:3306'],
  ],
  ['whose address is not set', [{ Master_Host: '', Master_Port: '3306' }], undefined],
  ['of no replica', [], undefined],
])('the names of the source %s', (_, rows, expected) => {
  expect(sourcesOf({ rows })).toEqual(expected);
});
