import { spawnSync } from 'node:child_process';
import { rmSync, truncateSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, onTestFinished, test } from 'vitest';
import {
  connectionTo,
  hasPostgres,
  ownedFolder,
  type Postgres,
  postgresFolder,
  postgresProgram,
  startPostgres,
} from '../postgres.ts';
import {
  barmanBed,
  type PostgresBed,
  pgBackRestBed,
  segmentsOf,
  walgBed,
} from './recovery-point/postgres.ts';
import { seeded } from './recovery-point/round.ts';
import { rehearsalFolder, rehearsed, requestOf } from './rehearsal-program.ts';

// Rehearsals of base backups that are no plain directory: in archives, with tablespaces, and backups that a tool manages.

const has = (program: string, ...args: string[]) => spawnSync(program, args).status === 0;
const schema = [
  'CREATE TABLE executions AS SELECT i FROM generate_series(1, 1000) i',
  "CREATE TABLE schema_version AS SELECT 'svc' AS db_name, '0.8' AS curr_version",
];

describe.skipIf(!hasPostgres)('a base backup with a tablespace', () => {
  let server: Postgres;
  const place = hasPostgres ? postgresFolder() : '';
  const directory = rehearsalFolder();
  const [wal, space, mapped] = ['wal', 'space', 'mapped'].map((name) => join(place, name)) as [
    string,
    string,
    string,
  ];
  const backup = (name: string, ...options: string[]) => {
    const path = join(place, name);
    const port = connectionTo(server);
    postgresProgram('pg_basebackup', [...port, '-D', path, '--checkpoint=fast', ...options]);
    return path;
  };
  beforeAll(async () => {
    for (const path of [wal, space]) ownedFolder(path);
    server = await startPostgres({ archiveCommand: `cp %p ${wal}/%f` });
    await server.query(`CREATE TABLESPACE other LOCATION '${space}'`);
    await server.query('CREATE DATABASE svc');
    for (const statement of schema) await server.query(statement, 'svc');
    await server.query('ALTER TABLE executions SET TABLESPACE other', 'svc');
  });
  afterAll(async () => {
    await server?.stop();
    for (const path of [place, directory]) rmSync(path, { recursive: true, force: true });
  });

  test.each([
    ['in archives, with the log that it needs', ['--format=tar', '--gzip', '--wal-method=stream']],
    ['in archives, with an archived log', ['--format=tar', '--wal-method=none']],
    ['in plain format', ['--wal-method=none', `--tablespace-mapping=${space}=${mapped}`]],
  ])('%s', async (name, options) => {
    const path = backup(name.replaceAll(' ', '-'), ...options);
    await server.query('INSERT INTO executions VALUES (-1)', 'svc');
    await server.archiveWal();
    const isAlone = options.includes('--wal-method=stream');
    const last = segmentsOf({ wal } as PostgresBed)
      .at(-1)!
      .slice(-24);
    const log = isAlone ? {} : { log: { directory: wal, last } };
    const answer = rehearsed(requestOf(directory, { backup: path, ...log }));
    const rows = await server.query('SELECT count(*) AS n FROM executions', 'svc');
    expect(answer).toMatchObject({ result: 'ok', schemaVersion: '0.8' });
    // Without the log the restore ends where the backup did.
    expect(answer.workflows).toBe(Number(rows.rows[0].n) - Number(isAlone));
    // The tablespace of the store itself was not changed.
    await server.query('INSERT INTO executions VALUES (-2); DELETE FROM executions WHERE i = -2', 'svc');
  });

  test('an archive that is cut off does not restore', () => {
    const path = backup('half', '--format=tar', '--wal-method=stream');
    truncateSync(join(path, 'base.tar'), 4 << 20);
    expect(rehearsed(requestOf(directory, { backup: path }))).toMatchObject({ result: 'failed' });
  });
});

describe.each([
  ['pgBackRest', ['pgbackrest', 'version'], pgBackRestBed, /\d{8}-\d{6}F/],
  ['Barman', ['barman', '--version'], barmanBed, /\d{8}T\d{6}/],
  ['WAL-G', ['wal-g', '--version'], walgBed, /base_[0-9A-F]{24}/],
] as const)('%s', (_, [program, argument], open, name) => {
  test.skipIf(!hasPostgres || !has(program, argument))(
    'a backup that the tool restores, with its log',
    async () => {
      const bed = await open(seeded(1));
      onTestFinished(() => bed.remove());
      const directory = rehearsalFolder();
      onTestFinished(() => rmSync(directory, { recursive: true, force: true }));
      for (const statement of schema) await bed.server.query(statement, 'svc');
      await bed.base();
      await bed.server.query('INSERT INTO executions VALUES (-1)', 'svc');
      await bed.archive();
      const id = idIn(bed.yaml, name);
      const request = requestOf(directory, { backup: id, restore: bed.restore });
      expect(rehearsed(request)).toMatchObject({ result: 'ok', workflows: 1001, schemaVersion: '0.8' });
      expect(rehearsed({ ...request, backup: `${id}9` })).toMatchObject({ result: 'failed' });
      expect(rehearsed({ ...request, restore: ['/nonexistent'] })).toMatchObject({ result: 'unknown' });
    },
  );
});

/** The tool's name for its newest backup, from the report that the configuration names. */
function idIn(yaml: string, name: RegExp): string {
  const [, argv] = /format: \w+, command: (\[.*?\]), verify/.exec(yaml)!;
  const [program, ...args] = JSON.parse(argv!) as [string, ...string[]];
  const { stdout } = spawnSync(program, args, { cwd: '/', encoding: 'utf8' });
  return name.exec(stdout)![0];
}
