import { chmodSync, mkdirSync, mkdtempSync, rmSync, statfsSync, truncateSync, writeFileSync } from 'node:fs';
import { createServer } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { gzipSync } from 'node:zlib';
import { expect, onTestFinished, test } from 'vitest';
import { answerOf } from '../../../src/agent/recovery/check.ts';
import { createRestoreChecks, programsThere } from '../../../src/agent/recovery/restore-checks.ts';
import { writeProgram } from '../../command.ts';
import { newFolder } from '../../folder.ts';
import { freePort, listening } from '../../ports.ts';
import { storeOn } from '../../store-probe.ts';

test('without a server one check says what to do, and the others do not repeat why', async () => {
  const place = mkdtempSync(join(tmpdir(), 'svc-agent-restore-'));
  onTestFinished(() => rmSync(place, { recursive: true, force: true }));
  const backup = join(place, 'svc.sql');
  writeFileSync(
    backup,
    '--\n-- PostgreSQL database dump\n--\n\n-- Dumped from database version 15.18 (Debian 15.18-0)\n',
  );
  writeFileSync(`${backup}.globals.sql`, '');
  const { port, close } = await listening(createServer());
  const answers = async () => {
    const { copyNeeds, needs } = createRestoreChecks({
      ...{ store: storeOn(port), database: 'svc', backup, env: { PATH: process.env.PATH ?? '' } },
      restore: {
        commands: [['psql']],
        programs: [],
        ask: () => ['echo', '1'],
        safetyCopy: { what: 'a copy', commands: [] },
      } as never,
    });
    const all = [...copyNeeds(), ...needs()];
    const found: Record<string, string> = {};
    for (const each of all) found[each.id] = (await answerOf(each)).msg;
    return { found, neverForced: all.filter((each) => each.isNeverForced).map(({ id }) => id) };
  };
  expect((await answers()).found).toMatchObject({ server: `127.0.0.1:${port}` });
  await close();
  const { found, neverForced } = await answers();
  expect(found).toMatchObject({
    server: `nothing listens at 127.0.0.1:${port}: start a server of version 15.18 or newer there, create its users (${backup}.globals.sql), and run the same command again`,
    ...{ copy_space: 'the server does not answer', rights: 'the server does not answer' },
    versions: 'the server does not answer',
  });
  expect(new Set(neverForced)).toEqual(new Set(['server']));
});

type Deps = Parameters<typeof createRestoreChecks>[0];

/** The server's answers, by a part of the statement. */
type Answers = Readonly<Record<string, string>>;

/** The checks of a restore from `backup` with these answers of the server; the answer `!` is a failure. */
function checksOf(
  kind: 'postgres' | 'mysql',
  backup: string | undefined,
  answers: Answers,
  {
    address = '10.0.0.1:1',
    programs = '',
    ...over
  }: Partial<Deps> & { address?: string; programs?: string } = {},
) {
  const ask = (statement: string) => {
    const [, answer = '!'] = Object.entries(answers).find(([part]) => statement.includes(part)) ?? [];
    return answer === '!' ? ['sh', '-c', 'echo denied >&2; exit 1'] : ['printf', '%s', answer];
  };
  const checks = createRestoreChecks({
    ...{ store: { ...storeOn(1), kind, address }, database: "o'x", backup },
    env: { PATH: `${programs}:${process.env.PATH}` },
    restore: { commands: [['cat']], programs: ['cat'], ask } as never,
    ...over,
  });
  return async (id: string) => {
    const { holds, msg } = await answerOf(
      [...checks.needs(), ...checks.copyNeeds(), checks.nothingToCopy(), ...checks.reaches()].find(
        (each) => each.id === id,
      )!,
    );
    return `${holds}: ${msg}`;
  };
}

function dumpWith(text: string, name = 'svc.sql'): string {
  const file = join(newFolder(), name);
  writeFileSync(file, text);
  return file;
}

const none = '/none/svc.sql';
test.each([
  ['postgres', { rolsuper: 't|f' }, 'true: it may create databases'],
  ['postgres', { rolsuper: 'f|f\n' }, 'false: it may not create databases'],
  ['postgres', { rolsuper: 't|t\n' }, 'false: the server is a standby, which takes no writes'],
  ['postgres', {}, 'false: sh: exit status 1: denied'],
  [
    'mysql',
    { GRANTS: 'GRANT ALL PRIVILEGES ON *.* TO `root`@`localhost`\n' },
    'true: it may create databases',
  ],
  ['mysql', { GRANTS: 'GRANT SELECT, CREATE, DROP ON *.* TO `a`@`%`\n' }, 'true: it may create databases'],
  ['mysql', { GRANTS: 'GRANT CREATE ROLE_X ON *.* TO a' }, 'true: it may create databases'],
  [
    'mysql',
    { GRANTS: 'GRANT USAGE ON *.* TO `a`@`%`\nGRANT ALL PRIVILEGES ON `b`.* TO a\n' },
    'false: its rights are GRANT USAGE ON *.* TO `a`@`%`; GRANT ALL PRIVILEGES ON `b`.* TO a',
  ],
] as const)('rights at %s: %j', async (kind, answers, answer) =>
  expect(await checksOf(kind, none, answers)('rights')).toBe(answer),
);

const ofPostgres = (version: string) => `-- Dumped from database version ${version}\n`;
const ofMysql = (version: string) => `-- Server version\t${version}\n`;
test.each([
  ['15.18', '15.2', true],
  ['15.18', '14.9', false],
  ['9.6.24', '9.5.1', false],
  ['9.6.24', '10.1', true],
  ['10.18', '10.2', true],
  ['10.11.6-MariaDB', '10.6.1-MariaDB', false],
  ['8.0.36', '8.4.0', true],
  ['8.4.0', '8.0.36', false],
  ['10.6.1-MariaDB', '11.4.2-MariaDB-log', true],
  ['8.0.36', '10.11.6-MariaDB', false],
] as const)('a dump of version %s on a server of version %s: %s', async (dump, server, holds) => {
  const isMysql = /Maria|^8/.test(dump);
  const answers: Answers = isMysql ? { 'VERSION()': server } : { server_version: `${server}\n` };
  const text = isMysql ? ofMysql(dump) : ofPostgres(dump);
  const check = checksOf(isMysql ? 'mysql' : 'postgres', dumpWith(text), answers);
  const versions = `the dump is from version ${dump}, the server has version ${server}`;
  expect(await check('versions')).toBe(`${holds}: ${versions}`);
});

test('a dump that names no version; a dump of MySQL has any name', async () => {
  expect(await checksOf('postgres', dumpWith('select 1;\n'), { server_version: '15.2' })('versions')).toBe(
    'unknown: the dump names no version; the server has version 15.2',
  );
  const dump = dumpWith(ofMysql('8.0.36'), 'svc.dump');
  expect(await checksOf('mysql', dump, { 'VERSION()': '8.4.0' })('versions')).toBe(
    'true: the dump is from version 8.0.36, the server has version 8.4.0',
  );
});

test('an archive of PostgreSQL is read by pg_restore', async () => {
  const programs = newFolder();
  const listing =
    ';     Dumped from database version: 16.1 (Debian)\n215; 1259 16389 TABLE public executions postgres\n216; 1259 16390 TABLE DATA public other postgres\n';
  writeProgram(programs, 'pg_restore', `printf '%s' '${listing}'; test "$2" = ${none}.dump`);
  const check = checksOf(
    'postgres',
    `${none}.dump`,
    { server_version: '16.2', pg_tables: 'public.executions\npublic.later\npublic.even\n' },
    { programs },
  );
  expect(await check('versions')).toBe('true: the dump is from version 16.1, the server has version 16.2');
  expect(await check('not_in_backup')).toBe(
    'unknown: these tables are not in the backup, and stay as they are: public.even, public.later',
  );
  writeProgram(programs, 'pg_restore', 'echo "; Archive of nothing"');
  expect(await check('versions')).toBe('unknown: the dump names no version; the server has version 16.2');
});

test.each([
  [
    'postgres',
    'CREATE TABLE public.executions (\nCREATE TABLE public.b (\n',
    'public.executions\npublic.b\n',
    'true: 2 tables',
  ],
  ['postgres', '', '', 'true: there is nothing'],
  ['postgres', '', '!', 'true: there is nothing'],
  [
    'mysql',
    'CREATE TABLE `executions` (\n  CREATE TABLE `c` (\nCREATE TABLE IF NOT EXISTS `b` (\n',
    'executions\nb\nc',
    'unknown: these tables are not in the backup, and will be in the safety copy only: c',
  ],
] as const)('tables of a dump of %s: %j beside %j', async (kind, dump, there, answer) =>
  expect(await checksOf(kind, dumpWith(dump), { pg_tables: there, TABLE_NAME: there })('not_in_backup')).toBe(
    answer,
  ),
);

test('space is known on this host only', async () => {
  const dump = dumpWith('12345');
  const place = newFolder();
  const answers = { data_directory: `${place}\n`, pg_database_size: '5000000', datadir: place };
  const local = { address: '127.0.0.1:1' };
  expect(await checksOf('postgres', dump, answers)('space')).toBe('unknown: the server is on another host');
  expect(await checksOf('postgres', dump, { data_directory: '/none\n' }, local)('space')).toBe(
    'unknown: /none is not on this host',
  );
  for (const kind of ['postgres', 'mysql'] as const)
    expect(await checksOf(kind, dump, answers, local)('space')).toMatch(
      new RegExp(`^true: \\d+ MiB free in ${place}, the dump has 1 MiB$`),
    );
  const { bavail, bsize, blocks } = statfsSync(place);
  // A file with a hole takes no space, but a restore of it would.
  truncateSync(dump, Math.min(bavail * bsize + 2 ** 34, blocks * bsize * 2, 2 ** 43));
  expect(await checksOf('postgres', dump, answers, local)('space')).toMatch(
    /^false: \d+ MiB free in .*, the dump has \d+ MiB$/,
  );
});

test('a copy in the server needs the space of the database and of its restore', async () => {
  const place = newFolder();
  const copy = {
    restore: { commands: [['cat']], programs: [], safetyCopy: { name: 'a copy', commands: [['cat']] } },
  };
  const dump = dumpWith('1');
  const check = (answers: Answers, address = '127.0.0.1:1', kind: 'postgres' | 'mysql' = 'postgres') => {
    const ask = (statement: string) => [
      'printf',
      '%s',
      Object.entries(answers).find(([part]) => statement.includes(part))?.[1] ?? '',
    ];
    const checks = createRestoreChecks({
      ...{
        store: { ...storeOn(1), kind, address },
        database: "o'x",
        backup: dump,
        env: { PATH: process.env.PATH! },
      },
      restore: { ...copy.restore, ask } as never,
    });
    const found = checks.copyNeeds().find(({ id }) => id === 'copy_space');
    return found && answerOf(found).then(({ holds, msg }) => `${holds}: ${msg}`);
  };
  const size = "datname = 'o''x'";
  expect(await check({ [size]: '0\n' })).toBe('true: there is nothing to copy');
  expect(await check({ [size]: '5000000', data_directory: place })).toMatch(
    /^true: \d+ MiB free in .*, the database has 5 MiB$/,
  );
  expect(await check({ [size]: '9e18', data_directory: place })).toMatch(
    /^false: .* MiB; --no-safety-copy leaves the copy out$/,
  );
  expect(await check({ [size]: '5000000' }, '10.0.0.1:1')).toBe('unknown: the server is on another host');
  expect(await check({}, '127.0.0.1:1', 'mysql')).toBeUndefined();
  // Before the restore is committed, both are there.
  const { bavail, bsize } = statfsSync(place);
  truncateSync(dump, Math.floor((bavail * bsize) / 4) * 3);
  expect(await check({ [size]: String(Math.floor((bavail * bsize) / 2)), data_directory: place })).toMatch(
    /^false: /,
  );
});

test('a copy in a directory needs a place that can be written', async () => {
  const place = newFolder();
  const dump = dumpWith('1');
  const check = (directory: string, backup: string | undefined = dump) => {
    const safetyCopy = { name: 'a copy', commands: [['cat'], ['no-such-program']], directory };
    return checksOf('mysql', backup, {}, { restore: { programs: [], safetyCopy } as never });
  };
  expect(await check(join(place, 'a', 'b'))('copy_space')).toMatch(
    new RegExp(`^true: \\d+ MiB free in ${place}$`),
  );
  expect(await check(place)('programs_safety_copy')).toBe('false: no-such-program is not in the path');
  const { bavail, bsize, blocks } = statfsSync(place);
  truncateSync(dump, Math.min(bavail * bsize + 2 ** 34, blocks * bsize * 2, 2 ** 43));
  expect(await check(place)('copy_space')).toMatch(
    /^false: \d+ MiB free in .*, the dump has \d+ MiB; --no-safety-copy leaves the copy out$/,
  );
});

test('there is a database to copy or not', async () => {
  expect(await checksOf('postgres', none, { "datname = 'o''x'": '1\n' })('nothing_to_copy')).toBe(
    'false: the database is there',
  );
  expect(
    await checksOf('mysql', none, { "SCHEMA_NAME = 'o\\'x'": '0\n', "SCHEMA_NAME = 'o''x'": '0\n' })(
      'nothing_to_copy',
    ),
  ).toBe("true: there is no database o'x");
  expect(await checksOf('postgres', none, {}, { restore: { programs: [] } })('nothing_to_copy')).toBe(
    'false: the database may hold data',
  );
});

test('which checks there are: for commands of the agent’s own, a dump, a log and an end', async () => {
  const ids = (over: Partial<Deps>) => {
    const checks = createRestoreChecks({
      ...{ store: storeOn(1), database: 'svc', backup: none, env: {} },
      restore: { programs: [] },
      ...over,
    });
    const all = [...checks.needs(), ...checks.reaches()];
    expect(all.filter(({ isOfExecution }) => isOfExecution)).toEqual(checks.needs());
    return all.map(({ id }) => id);
  };
  const restore = { commands: [['cat']], programs: ['cat'] };
  const ask = () => ['true'];
  const ofServer = ['server', 'rights', 'versions', 'space', 'not_in_backup'];
  expect(ids({})).toEqual([]);
  expect(ids({ restore })).toEqual(['programs_restore']);
  expect(ids({ restore: { ...restore, ask } })).toEqual(['programs_restore', ...ofServer]);
  expect(ids({ restore: { ...restore, ask }, backup: undefined })).toEqual(['programs_restore']);
  expect(
    ids({ replay: { files: [], position: { file: 'b.1', position: 4 }, isMariadb: true }, refused: 'no' }),
  ).toEqual(['log_whole', 'until']);
});

test('an end that cannot be reached is refused with its reason; missing programs are named', async () => {
  const restore = { commands: [['cat']], programs: ['cat', 'no-such-program'] };
  const check = checksOf('postgres', none, {}, { refused: 'the log ends before', restore });
  expect(await check('until')).toBe('false: the log ends before');
  expect(await check('programs_restore')).toBe('false: no-such-program is not in the path');
});

test('programs are looked for in the path, in its order, and only files count that may be executed', async () => {
  const [one, two] = [newFolder(), newFolder()];
  writeProgram(two, 'tool', 'true');
  writeFileSync(join(one, 'text'), '');
  mkdirSync(join(one, 'folder'));
  chmodSync(join(one, 'folder'), 0o755);
  const answer = async (names: string[], path: string | undefined = `${one}:${two}`) => {
    const { holds, msg } = await answerOf(
      programsThere(
        'safety_copy',
        names.map((name) => [name]),
        path,
      ),
    );
    return `${holds}: ${msg}`;
  };
  expect(programsThere('safety_copy', [], '').text).toBe('the programs of safety copy are installed');
  expect(await answer(['tool', join(two, 'tool'), 'tool'])).toBe(`true: tool, ${join(two, 'tool')}`);
  expect(await answer(['folder', 'tool', 'none'])).toBe('false: folder, none is not in the path');
  expect(await answer(['tool'], '')).toBe('false: tool is not in the path');
});

const replayOf = (over: object) => ({
  files: ['/log/b.1', '/log/b.2'],
  position: { file: 'b.1', position: 4 },
  isMariadb: true,
  ...over,
});
const event = (time: string) => `#261123 ${time} server id 1\n`;
test.each([
  ['no file', { files: [] }, '', 'false: b.1, in which the dump began, is not there'],
  ['two files', {}, event('12:00:00'), 'true: 2 files from b.1:4'],
  [
    'a statement that would be left out',
    {},
    'INSERT INTO svc.t VALUES (1)\n',
    'false: a statement of another default database changes svc, and would be left out: INSERT INTO svc.t VALUES (1)',
  ],
  [
    'a database that is gone',
    {},
    `${event('12:00:00')}DROP DATABASE svc\n`,
    'false: in the log svc is dropped at 2026-11-23T12:00:00Z: leave that out with --until 2026-11-23T12:00:00Z',
  ],
  [
    'a database that is created again',
    {},
    `${event('12:00:00')}DROP DATABASE svc\nCREATE DATABASE svc\n`,
    'true: 2 files from b.1:4; svc is dropped at 2026-11-23T12:00:00Z and created again, as an earlier restore does',
  ],
  [
    'an end before the dump',
    { until: new Date('2026-11-23T12:00:00Z') },
    event('12:00:00'),
    'false: the dump has what was written at 2026-11-23T12:00:00Z, and --until is not after that',
  ],
  [
    'an end after the dump',
    { until: new Date('2026-11-23T12:00:01Z') },
    event('12:00:00'),
    'true: 2 files from b.1:4',
  ],
])('the binary log: %s', async (_, over, text, answer) => {
  const programs = newFolder();
  writeFileSync(join(programs, 'log'), text);
  writeProgram(programs, 'mysqlbinlog', `cat ${join(programs, 'log')}`);
  expect(
    await checksOf('mysql', none, {}, { programs, database: 'svc', replay: replayOf(over) })('log_whole'),
  ).toBe(answer);
});

test('a log that cannot be read is no log', async () => {
  const programs = newFolder();
  writeProgram(programs, 'mysqlbinlog', 'echo cut off >&2; exit 1');
  expect(await checksOf('mysql', none, {}, { programs, replay: replayOf({}) })('log_whole')).toMatch(
    /^false: env: exit status 1: cut off/,
  );
});

test('what does not answer, but does not refuse, is a server; an address that is none, too', async () => {
  const closed = `127.0.0.1:${await freePort()}`;
  const backup = dumpWith(ofPostgres('15.18'));
  expect(await checksOf('postgres', backup, {}, { address: closed })('server')).toBe(
    `false: nothing listens at ${closed}: start a server of version 15.18 or newer there, and run the same command again`,
  );
  expect(await checksOf('postgres', none, {}, { address: closed })('server')).toBe(
    `false: nothing listens at ${closed}: start a server there, and run the same command again`,
  );
  expect(await checksOf('postgres', none, {}, { address: 'none' })('server')).toBe('true: none');
  // A connection to the broadcast address ends with an error of another kind.
  const odd = '255.255.255.255:1';
  expect(await checksOf('postgres', none, {}, { address: odd })('server')).toBe(`true: ${odd}`);
});

test('a compressed dump in SQL is unpacked to find its tables; the administrator is called as the store calls it', async () => {
  const file = join(newFolder(), 'svc.sql.gz');
  writeFileSync(file, gzipSync('CREATE TABLE `executions` (\n'));
  const check = checksOf('mysql', file, { TABLE_NAME: 'executions\nlater' });
  expect(await check('not_in_backup')).toContain('will be in the safety copy only: later');
  const texts = (['mysql', 'postgres'] as const).map(
    (kind) =>
      createRestoreChecks({
        ...{ store: { ...storeOn(1), kind }, database: 'svc', backup: none, env: {} },
        restore: { commands: [['cat']], programs: [], ask: () => ['true'] } as never,
      })
        .needs()
        .find(({ id }) => id === 'rights')?.text,
  );
  expect(texts).toEqual(['root may log in and restore', 'postgres may log in and restore']);
});
