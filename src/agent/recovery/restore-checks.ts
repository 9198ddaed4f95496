import { accessSync, constants, existsSync, statfsSync, statSync } from 'node:fs';
import { connect } from 'node:net';
import { dirname } from 'node:path';
import { isLoopback, parseAddress } from '../../core/address.ts';
import { errorText, systemCode } from '../../core/errors.ts';
import { findProgram, runCommand } from '../../probes/command.ts';
import { escapedText, sqlText } from '../../probes/stores/sql-text.ts';
import type { StoreOptions } from '../../probes/stores/store-options.ts';
import { printLog, readDumpHeader, readLog, timeOfPosition } from './binary-log.ts';
import {
  advisory,
  type Check,
  type CheckAnswer,
  check,
  no,
  ofExecution,
  refusedBy,
  unknown,
  yes,
} from './check.ts';
import type { LogReplay, Restore } from './restore.ts';
import { filesText } from './target.ts';

/** The checks of a restore that can be made before anything is stopped. */
export interface RestoreChecks {
  /** The requested end can be reached, whoever restores. */
  reaches(): readonly Check[];
  /** The programs, the server, the rights and the space allow the restore. */
  needs(): readonly Check[];
  /** The programs and the space allow the safety copy. */
  copyNeeds(): readonly Check[];
  /** There is no database to copy. */
  nothingToCopy(): Check;
}

interface RestoreChecksDeps {
  store: StoreOptions | undefined;
  database: string | undefined;
  backup: string | undefined;
  restore: Restore;
  replay?: LogReplay;
  /** Why the restore cannot reach what was requested. */
  refused?: string;
  env: Readonly<Record<string, string>>;
}

const askMs = 60_000;
const longestScanMs = 4 * 36e5;
const maxBytes = 64 << 20;

/** The programs of commands are installed. */
export const programsThere = (
  id: string,
  commands: readonly (readonly string[])[],
  path: string | undefined,
): Check =>
  ofExecution(
    check(`programs_${id}`, `the programs of ${id.replace('_', ' ')} are installed`, async () => {
      const wanted = [...new Set(commands.map(([program = '']) => program))];
      const missing = wanted.filter((name) => findProgram(name, path) === undefined);
      return missing.length === 0 ? yes(wanted.join(', ')) : no(`${missing.join(', ')} is not in the path`);
    }),
  );

export function createRestoreChecks(deps: RestoreChecksDeps): RestoreChecks {
  const { restore, replay, backup, database = '', env } = deps;
  const { ask, safetyCopy } = restore;
  const run = async (words: readonly string[], withinMs = askMs) =>
    (await runCommand(words, { signal: AbortSignal.timeout(withinMs), maxBytes, env })).stdout;
  let isThere = true;
  const asked = async (statement: string) => {
    if (!isThere) throw new Error('the server does not answer');
    return run(ask!(statement));
  };
  const server = ofExecution({
    ...check('server', 'the server answers', async () => {
      isThere = !(await refuses(deps.store));
      return isThere ? yes(deps.store?.address ?? '') : no(await provisioning(deps, run));
    }),
    isNeverForced: true,
  });
  const checks: Check[] = [];
  const programs = restore.programs.map((name) => [name]);
  if (restore.commands) checks.push(programsThere('restore', programs, env.PATH));
  if (restore.commands && ask && backup !== undefined) {
    checks.push(
      server,
      rightsCheck(deps, asked),
      versionCheck(deps, backup, asked, run),
      spaceCheck(deps, backup, asked),
      extrasCheck(deps, backup, run),
    );
  }
  if (replay) checks.push(logCheck(replay, database, env));
  return {
    reaches: () =>
      deps.refused === undefined
        ? []
        : [check('until', 'the restore reaches as far as asked', async () => no(deps.refused!))],
    needs: () => checks.map(ofExecution),
    copyNeeds: () =>
      safetyCopy
        ? [
            programsThere('safety_copy', safetyCopy.commands, env.PATH),
            ...(ask ? [server] : []),
            ...copySpace(deps, backup, asked).map(ofExecution),
          ]
        : [],
    nothingToCopy: () =>
      check('nothing_to_copy', 'there is nothing to copy', async () => {
        if (!ask) return no('the database may hold data');
        const there = await asked(databaseExists(deps.store?.kind, database));
        return there.trim() === '1' ? no('the database is there') : yes(`there is no database ${database}`);
      }),
  };
}

/** Whether nothing listens at the store's address. Other checks show whether what listens accepts statements. */
function refuses(store: StoreOptions | undefined): Promise<boolean> {
  const address = parseAddress(store?.address ?? '');
  if (!address) return Promise.resolve(false);
  return new Promise((resolve) => {
    const socket = connect({ ...address, timeout: 10_000 });
    const end = (isRefused: boolean) => {
      socket.destroy();
      resolve(isRefused);
    };
    socket.once('connect', () => end(false));
    socket.once('timeout', () => end(false));
    socket.once('error', (thrown) => end(systemCode(thrown) === 'ECONNREFUSED'));
  });
}

/** What a person does who has no server to restore to. */
async function provisioning(
  { store, backup = '' }: RestoreChecksDeps,
  run: (words: readonly string[]) => Promise<string>,
): Promise<string> {
  const roles = ['globals', 'grants'].map((what) => `${backup}.${what}.sql`).find(existsSync);
  const version = await dumpedFrom(store?.kind, backup, run).catch(() => undefined);
  return [
    `nothing listens at ${store?.address}: start a server${version === undefined ? '' : ` of version ${version} or newer`} there`,
    ...(roles === undefined ? [] : [`create its users (${roles})`]),
    'and run the same command again',
  ].join(', ');
}

const databaseExists = (kind: StoreOptions['kind'] | undefined, database: string): string =>
  kind === 'mysql'
    ? `SELECT COUNT(*) FROM information_schema.SCHEMATA WHERE SCHEMA_NAME = ${escapedText(database)}`
    : `SELECT count(*) FROM pg_database WHERE datname = ${sqlText(database)}`;

type Asked = (statement: string) => Promise<string>;

/** The administrator has the rights for the restore. */
function rightsCheck({ store }: RestoreChecksDeps, asked: Asked): Check {
  const user = store?.kind === 'mysql' ? 'root' : 'postgres';
  return check('rights', `${user} may log in and restore`, async () => {
    try {
      if (store?.kind === 'mysql') {
        const grants = await asked('SHOW GRANTS');
        const isAll =
          /^GRANT ALL PRIVILEGES ON \*\.\* /m.test(grants) ||
          /^GRANT .*\bCREATE\b.* ON \*\.\* /m.test(grants);
        return isAll
          ? yes('it may create databases')
          : no(`its rights are ${grants.trim().replaceAll('\n', '; ')}`);
      }
      const row = await asked(
        'SELECT rolsuper OR rolcreatedb, pg_is_in_recovery() FROM pg_roles WHERE rolname = current_user',
      );
      const [may, isStandby] = row.trim().split('|');
      if (isStandby === 't') return no('the server is a standby, which takes no writes');
      return may === 't' ? yes('it may create databases') : no('it may not create databases');
    } catch (thrown) {
      return refusedBy(thrown);
    }
  });
}

const majorOf = (version: string, kind: StoreOptions['kind']): number => {
  const [first = 0, second = 0] = (/\d+(?:\.\d+)*/.exec(version)?.[0] ?? '').split('.').map(Number);
  // Since version 10, the first number of PostgreSQL's version is the major version.
  return kind === 'postgres' && first >= 10 ? first * 1000 : first * 1000 + second;
};

/** The version of the server that was dumped; undefined if the dump does not state it. */
async function dumpedFrom(
  kind: StoreOptions['kind'] | undefined,
  backup: string,
  run: (words: readonly string[]) => Promise<string>,
): Promise<string | undefined> {
  if (kind !== 'postgres' || isScript(backup)) return (await readDumpHeader(backup)).serverVersion;
  return /^;\s+Dumped from database version: (\S+)/m.exec(await run(['pg_restore', '--list', backup]))?.[1];
}

/** The program reads this dump, and the server is not older than the server that was dumped. */
function versionCheck(
  { store }: RestoreChecksDeps,
  backup: string,
  asked: Asked,
  run: (words: readonly string[]) => Promise<string>,
): Check {
  return check(
    'versions',
    'the program can read the dump, and the server is not older than the dump',
    async () => {
      const kind = store?.kind ?? 'postgres';
      try {
        const from = await dumpedFrom(kind, backup, run);
        const server = (await asked(kind === 'mysql' ? 'SELECT VERSION()' : 'SHOW server_version')).trim();
        if (from === undefined) return unknown(`the dump names no version; the server has version ${server}`);
        const isOther = kind === 'mysql' && /mariadb/i.test(from) !== /mariadb/i.test(server);
        const text = `the dump is from version ${from}, the server has version ${server}`;
        return !isOther && majorOf(server, kind) >= majorOf(from, kind) ? yes(text) : no(text);
      } catch (thrown) {
        return refusedBy(thrown);
      }
    },
  );
}

const inMebibytes = (bytes: number) => `${Math.ceil(bytes / 1024 ** 2)} MiB`;

function freeIn(directory: string): number {
  const { bavail, bsize } = statfsSync(directory);
  return bavail * bsize;
}

/** The data directory of the server, if it is on this host. */
async function placeOnThisHost(
  store: StoreOptions | undefined,
  asked: Asked,
): Promise<{ directory: string } | { elsewhere: string }> {
  const address = parseAddress(store?.address ?? '');
  if (!address || !isLoopback(address.host)) return { elsewhere: 'the server is on another host' };
  const statement = store?.kind === 'mysql' ? 'SELECT @@datadir' : 'SHOW data_directory';
  const directory = (await asked(statement)).trim();
  return existsSync(directory) ? { directory } : { elsewhere: `${directory} is not on this host` };
}

/** There is space for the restore, which takes at least the size of its dump. The space on another host is not known. */
function spaceCheck({ store }: RestoreChecksDeps, backup: string, asked: Asked): Check {
  return advisory('space', 'the server has space for the restore', async () => {
    const place = await placeOnThisHost(store, asked);
    if ('elsewhere' in place) return unknown(place.elsewhere);
    const [free, least] = [freeIn(place.directory), statSync(backup).size];
    const text = `${inMebibytes(free)} free in ${place.directory}, the dump has ${inMebibytes(least)}`;
    return free > least ? yes(text) : no(text);
  });
}

const leaveOut = '--no-safety-copy leaves the copy out';

/** The place of the safety copy can be written to and has space. */
function copySpace(
  { store, database = '', restore }: RestoreChecksDeps,
  backup: string | undefined,
  asked: Asked,
): readonly Check[] {
  if (restore.safetyCopy === undefined || backup === undefined) return [];
  const { directory } = restore.safetyCopy;
  if (directory !== undefined)
    return [check('copy_space', 'the safety copy can be written', () => copyInDirectory(directory, backup))];
  if (store?.kind !== 'postgres') return [];
  // The copy is a second database. The restore needs the first one and its own space until it is committed.
  return [
    advisory('copy_space', 'the server has space for the safety copy', async () => {
      const size = `SELECT coalesce(max(pg_database_size(oid)), 0) FROM pg_database WHERE datname = ${sqlText(database)}`;
      const bytes = Number(await asked(size));
      if (bytes === 0) return yes('there is nothing to copy');
      const place = await placeOnThisHost(store, asked);
      if ('elsewhere' in place) return unknown(place.elsewhere);
      const [free, least] = [freeIn(place.directory), bytes + statSync(backup).size];
      const text = `${inMebibytes(free)} free in ${place.directory}, the database has ${inMebibytes(bytes)}`;
      return free > least ? yes(text) : no(`${text}; ${leaveOut}`);
    }),
  ];
}

async function copyInDirectory(directory: string, backup: string): Promise<CheckAnswer> {
  let place = directory;
  while (!existsSync(place)) place = dirname(place);
  try {
    accessSync(place, constants.W_OK);
  } catch (thrown) {
    return no(`${place}: ${errorText(thrown)}; ${leaveOut}`);
  }
  const [free, least] = [freeIn(place), statSync(backup).size];
  const text = `${inMebibytes(free)} free in ${place}`;
  return free > least ? yes(text) : no(`${text}, the dump has ${inMebibytes(least)}; ${leaveOut}`);
}

const tablesOf = (kind: StoreOptions['kind'] | undefined, database: string): string =>
  kind === 'mysql'
    ? `SELECT TABLE_NAME FROM information_schema.TABLES WHERE TABLE_TYPE = 'BASE TABLE' AND TABLE_SCHEMA = ${escapedText(database)}`
    : "SELECT schemaname || '.' || tablename FROM pg_tables WHERE schemaname NOT IN ('pg_catalog', 'information_schema')";

/** Lists the tables that are in the database and not in the dump. They are no reason to refuse. */
function extrasCheck(
  { store, database = '', restore }: RestoreChecksDeps,
  backup: string,
  run: (words: readonly string[], withinMs?: number) => Promise<string>,
): Check {
  const isMysql = store?.kind === 'mysql';
  return advisory('not_in_backup', 'what is in the database is in the backup, too', async () => {
    const saved = new Set(
      isMysql || isScript(backup)
        ? tablesOfScript(await run(scan(backup), longestScanMs))
        : tablesOfArchive(await run(['pg_restore', '--list', backup])),
    );
    const there = await run(restore.ask!(tablesOf(store?.kind, database), database)).catch(() => '');
    const names = there.split('\n').filter(Boolean);
    const extra = names.filter((name) => !saved.has(name)).sort();
    if (extra.length === 0) return yes(names.length === 0 ? 'there is nothing' : `${names.length} tables`);
    const fate = isMysql ? 'will be in the safety copy only' : 'stay as they are';
    return unknown(`these tables are not in the backup, and ${fate}: ${extra.join(', ')}`);
  });
}

/** The log after the dump can be read to its end, and everything of this database in it will be applied. */
function logCheck(replay: LogReplay, database: string, env: RestoreChecksDeps['env']): Check {
  const { files, position, until } = replay;
  const printed = printLog(files, position, database, replay);
  return check('log_whole', 'the binary log can be applied to the dump', async () => {
    const [first] = files;
    if (first === undefined) return no(`${position.file}, in which the dump began, is not there`);
    try {
      const dumpedMs = until && (await timeOfPosition(first, position, env));
      if (until && dumpedMs !== undefined && dumpedMs >= until.getTime())
        return no(`the dump has what was written at ${timeText(dumpedMs)}, and --until is not after that`);
      const content = await readLog(printed, database, env);
      const { leftOut, isGone, droppedMs } = content;
      if (leftOut !== undefined)
        return no(
          `a statement of another default database changes ${database}, and would be left out: ${leftOut}`,
        );
      const dropped = droppedMs && `${database} is dropped at ${timeText(droppedMs)}`;
      if (isGone) return no(`in the log ${dropped}: leave that out with --until ${timeText(droppedMs!)}`);
      const again = dropped ? `; ${dropped} and created again, as an earlier restore does` : '';
      return yes(`${filesText(files)} from ${position.file}:${position.position}${again}`);
    } catch (thrown) {
      return refusedBy(thrown);
    }
  });
}

const timeText = (ms: number) => new Date(ms).toISOString().replace('.000Z', 'Z');

const isScript = (file: string) => /\.sql(?:\.gz)?$/.test(file);

const scan = (file: string): readonly string[] => [
  ...[
    'bash',
    '-c',
    `${file.endsWith('.gz') ? 'gzip --decompress --stdout' : 'cat'} "$0" | grep -a '^CREATE TABLE ' || true`,
  ],
  file,
];

/** The tables that a script creates: `schema.table`, as PostgreSQL writes it, or the name alone as MySQL writes it. */
const tablesOfScript = (text: string) =>
  [...text.matchAll(/^CREATE TABLE (?:IF NOT EXISTS )?(\S+)/gm)].map(([, name = '']) =>
    name.replace(/[`"(]/g, ''),
  );
const tablesOfArchive = (text: string) =>
  [...text.matchAll(/^\d+; \d+ \d+ TABLE (\S+) (\S+) /gm)].map(([, schema, name]) => `${schema}.${name}`);
