import { cpSync, mkdirSync, readdirSync } from 'node:fs';
import { join } from 'node:path';
import { expect, onTestFinished, test } from 'vitest';
import { readArchive } from '../archived-log.ts';
import { newFolder } from '../folder.ts';
import { hasMariadb, type Mariadb, startMariadb } from '../mariadb.ts';
import { until } from '../until.ts';

// A replica closes the files of its own log by its own clock, however far it is behind, and without log_slave_updates it
// logs nothing of what it applies.
test.skipIf(!hasMariadb).each([
  ['--log-slave-updates', 'its newest commit'],
  ['--skip-log-slave-updates', 'nothing'],
])('the log of a replica with %s shows %s', async (setting, shown) => {
  const start = async (...settings: string[]) => {
    const server = await startMariadb('--log-bin=bin', ...settings);
    onTestFinished(() => server.stop());
    return server;
  };
  const primary = await start('--server-id=1');
  const replica = await start('--server-id=2', setting);
  await primary.sql('CREATE DATABASE svc; CREATE TABLE svc.executions (i INT PRIMARY KEY)');
  // The statement is from an hour ago: it is replicated with the time of its session.
  const [then] = await primary.sql('SELECT UNIX_TIMESTAMP() - 3600 AS seconds');
  const atSeconds = Number(then!.seconds);
  await primary.sql(`SET timestamp = ${atSeconds}; INSERT INTO svc.executions VALUES (1)`);
  await replica.sql(
    `CHANGE MASTER TO MASTER_HOST = '127.0.0.1', MASTER_PORT = ${primary.port}, MASTER_USER = 'root', MASTER_USE_GTID = slave_pos; START SLAVE`,
  );
  await until('the row is there', async () => {
    const found = await replica.sql('SELECT i FROM svc.executions').catch(() => []);
    return found.length > 0;
  });
  await replica.sql('STOP SLAVE');

  /** The newest time that the closed files of a server's log show, in seconds. */
  const newestOf = async (server: Mariadb) => {
    await server.sql('FLUSH BINARY LOGS');
    const logs = join(newFolder(), 'logs');
    mkdirSync(logs);
    const names = readdirSync(join(server.folder, 'data')).filter((name) => /^bin\.\d+$/.test(name));
    for (const name of names.sort().slice(0, -1)) cpSync(join(server.folder, 'data', name), join(logs, name));
    const { log } = await readArchive(logs, 'binlog', Date.now() + 1000);
    expect(log.placed.map(({ segment }) => segment.content?.fault)).toEqual([undefined]);
    const newestMs = log.placed.at(-1)!.segment.content!.newestMs;
    return newestMs && newestMs / 1000;
  };
  expect(await newestOf(replica)).toBe(shown !== 'nothing' ? atSeconds : undefined);
  await primary.sql('SET timestamp = DEFAULT');
  expect(await newestOf(primary)).toBeGreaterThan(atSeconds);
});
