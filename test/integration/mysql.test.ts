import { execFileSync } from 'node:child_process';
import { chmodSync } from 'node:fs';
import { createConnection } from 'mysql2/promise';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import type { Trace } from '../../src/probes/connection.ts';
import { mysql } from '../../src/probes/stores/mysql-poll.ts';
import { grantStatements } from '../../src/probes/stores/store-grants.ts';
import type { StoreReport } from '../../src/probes/stores/store-report.ts';
import {
  hasMariadb,
  type Mariadb,
  pollMariadb,
  schemaStatements,
  startMariadb,
  targetOf,
  usersStatements,
} from '../mariadb.ts';
import { type PollTarget, pollOnce } from '../poll-store.ts';
import { type Certificates, makeCertificates } from './pull/certificates.ts';

const never = new AbortController().signal;

const pollStore = (
  server: Mariadb,
  target: Partial<PollTarget> = {},
): Promise<StoreReport & Pick<Trace, 'phasesMs'>> => pollOnce(mysql, targetOf(server, target), never);

const reasonOf = (pending: Promise<StoreReport>) =>
  pending.then(
    () => 'none',
    (thrown: unknown) => mysql.faultOf(thrown).reason,
  );

const holds = ({ checks }: StoreReport) =>
  Object.fromEntries(checks.map((verdict) => [verdict.check, verdict.holds]));

const foundOf = ({ checks }: StoreReport, check: string) =>
  checks.find((verdict) => verdict.check === check)?.found;

/** Runs the printed statements unchanged. */
async function grant(server: Mariadb, user: string): Promise<void> {
  const printed = grantStatements('mysql', user, ['svc_main']);
  for (const line of printed) if (line !== '') await server.sql(line.replace('<password>', 'swordfish'));
}

describe.skipIf(!hasMariadb)('a poll of a MariaDB', () => {
  let primary: Mariadb;
  let replica: Mariadb;
  let certificates: Certificates;
  let tls: { certFile: string; caFile: string };

  beforeAll(async () => {
    certificates = makeCertificates();
    const ca = certificates.authority('ca');
    const { cert, key } = certificates.signed('store', ca, { sans: 'DNS:db.test,IP:127.0.0.1', days: 1 });
    tls = { certFile: cert, caFile: ca.cert };
    chmodSync(certificates.folder, 0o755);
    chmodSync(key, 0o644);
    primary = await startMariadb(
      ...['--server-id=1', '--log-bin=bin', '--sync-binlog=1', '--binlog-expire-logs-seconds=604800'],
      ...[`--ssl-ca=${ca.cert}`, `--ssl-cert=${cert}`, `--ssl-key=${key}`, '--performance-schema=ON'],
    );
    replica = await startMariadb('--server-id=2');
    await primary.sql(schemaStatements('svc_main'));
    await primary.sql(usersStatements);
    await primary.sql(
      "CREATE USER copier@'%' IDENTIFIED BY 'x'; GRANT REPLICATION SLAVE ON *.* TO copier@'%'",
    );
    await primary.sql("CREATE USER nobody@'%' IDENTIFIED BY 'swordfish'");
    await grant(primary, 'svc_agent');
    await replica.sql(
      `CHANGE MASTER TO MASTER_HOST = '127.0.0.1', MASTER_PORT = ${primary.port}, MASTER_USER = 'copier',
        MASTER_PASSWORD = 'x', MASTER_CONNECT_RETRY = 1; START SLAVE`,
    );
    await caughtUp();
  });

  /** Waits until the replica has applied what the primary has written. */
  async function caughtUp(): Promise<void> {
    const [row] = await primary.sql('SHOW MASTER STATUS');
    await replica.sql(`SELECT MASTER_POS_WAIT('${row!.File}', ${row!.Position}, 30)`);
  }

  afterAll(() => Promise.all([primary?.stop(), replica?.stop()]));

  test('tells what it is and how it is', async () => {
    const [{ version, datadir, max }] = (await primary.sql(
      'SELECT VERSION() AS version, @@datadir AS datadir, @@max_connections AS max',
    )) as [{ version: string; datadir: string; max: number }];
    const found = await pollStore(primary);
    expect(found).toMatchObject({
      serverVersion: version,
      readOnly: false,
      replica: false,
      schemaVersion: '0.8',
      connectionsMax: max,
      identity: `1:${datadir}`,
      details: { flavour: 'MariaDB', binaryLog: { file: 'bin.000001' } },
    });
    expect(found.roundTripMs).toBeGreaterThan(0);
    expect(Object.keys(found.phasesMs)).toEqual(['resolve', 'connect', 'first_byte', 'queries']);
    expect(found.schemaUnknown).toBeUndefined();
    expect(found.walOldestUnarchivedMs).toBeUndefined();
  });

  test('a primary that is well set up passes every check that it has', async () => {
    expect(holds(await pollStore(primary))).toEqual({
      log_bin: true,
      sync_binlog: true,
      binlog_retention: true,
      flush_log_at_commit: true,
      storage_engine: true,
      open_transactions: 'unknown',
      lock_waits: 'unknown',
    });
  });

  test.each([
    ['sync_binlog', 'sync_binlog', '0', '1', false],
    ['sync_binlog', 'sync_binlog', '100', '1', false],
    ['binlog_retention', 'binlog_expire_logs_seconds', '604799', '604800', false],
    ['binlog_retention', 'binlog_expire_logs_seconds', '0', '604800', true],
    ['binlog_retention', 'expire_logs_days', '3', '7', false],
    ['flush_log_at_commit', 'innodb_flush_log_at_trx_commit', '2', '1', false],
    ['flush_log_at_commit', 'innodb_flush_log_at_trx_commit', '0', '1', false],
    ['flush_log_at_commit', 'innodb_flush_log_at_trx_commit', '3', '1', true],
  ])('%s with %s = %s, which was %s', async (check, setting, value, usual, expected) => {
    await primary.sql(`SET GLOBAL ${setting} = ${value}`);
    const changed = await pollStore(primary);
    await primary.sql(`SET GLOBAL ${setting} = ${usual}`);
    expect(holds(changed)[check]).toBe(expected);
    expect(foundOf(changed, check)).toContain(`${setting} = ${value}`);
    expect(holds(await pollStore(primary))[check]).toBe(true);
  });

  test('a table without transactions fails the check of engines', async () => {
    await primary.sql('CREATE TABLE svc_main.old (id INT) ENGINE = MyISAM');
    const changed = await pollStore(primary);
    await primary.sql('DROP TABLE svc_main.old');
    expect(holds(changed).storage_engine).toBe(false);
    expect(foundOf(changed, 'storage_engine')).toContain('1 of MyISAM');
  });

  test('connections are those that the server counts', async () => {
    const counted = async () => {
      const rows = await primary.sql("SHOW GLOBAL STATUS LIKE 'Threads_connected'");
      return Number(rows[0]!.Value);
    };
    // Connections of earlier checks may still be closing.
    const [seen, own] = await pollMariadb(
      async () => [(await pollStore(primary)).connections!, await counted()] as const,
      ([{ running, idle }, count]) => running! + idle! === count + 1,
    );
    expect(seen.running).toBeGreaterThanOrEqual(1);
    expect(own).toBeGreaterThan(0);
  });

  test('a server with nothing set has no binary log, so that there is nothing to say of how it is kept', async () => {
    await caughtUp();
    expect(holds(await pollStore(replica))).toEqual({
      log_bin: false,
      flush_log_at_commit: true,
      replica: true,
      storage_engine: true,
      open_transactions: 'unknown',
      lock_waits: 'unknown',
    });
  });

  describe('with PROCESS, sessions that wait for a lock are seen', () => {
    const nothing = 'no session waits for a lock';
    const locks = async () => foundOf(await pollStore(primary), 'lock_waits');
    const seen = async () =>
      foundOf(
        await pollMariadb(
          () => pollStore(primary),
          (report) => foundOf(report, 'lock_waits') !== nothing,
        ),
        'lock_waits',
      );
    /** Waits until the server no longer shows what is over. */
    const over = () =>
      pollMariadb(
        () => pollStore(primary),
        (report) =>
          foundOf(report, 'lock_waits') === nothing &&
          foundOf(report, 'open_transactions') === 'no transaction is idle',
      );
    const connected = (database: string) =>
      createConnection({ host: '127.0.0.1', port: primary.port, user: 'copier', password: 'x', database });
    beforeAll(async () => {
      await primary.sql("GRANT PROCESS ON *.* TO full@'%'; CREATE DATABASE elsewhere");
      for (const database of ['svc_main', 'elsewhere']) {
        await primary.sql(`CREATE TABLE ${database}.counted (id INT PRIMARY KEY, n INT)`);
        await primary.sql(`INSERT INTO ${database}.counted VALUES (1, 0)`);
        await primary.sql(`GRANT ALL ON ${database}.* TO copier@'%'`);
      }
    });
    afterAll(async () => {
      await primary.sql(
        "DROP TABLE svc_main.counted; DROP DATABASE elsewhere; REVOKE PROCESS ON *.* FROM full@'%'",
      );
    });

    test('for the lock of a backup', async () => {
      expect(await locks()).toBe(nothing);
      await primary.sql('FLUSH TABLES WITH READ LOCK');
      const writer = await connected('svc_main');
      const written = writer.query('UPDATE counted SET n = n + 1');
      expect(await seen()).toMatch(/^1 session has waited for \d+ s \((?:backup|global read) lock\)$/);
      await primary.sql('UNLOCK TABLES');
      await written;
      await writer.end();
      await over();
    });

    test('for a row, but not those of another database', async () => {
      const holding = async (database: string) => {
        const [holder, waiter] = [await connected(database), await connected(database)];
        await holder.query('BEGIN');
        await holder.query('UPDATE counted SET n = n + 1');
        const waits = waiter.query('UPDATE counted SET n = n + 1');
        return async () => {
          await holder.query('COMMIT');
          await waits;
          await holder.end();
          await waiter.end();
        };
      };
      const isWaiting = async () => {
        const [row] = await primary.sql(
          "SELECT COUNT(*) AS waits FROM information_schema.INNODB_TRX WHERE trx_state = 'LOCK WAIT'",
        );
        return Number(row!.waits) === 1;
      };
      const releaseOther = await holding('elsewhere');
      await pollMariadb(isWaiting, (is) => is);
      expect(await locks()).toBe(nothing);
      await releaseOther();
      await over();
      const release = await holding('svc_main');
      expect(await seen()).toMatch(/^1 session has waited for \d+ s \(row lock\)$/);
      await release();
      await over();
    });
  });

  test('with PROCESS, transactions that are left open are named: idle ones and prepared ones', async () => {
    // The statement in the check's advice is run unchanged.
    const [, grant] =
      /; run (GRANT PROCESS .*)$/.exec(foundOf(await pollStore(primary), 'open_transactions') ?? '') ?? [];
    expect(grant).toBe("GRANT PROCESS ON *.* TO 'full'@'%'");
    await primary.sql(grant!);
    expect(foundOf(await pollStore(primary), 'open_transactions')).toBe('no transaction is idle');
    await primary.sql('START TRANSACTION');
    await primary.sql('SELECT * FROM svc_main.schema_version');
    const [own] = await primary.sql('SELECT CONNECTION_ID() AS id');
    // The server refreshes that table ten times a second.
    const found = await pollMariadb(
      () => pollStore(primary),
      (seen) => foundOf(seen, 'open_transactions') !== 'no transaction is idle',
    );
    expect(foundOf(found, 'open_transactions')).toMatch(
      new RegExp(`^session ${own!.id} has been idle for \\d+ s$`),
    );
    await primary.sql('COMMIT');
    await primary.sql("XA START 'left'; INSERT INTO svc_main.schema_version (db_name) VALUES ('x')");
    await primary.sql("XA END 'left'; XA PREPARE 'left'");
    await pollMariadb(
      () => pollStore(primary),
      (seen) => foundOf(seen, 'open_transactions') !== 'no transaction is idle',
    );
    await primary.sql("XA ROLLBACK 'left'");
    await pollMariadb(
      () => pollStore(primary),
      (seen) => holds(seen).open_transactions === true,
    );
    await primary.sql("REVOKE PROCESS ON *.* FROM full@'%'");
  });

  test('a transaction is idle since its last statement, not since its start', async () => {
    await primary.sql("GRANT PROCESS ON *.* TO 'full'@'%'");
    await primary.sql('START TRANSACTION');
    await primary.sql('SELECT * FROM svc_main.schema_version');
    // The transaction works for three seconds.
    await primary.sql('DO SLEEP(3)');
    const secondsNow = async () => Number((await primary.sql('SELECT UNIX_TIMESTAMP() AS now'))[0]!.now);
    const busyUntil = await secondsNow();
    const found = foundOf(await pollStore(primary), 'open_transactions');
    const [, idle] = /^session \d+ has been idle for (\d+) s$/.exec(found ?? '') ?? [];
    expect(Number(idle)).toBeLessThanOrEqual((await secondsNow()) - busyUntil + 1);
    await primary.sql('COMMIT');
    await primary.sql("REVOKE PROCESS ON *.* FROM full@'%'");
  });

  test('a copy of the binary log as long as the server’s own holds everything', async () => {
    const { log, directories } = await pollStore(primary);
    const [row] = await primary.sql('SHOW MASTER STATUS');
    const [{ gtids, id }] = (await primary.sql('SELECT @@gtid_binlog_pos AS gtids, @@server_id AS id')) as [
      { gtids: string; id: number },
    ];
    expect(log).toEqual({
      archived: row!.File,
      archivedBytes: row!.Position,
      archivedGtids: String(gtids).replace(/-\d+-/, '-'),
      position: `${row!.File}:${row!.Position}`,
      isArchivedWhole: true,
      leavesOut: [],
      writer: id,
    });
    const [{ data }] = (await primary.sql('SELECT @@datadir AS data')) as [{ data: string }];
    expect(directories).toEqual([
      { holds: 'data', path: data },
      { holds: 'binary log', path: data.replace(/\/$/, '') },
    ]);
  });

  test('read_only shows', async () => {
    await replica.sql('SET GLOBAL read_only = 1');
    expect((await pollStore(replica)).readOnly).toBe(true);
    await replica.sql('SET GLOBAL read_only = 0');
    expect((await pollStore(replica)).readOnly).toBe(false);
  });

  test('a replica works, then its SQL thread stops, then its IO thread is broken', async () => {
    const works = async () => {
      const rows = await replica.sql('SHOW SLAVE STATUS');
      const { Slave_IO_Running, Slave_SQL_Running } = rows[0]!;
      return `${Slave_IO_Running} ${Slave_SQL_Running}`;
    };
    await caughtUp();
    const copying = await pollStore(replica);
    expect(copying).toMatchObject({
      replica: true,
      details: { sources: [{ secondsBehind: 0 }], follows: [`127.0.0.1:${primary.port}`] },
    });
    expect((await pollStore(primary)).details).not.toHaveProperty('follows', expect.anything());
    expect(holds(copying).replica).toBe(true);

    await replica.sql('STOP SLAVE SQL_THREAD');
    const stopped = await pollStore(replica);
    expect(holds(stopped).replica).toBe(false);
    expect(foundOf(stopped, 'replica')).toBe('IO thread Yes, SQL thread No, unknown s behind');

    await replica.sql("STOP SLAVE; CHANGE MASTER TO MASTER_PASSWORD = 'wrong'; START SLAVE");
    const broken = await pollMariadb(
      () => pollStore(replica),
      (found) => foundOf(found, 'replica')?.includes('error 1045') === true,
    );
    expect(holds(broken).replica).toBe(false);
    expect(foundOf(broken, 'replica')).toContain('IO thread Connecting, SQL thread Yes');
    expect(broken.details).toMatchObject({ sources: [{ secondsBehind: null }] });

    await replica.sql("STOP SLAVE; CHANGE MASTER TO MASTER_PASSWORD = 'x'; START SLAVE");
    await pollMariadb(works, (state) => state === 'Yes Yes');
    await pollMariadb(
      () => pollStore(replica),
      (found) => holds(found).replica === true,
    );
  });

  test('the statement that stopped a replica is not shown, for it may hold data', async () => {
    await replica.sql("INSERT INTO svc_main.executions VALUES (77, 'here first')");
    await primary.sql("INSERT INTO svc_main.executions VALUES (77, 'private words')");
    const stopped = await pollMariadb(
      () => pollStore(replica),
      (found) => holds(found).replica === false,
    );
    expect(foundOf(stopped, 'replica')).toContain('error 1062');
    expect(JSON.stringify(stopped)).not.toContain('private words');
    await replica.sql('DELETE FROM svc_main.executions WHERE shard_id = 77; START SLAVE');
    await pollMariadb(
      () => pollStore(replica),
      (found) => holds(found).replica === true,
    );
  });

  test('a user with the printed grants sees all of it, and none of the data', async () => {
    const found = await pollStore(primary, { user: 'svc_agent' });
    expect(holds(found)).toEqual(holds(await pollStore(primary)));
    expect(found).toMatchObject({ schemaVersion: '0.8', replica: false, readOnly: false });
    await caughtUp();
    const copy = await pollStore(replica, { user: 'svc_agent' });
    expect(holds(copy)).toMatchObject({ replica: true, storage_engine: true });

    const read = await pollStore(primary, { user: 'svc_agent', schemaQuery: 'SELECT data FROM executions' });
    expect(read.schemaUnknown).toContain('SELECT command denied');
    const others = pollStore(primary, { user: 'svc_agent', database: 'mysql' });
    expect(await reasonOf(others)).toBe('denied');
  });

  test('the printed right on a database is on that one alone, not on those with a similar name', async () => {
    await primary.sql('CREATE DATABASE svcxmain');
    expect(await reasonOf(pollStore(primary, { user: 'svc_agent', database: 'svcxmain' }))).toBe('denied');
  });

  test('a user without rights opens no database; of the server, what rights would show is unknown', async () => {
    expect(await reasonOf(pollStore(primary, { user: 'nobody' }))).toBe('denied');
    const found = await pollStore(primary, { user: 'nobody', database: undefined });
    expect(holds(found)).toEqual({
      log_bin: true,
      sync_binlog: true,
      binlog_retention: true,
      flush_log_at_commit: true,
      replica: 'unknown',
      open_transactions: 'unknown',
      lock_waits: 'unknown',
    });
    expect(found.replica).toBeUndefined();
    expect(found.startedAtMs).toBeDefined();
    expect(found.details!.binaryLog).toBeUndefined();
  });

  test('with a right on single tables only, engines are unknown', async () => {
    await primary.sql("GRANT SELECT ON svc_main.schema_version TO nobody@'%'");
    const found = await pollStore(primary, { user: 'nobody' });
    await primary.sql("REVOKE SELECT ON svc_main.schema_version FROM nobody@'%'");
    expect(found.schemaVersion).toBe('0.8');
    expect(foundOf(found, 'storage_engine')).toBe('the user does not see every table');
  });

  test('nothing of a check stays behind, and the server counts none as aborted', async () => {
    const aborted = async () => {
      const rows = await primary.sql(
        "SHOW GLOBAL STATUS WHERE Variable_name IN ('Aborted_clients', 'Aborted_connects')",
      );
      return rows.map(({ Value }) => Value);
    };
    const sessions = () => primary.sql("SELECT id FROM information_schema.PROCESSLIST WHERE user = 'full'");
    const before = await aborted();
    for (let count = 0; count < 5; count++) await pollStore(primary);
    await pollMariadb(sessions, (rows) => rows.length === 0);
    expect(await aborted()).toEqual(before);
  });

  test('names itself to the server', async () => {
    await primary.sql("GRANT SELECT ON performance_schema.* TO full@'%'");
    const found = await pollStore(primary, {
      schemaQuery: `SELECT attr_value FROM performance_schema.session_connect_attrs
        WHERE attr_name = 'program_name' AND processlist_id = CONNECTION_ID()`,
    });
    expect(found.schemaVersion).toBe('svc-agent');
  });

  test('writes nothing, whatever the configuration asks for', async () => {
    const found = await pollStore(primary, { schemaQuery: "UPDATE schema_version SET curr_version = '9'" });
    expect(found.schemaUnknown).toContain('READ ONLY');
    const two = await pollStore(primary, { schemaQuery: "SELECT '1'; DROP TABLE schema_version" });
    expect(two.schemaUnknown).toContain('syntax');
    expect((await pollStore(primary)).schemaVersion).toBe('0.8');
  });

  test('waits for nobody: a locked table leaves the version unknown', async () => {
    await primary.sql('LOCK TABLES svc_main.schema_version WRITE');
    const found = await pollStore(primary);
    await primary.sql('UNLOCK TABLES');
    expect(found.schemaUnknown).toContain('Lock wait timeout');
    expect(found.serverVersion).toContain('MariaDB');
  });

  test('has the server end a statement that takes longer than the check may', async () => {
    const found = await pollStore(primary, { schemaQuery: 'SELECT SLEEP(600)', timeoutMs: 50 });
    expect(found.schemaUnknown).toContain('max_statement_time');
  });

  test('speaks TLS, judges the certificate, and tells its end', async () => {
    const { caFile, certFile } = tls;
    const end = execFileSync('openssl', ['x509', '-in', certFile, '-noout', '-enddate'], {
      encoding: 'utf8',
    });
    const byAddress = await pollStore(primary, { tls: { caFile } });
    expect(byAddress.tlsNotAfterMs).toBe(Date.parse(end.replace('notAfter=', '').trim()));
    expect(Object.keys(byAddress.phasesMs)).toEqual(['resolve', 'connect', 'tls', 'first_byte', 'queries']);
    const ciphered = await pollStore(primary, {
      tls: { caFile, serverName: 'db.test' },
      schemaQuery:
        "SELECT VARIABLE_VALUE FROM information_schema.SESSION_STATUS WHERE VARIABLE_NAME = 'SSL_VERSION'",
    });
    expect(ciphered.schemaVersion).toMatch(/^TLSv1\.[23]$/);
    expect((await pollStore(primary, { tls: { insecure: true } })).schemaVersion).toBe('0.8');
    expect(await reasonOf(pollStore(primary, { tls: {} }))).toBe('tls_untrusted');
    expect(await reasonOf(pollStore(primary, { tls: { caFile, serverName: 'other.test' } }))).toBe(
      'tls_hostname',
    );
    expect(await reasonOf(pollStore(primary, { tls: { caFile: `${caFile}.gone` } }))).toBe('credentials');
    expect(await reasonOf(pollStore(replica, { tls: { caFile } }))).toBe('tls');
  });

  test('a restart shows as a later start of the same data', async () => {
    const before = await pollStore(replica);
    expect((await pollStore(replica)).startedAtMs).toBe(before.startedAtMs);
    // The server knows its start time in whole seconds.
    await pollMariadb(
      () => replica.sql('SELECT UNIX_TIMESTAMP() AS now'),
      ([row]) => row!.now * 1000 > before.startedAtMs!,
    );
    await replica.restart();
    const after = await pollStore(replica);
    expect(after.startedAtMs).toBeGreaterThan(before.startedAtMs!);
    expect(after.identity).toBe(before.identity);
    expect(after.identity).not.toBe((await pollStore(primary)).identity);
  });
});
