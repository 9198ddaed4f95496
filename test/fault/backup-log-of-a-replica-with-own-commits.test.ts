import { cpSync, mkdirSync, readdirSync } from 'node:fs';
import { join } from 'node:path';
import { expect, onTestFinished, test } from 'vitest';
import { replayBinlog } from '../../src/probes/backups/log-chain.ts';
import type { LogWriter } from '../../src/probes/stores/store-report.ts';
import { readArchive } from '../archived-log.ts';
import { newFolder } from '../folder.ts';
import { hasMariadb, startMariadb } from '../mariadb.ts';
import { until } from '../until.ts';

const hourS = 3600;

/** A primary, and a replica with its own log, to which the primary's row of an hour ago has come. */
async function twoServers(...settings: string[]) {
  const start = async (...own: string[]) => {
    const server = await startMariadb('--log-bin=bin', ...own);
    onTestFinished(() => server.stop());
    return server;
  };
  const primary = await start('--server-id=1');
  const replica = await start('--server-id=2', ...settings);
  await primary.sql('CREATE DATABASE svc; CREATE TABLE svc.executions (i INT PRIMARY KEY)');
  const [then] = await primary.sql(`SELECT UNIX_TIMESTAMP() - ${hourS} AS seconds`);
  const atSeconds = Number(then!.seconds);
  const insert = (row: number, agoS = hourS) =>
    primary.sql(
      `SET timestamp = ${atSeconds + hourS - agoS}; INSERT INTO svc.executions VALUES (${row}); SET timestamp = DEFAULT`,
    );
  const arrived = (row: number) =>
    until(`row ${row} is there`, async () => {
      const found = await replica.sql(`SELECT i FROM svc.executions WHERE i = ${row}`).catch(() => []);
      return found.length > 0;
    });
  await insert(1);
  await replica.sql(
    `CHANGE MASTER TO MASTER_HOST = '127.0.0.1', MASTER_PORT = ${primary.port}, MASTER_USER = 'root', MASTER_USE_GTID = slave_pos; START SLAVE`,
  );
  await arrived(1);
  return {
    ...{ primary, replica, atSeconds, insert, arrived },
    /** How far the closed files of the replica's log reach for a store, by the clock of the servers, in seconds. */
    async replayed(writer: LogWriter | undefined, isOfPrimary: boolean) {
      await replica.sql('FLUSH BINARY LOGS');
      const logs = join(newFolder(), 'logs');
      mkdirSync(logs);
      const data = join(replica.folder, 'data');
      for (const name of readdirSync(data).filter((each) => /^bin\.\d+$/.test(each)))
        cpSync(join(data, name), join(logs, name));
      const at = { file: 'bin.000001', position: 4 };
      const { log } = await readArchive(logs, 'binlog', Date.now() + 1000, [at]);
      const { newestMs, isEnough, ends } = replayBinlog(at, { ...log, writer }, { isOfPrimary });
      return { newestS: newestMs && newestMs / 1000, isEnough, ends };
    },
  };
}

// A replica has stopped, or logs nothing of what it applies, and somebody commits something on the replica itself: that shows nothing
// of what the primary has committed meanwhile.
test.skipIf(!hasMariadb).each([
  ['--log-slave-updates', true],
  ['--skip-log-slave-updates', false],
])('a commit on a replica with %s does not move the recovery point', async (setting, logsUpdates) => {
  const { replica, atSeconds, replayed } = await twoServers(setting);
  await replica.sql('STOP SLAVE; CREATE DATABASE local; CREATE TABLE local.notes (i INT)');
  // The store is the primary.
  const ofPrimary = await replayed(1, false);
  expect(ofPrimary.newestS).toBe(logsUpdates ? atSeconds : undefined);
  // The replica was promoted, and is the store.
  expect((await replayed(2, false)).newestS).toBeGreaterThan(atSeconds + hourS - 1);
  // A cluster of which each node commits.
  expect((await replayed('cluster', false)).newestS).toBeGreaterThan(atSeconds + hourS - 1);
  // The store was never asked: of a dump of the primary the log must be that of the primary.
  expect(await replayed(undefined, false)).toMatchObject({
    isEnough: false,
    ends: expect.stringContaining('it may be of a replica'),
  });
  expect(await replayed(undefined, true)).toMatchObject({ isEnough: true });
});

test.skipIf(!hasMariadb)('a replica that was told to skip transactions ends the log there', async () => {
  const { primary, replica, atSeconds, insert, arrived, replayed } = await twoServers('--log-slave-updates');
  await insert(2, hourS - 10);
  await arrived(2);
  await replica.sql('STOP SLAVE');
  await insert(3, hourS - 20);
  const [position] = await primary.sql('SELECT @@gtid_binlog_pos AS gtids');
  await replica.sql(`SET GLOBAL gtid_slave_pos = '${position!.gtids}'; START SLAVE`);
  await insert(4, 0);
  await arrived(4);
  expect(await replayed(1, false)).toEqual({
    newestS: atSeconds + 10,
    isEnough: true,
    ends: 'bin.000001 is of a replica, and lacks transactions of its source: their numbers have a gap',
  });
});

test.skipIf(!hasMariadb)(
  'each domain of a primary shows only its own transactions on a replica',
  async () => {
    const { primary, replica, atSeconds, arrived, replayed } = await twoServers('--log-slave-updates');
    // The other domain may have waited meanwhile.
    await primary.sql(
      `SET timestamp = ${atSeconds + 100}; SET gtid_domain_id = 7; INSERT INTO svc.executions VALUES (2)`,
    );
    await arrived(2);
    await replica.sql('STOP SLAVE');
    expect((await replayed(1, false)).newestS).toBe(atSeconds);
  },
);
