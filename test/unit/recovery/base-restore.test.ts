import { execFileSync } from 'node:child_process';
import { existsSync, lstatSync, mkdirSync, readFileSync, symlinkSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { gzipSync } from 'node:zlib';
import { expect, test } from 'vitest';
import { baseRestore, restoreCommand, walArchive } from '../../../src/agent/recovery/base-restore.ts';
import { newFolder } from '../../folder.ts';

const segment = '000000010000000000000003';

/** Fills in a restore_command and runs it, like PostgreSQL. */
const fetch = (command: string, file: string, to: string) =>
  execFileSync(
    'sh',
    ['-c', command.replace(/%([%fp])/g, (_, name: '%' | 'f' | 'p') => ({ '%': '%', f: file, p: to })[name])],
    { stdio: 'pipe' },
  );

test.each([
  ['as they are', segment, (bytes: Buffer) => bytes],
  ['compressed', `${segment}.gz`, (bytes: Buffer) => gzipSync(bytes)],
  ['in the folder of their log file', `${segment.slice(0, 16)}/${segment}`, (bytes: Buffer) => bytes],
  ['compressed, in a folder', `${segment.slice(0, 16)}/${segment}.gz`, (bytes: Buffer) => gzipSync(bytes)],
])(
  'segments are fetched %s, from a path that a shell and PostgreSQL would read otherwise',
  (_, name, written) => {
    const place = join(newFolder(), "50% of it's $HOME");
    const content = Buffer.from('a segment');
    mkdirSync(join(place, name, '..'), { recursive: true });
    writeFileSync(join(place, name), written(content));
    const to = join(place, 'RECOVERYXLOG');
    fetch(restoreCommand(place)!, segment, `'${to.replaceAll("'", `'\\''`)}'`);
    expect(readFileSync(to)).toEqual(content);
    // This is the end of the log: PostgreSQL continues when a file does not exist.
    expect(() => fetch(restoreCommand(place)!, '000000010000000000000004', '/dev/null')).toThrow();
  },
);

test('without an archive there is nothing to fetch from; with one of segments no tool is named', () => {
  const linesWith = (archive?: string) => baseRestore(newFolder(), archive, undefined).join('\n');
  expect(linesWith()).not.toMatch(/archive|restore_command/);
  const archive = newFolder();
  writeFileSync(join(archive, segment), '');
  expect(linesWith(archive)).toContain('restore_command = ');
  expect(linesWith(archive)).not.toContain('the archive of a tool');
});

test('the archive of a tool is left to the tool', () => {
  const place = newFolder();
  mkdirSync(join(place, segment.slice(0, 16)));
  writeFileSync(join(place, segment.slice(0, 16), `${segment}-${'a'.repeat(40)}.gz`), '');
  expect(restoreCommand(place)).toBeUndefined();
});

test.each([
  [
    'with a part of a segment, a history and a label beside it',
    [segment, `${segment}.partial`, '00000002.history', `${segment}.00000028.backup`, 'notes.txt'],
    true,
  ],
  ['that are compressed in two ways', [`${segment}.zst`, `${segment}.bz2`], true],
  ['of WAL-G', [`${segment}.br`], false],
  ['without any segment', ['00000002.history'], true],
])('an archive %s', (_, names, isPlain) => {
  const place = newFolder();
  for (const name of names) writeFileSync(join(place, name), '');
  const command = restoreCommand(place);
  expect(command !== undefined).toBe(isPlain);
  for (const [suffix, program] of [
    ['zst', 'zstd'],
    ['bz2', 'bzip2'],
    ['gz', 'gzip'],
  ] as const)
    expect(command?.includes(`{ test -f ${place}/%f.${suffix} && ${program} -dc `) ?? false).toBe(
      isPlain && names.includes(`${segment}.${suffix}`),
    );
});

test('the archive of a store is that of its write-ahead log', () => {
  const entry = (store: string, source: object) => ({ store, source }) as never;
  const wal = { kind: 'segments', log: 'wal', directory: '/wal' };
  const others = [
    entry('far', { ...wal, directory: '/far' }),
    entry('main', { ...wal, log: 'binlog' }),
    entry('main', { ...wal, kind: 'files' }),
  ];
  expect(walArchive('main', { backups: [...others, entry('main', wal)] })).toBe('/wal');
  expect(walArchive('main', { backups: others })).toBeUndefined();
  expect(walArchive('main', { backups: [entry('main', { kind: 'segments', log: 'wal' })] })).toBeUndefined();
});

/** Runs the lines that an operator gets, with `DATA_DIRECTORY` in a folder, without changing owners. */
function restored(folder: string, ...[archive, until]: [string?, Parameters<typeof baseRestore>[2]?]) {
  const data = join(newFolder(), 'data');
  mkdirSync(data);
  writeFileSync(join(data, 'damaged'), '');
  const lines = baseRestore(folder, archive, until).map((line) => line.replaceAll('DATA_DIRECTORY', data));
  const run = () => execFileSync('sh', ['-ec', ['chown() { :; }', ...lines].join('\n')], { stdio: 'pipe' });
  run();
  return { data, lines, run, conf: () => readFileSync(join(data, 'postgresql.auto.conf'), 'utf8') };
}

function base(): string {
  const folder = newFolder();
  writeFileSync(join(folder, 'PG_VERSION'), '15');
  writeFileSync(join(folder, 'postgresql.auto.conf'), "work_mem = '1MB'\n");
  return folder;
}

test('the lines put the backup in place, keep what was there, and may be run again', () => {
  const folder = base();
  symlinkSync(newFolder(), join(folder, 'link'));
  const { data, lines, run, conf } = restored(folder);
  run();
  // A link that is not the log is only copied.
  expect(lines.join('\n')).not.toContain('pg_wal');
  expect(readFileSync(join(data, 'PG_VERSION'), 'utf8')).toBe('15');
  expect(existsSync(join(data, 'recovery.signal'))).toBe(true);
  expect(existsSync(join(data, 'damaged'))).toBe(false);
  expect(existsSync(join(`${data}.damaged`, 'damaged'))).toBe(true);
  expect(lstatSync(data).mode & 0o777).toBe(0o700);
  expect(conf()).toBe("work_mem = '1MB'\nrecovery_target_action = 'promote'\n");
});

test('the end of the log is a setting; settings of an earlier recovery go', () => {
  const folder = base();
  writeFileSync(join(folder, 'postgresql.auto.conf'), "recovery_target_time = 'old'\nwork_mem = '1MB'\n");
  writeFileSync(join(folder, 'postgresql.conf'), "port = 5432\n  recovery_target_xid = '1'\n");
  writeFileSync(join(folder, 'standby.signal'), '');
  const archive = newFolder();
  const { data, conf } = restored(folder, archive, {
    ...{ time: new Date('2026-11-23T12:00:00.5Z'), xid: '77', name: "it's", timeline: 3 },
  });
  expect(conf().split('\n')).toEqual([
    "work_mem = '1MB'",
    `restore_command = 'cp ${archive}/%f %p'`,
    "recovery_target_time = '2026-11-23 12:00:00.500+00'",
    'recovery_target_inclusive = off',
    "recovery_target_xid = '77'",
    "recovery_target_name = 'it''s'",
    "recovery_target_timeline = '3'",
    "recovery_target_action = 'promote'",
    '',
  ]);
  expect(readFileSync(join(data, 'postgresql.conf'), 'utf8')).toBe('port = 5432\n');
  expect(existsSync(join(data, 'standby.signal'))).toBe(false);
});

test.each([
  [{ time: new Date('2026-11-23T12:00:00Z') }, ['time', 'inclusive']],
  [{ xid: '77' }, ['xid']],
  [{ name: 'before-upgrade' }, ['name']],
  [{ timeline: 3 }, ['timeline']],
])('PostgreSQL gets no other end of the log than the one that is asked for: %j', (until, settings) => {
  const { conf } = restored(base(), undefined, until);
  expect([...conf().matchAll(/^recovery_target_(\w+)/gm)].map(([, name]) => name)).toEqual([
    ...settings,
    'action',
  ]);
});

test('tablespaces and a log in another place are copied, so that the server does not work on the backup', () => {
  const folder = base();
  const [space, log] = [newFolder(), newFolder()];
  writeFileSync(join(space, 'rows'), 'rows');
  writeFileSync(join(log, 'segment'), 'log');
  mkdirSync(join(folder, 'pg_tblspc'));
  symlinkSync(space, join(folder, 'pg_tblspc', '16400'));
  writeFileSync(join(folder, 'pg_tblspc', 'no-link'), '');
  symlinkSync(log, join(folder, 'pg_wal'));
  symlinkSync(log, join(folder, 'other'));
  const { data, lines } = restored(folder);
  expect(lstatSync(join(data, 'pg_wal')).isSymbolicLink()).toBe(false);
  expect(lstatSync(join(data, 'other')).isSymbolicLink()).toBe(true);
  writeFileSync(join(data, 'pg_tblspc', '16400', 'rows'), 'changed');
  expect(readFileSync(join(space, 'rows'), 'utf8')).toBe('rows');
  expect(readFileSync(join(`${data}.tablespace-16400`, 'rows'), 'utf8')).toBe('changed');
  expect(lines.filter((line) => line.includes('no-link'))).toEqual([]);
});

test('of the archive of a tool, the lines say that it needs its own command', () => {
  const archive = newFolder();
  writeFileSync(join(archive, `${segment}.br`), '');
  const { lines, conf } = restored(base(), archive);
  expect(lines).toContain(`# ${archive} is the archive of a tool: set its own restore_command.`);
  expect(conf()).not.toContain('restore_command');
  expect(restored(base()).lines.join('\n')).not.toContain('archive of a tool');
});
