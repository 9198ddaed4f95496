import { execFileSync } from 'node:child_process';
import { copyFileSync, mkdirSync, readdirSync, readFileSync, unlinkSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { gunzipSync, gzipSync } from 'node:zlib';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { readFiles } from '../../../src/probes/backups/files.ts';
import { replayBinlog } from '../../../src/probes/backups/log-chain.ts';
import { verifyBackup } from '../../../src/probes/backups/verify.ts';
import { readArchive } from '../../archived-log.ts';
import { newFolder } from '../../folder.ts';
import { hasMariadb, type Mariadb, startMariadb } from '../../mariadb.ts';

const verify = (path: string) =>
  verifyBackup({ path, level: 'full', bytesPerSecond: Number.POSITIVE_INFINITY });

describe.skipIf(!hasMariadb)('backups of a real MariaDB', () => {
  let server: Mariadb;
  const place = newFolder(afterAll);
  const logs = join(place, 'binlog');
  const dump = join(place, 'svc-20260101T020000Z.sql.gz');
  const source = {
    kind: 'files' as const,
    directory: place,
    pattern: '^svc-(?<time>\\d{8}T\\d{6}Z)\\.sql\\.gz$',
    settleMs: 0,
  };

  beforeAll(async () => {
    mkdirSync(logs);
    server = await startMariadb('--log-bin=bin', '--server-id=1');
    await server.sql('CREATE DATABASE svc');
    await server.sql('CREATE TABLE svc.executions (i INT PRIMARY KEY, state VARCHAR(40))');
    await server.sql('INSERT INTO svc.executions SELECT seq, SHA1(seq) FROM svc.seq_1_to_20000');
    const connection = ['--protocol=socket', `--socket=${join(server.folder, 's')}`, '--user=root'];
    const flags = [
      '--single-transaction',
      '--routines',
      '--triggers',
      '--events',
      '--hex-blob',
      '--master-data=2',
    ];
    const text = execFileSync('mariadb-dump', ['--no-defaults', ...connection, ...flags, 'svc'], {
      maxBuffer: 1 << 28,
    });
    writeFileSync(dump, gzipSync(text));
  });
  afterAll(() => server?.stop());

  test('a dump is whole with the line that the tool writes last', async () => {
    expect(await verify(dump)).toMatchObject({
      result: 'ok',
      msg: expect.stringContaining('last line of mysqldump'),
    });
    const cut = join(place, 'cut.sql.gz');
    const text = gunzipSync(readFileSync(dump));
    writeFileSync(cut, gzipSync(text.subarray(0, text.length - 40)));
    execFileSync('gzip', ['-t', cut]);
    expect(await verify(cut)).toMatchObject({ result: 'corrupt' });
  });

  test('it names its place in the binary log, from which the archived log goes on', async () => {
    const { artifacts } = await readFiles(source, [], Date.now() + 1000);
    expect(artifacts).toMatchObject([{ method: 'mysql_dump' }]);
    const { content } = await verify(dump);
    const position = content!.binlog!;
    const named = position.file;
    for (let i = 0; i < 3; i++) {
      await server.sql(`INSERT INTO svc.executions VALUES (${-1 - i}, '')`);
      await server.sql('FLUSH BINARY LOGS');
    }
    const shown = (await server.sql('SHOW BINARY LOGS')).map((row) => String(row.Log_name));
    expect(shown).toContain(named);
    for (const name of shown) copyFileSync(join(server.folder, 'data', name), join(logs, name));
    const replayed = async () =>
      replayBinlog(position, (await readArchive(logs, 'binlog', Date.now() + 1000, [position])).log);
    expect(await replayed()).toMatchObject({ first: named, last: shown.at(-1), ends: undefined });

    unlinkSync(join(logs, shown.at(-2)!));
    expect(await replayed()).toMatchObject({
      last: shown.at(-3),
      ends: expect.stringContaining('is missing'),
    });
    unlinkSync(join(logs, named));
    expect(readdirSync(logs)).not.toContain(named);
    expect(await replayed()).toMatchObject({ isEnough: false });
  });
});
