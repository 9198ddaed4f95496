import { execFileSync } from 'node:child_process';
import { cpSync, mkdirSync, readdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, onTestFinished, test } from 'vitest';
import { replayBinlog } from '../../src/probes/backups/log-chain.ts';
import { verifyBackup } from '../../src/probes/backups/verify.ts';
import { readArchive } from '../archived-log.ts';
import { newFolder } from '../folder.ts';
import { hasMariadb, type Mariadb, startMariadb } from '../mariadb.ts';

// Servers use the same names for the files of their logs, and after a reset a server begins with the first name again. Applied to
// such a dump, the log has rows that the dump lacks, and lacks others.
test.skipIf(!hasMariadb)('a log in which the dump was not taken is not applied to it', async () => {
  const place = newFolder();
  const start = async (id: number) => {
    const server = await startMariadb('--log-bin=bin', `--server-id=${id}`);
    onTestFinished(() => server.stop());
    await server.sql('CREATE DATABASE svc');
    await server.sql('CREATE TABLE svc.executions (i INT PRIMARY KEY) ENGINE = InnoDB');
    return server;
  };
  let nth = 0;
  const write = async (server: Mariadb, rows: number) => {
    for (let n = 0; n < rows; n++) await server.sql(`INSERT INTO svc.executions VALUES (${nth++})`);
  };
  const dump = async (server: Mariadb) => {
    const options = ['--no-defaults', `--socket=${join(server.folder, 's')}`, '--user=root'];
    const path = join(place, 'svc.sql');
    writeFileSync(
      path,
      execFileSync('mariadb-dump', [...options, '--single-transaction', '--master-data=2', 'svc']),
    );
    return (await verifyBackup({ path, level: 'full', bytesPerSecond: 1e12 })).content!.binlog!;
  };
  /** How far the dump can be replayed with the files of a server's log, all of which are closed. */
  const replay = async (at: Awaited<ReturnType<typeof dump>>, server: Mariadb) => {
    await server.sql('FLUSH BINARY LOGS');
    const logs = join(place, `logs-${nth}`);
    mkdirSync(logs, { recursive: true });
    const data = join(server.folder, 'data');
    for (const name of readdirSync(data))
      if (/^bin\.\d+$/.test(name)) cpSync(join(data, name), join(logs, name));
    return replayBinlog(at, (await readArchive(logs, 'binlog', Date.now() + 1000, [at])).log);
  };

  const [own, other] = [await start(1), await start(2)];
  await write(own, 3);
  await write(other, 20);
  const at = await dump(own);
  await write(own, 20);
  expect(await replay(at, own)).toMatchObject({ isEnough: true, ends: undefined });
  const strange = { isEnough: false, ends: expect.stringContaining('is of another server') };
  // At the same position another log has a transaction of its own, or the middle of an event.
  expect(await replay(at, other)).toMatchObject(strange);
  expect(await replay({ ...at, position: at.position + 1 }, own)).toMatchObject(strange);
  await own.sql('RESET MASTER');
  await write(own, 40);
  expect(await replay(at, own)).toMatchObject(strange);
});
