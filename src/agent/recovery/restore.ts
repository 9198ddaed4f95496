import { statSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { type Address, parseAddress } from '../../core/address.ts';
import { sqlText } from '../../probes/stores/sql-text.ts';
import type { StoreOptions } from '../../probes/stores/store-options.ts';
import type { AgentConfig } from '../config/types.ts';
import { baseRestore, isBaseBackup, type RestoreUntil, walArchive } from './base-restore.ts';
import { printLog, withoutIds } from './binary-log.ts';
import type { Subject } from './commands.ts';

/** How one database is restored with the store's own programs: the commands, or what an operator does by hand. */
export interface Restore {
  /** Commands that run one after the other; undefined if they are not enough, for example because the server must be stopped. */
  commands?: readonly (readonly string[])[];
  /** Shell lines for the operator. */
  byHand?: readonly string[];
  /** Copies the present content of the database. */
  safetyCopy?: SafetyCopy;
  /** The command that runs one statement as the administrator, in the database if one is named, and prints one row per line. */
  ask?(statement: string, database?: string): readonly string[];
  /** Programs that the commands run. */
  programs: readonly string[];
}

interface SafetyCopy {
  /** Name or path of the copy. */
  name: string;
  commands: readonly (readonly string[])[];
  /** The directory in which the copy is written, if it is on this host. */
  directory?: string;
}

/** The binary log that is applied after a dump. */
export interface LogReplay {
  files: readonly string[];
  position: { file: string; position: number };
  isMariadb: boolean;
  until?: Date;
}

interface RestorePlan {
  subject: Subject;
  until?: RestoreUntil;
  replay?: LogReplay;
  /** When the run began, for names of copies. */
  startMs: number;
}

type RestoreOfKind = (
  plan: RestorePlan & { file: string; database: string },
  address: Address | undefined,
) => Restore;

const usual = { postgres: 5432, mysql: 3306 };

const kinds: Readonly<Partial<Record<StoreOptions['kind'], RestoreOfKind>>> = {
  postgres: restorePostgres,
  mysql: restoreMysql,
};

export function restoreOf(
  plan: RestorePlan,
  { stores, backups }: Pick<AgentConfig, 'stores' | 'backups'>,
): Restore {
  const { subject, until, startMs } = plan;
  const store = stores.find(({ name }) => name === subject.store);
  const database = subject.database && store?.databases[subject.database];
  if (!store || !database) return { programs: [] };
  const file = subject.backup;
  const address = parseAddress(store.address);
  if (store.kind === 'widecolumn') {
    const name = copyName(database, startMs);
    const commands = [['nodetool', 'snapshot', '--tag', name, database]];
    return { programs: [], safetyCopy: { name: `the snapshot ${name}`, commands } };
  }
  if (file === undefined) return { programs: [] };
  if (!isDirectory(file))
    return kinds[store.kind]?.({ ...plan, file, database }, address) ?? { programs: [] };
  if (store.kind !== 'postgres' || !isBaseBackup(file)) return { programs: [] };
  return { programs: [], byHand: baseRestore(file, walArchive(store.name, { backups }), until) };
}

const isDirectory = (path: string) => statSync(path, { throwIfNoEntry: false })?.isDirectory() ?? false;

const stampOf = (ms: number) => new Date(ms).toISOString().replace(/[-:]|\.\d+/g, '');
/** The name of the copy, cut to the length that a name may have. */
const copyName = (database: string, startMs: number) => `${database.slice(0, 32)}_before_${stampOf(startMs)}`;

function restorePostgres(
  { file, database, startMs }: RestorePlan & { file: string; database: string },
  { host, port } = { host: 'localhost', port: usual.postgres },
): Restore {
  const server = ['--host', host, '--port', String(port), '--username', 'postgres', '--no-password'];
  const psql = (name: string) => [
    ...['psql', ...server, '--dbname', name],
    ...['--no-psqlrc', '--set', 'ON_ERROR_STOP=1', '--quiet'],
  ];
  const generated = (statement: string) => [
    'bash',
    '-c',
    'printf "%s\\n" "$0" | "$@"',
    `${statement} \\gexec`,
    ...psql('postgres'),
  ];
  const text = sqlText(database);
  const copy = copyName(database, startMs);
  // A copy that reads the files as they are, so that a damaged page does not stop it.
  const strategy = `CASE WHEN current_setting('server_version_num')::int >= 150000 THEN ' STRATEGY FILE_COPY' ELSE '' END`;
  const missing = (name: string) => `NOT EXISTS (SELECT FROM pg_database WHERE datname = ${sqlText(name)})`;
  const isText = /\.sql(?:\.gz)?$/.test(file);
  return {
    programs: ['bash', 'psql', ...(isText ? [file.endsWith('.gz') ? 'gzip' : 'cat'] : ['pg_restore'])],
    commands: [
      generated(`SELECT format('CREATE DATABASE %I', ${text}) WHERE ${missing(database)}`),
      // The restore is one transaction: if it is interrupted, the database is as before.
      isText
        ? unpacked(file, [...psql(database), '--single-transaction', '--file', '-'])
        : [
            ...['pg_restore', ...server, '--dbname', database],
            ...['--clean', '--if-exists', '--exit-on-error', '--single-transaction', file],
          ],
    ],
    safetyCopy: {
      name: `the database ${copy}`,
      commands: [
        generated(
          `SELECT format('CREATE DATABASE %I TEMPLATE %I', ${sqlText(copy)}, ${text}) || ${strategy} WHERE ${missing(copy)}`,
        ),
      ],
    },
    ask: (statement, into = 'postgres') => [
      ...psql(into),
      '--no-align',
      '--tuples-only',
      '--command',
      statement,
    ],
  };
}

function restoreMysql(
  { file, database, replay, startMs }: RestorePlan & { file: string; database: string },
  { host, port } = { host: 'localhost', port: usual.mysql },
): Restore {
  const server = [`--host=${host}`, `--port=${port}`, '--user=root'];
  const mysql = ['mysql', ...server];
  const name = `\`${database.replaceAll('`', '``')}\``;
  // Tables that are not in the dump are removed: the log creates them again.
  const create = `DROP DATABASE IF EXISTS ${name}; CREATE DATABASE ${name}`;
  const directory = join(dirname(file), 'before-recovery');
  const copy = join(directory, `${copyName(database, startMs)}.sql.gz`);
  const dump = ['mysqldump', ...server, '--single-transaction', '--routines', '--triggers', '--events'];
  const log =
    replay &&
    printLog(replay.files, replay.position, database, { isMariadb: replay.isMariadb, until: replay.until });
  return {
    programs: [
      'bash',
      'mysql',
      file.endsWith('.gz') ? 'gzip' : 'cat',
      ...(log ? ['mysqlbinlog', 'sed'] : []),
    ],
    commands: [
      [...mysql, `--execute=${create}`],
      unpacked(file, [...mysql, database]),
      ...(log ? [piped(log, ...(replay.isMariadb ? [withoutIds] : []), mysql)] : []),
    ],
    safetyCopy: {
      name: copy,
      directory,
      commands: [
        [
          ...['bash', '-o', 'pipefail', '-c'],
          // On a full disk, half a copy would prevent everything else.
          'umask 077; mkdir -p "$(dirname "$0")" && "$@" | gzip > "$0.part" && mv "$0.part" "$0" || { rm -f "$0.part"; exit 1; }',
          ...[copy, ...dump, '--hex-blob', database],
        ],
      ],
    },
    ask: (statement) => [...mysql, '--batch', '--skip-column-names', `--execute=${statement}`],
  };
}

/** The client that reads the file, which is unpacked on the way. */
function unpacked(file: string, client: readonly string[]): readonly string[] {
  const read = file.endsWith('.gz') ? 'gzip --decompress --stdout' : 'cat';
  return ['bash', '-o', 'pipefail', '-c', `${read} "$0" | "$@"`, file, ...client];
}

/**
 * Commands each of which reads the output of the command before it. All words are arguments of the shell, so that the shell does
 * not interpret them.
 */
function piped(...commands: readonly (readonly string[])[]): readonly string[] {
  let at = 1;
  const parts = commands.map(({ length }) => {
    at += length;
    return `"\${@:${at - length}:${length}}"`;
  });
  return ['bash', '-o', 'pipefail', '-c', parts.join(' | '), 'bash', ...commands.flat()];
}
