import { execFileSync } from 'node:child_process';
import { copyFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, onTestFinished, test } from 'vitest';
import type { BinlogPlace } from '../../src/probes/backups/formats/segments.ts';
import { replayBinlog } from '../../src/probes/backups/log-chain.ts';
import { mysql } from '../../src/probes/stores/mysql-poll.ts';
import type { ArchivedLog } from '../../src/probes/stores/store-report.ts';
import { readArchive } from '../archived-log.ts';
import { newFolder } from '../folder.ts';
import { hasMariadb, type Mariadb, startMariadb, targetOf } from '../mariadb.ts';
import { pollOnce } from '../poll-store.ts';

/** A server whose log has just begun, and an archive of closed files into which a job copies what is not there yet. */
async function open() {
  const server = await startMariadb('--log-bin=bin', '--server-id=1', '--binlog-format=ROW');
  onTestFinished(() => server.stop());
  await server.sql('CREATE DATABASE svc');
  await server.sql('CREATE TABLE svc.executions (i INT PRIMARY KEY) ENGINE = InnoDB');
  await server.sql('RESET MASTER');
  const archive = newFolder();
  return {
    server,
    archive,
    async archiveFirst() {
      await server.sql('FLUSH BINARY LOGS');
      copyFileSync(join(server.folder, 'data', 'bin.000001'), join(archive, 'bin.000001'));
    },
  };
}

const write = (server: Mariadb, from: number, to: number) =>
  server.sql(`INSERT INTO svc.executions SELECT seq FROM svc.seq_${from}_to_${to}`);

const positionOf = async (server: Mariadb): Promise<BinlogPlace> => {
  const [row] = (await server.sql('SHOW MASTER STATUS')) as [{ File: string; Position: number }];
  return { file: row.File, position: Number(row.Position) };
};

describe.skipIf(!hasMariadb)('a binary log that was begun again (RESET MASTER)', () => {
  test('the file of the log before, with the name of the one that the server writes, does not hold what it writes', async () => {
    const { server, archive, archiveFirst } = await open();
    const nowMs = Date.now() + 60_000;
    const wholeUntilMs = nowMs;
    const reached = async () => {
      const target = targetOf(server, {
        user: 'root',
        password: undefined,
        database: 'svc',
        databases: ['svc'],
      });
      const { log } = await pollOnce(mysql, target, new AbortController().signal);
      expect(log).toMatchObject({ archived: 'bin.000001', isArchivedWhole: true });
      const said: ArchivedLog = { ...log, wholeUntilMs };
      const { artifacts } = await readArchive(archive, 'binlog', nowMs, [], said);
      return artifacts.at(-1)!.endMs === wholeUntilMs;
    };
    await write(server, 1, 100);
    copyFileSync(join(server.folder, 'data', 'bin.000001'), join(archive, 'bin.000001'));
    expect(await reached()).toBe(true);
    // A log of other transactions that is as long.
    await server.sql('RESET MASTER');
    await write(server, 101, 150);
    await write(server, 151, 200);
    expect(await reached()).toBe(false);
    await archiveFirst();
    await server.sql('RESET MASTER');
    expect(await reached()).toBe(false);
    await write(server, 201, 210);
    expect(await reached()).toBe(false);
  });

  test('a backup from before the first transaction was not taken in the log of which the same can be said', async () => {
    const { server, archive, archiveFirst } = await open();
    const at = await positionOf(server);
    const nowMs = Date.now() + 60_000;
    const isEnoughFor = async (endMs: number) =>
      replayBinlog(at, (await readArchive(archive, 'binlog', nowMs, [at])).log, { endMs });
    await write(server, 1, 100);
    await archiveFirst();
    const takenMs = Date.now();
    expect(await isEnoughFor(takenMs)).toMatchObject({ isEnough: true });
    await server.sql('RESET MASTER');
    await archiveFirst();
    const options = ['--no-defaults', '--force-if-open', '--stop-position=300', join(archive, 'bin.000001')];
    const text = execFileSync('mariadb-binlog', options, { encoding: 'utf8' });
    const [, y, mo, d, time] = /^#(\d\d)(\d\d)(\d\d) +(\d+:\d\d:\d\d) server id/m.exec(text)!;
    const begunMs = new Date(`20${y}-${mo}-${d}T${time!.padStart(8, '0')}`).getTime();
    expect(await isEnoughFor(begunMs - 2000)).toMatchObject({ isEnough: true });
    expect(await isEnoughFor(begunMs - 2001)).toMatchObject({
      isEnough: false,
      ends: 'bin.000001 was begun after the backup: the log was reset since',
    });
  });
});
