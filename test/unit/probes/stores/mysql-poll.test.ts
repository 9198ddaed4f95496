import { describe, expect, test } from 'vitest';
import { createMysqlPoll } from '../../../../src/probes/stores/mysql-poll.ts';
import type { MysqlRow } from '../../../../src/probes/stores/mysql-questions.ts';
import type {
  DatabaseReport,
  PollRequest,
  ServerReport,
} from '../../../../src/probes/stores/store-report.ts';
import { type Reply, scripted, syntaxError, variables } from './mysql-scripted.ts';

type Seen = ServerReport & DatabaseReport;

/** One complete poll of a server that calls itself MySQL before the login. */
async function polled(
  { run }: Pick<ReturnType<typeof scripted>, 'run'>,
  over: Partial<PollRequest> = {},
): Promise<Seen> {
  const poll = createMysqlPoll(run, '8.4.3', { timeoutMs: 10_000, databases: [] });
  const { server, database } = await poll({ database: 'svc', schema: {}, server: true, ...over });
  return { ...server!, ...database, checks: [...server!.checks, ...database.checks] };
}

/** Rows from the manual of MySQL 8.4, for what differs from MariaDB. */
const variables84 = {
  binlog_expire_logs_auto_purge: 'ON',
  binlog_expire_logs_seconds: '2592000',
  datadir: '/var/lib/mysql/',
  innodb_flush_log_at_trx_commit: '1',
  innodb_read_only: 'OFF',
  log_bin: 'ON',
  max_connections: '151',
  read_only: 'OFF',
  server_id: '1',
  server_uuid: '3e11fa47-71ca-11e1-9e33-c80aa9429562',
  super_read_only: 'OFF',
  sync_binlog: '1',
};
const status: MysqlRow[] = [
  { name: 'Threads_connected', value: '9', now: '1700001000' },
  { name: 'Threads_running', value: '2', now: '1700001000' },
  { name: 'Uptime', value: '400', now: '1700001000' },
  { name: 'Max_used_connections', value: '12', now: '1700001000' },
];
const replicaStatus = {
  Replica_IO_State: 'Waiting for source to send event',
  Source_Host: 'db-1',
  Replica_IO_Running: 'Yes',
  Replica_SQL_Running: 'Yes',
  Last_Errno: '0',
  Last_Error: '',
  Seconds_Behind_Source: '3',
  Last_IO_Errno: '0',
  Last_SQL_Errno: '0',
  Channel_Name: '',
};
const denied = (what: string): Reply => ({
  errno: 1227,
  sqlState: '42000',
  sqlMessage: `Access denied; you need (at least one of) the ${what} privilege(s) for this operation`,
});

type Answers = (readonly [RegExp, Reply])[];

const mysql84: Answers = [
  [/^SELECT VERSION/, [{ version: '8.4.3', comment: 'MySQL Community Server - GPL' }]],
  [/^SET SESSION max_execution_time = 10000$/, []],
  [/^SET SESSION (?:TRANSACTION|lock)/, []],
  [/^SHOW GLOBAL VARIABLES/, variables(variables84)],
  [/performance_schema\.global_status/, status],
  [/^SHOW REPLICA STATUS$/, []],
  [/^SHOW BINARY LOG STATUS$/, [{ File: 'binlog.000009', Position: '157' }]],
  [/^USE `svc`$/, []],
  [/schema_version WHERE db_name = 'svc'$/, [{ curr_version: '0.10' }]],
  [/information_schema\.TABLES/, [{ engine: 'InnoDB', tables: '21' }]],
  [/SCHEMA_PRIVILEGES/, [{ PRIVILEGE_TYPE: 'SELECT' }]],
  [/information_schema\.INNODB_TRX/, []],
];

const pollStore = (answers: Answers, ...others: Answers): Promise<Seen> =>
  polled(scripted([...others, ...answers]));

const holds = ({ checks }: Seen) => Object.fromEntries(checks.map((result) => [result.check, result.holds]));

describe('a poll of a MySQL 8.4', () => {
  test('takes one round trip, and more only while it learns what the server knows', async () => {
    const server = scripted(mysql84);
    await polled(server);
    expect(server.roundTrips).toBe(1);
  });

  test('does not ask again, over the same connection, for what was refused', async () => {
    const server = scripted([[/^SHOW REPLICA STATUS$/, denied('REPLICATION CLIENT')], ...mysql84]);
    const poll = createMysqlPoll(server.run, '8.4.3', { timeoutMs: 10_000, databases: [] });
    const request = { database: 'svc', schema: {}, server: true };
    await poll(request);
    expect(server.roundTrips).toBe(2);
    const { server: second } = await poll(request);
    expect(server.roundTrips).toBe(3);
    expect(second!.checks).toContainEqual({
      check: 'replica',
      holds: 'unknown',
      found: expect.stringContaining('REPLICATION CLIENT'),
    });
  });

  test('of a proxy that takes one statement at a time asks one by one', async () => {
    const { run } = scripted(mysql84);
    const poll = createMysqlPoll(
      (statements) =>
        statements.length === 1
          ? run(statements)
          : Promise.resolve({
              results: [],
              refusal: { errno: 8130, sqlState: 'HY000', message: 'multi-statement', thrown: new Error() },
            }),
      '8.4.3',
      { timeoutMs: 10_000, databases: [] },
    );
    const { server, database } = await poll({ database: 'svc', schema: {}, server: true });
    expect([server!.serverVersion, database.schemaVersion]).toEqual(['8.4.3', '0.10']);
  });

  test('sends a configured statement so that it can only be one', async () => {
    const server = scripted([[/^PREPARE/, []], [/^EXECUTE/, [{ any: '7' }]], ...mysql84]);
    const seen = await polled(server, { schema: { query: "SELECT 'it''s' WHERE {database} <> ''; DROP" } });
    expect(seen.schemaVersion).toBe('7');
    expect(server.asked).toContain("PREPARE svc_agent FROM 'SELECT ''it''''s'' WHERE ''svc'' <> ''''; DROP'");
  });

  test('finds what its own statements and names tell', async () => {
    expect(await pollStore(mysql84)).toMatchObject({
      serverVersion: '8.4.3',
      readOnly: false,
      replica: false,
      schemaVersion: '0.10',
      connections: { running: 2, idle: 7 },
      connectionsMax: 151,
      startedAtMs: 1_700_000_600_000,
      identity: '3e11fa47-71ca-11e1-9e33-c80aa9429562',
      details: {
        flavour: 'MySQL',
        binaryLog: { file: 'binlog.000009', position: 157 },
        connectionsMaxUsed: 12,
      },
    });
  });

  test('passes every check', async () => {
    expect(holds(await pollStore(mysql84))).toEqual({
      log_bin: true,
      sync_binlog: true,
      binlog_retention: true,
      flush_log_at_commit: true,
      storage_engine: true,
      open_transactions: true,
      lock_waits: true,
    });
  });

  test('asks nothing that only MariaDB knows', async () => {
    const server = scripted(mysql84);
    await polled(server);
    expect(
      server.asked.filter((sql) => /ALL SLAVES|max_statement_time|SHOW MASTER|SHOW SLAVE/.test(sql)),
    ).toEqual([]);
  });

  test.each(['super_read_only', 'read_only', 'innodb_read_only'])('%s makes it read-only', async (name) => {
    const changed = variables({ ...variables84, [name]: 'ON' });
    expect((await pollStore(mysql84, [/^SHOW GLOBAL VARIABLES/, changed])).readOnly).toBe(true);
  });

  test.each<[string, Partial<typeof replicaStatus> | { Seconds_Behind_Source: null }, boolean, string]>([
    ['works', {}, true, 'IO thread Yes, SQL thread Yes, 3 s behind'],
    ['is behind by nobody knows how much', { Seconds_Behind_Source: null }, false, 'unknown s behind'],
    ['does not read', { Replica_IO_Running: 'No' }, false, 'IO thread No'],
    ['tries to connect', { Replica_IO_Running: 'Connecting', Last_IO_Errno: '2003' }, false, 'error 2003'],
    ['does not apply', { Replica_SQL_Running: 'No', Last_SQL_Errno: '1062' }, false, 'error 1062'],
    ['is behind by 0', { Seconds_Behind_Source: '0' }, true, ', 0 s behind'],
    ['is behind by five minutes', { Seconds_Behind_Source: '300' }, true, ', 300 s behind'],
    ['is behind by more', { Seconds_Behind_Source: '301' }, false, ', 301 s behind'],
  ])('a replica that %s', async (_, change, expected, found) => {
    const rows = [{ ...replicaStatus, ...change }];
    const seen = await pollStore(mysql84, [/^SHOW REPLICA STATUS$/, rows]);
    expect(seen.replica).toBe(true);
    expect(seen.checks).toContainEqual({
      check: 'replica',
      holds: expected,
      found: expect.stringContaining(found),
    });
  });

  test('of two sources one that fails is enough', async () => {
    const rows = [
      { ...replicaStatus, Channel_Name: 'east' },
      { ...replicaStatus, Channel_Name: 'west', Replica_IO_Running: 'No' },
    ];
    const seen = await pollStore(mysql84, [/^SHOW REPLICA STATUS$/, rows]);
    expect(holds(seen).replica).toBe(false);
    expect(seen.checks.find(({ check }) => check === 'replica')?.found).toContain('west: IO thread No');
  });
});

describe('older servers of MySQL', () => {
  const mysql57: Answers = [
    [/^SELECT VERSION/, [{ version: '5.7.44-log', comment: 'MySQL Community Server (GPL)' }]],
    [/^SHOW REPLICA|^SHOW BINARY LOG STATUS/, syntaxError],
    [
      /^SHOW SLAVE STATUS$/,
      [{ Slave_IO_Running: 'Yes', Slave_SQL_Running: 'Yes', Seconds_Behind_Master: '0' }],
    ],
    [/^SHOW MASTER STATUS$/, [{ File: 'mysql-bin.000003', Position: '4' }]],
    ...mysql84,
  ];
  const days = (expire_logs_days: string) => {
    const { binlog_expire_logs_seconds: _, binlog_expire_logs_auto_purge: __, ...rest } = variables84;
    return variables({ ...rest, expire_logs_days });
  };

  test('are asked by the older names', async () => {
    expect(await pollStore(mysql57)).toMatchObject({
      replica: true,
      details: { binaryLog: { file: 'mysql-bin.000003' } },
    });
  });

  test.each([
    ['0', true],
    ['6', false],
    ['7', true],
  ])('keep logs by days: %s', async (value, expected) => {
    expect(holds(await pollStore(mysql57, [/^SHOW GLOBAL VARIABLES/, days(value)])).binlog_retention).toBe(
      expected,
    );
  });

  test('show their counters elsewhere: in the older table, or without the clock', async () => {
    const off: Reply = { errno: 3167, sqlState: 'HY000', sqlMessage: 'The feature is disabled' };
    const older = await pollStore(
      mysql57,
      [/performance_schema/, []],
      [/information_schema\.GLOBAL_STATUS/, status],
    );
    expect(older.startedAtMs).toBe(1_700_000_600_000);
    const shown = variables({ Threads_connected: '4', Threads_running: '6', Uptime: '400' });
    const least = await pollStore(
      mysql57,
      [/performance_schema|information_schema\.GLOBAL/, off],
      [/^SHOW GLOBAL STATUS/, shown],
    );
    expect(least.startedAtMs).toBeUndefined();
    expect(least.connections).toEqual({ running: 4, idle: 0 });
  });
});

describe('what the rights or the version keep back', () => {
  test('is unknown, and the store is up', async () => {
    const seen = await pollStore(
      mysql84,
      [/^SHOW REPLICA STATUS$/, denied('SUPER, REPLICATION CLIENT')],
      [/^SHOW BINARY LOG STATUS$/, denied('SUPER, REPLICATION CLIENT')],
      [/^SHOW GLOBAL/, []],
      [/INNODB_TRX/, denied('PROCESS')],
      [/information_schema\.TABLES|SCHEMA_PRIVILEGES/, []],
      [/global_status|GLOBAL_STATUS/, []],
      [/^USE/, { errno: 1142, sqlState: '42000', sqlMessage: 'Access denied for table schema_version' }],
    );
    expect(holds(seen)).toEqual({
      log_bin: 'unknown',
      sync_binlog: 'unknown',
      binlog_retention: 'unknown',
      flush_log_at_commit: 'unknown',
      replica: 'unknown',
      storage_engine: 'unknown',
      open_transactions: 'unknown',
      lock_waits: 'unknown',
    });
    expect(seen).toMatchObject({
      serverVersion: '8.4.3',
      schemaUnknown: expect.stringContaining('Access denied'),
    });
    for (const fact of [
      'readOnly',
      'replica',
      'identity',
      'startedAtMs',
      'connections',
      'connectionsMax',
    ] as const) {
      expect(seen[fact]).toBeUndefined();
    }
  });

  test('a refusal is not asked again in other words', async () => {
    const server = scripted([[/^SHOW REPLICA STATUS$/, denied('REPLICATION CLIENT')], ...mysql84]);
    await polled(server);
    expect(server.asked).not.toContain('SHOW SLAVE STATUS');
  });

  test.each([
    [1142, '42000'],
    [1143, '42000'],
    [1054, '42S22'],
    [1046, '3D000'],
    [1205, 'HY000'],
    [1792, '25006'],
    [3024, 'HY000'],
  ])('of the schema, error %s', async (errno, sqlState) => {
    const reply = { errno, sqlState, sqlMessage: 'the words of the server' };
    const seen = await pollStore(mysql84, [/db_name/, reply]);
    expect(seen.schemaVersion).toBeUndefined();
    expect(seen.schemaUnknown).toBe('the words of the server');
  });

  test.each([
    ['a table that its engine has lost', 1932, '42S02'],
    ['a damaged table', 1034, 'HY000'],
    ['a disk that fails', 1030, 'HY000'],
    ['a query that is killed', 1317, '70100'],
  ])('but %s is a failure', async (_, errno, sqlState) => {
    const reply = { errno, sqlState, sqlMessage: 'broken' };
    await expect(pollStore(mysql84, [/db_name/, reply])).rejects.toMatchObject({ errno });
  });

  test.each([
    [
      'the table',
      { errno: 1146, sqlState: '42S02', sqlMessage: "Table 'x' doesn't exist" },
      "Table 'x' doesn't exist",
    ],
    ['the row', [], 'schema_version has no row for svc'],
    ['the version', [{ curr_version: null }], 'schema_version has no row for svc'],
  ] as const)('what is missing of the schema is a finding: %s', async (_, reply, schemaMissing) => {
    expect(await pollStore(mysql84, [/db_name/, reply])).toMatchObject({ schemaMissing });
  });

  test('a missing database is a failure', async () => {
    const reply = { errno: 1049, sqlState: '42000', sqlMessage: "Unknown database 'svc'" };
    await expect(pollStore(mysql84, [/^USE/, reply])).rejects.toMatchObject({ errno: 1049 });
  });

  test('without a database nothing is said of one', async () => {
    const server = scripted(mysql84);
    const seen = await polled(server, { database: undefined, schema: undefined });
    expect(server.asked.filter((sql) => /^USE|schema_version|TABLES/.test(sql))).toEqual([]);
    expect(seen.schemaUnknown).toBeUndefined();
    expect(Object.keys(holds(seen))).not.toContain('storage_engine');
  });
});

describe('what it is', () => {
  test('a cluster of Galera is known by its own id, whichever node answers', async () => {
    const uuid = '6a4bd5a0-0000-11ee-a1b2-0242ac120002';
    const node: Answers = [
      [/performance_schema/, [...status, { name: 'wsrep_cluster_state_uuid', value: uuid, now: '1' }]],
    ];
    expect((await pollStore(mysql84, ...node)).identity).toBe(uuid);
    const none = '00000000-0000-0000-0000-000000000000';
    const alone: Answers = [
      [/performance_schema/, [...status, { name: 'wsrep_cluster_state_uuid', value: none, now: '1' }]],
    ];
    expect((await pollStore(mysql84, ...alone)).identity).toBe(variables84.server_uuid);
  });

  test('a table of an unknown engine does not pass', async () => {
    const rows = [
      { engine: 'InnoDB', tables: '20' },
      { engine: null, tables: '1' },
    ];
    expect(holds(await pollStore(mysql84, [/information_schema\.TABLES/, rows])).storage_engine).toBe(false);
  });

  test('no table at all says nothing', async () => {
    expect(holds(await pollStore(mysql84, [/information_schema\.TABLES/, []])).storage_engine).toBe(
      'unknown',
    );
  });
});
