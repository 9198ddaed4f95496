import { execFileSync } from 'node:child_process';
import { existsSync, writeFileSync } from 'node:fs';
import { createServer, type Server } from 'node:http';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { hasMariadb, type Mariadb, schemaStatements, startMariadb, usersStatements } from '../mariadb.ts';
import { command, folder } from './process.ts';
import { drillOfMain, recoverMain } from './recover-round.ts';

// The full round on a real MariaDB, through the built program: back up, destroy, recover, and the rows are back.
const hasPrograms = ['/usr/bin/mysql', '/usr/bin/mariadb-dump'].every((path) => existsSync(path));

describe.skipIf(!hasMariadb || !hasPrograms)('database-corruption on MariaDB', () => {
  let server: Mariadb;
  let history: Server;
  const place = folder();
  const dumps = join(place.path, 'dumps');
  const file = join(place.path, 'agent.yaml');
  /** The history role is down while this file is there. */
  const stopped = join(place.path, 'stopped');

  beforeAll(async () => {
    execFileSync('mkdir', ['-m', '777', dumps]);
    history = createServer((_, response) =>
      response.end(JSON.stringify({ ok: !existsSync(stopped), msg: '' })),
    );
    await new Promise<void>((resolve) => history.listen(0, '127.0.0.1', resolve));
    const { port } = history.address() as { port: number };
    server = await startMariadb('--log-bin=bin', '--server-id=1');
    await server.sql(schemaStatements('svc_main'));
    await server.sql(usersStatements);
    await server.sql('INSERT INTO svc_main.executions SELECT seq, SHA1(seq) FROM svc_main.seq_1_to_5000');
    await server.sql(
      'CREATE PROCEDURE svc_main.prune() DELETE FROM svc_main.executions WHERE shard_id > 1000000',
    );
    writeFileSync(
      file,
      `stateDirectory: ${join(place.path, 'state')}
roles: [history]
services: {history: {health: 'http://127.0.0.1:${port}/health'}}
stores:
  - {name: main, kind: mysql, address: '127.0.0.1:${server.port}', user: full, password: swordfish,
     databases: {persistence: svc_main}, schema: {persistence: '0.8'}}
backups:
  - name: nightly
    store: main
    database: persistence
    type: full
    source: {files: {directory: ${dumps}, pattern: '\\.sql\\.gz$', settle: 1ms}}
    integrity: {level: full}
recovery:
  allowExecute: true
  commands: {stopServices: [touch, ${stopped}], startServices: [rm, ${stopped}]}
`,
    );
  }, 120_000);
  afterAll(async () => {
    await server?.stop();
    history?.close();
    place.remove();
  });

  const recover = () => recoverMain(file);
  const contents = async () => ({
    rows: await server.sql('SELECT COUNT(*) AS n, SUM(CRC32(data)) AS sum FROM svc_main.executions'),
    routines: await server.sql(
      "SELECT ROUTINE_NAME AS name FROM information_schema.ROUTINES WHERE ROUTINE_SCHEMA = 'svc_main'",
    ),
  });

  test('what was destroyed is back as it was, the schema is proved, and the drill is recorded', async () => {
    const whole = await contents();
    const dump =
      `mariadb-dump --no-defaults --host=127.0.0.1 --port=${server.port} --user=root --single-transaction ` +
      `--routines --triggers --events --hex-blob svc_main | gzip > ${dumps}/a.sql.gz`;
    const dumped = command([
      ...['backup', 'run', '--job', 'nightly', '-c', file, '--', 'bash', '-o', 'pipefail', '-c', dump],
    ]);
    expect(dumped.status, dumped.stderr).toBe(0);

    await server.sql(
      'DELETE FROM svc_main.executions WHERE shard_id > 10; DROP TABLE svc_main.schema_version',
    );
    await server.sql('DROP PROCEDURE svc_main.prune');
    const { status, output } = await recover();
    expect({ status, output }).toMatchObject({ status: 0 });
    expect(await contents()).toEqual(whole);
    expect(output).toMatch(/ok +the schema has the version that the service needs/);
    expect(existsSync(stopped)).toBe(false);
    expect(drillOfMain(file)).toMatchObject({
      procedure: 'database-corruption',
    });
  });

  test('a database that is gone as a whole is created again', async () => {
    const whole = await contents();
    await server.sql('DROP DATABASE svc_main');
    const { status, output } = await recover();
    expect({ status, output }).toMatchObject({ status: 0 });
    expect(await contents()).toEqual(whole);
  });

  test('a restore that the server refuses is no success, and the next run goes on with it', async () => {
    await server.sql('TRUNCATE svc_main.executions');
    await server.sql("REVOKE ALL ON *.* FROM root@'127.0.0.1'");
    const refused = await recover();
    expect(refused).toMatchObject({
      status: 1,
      output: expect.stringMatching(/Restore persistence of main/),
    });
    expect(existsSync(stopped)).toBe(true);
    await server.sql("GRANT ALL ON *.* TO root@'127.0.0.1'");
    const { status, output } = await recover();
    expect({ status, output }).toMatchObject({ status: 0 });
    expect(Number((await contents()).rows[0]!.n)).toBe(5000);
  });
});
