import { readFileSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { expect, onTestFinished, test } from 'vitest';
import { replayWal } from '../../src/probes/backups/log-chain.ts';
import { parseReport } from '../../src/probes/backups/tool-reports.ts';
import { readArchive } from '../archived-log.ts';
import { isInstalled } from '../installed.ts';
import { createPgBackRest } from '../pgbackrest.ts';
import { hasPostgres, postgresFolder, printedBy, startPostgres } from '../postgres.ts';

// After `stanza-upgrade`, pgBackRest archives into another folder. An entry that still names the folder of the cluster before
// shows segments of the same names.
test.skipIf(!hasPostgres || !isInstalled('pgbackrest', ['version']))(
  'a backup of a new cluster is not restored with the log of the cluster before',
  async () => {
    const base = postgresFolder();
    onTestFinished(() => rmSync(base, { recursive: true, force: true }));
    const tool = createPgBackRest(base);
    const run = (...args: string[]) => printedBy(tool.tool(...args));
    const start = async (initdb: readonly string[] = []) => {
      const server = await startPostgres({ archiveCommand: tool.archiveCommand, initdb });
      onTestFinished(() => server.stop());
      tool.configure(server);
      return server;
    };
    const before = await start();
    run('stanza-create');
    for (let n = 0; n < 5; n++) {
      await before.query(`CREATE TABLE executions_${n} (i int)`);
      await before.archiveWal();
    }
    const version = readFileSync(join(before.data, 'PG_VERSION'), 'utf8').trim();
    await before.stop();
    await start(['--data-checksums']);
    run('stanza-upgrade');
    run('backup', '--type=full');

    const [backup] = parseReport('pgbackrest', run('info', '--output=json'), Date.now()).artifacts;
    const replay = async (folder: string) => {
      const { log } = await readArchive(join(tool.repository, 'archive/main', folder), 'wal', Date.now() + 1);
      return replayWal(backup!.wal!, log, {}, backup!.content!.systemId);
    };
    expect(await replay(`${version}-2`)).toMatchObject({ isEnough: true });
    expect(await replay(`${version}-1`)).toMatchObject({
      isEnough: false,
      ends: expect.stringContaining('is of another server'),
    });
  },
);
