import { execFileSync } from 'node:child_process';
import { readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { gzipSync } from 'node:zlib';
import { expect, test } from 'vitest';
import { restoreOf } from '../../../src/agent/recovery/restore.ts';
import { writeProgram } from '../../command.ts';
import { newFolder } from '../../folder.ts';

const startMs = Date.parse('2026-11-23T12:00:00.5Z');

type Plan = Parameters<typeof restoreOf>[0];
type Kind = 'postgres' | 'mysql' | 'widecolumn';

const planOf = (
  kind: Kind,
  backup: string | undefined,
  over: Partial<Plan> & { database?: string; address?: string } = {},
) =>
  restoreOf({ subject: { store: 'main', database: 'persistence', backup }, startMs, ...over }, {
    stores: [
      {
        name: 'main',
        kind,
        address: over.address ?? '10.0.0.1:7000',
        databases: { persistence: over.database ?? 'svc' },
      },
    ],
    backups: [],
  } as never);

/**
 * Replacements for the real programs: each records its arguments and its input, one line per run, and prints the output of
 * `mysqldump` and `mysqlbinlog`.
 */
function programs() {
  const folder = newFolder();
  const notes = join(folder, 'notes');
  for (const name of ['psql', 'pg_restore', 'mysql', 'mysqldump', 'mysqlbinlog']) {
    const reads = name === 'psql' || name === 'mysql' ? 'cat' : 'true';
    const prints = name.length > 8 ? `echo "from ${name}"` : 'true';
    writeProgram(folder, name, `{ printf '%s|' ${name} "$@"; ${reads}; } >> ${notes}\n${prints}`);
  }
  return {
    run([program = '', ...words]: readonly string[]) {
      execFileSync(program, words, {
        env: { PATH: `${folder}:${process.env.PATH}` },
        stdio: ['ignore', 'pipe', 'pipe'],
      });
      const text = readFileSync(notes, 'utf8');
      writeFileSync(notes, '');
      return text;
    },
  };
}

const psql = (database: string) =>
  `psql|--host|10.0.0.1|--port|7000|--username|postgres|--no-password|--dbname|${database}|--no-psqlrc|--set|ON_ERROR_STOP=1|--quiet|`;

test.each([
  ['svc.sql', Buffer.from('select 1;'), ['bash', 'psql', 'cat']],
  ['svc.sql.gz', gzipSync('select 1;'), ['bash', 'psql', 'gzip']],
])(
  'PostgreSQL reads %s in one transaction, into a database that is made if it is missing',
  (name, bytes, needed) => {
    const file = join(newFolder(), name);
    writeFileSync(file, bytes);
    const restore = planOf('postgres', file, { database: "o'x" });
    expect(restore.programs).toEqual(needed);
    const { run } = programs();
    expect(restore.commands?.map(run)).toEqual([
      `${psql('postgres')}SELECT format('CREATE DATABASE %I', 'o''x') WHERE NOT EXISTS (SELECT FROM pg_database WHERE datname = 'o''x') \\gexec\n`,
      `${psql("o'x")}--single-transaction|--file|-|select 1;`,
    ]);
  },
);

test('PostgreSQL reads an archive by pg_restore, in one transaction', () => {
  const restore = planOf('postgres', '/none/svc.dump');
  expect(restore.programs).toEqual(['bash', 'psql', 'pg_restore']);
  expect(programs().run(restore.commands![1]!)).toBe(
    'pg_restore|--host|10.0.0.1|--port|7000|--username|postgres|--no-password|--dbname|svc|--clean|--if-exists|--exit-on-error|--single-transaction|/none/svc.dump|',
  );
});

test('the safety copy of PostgreSQL is a second database, made once', () => {
  const { safetyCopy } = planOf('postgres', '/none/svc.dump');
  expect(safetyCopy).toMatchObject({ name: 'the database svc_before_20261123T120000Z' });
  expect(safetyCopy).not.toHaveProperty('directory');
  expect(safetyCopy!.commands.map(programs().run)).toEqual([
    `${psql('postgres')}SELECT format('CREATE DATABASE %I TEMPLATE %I', 'svc_before_20261123T120000Z', 'svc') || CASE WHEN current_setting('server_version_num')::int >= 150000 THEN ' STRATEGY FILE_COPY' ELSE '' END WHERE NOT EXISTS (SELECT FROM pg_database WHERE datname = 'svc_before_20261123T120000Z') \\gexec\n`,
  ]);
  // A name may have 63 bytes.
  expect(planOf('postgres', '/none/svc.dump', { database: 'd'.repeat(60) }).safetyCopy?.name).toHaveLength(
    'the database '.length + 56,
  );
});

test('statements are run as the administrator, in the database that is named', () => {
  const { run } = programs();
  const { ask } = planOf('postgres', '/none/svc.dump');
  const tail = '--no-align|--tuples-only|--command|SELECT 1|';
  expect([run(ask!('SELECT 1')), run(ask!('SELECT 1', 'svc'))]).toEqual([
    `${psql('postgres')}${tail}`,
    `${psql('svc')}${tail}`,
  ]);
  expect(run(planOf('mysql', '/none/svc.sql').ask!('SELECT 1'))).toBe(
    'mysql|--host=10.0.0.1|--port=7000|--user=root|--batch|--skip-column-names|--execute=SELECT 1|',
  );
});

test.each([
  ['postgres', '--host|localhost|--port|5432|'],
  ['mysql', '--host=localhost|--port=3306|'],
] as const)('%s without an address is asked on this host, on its usual port', (kind, words) =>
  expect(programs().run(planOf(kind, '/none/svc.sql', { address: 'none' }).ask!('x'))).toContain(words),
);

test('MySQL: the database is created anew, the dump is read, and the log behind it', () => {
  const file = join(newFolder(), 'svc.sql.gz');
  writeFileSync(file, gzipSync('insert;'));
  const { run } = programs();
  const position = { file: 'bin.000004', position: 77 };
  const replay = { files: ['/log/bin.000004', '/log/bin.000005'], position, isMariadb: true };
  const server = 'mysql|--host=10.0.0.1|--port=7000|--user=root|';
  const restore = planOf('mysql', file, { database: 'o`x', replay });
  expect(restore.programs).toEqual(['bash', 'mysql', 'gzip', 'mysqlbinlog', 'sed']);
  const [create, read, log] = restore.commands!;
  expect(run(create!)).toBe(
    `${server}--execute=DROP DATABASE IF EXISTS \`o\`\`x\`; CREATE DATABASE \`o\`\`x\`|`,
  );
  expect(run(read!)).toBe(`${server}o\`x|insert;`);
  const applied = run(log!);
  expect(applied).toContain(
    'mysqlbinlog|--start-position=77|--database=o`x|--loose-skip-gtid-strict-mode|/log/bin.000004|/log/bin.000005|',
  );
  expect(applied).toContain(server);
  expect(applied).toContain('from mysqlbinlog\n');
  const until = new Date('2026-11-23T11:00:00Z');
  const ofMysql = planOf('mysql', file, { replay: { ...replay, isMariadb: false, until } }).commands!;
  const other = run(ofMysql[2]!);
  expect(other).toContain('|--skip-gtids|--stop-datetime=2026-11-23 11:00:00|/log/bin.000004|');
  expect(planOf('mysql', '/none/svc.sql')).toMatchObject({
    programs: ['bash', 'mysql', 'cat'],
    commands: { length: 2 },
  });
});

test('the safety copy of MySQL is a dump beside the backup, whole or not there', () => {
  const folder = newFolder();
  const { safetyCopy } = planOf('mysql', join(folder, 'svc.sql'));
  const directory = join(folder, 'before-recovery');
  const name = join(directory, 'svc_before_20261123T120000Z.sql.gz');
  expect(safetyCopy).toMatchObject({ name, directory });
  expect(programs().run(safetyCopy!.commands[0]!)).toBe(
    'mysqldump|--host=10.0.0.1|--port=7000|--user=root|--single-transaction|--routines|--triggers|--events|--hex-blob|svc|',
  );
  expect(execFileSync('gzip', ['-dc', name], { encoding: 'utf8' })).toBe('from mysqldump\n');
  expect(readdirSync(directory)).toHaveLength(1);
  const failing = [...safetyCopy!.commands[0]!];
  failing.splice(failing.indexOf('mysqldump'), 1, 'false');
  failing[5] = join(directory, 'second.sql.gz');
  expect(() => programs().run(failing)).toThrow();
  expect(readdirSync(directory)).toHaveLength(1);
});

test('a wide-column store is copied by a snapshot, and restored by hand', () =>
  expect(planOf('widecolumn', undefined)).toEqual({
    programs: [],
    safetyCopy: {
      name: 'the snapshot svc_before_20261123T120000Z',
      commands: [['nodetool', 'snapshot', '--tag', 'svc_before_20261123T120000Z', 'svc']],
    },
  }));

test('a base backup is restored by hand; another folder, and what is not configured, not at all', () => {
  const base = newFolder();
  for (const name of ['backup_manifest', 'PG_VERSION']) writeFileSync(join(base, name), '');
  expect(planOf('postgres', base).byHand?.join('\n')).toContain(`cp -a ${base}/. DATA_DIRECTORY`);
  const nothing = { programs: [] };
  expect(planOf('mysql', base)).toEqual(nothing);
  expect(planOf('postgres', newFolder())).toEqual(nothing);
  expect(planOf('postgres', undefined)).toEqual(nothing);
  const subject = { store: 'gone', database: 'persistence', backup: '/b.sql' } as const;
  expect(planOf('postgres', '/b.sql', { subject })).toEqual(nothing);
  expect(planOf('postgres', '/b.sql', { subject: { store: 'main', backup: '/b.sql' } })).toEqual(nothing);
});
