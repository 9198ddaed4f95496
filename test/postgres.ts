import { type ChildProcess, execFileSync, spawn } from 'node:child_process';
import { appendFileSync, chownSync, existsSync, mkdirSync, readdirSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import pg from 'pg';
import { available } from './installed.ts';
import { freePort } from './ports.ts';
import { copyTemplate, folder } from './run-folder.ts';
import { until } from './until.ts';

const debian = '/usr/lib/postgresql';

/** The folder with the programs of the newest installed server; undefined if no server is installed. */
const programs = (existsSync(debian) ? readdirSync(debian) : [])
  .sort((one, other) => Number(other) - Number(one))
  .map((version) => join(debian, version, 'bin'))
  .find((folder) => existsSync(join(folder, 'initdb')));

/** The user as which the server runs, because it refuses root. */
function owner(): { uid: number; gid: number } | undefined {
  if (process.getuid?.() !== 0) return {} as { uid: number; gid: number };
  try {
    const id = (flag: string) => Number(execFileSync('id', [flag, 'postgres'], { encoding: 'utf8' }));
    return { uid: id('-u'), gid: id('-g') };
  } catch {
    return undefined;
  }
}

export const hasPostgres = available('PostgreSQL', programs !== undefined && owner() !== undefined);

/** Runs one of PostgreSQL's programs as the server's owner; returns its output. */
export function postgresProgram(name: string, args: readonly string[], input?: string): string {
  return execFileSync(join(programs!, name), args, {
    ...owner(),
    input,
    cwd: tmpdir(),
    encoding: 'utf8',
    stdio: ['pipe', 'pipe', 'pipe'],
  });
}

/** The arguments with which a program of PostgreSQL connects to a server. */
export function connectionTo({ port }: { port: number }): string[] {
  return ['-h', '127.0.0.1', '-p', String(port), '-U', 'postgres'];
}

/** The folder of PostgreSQL's programs. */
export const postgresPrograms = programs ?? '';

/** A command that runs another one as the server's owner, for tools that work on its files. */
export function asPostgres(command: readonly string[]): string[] {
  const { uid, gid } = owner()!;
  if (uid === undefined) return [...command];
  return ['setpriv', `--reuid=${uid}`, `--regid=${gid}`, '--clear-groups', ...command];
}

/** Starts one of PostgreSQL's programs as the server's owner; the caller ends it. */
export function startPostgresProgram(name: string, args: readonly string[]): ChildProcess {
  return spawn(join(programs!, name), args, { ...owner(), cwd: tmpdir(), stdio: 'ignore' });
}

/** Gives a file to the user as which the server runs. */
export function ownedByPostgres(path: string): void {
  const { uid, gid } = owner()!;
  if (uid !== undefined) chownSync(path, uid, gid);
}

/** Creates the folder, to which the server's owner may write. */
export function ownedFolder(path: string, mode?: number): void {
  mkdirSync(path, { mode });
  ownedByPostgres(path);
}

/** A new folder that the server's owner may write to. */
export function postgresFolder(): string {
  const { path } = folder();
  ownedByPostgres(path);
  return path;
}

/** Creates the table with the version of the schema of `svc`. */
export const schemaTable =
  "CREATE TABLE schema_version AS SELECT 'svc' AS db_name, now() AS creation_time, '0.8' AS curr_version, '0.8' AS min_compatible_version";

export interface Postgres {
  folder: string;
  data: string;
  /** The port, which a restart may change. */
  readonly port: number;
  /** Runs a query over one connection as the superuser `postgres`; `stop` ends the connection. */
  query(sql: string, database?: string): Promise<pg.QueryResult>;
  /** Ends the current segment of WAL and waits until its archive_command has succeeded; returns the segment's name. */
  archiveWal(): Promise<string>;
  /** Adds settings that need no restart, and reloads them. */
  configure(settings: readonly string[]): void;
  /** Restarts the server with additional `settings` and the same data. */
  restart(settings?: readonly string[], whileDown?: () => void): Promise<void>;
  /** Ends the connections of `query`; the next query opens another. */
  disconnect(): Promise<void>;
  /** Kills the process. */
  kill(): Promise<void>;
  stop(): Promise<void>;
}

const exited = (child: ChildProcess) =>
  child.exitCode !== null || child.signalCode !== null
    ? Promise.resolve()
    : new Promise<void>((resolve) => child.once('exit', () => resolve()));

/** Whether this server answers on the port, and not another server that bound the port meanwhile. */
async function answers(port: number, data: string): Promise<boolean> {
  const client = new pg.Client({ host: '127.0.0.1', port, user: 'postgres', ssl: false });
  client.on('error', () => {});
  try {
    await client.connect();
    return (await client.query('SHOW data_directory')).rows[0].data_directory === data;
  } catch {
    return false;
  } finally {
    await client.end().catch(() => {});
  }
}

/** Waits until the server answers; false if it ended instead. */
async function ready(child: ChildProcess, port: number, data: string): Promise<boolean> {
  const hasEnded = () => child.exitCode !== null || child.signalCode !== null;
  try {
    await until('PostgreSQL answers or ends', async () => hasEnded() || (await answers(port, data)));
  } catch {
    child.kill('SIGQUIT');
  }
  return !hasEnded();
}

interface PostgresOptions {
  /** `name=value` for each setting that is not the default. */
  settings?: readonly string[];
  /** Archives each finished segment `%p` of the log, whose name is `%f`. */
  archiveCommand?: string;
  /** Uses this data directory instead of a new one; `stop` does not remove it. */
  data?: string;
  /** Options of initdb. Servers with the same options are copies of one data directory and have the same system identifier. */
  initdb?: readonly string[];
}

/** Starts a real server on loopback with its own data directory, fast rather than safe. */
export async function startPostgres({
  settings = [],
  archiveCommand,
  data,
  initdb = [],
}: PostgresOptions = {}): Promise<Postgres> {
  const own = postgresFolder();
  const dataFolder = data ?? join(own, 'data');
  if (data === undefined) {
    copyTemplate(['postgres', ...initdb].join(''), dataFolder, (template) => {
      const kind = ['-U', 'postgres', '-A', 'trust', '--locale=C', '-E', 'UTF8'];
      postgresProgram('initdb', ['-D', template, '--no-sync', ...kind, ...initdb]);
    });
  }
  let port = 0;
  const clients = new Map<string, pg.Client>();
  let said = '';
  let child: ChildProcess;

  const write = (more: readonly string[]) => {
    // The last line of each name is used.
    const lines = more.map((setting) =>
      setting.replace(/^(\w+)=(.*)$/s, (_, name, value) => `${name} = '${value}'\n`),
    );
    appendFileSync(join(dataFolder, 'postgresql.conf'), lines.join(''));
  };
  const start = async () => {
    for (let attempt = 0; attempt < 5; attempt++) {
      port = await freePort();
      write([`port=${port}`]);
      child = spawn(join(programs!, 'postgres'), ['-D', dataFolder], {
        ...owner(),
        cwd: own,
        stdio: ['ignore', 'ignore', 'pipe'],
      });
      child.stderr!.on('data', (chunk: Buffer) => {
        said = (said + chunk.toString()).slice(-4000);
      });
      if (await ready(child, port, dataFolder)) return;
      await exited(child);
    }
    throw new Error(`PostgreSQL does not start: ${said}`);
  };
  const disconnect = async () => {
    for (const client of clients.values()) await client.end().catch(() => {});
    clients.clear();
  };
  const end = async (signal: NodeJS.Signals) => {
    await disconnect();
    child.kill(signal);
    await exited(child);
  };

  write([
    ...['fsync=off', 'listen_addresses=127.0.0.1', `unix_socket_directories=${own}`],
    ...['shared_buffers=16MB', 'dynamic_shared_memory_type=mmap', 'autovacuum=off', 'log_timezone=UTC'],
    ...(archiveCommand ? ['archive_mode=on', `archive_command=${archiveCommand}`] : []),
    ...settings,
  ]);
  const query: Postgres['query'] = async (sql, database = 'postgres') => {
    let client = clients.get(database);
    if (client === undefined) {
      client = new pg.Client({ host: '127.0.0.1', port, user: 'postgres', database, ssl: false });
      // This happens for example after DROP DATABASE … WITH (FORCE).
      client.on('error', () => clients.delete(database));
      await client.connect();
      clients.set(database, client);
    }
    return client.query(sql);
  };
  await start();
  return {
    folder: own,
    data: dataFolder,
    get port() {
      return port;
    },
    query,
    disconnect,
    async archiveWal() {
      const { rows } = await query('SELECT pg_walfile_name(pg_switch_wal()) AS name');
      const last = 'SELECT last_archived_wal AS name FROM pg_stat_archiver';
      await until(
        `${rows[0].name} is archived`,
        async () => (await query(last)).rows[0].name >= rows[0].name,
      );
      return rows[0].name;
    },
    configure(more) {
      write(more);
      child.kill('SIGHUP');
    },
    async restart(more = [], whileDown = () => {}) {
      await end('SIGINT');
      whileDown();
      write(more);
      await start();
    },
    kill: () => end('SIGQUIT'),
    async stop() {
      await end('SIGQUIT');
      rmSync(own, { recursive: true, force: true });
    },
  };
}

/** Runs a program of a backup tool in a directory to which its user has access, and returns what it prints. */
export function printedBy([program, ...args]: readonly string[]): string {
  return execFileSync(program!, args, { cwd: '/', encoding: 'utf8', stdio: ['ignore', 'pipe', 'pipe'] });
}

/** An archive command after which a segment has its name once it is whole. */
export const copyInto = (directory: string): string =>
  `cp %p ${directory}/%f.part && mv ${directory}/%f.part ${directory}/%f`;

/** Starts a server that copies each finished segment of its log into the folder `archive` below `folder`. */
export async function startArchiving(options: PostgresOptions = {}) {
  const own = postgresFolder();
  const archive = join(own, 'archive');
  ownedFolder(archive);
  const server = await startPostgres({ ...options, archiveCommand: `cp %p ${archive}/%f` });
  return { folder: own, archive, server };
}
