import { execFileSync } from 'node:child_process';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, onTestFinished, test } from 'vitest';
import { verifyBackup } from '../../src/probes/backups/verify.ts';
import { newFolder } from '../folder.ts';
import { hasMariadb, startMariadb } from '../mariadb.ts';

// With --force, mariadb-dump goes on with the next table after an error, such as a query that was killed or took too long, and
// writes its last line. A pipe hides its exit status. After the last row that it got it writes nothing more of that table.
test.skipIf(!hasMariadb)('a dump in which the rows of a table end early is damaged', async () => {
  const server = await startMariadb();
  onTestFinished(() => server.stop());
  await server.sql(`CREATE DATABASE svc;
    CREATE TABLE svc.executions (i INT PRIMARY KEY, t TEXT) ENGINE = InnoDB;
    CREATE TABLE svc.shards (i INT PRIMARY KEY) ENGINE = InnoDB;
    CREATE TABLE svc.tasks (i INT PRIMARY KEY) ENGINE = InnoDB;
    INSERT INTO svc.executions SELECT seq, 'a\nLOCK TABLES \`tasks\` WRITE;' FROM svc.seq_1_to_100;
    INSERT INTO svc.tasks SELECT seq FROM svc.seq_1_to_100`);
  const dump = (...options: string[]) =>
    execFileSync(
      'mariadb-dump',
      [
        '--no-defaults',
        `--socket=${join(server.folder, 's')}`,
        '--user=root',
        '--single-transaction',
        ...options,
      ],
      { encoding: 'utf8', maxBuffer: 1 << 28 },
    );
  const verify = (text: string) => {
    const path = join(newFolder(), 'svc.sql');
    writeFileSync(path, text);
    return verifyBackup({ path, level: 'full', bytesPerSecond: 1e12 });
  };
  /** What --force leaves of a table after row 50: nothing up to the next comment. */
  const forced = (text: string, table: string) => {
    const rows = text.indexOf(`INSERT INTO \`${table}\``);
    const at = text.slice(rows).search(/\n\(50\b/) + rows;
    const next = text.indexOf('\n--', at);
    return `${text.slice(0, text.indexOf(',\n', at))};\n${text.slice(next)}`;
  };

  for (const options of [[], ['--skip-add-locks'], ['--skip-disable-keys'], ['--no-autocommit']]) {
    const text = dump(...options, 'svc');
    expect(await verify(text), options.join()).toMatchObject({ result: 'ok' });
    for (const table of ['executions', 'tasks'])
      expect(await verify(forced(text, table)), `${options.join()} ${table}`).toMatchObject({
        result: 'corrupt',
        msg: `the rows of svc.${table} end early: its tool went on after an error (--force)`,
      });
  }
  for (const options of [['--skip-opt', 'svc'], ['--all-databases'], ['--databases', 'svc', '--routines']])
    expect(await verify(dump(...options)), options.join()).toMatchObject({ result: 'ok' });
});
