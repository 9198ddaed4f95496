import { type ChildProcess, execFileSync, spawn } from 'node:child_process';
import { existsSync, mkdirSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { type Connection, createConnection, type RowDataPacket } from 'mysql2/promise';
import { available } from './installed.ts';
import type { PollTarget } from './poll-store.ts';
import { freePort } from './ports.ts';
import { copyTemplate, folder } from './run-folder.ts';
import { pollUntil, until } from './until.ts';

const server = ['/usr/sbin/mariadbd', '/usr/local/bin/mariadbd'].find(existsSync);
const installer = ['/usr/bin/mariadb-install-db', '/usr/local/bin/mariadb-install-db'].find(existsSync);

export const hasMariadb = available('MariaDB', server !== undefined && installer !== undefined);

/** The server refuses to run as root. */
const owner = process.getuid?.() === 0 ? ['--user=mysql'] : [];
const small = ['--innodb-log-file-size=4M', '--innodb-buffer-pool-size=8M', '--innodb-flush-method=nosync'];
const common = ['--skip-name-resolve', ...small];

type Rows = RowDataPacket[];

export interface Mariadb {
  folder: string;
  port: number;
  /** Runs a statement as root, over the server's own socket; a query returns its rows. */
  sql(statement: string): Promise<Rows>;
  /** Restarts the server with additional `settings`, the same data and the same port. */
  restart(settings?: readonly string[]): Promise<void>;
  signal(name: NodeJS.Signals): void;
  stop(): Promise<void>;
}

const hasEnded = (child: ChildProcess): boolean => child.exitCode !== null || child.signalCode !== null;

function ended(child: ChildProcess): Promise<void> {
  return hasEnded(child) ? Promise.resolve() : new Promise((resolve) => child.once('exit', () => resolve()));
}

/** A new folder that the server may write to. */
function newFolder(): string {
  const { path } = folder();
  if (owner.length > 0) execFileSync('chown', ['mysql', path]);
  return path;
}

/**
 * The environment of a server. A server that starts removes the temporary tables of all others from their common directory, so
 * each has its own.
 */
const withTemporaryFilesIn = (folder: string) => ({ ...process.env, TMPDIR: folder });

/** `layout` has settings that only a new data directory accepts. */
function newData(data: string, layout: readonly string[]): void {
  const make = (made: string) => {
    mkdirSync(made);
    if (owner.length > 0) execFileSync('chown', ['mysql', made]);
    const kind = ['--auth-root-authentication-method=normal', '--skip-test-db', ...layout];
    execFileSync(installer!, ['--no-defaults', ...owner, `--datadir=${made}`, ...kind, ...common], {
      stdio: 'pipe',
      env: withTemporaryFilesIn(made),
    });
  };
  if (layout.length > 0) make(data);
  else copyTemplate('mariadb', data, make);
}

/** Resolves with a connection when the server answers, and with undefined if the server has ended. */
async function connected(child: ChildProcess, socketPath: string): Promise<Connection | undefined> {
  const answer = async () => {
    if (hasEnded(child)) return { connection: undefined };
    const connection = await createConnection({ socketPath, user: 'root', multipleStatements: true });
    connection.on('error', () => {});
    return { connection };
  };
  try {
    return (await until('MariaDB answers', answer)).connection;
  } catch (error) {
    child.kill('SIGKILL');
    throw error;
  }
}

const galera = ['/usr/lib/galera/libgalera_smm.so', '/usr/lib/libgalera_smm.so'].find(existsSync);

export const hasGalera = available(
  'Galera',
  hasMariadb && galera !== undefined && existsSync('/usr/bin/rsync'),
);

/**
 * The settings for the nodes of one Galera cluster on loopback, the first of which founds it. A missing node is noticed within a
 * few seconds.
 */
export async function galeraSettings(nodes: number): Promise<string[][]> {
  const ports: number[] = [];
  // Each node needs three ports: for the group, for increments and for a full copy.
  for (let n = 0; n < nodes * 3; n++) ports.push(await freePort());
  const at = (n: number) => `127.0.0.1:${ports[n]}`;
  const all = Array.from({ length: nodes }, (_, n) => at(n * 3));
  const quick =
    'gcache.size=8M;pc.recovery=false;evs.keepalive_period=PT0.2S;evs.inactive_check_period=PT0.2S;' +
    'evs.suspect_timeout=PT1S;evs.inactive_timeout=PT3S;evs.install_timeout=PT3S';
  return all.map((address, n) => [
    ...['--wsrep-on=ON', `--wsrep-provider=${galera}`, '--wsrep-cluster-name=test'],
    ...['--binlog-format=ROW', '--innodb-autoinc-lock-mode=2', '--wsrep-sst-method=rsync'],
    `--wsrep-cluster-address=gcomm://${all.join(',')}`,
    ...[`--wsrep-node-address=${address}`, `--wsrep-sst-receive-address=${at(n * 3 + 2)}`],
    `--wsrep-provider-options=base_port=${ports[n * 3]};ist.recv_addr=${at(n * 3 + 1)};${quick}`,
    ...(n === 0 ? ['--wsrep-new-cluster'] : []),
  ]);
}

/** Starts a real server on loopback with its own data directory, fast rather than safe. */
export async function startMariadb(...settings: readonly string[]): Promise<Mariadb> {
  const folder = newFolder();
  const data = join(folder, 'data');
  newData(
    data,
    settings.filter((setting) => setting.startsWith('--innodb-undo-')),
  );
  const socketPath = join(folder, 's');
  const all = [...settings];
  let port = await freePort();
  let child: ChildProcess;
  let root: Connection;

  const start = async (): Promise<void> => {
    // The port was free a moment ago; another program may have bound it since.
    for (let attempt = 0; attempt < 5; attempt++) {
      let said = '';
      const where = [
        `--datadir=${data}`,
        `--socket=${socketPath}`,
        '--bind-address=127.0.0.1',
        `--port=${port}`,
      ];
      const file = `--pid-file=${join(folder, 'pid')}`;
      child = spawn(server!, ['--no-defaults', ...owner, ...where, file, ...common, ...all], {
        stdio: ['ignore', 'ignore', 'pipe'],
        env: withTemporaryFilesIn(folder),
      });
      child.stderr!.on('data', (chunk: Buffer) => {
        said = (said + chunk.toString()).slice(-4000);
      });
      const connection = await connected(child, socketPath);
      if (connection !== undefined) {
        root = connection;
        return;
      }
      if (!/bind on tcp/i.test(said)) throw new Error(`MariaDB did not start: ${said}`);
      port = await freePort();
    }
  };
  const end = async (name: NodeJS.Signals): Promise<void> => {
    root.destroy();
    child.kill('SIGCONT');
    child.kill(name);
    await ended(child);
  };

  await start();
  return {
    folder,
    get port() {
      return port;
    },
    sql: async (statement) => (await root.query<Rows>(statement))[0],
    async restart(more = []) {
      await end('SIGTERM');
      all.push(...more);
      await start();
    },
    signal: (name) => void child.kill(name),
    async stop() {
      await end('SIGKILL');
      rmSync(folder, { recursive: true, force: true });
    },
  };
}

/** The schema of a store at version 0.8, as the service's own tool makes it. */
export const schemaStatements = (database: string): string => `
  CREATE DATABASE ${database};
  CREATE TABLE ${database}.schema_version (db_name VARCHAR(255) NOT NULL PRIMARY KEY, creation_time DATETIME(6),
    curr_version VARCHAR(64), min_compatible_version VARCHAR(64)) ENGINE = InnoDB;
  INSERT INTO ${database}.schema_version VALUES ('${database}', NOW(), '0.8', '0.8');
  CREATE TABLE ${database}.executions (shard_id INT NOT NULL PRIMARY KEY, data BLOB) ENGINE = InnoDB;`;

/** The target with which tests reach a server: the user `full` of `usersStatements`. */
export function targetOf({ port }: Pick<Mariadb, 'port'>, target: Partial<PollTarget> = {}): PollTarget {
  return {
    store: 'main',
    address: { host: '127.0.0.1', port },
    user: 'full',
    password: 'swordfish',
    database: 'svc_main',
    databases: ['svc_main'],
    timeoutMs: 10_000,
    ...target,
  };
}

/** Statements for a user with all rights on one database and the right to read the state of the server. */
export const usersStatements = `
  CREATE USER full@'%' IDENTIFIED BY 'swordfish';
  GRANT ALL ON svc_main.* TO full@'%';
  GRANT BINLOG MONITOR, REPLICA MONITOR ON *.* TO full@'%';`;

/** Polls like `pollUntil`, but no more often than MariaDB refreshes what it shows about transactions: every 100 ms. */
export const pollMariadb = <T>(poll: () => Promise<T>, isWanted: (answer: T) => boolean): Promise<T> =>
  pollUntil(poll, isWanted, { everyMs: 150 });
