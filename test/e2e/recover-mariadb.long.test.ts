import { execFileSync } from 'node:child_process';
import { copyFileSync, existsSync, mkdirSync, readdirSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { newFolder } from '../folder.ts';
import { hasMariadb, type Mariadb, schemaStatements, startMariadb, usersStatements } from '../mariadb.ts';
import { until } from '../until.ts';
import { dumpsIn, logIn, mariadbStore, recoverMain, takeBackup, writeRecovery } from './recover-round.ts';
import { type Role, startRole } from './role.ts';

// The whole procedure on a real MariaDB, through the built program: back up, destroy, recover, and the rows are back.
const hasPrograms = ['/usr/bin/mysql', '/usr/bin/mariadb-dump'].every((path) => existsSync(path));

describe.skipIf(!hasMariadb || !hasPrograms)('database-corruption on MariaDB', () => {
  let server: Mariadb;
  let role: Role;
  const place = newFolder(afterAll);
  const dumps = join(place, 'dumps');
  const logs = join(place, 'logs');
  const file = join(place, 'agent.yaml');

  beforeAll(async () => {
    execFileSync('mkdir', ['-m', '777', dumps]);
    mkdirSync(logs);
    role = await startRole(place);
    server = await startMariadb('--log-bin=bin', '--server-id=1', '--binlog-format=ROW');
    await server.sql(schemaStatements('svc_main'));
    await server.sql(`${usersStatements} GRANT PROCESS ON *.* TO full@'%';`);
    await server.sql('INSERT INTO svc_main.executions SELECT seq, SHA1(seq) FROM svc_main.seq_1_to_5000');
    await server.sql(
      'CREATE PROCEDURE svc_main.prune() DELETE FROM svc_main.executions WHERE shard_id > 1000000',
    );
    writeRecovery(place, role, {
      store: mariadbStore(server.port),
      backups: dumpsIn(dumps, { isSql: true, more: ', integrity: {level: full}' }) + logIn(logs, 'binlog'),
    });
  });
  afterAll(async () => {
    await server?.stop();
    role?.remove();
  });

  const recover = (...args: string[]) => recoverMain(file, ...args);
  const contents = async () => ({
    rows: await server.sql('SELECT COUNT(*) AS n, SUM(CRC32(data)) AS sum FROM svc_main.executions'),
    routines: await server.sql(
      "SELECT ROUTINE_NAME AS name FROM information_schema.ROUTINES WHERE ROUTINE_SCHEMA = 'svc_main'",
    ),
  });

  const dumpTo = (name: string) => {
    const dump =
      `mariadb-dump --no-defaults --host=127.0.0.1 --port=${server.port} --user=root --single-transaction ` +
      `--master-data=2 --routines --triggers --events --hex-blob svc_main | gzip > ${dumps}/${name}.sql.gz`;
    takeBackup(file, 'bash', '-o', 'pipefail', '-c', dump);
  };
  /** Copies the closed files of the log, as the planned job does. */
  const archiveLog = async () => {
    await server.sql('FLUSH BINARY LOGS');
    const [first] = await server.sql('SHOW BINARY LOGS');
    const args = ['--no-defaults', '-h127.0.0.1', `-P${server.port}`, '-uroot', '--read-from-remote-server'];
    execFileSync('mysqlbinlog', [...args, '--raw', '--to-last-log', first!.Log_name], { cwd: logs });
    // The newest file is still open.
    rmSync(join(logs, readdirSync(logs).sort().at(-1)!));
  };
  const second = async () => {
    const now = (await server.sql('SELECT UNIX_TIMESTAMP() AS s'))[0]!.s as number;
    await until(
      'the next second of the server',
      async () => ((await server.sql('SELECT UNIX_TIMESTAMP() AS s'))[0]!.s as number) > now + 1,
    );
    return new Date((now + 1) * 1000).toISOString();
  };

  test('what was destroyed is back as it was, with what the log holds behind the dump', async () => {
    dumpTo('a');
    await server.sql('INSERT INTO svc_main.executions SELECT seq, SHA1(seq) FROM svc_main.seq_5001_to_6000');
    await server.sql('USE svc_main; CREATE TABLE later (i INT PRIMARY KEY); INSERT INTO later VALUES (1)');
    const whole = await contents();
    await archiveLog();

    await server.sql('SET sql_log_bin = 0');
    await server.sql(
      'DELETE FROM svc_main.executions WHERE shard_id > 10; DROP TABLE svc_main.schema_version',
    );
    await server.sql('DROP PROCEDURE svc_main.prune; CREATE TABLE svc_main.stray (i INT)');
    await server.sql('SET sql_log_bin = 1; USE mysql');
    const { status, output } = await recover();
    expect({ status, output }).toMatchObject({ status: 0 });
    expect(await contents()).toEqual(whole);
    expect(await server.sql('SELECT i FROM svc_main.later')).toEqual([{ i: 1 }]);
    expect(output).toMatch(/not in the backup, and will be in the safety copy only: later, stray/);
    expect(output).toMatch(/Restores up to .* The dump, then \d files? of the binary log/);
    expect(output).toMatch(/ok +the schema has the version that the service needs/);
    expect(await role.isUp()).toBe(true);
    // What was there before is in the safety copy.
    const [copy] = readdirSync(join(dumps, 'before-recovery'));
    const text = execFileSync('gzip', ['-dc', join(dumps, 'before-recovery', copy!)], { encoding: 'utf8' });
    expect(text).toContain('CREATE TABLE `stray`');
    expect(text).toContain('-- Dump completed');
  });

  test('a bad statement and what came after it are left out by --until', async () => {
    dumpTo('b');
    await server.sql("INSERT INTO svc_main.executions VALUES (7001, 'good')");
    const at = await second();
    await server.sql('DELETE FROM svc_main.executions WHERE shard_id > 100');
    await archiveLog();
    const refused = await recover('--until', '2020-01-01T00:00:00Z');
    expect(refused.output).toMatch(/the newest backup is of .*, after --until: name an older one/);
    expect(await role.isUp()).toBe(true);
    const { status, output } = await recover('--until', at);
    expect({ status, output }).toMatchObject({ status: 0 });
    expect(output).toContain(`Restores what was written before ${at}`);
    expect(Number((await contents()).rows[0]!.n)).toBe(6001);
  });

  test('a log of which a statement would be left out is refused before anything is stopped', async () => {
    dumpTo('c');
    await server.sql('USE mysql; CREATE TABLE svc_main.unseen (i INT PRIMARY KEY)');
    await archiveLog();
    const { status, output } = await recover();
    expect({ status, output }).toMatchObject({
      status: 1,
      output: expect.stringMatching(/would be left out: CREATE TABLE svc_main\.unseen/),
    });
    expect(await role.isUp()).toBe(true);
    dumpTo('d');
    await archiveLog();
  });

  test('a log that ends with the database dropped is refused, and that is left out by --until', async () => {
    dumpTo('e');
    await server.sql("USE svc_main; INSERT INTO executions VALUES (8001, 'good'); USE mysql");
    const whole = await contents();
    await second();
    await server.sql('DROP DATABASE svc_main');
    await archiveLog();
    const ahead = await recover('--until', new Date().toISOString());
    expect(ahead.output).toMatch(
      /the log only reaches to .*, which is before --until|in the log svc_main is dropped/,
    );
    const refused = await recover();
    expect(refused).toMatchObject({
      status: 1,
      output: expect.stringMatching(/in the log svc_main is dropped at .*: leave that out with --until \S+Z/),
    });
    expect(await role.isUp()).toBe(true);
    const [, at = ''] = /leave that out with --until (\S+Z)/.exec(refused.output) ?? [];
    const { status, output } = await recover('--until', at);
    expect({ status, output }).toMatchObject({ status: 0 });
    expect(await contents()).toEqual(whole);
    // From now on the log contains that restore, too.
    await server.sql("USE svc_main; INSERT INTO executions VALUES (8002, 'later'); USE mysql");
    const later = await contents();
    await archiveLog();
    await server.sql('SET sql_log_bin = 0; DELETE FROM svc_main.executions; SET sql_log_bin = 1');
    const again = await recover();
    expect(again).toMatchObject({
      status: 0,
      output: expect.stringMatching(/dropped at \S+ and created again, as an earlier restore does/),
    });
    expect(await contents()).toEqual(later);
    const moved = join(place, 'moved.sql.gz');
    copyFileSync(join(dumps, 'e.sql.gz'), moved);
    const early = await recover('--backup', moved, '--until', '2020-01-01T00:00:00Z');
    expect(early.output).toMatch(/the dump has what was written at .*, and --until is not after that/);
    expect(await role.isUp()).toBe(true);
  });

  test('a session in the database refuses the restore', async () => {
    await server.sql('USE svc_main');
    const { status, output } = await recover();
    expect({ status, output }).toMatchObject({ status: 1 });
    expect(output).toMatch(
      /FAILED +nobody is connected to the database: root from localhost; end these sessions/,
    );
    expect(output).toContain('The services are stopped. To start them:');
    expect(output).not.toContain('may be restored in part');
    await server.sql('USE mysql');
  });

  test('a database that is gone as a whole is created again', async () => {
    const whole = await contents();
    await server.sql('DROP DATABASE svc_main');
    const { status, output } = await recover();
    expect({ status, output }).toMatchObject({ status: 0 });
    expect(await contents()).toEqual(whole);
  });

  test('rights that are missing are refused before anything is stopped', async () => {
    await server.sql("REVOKE ALL ON *.* FROM root@'127.0.0.1'");
    const refused = await recover();
    expect(refused).toMatchObject({ status: 1, output: expect.stringMatching(/FAILED +root may log in/) });
    expect(await role.isUp()).toBe(true);
    await server.sql("GRANT ALL ON *.* TO root@'127.0.0.1'");
  });
});
