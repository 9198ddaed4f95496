import { execFileSync } from 'node:child_process';
import { cpSync, existsSync, readdirSync, rmSync, unlinkSync } from 'node:fs';
import { join } from 'node:path';
import { expect, onTestFinished, test } from 'vitest';
import { verifyBackup } from '../../src/probes/backups/verify.ts';
import { newFolder } from '../folder.ts';
import { available } from '../installed.ts';
import { hasMariadb, startMariadb } from '../mariadb.ts';

const has = hasMariadb && available('mariadb-backup', existsSync('/usr/bin/mariadb-backup'));

// A physical backup that lacks the files of a table can be restored, and the table is lost.
test.skipIf(!has)('a physical backup without the files of a table is no backup', async () => {
  const place = newFolder();
  const server = await startMariadb('--log-bin=bin', '--server-id=1');
  onTestFinished(() => server.stop());
  await server.sql('CREATE DATABASE svc');
  await server.sql('CREATE TABLE svc.executions (i INT PRIMARY KEY, state VARCHAR(40))');
  await server.sql('CREATE TABLE svc.dropped (i INT PRIMARY KEY)');
  await server.sql('CREATE TABLE svc.renamed (i INT PRIMARY KEY)');
  await server.sql('DROP TABLE svc.dropped');
  await server.sql('RENAME TABLE svc.renamed TO svc.domains');
  await server.sql('CREATE TABLE svc.old_engine (i INT PRIMARY KEY) ENGINE=MyISAM');
  await server.sql('INSERT INTO svc.executions SELECT seq, SHA1(seq) FROM svc.seq_1_to_2000');
  const target = join(place, 'whole');
  execFileSync(
    'mariadb-backup',
    [
      '--no-defaults',
      '--backup',
      '--user=root',
      `--socket=${join(server.folder, 's')}`,
      `--target-dir=${target}`,
    ],
    { stdio: 'pipe' },
  );
  const verify = (path: string) => verifyBackup({ path, level: 'header', bytesPerSecond: 1e12 });
  expect(await verify(target)).toMatchObject({
    result: 'ok',
    content: { startWall: { ms: expect.any(Number) }, binlog: { file: expect.stringMatching(/^bin\./) } },
  });
  const without = async (...removed: RegExp[]) => {
    const copy = join(place, 'copy');
    cpSync(target, copy, { recursive: true });
    for (const name of readdirSync(join(copy, 'svc')))
      if (removed.some((one) => one.test(name))) unlinkSync(join(copy, 'svc', name));
    const answer = await verify(copy);
    rmSync(copy, { recursive: true });
    return `${answer.result}: ${answer.msg}`;
  };
  expect(await without(/^executions\.(?:ibd|new)$/)).toBe('corrupt: svc/executions.ibd is missing');
  // All files of the table are gone: only InnoDB's own dictionary knows it.
  expect(await without(/^executions\./)).toBe('corrupt: svc/executions.ibd is missing');
  expect(await without(/^domains\./)).toBe('corrupt: svc/domains.ibd is missing');
  expect(await without(/^executions\.frm/)).toBe('corrupt: svc/executions.frm is missing');
  expect(await without(/^old_engine\.MYD/)).toBe('corrupt: svc/old_engine.MYD is missing');
});
