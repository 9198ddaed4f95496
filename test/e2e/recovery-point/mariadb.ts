import { execFile, execFileSync, spawnSync } from 'node:child_process';
import {
  appendFileSync,
  cpSync,
  existsSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmSync,
  statSync,
  truncateSync,
  unlinkSync,
  writeFileSync,
} from 'node:fs';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { gunzipSync, gzipSync } from 'node:zlib';
import { type Mariadb, startMariadb } from '../../mariadb.ts';
import { until } from '../../until.ts';
import { type Bed, fromServer, oneOf, type Plot, plot, type Random } from './round.ts';

interface MariadbBed extends Bed {
  server: Mariadb;
  /** The directory of the dumps and of the backups of mariadb-backup. */
  backups: string;
  /** The directory of the copied binary logs. */
  binlog: string;
  dump(name?: string, ...more: readonly string[]): Promise<string>;
  /** Makes a backup of its server, or of another one. */
  physical(of?: Mariadb): Promise<string>;
  /** Begins a new file, and copies the closed files of its server, or of another one. */
  archive(of?: Mariadb): Promise<void>;
}

const stamp = (ms = Date.now()) => `${new Date(ms).toISOString().replace(/[-:]|\..*/g, '')}Z`;
/** Runs in parallel with the writer, whose rows may be in the backup or not. */
const inBackground = promisify(execFile);
const inShell = (script: string, ...args: string[]) =>
  spawnSync('bash', ['-o', 'pipefail', '-c', script, 'bash', ...args], { encoding: 'utf8' });

const logsOf = (bed: MariadbBed) =>
  readdirSync(bed.binlog)
    .filter((name) => /^bin\.\d+$/.test(name))
    .sort()
    .map((name) => join(bed.binlog, name));

/** The rows of the ledger; none if it does not exist. */
const rowsOf = async (server: Mariadb): Promise<number[]> => {
  try {
    return (await server.sql('SELECT seq FROM svc.ledger ORDER BY seq')).map(({ seq }) => Number(seq));
  } catch {
    return [];
  }
};

/** Applies the log from a position to its end, or to the first event that cannot be read, as an operator does. */
function applyLog(bed: MariadbBed, server: Mariadb, log: string, position: string): void {
  const files = logsOf(bed).filter((path) => path >= join(bed.binlog, log));
  if (files[0] !== join(bed.binlog, log)) return;
  // Files after a missing one do not continue it.
  const numbers = files.map((path) => Number(path.slice(-6)));
  const whole = files.filter((_, at) => numbers[at]! - numbers[0]! === at);
  const options = ['--no-defaults', `--start-position=${position}`];
  const client = `mysql --no-defaults --socket=${join(server.folder, 's')} --user=root`;
  inShell(`mariadb-binlog "$@" | ${client} --binary-mode`, ...options, ...whole);
}

async function restoreDump(bed: MariadbBed, path: string): Promise<number[]> {
  const server = await startMariadb();
  try {
    const bytes = readFileSync(path);
    let text: string;
    try {
      text = (bytes[0] === 0x1f ? gunzipSync(bytes) : bytes).toString('latin1');
    } catch {
      return [];
    }
    await server.sql('CREATE DATABASE svc');
    const socket = ['--no-defaults', `--socket=${join(server.folder, 's')}`, '--user=root'];
    const loaded = spawnSync('mysql', [...socket, 'svc'], { input: Buffer.from(text, 'latin1') });
    const [, log, position] = /MASTER_LOG_FILE='([^']+)', MASTER_LOG_POS=(\d+)/.exec(text) ?? [];
    // Applying a log to half a dump is no restore.
    if (loaded.status === 0 && log && position) applyLog(bed, server, log, position);
    return await rowsOf(server);
  } finally {
    await server.stop();
  }
}

async function restorePhysical(bed: MariadbBed, path: string): Promise<number[]> {
  const data = `${path}.restored`;
  cpSync(path, data, { recursive: true });
  try {
    const prepared = spawnSync('mariadb-backup', ['--no-defaults', '--prepare', `--target-dir=${data}`]);
    if (prepared.status !== 0) return [];
    if (process.getuid?.() === 0) execFileSync('chown', ['-R', 'mysql:', data]);
    const server = await startMariadb(`--datadir=${data}`);
    try {
      const info = join(data, 'xtrabackup_binlog_info');
      const [log, position] = existsSync(info) ? readFileSync(info, 'utf8').split(/\s+/) : [];
      if (log && position) applyLog(bed, server, log, position);
      return await rowsOf(server);
    } finally {
      await server.stop();
    }
  } catch {
    return [];
  } finally {
    rmSync(data, { recursive: true, force: true });
  }
}

/** A server with a binary log, and a configuration that observes dumps or copies of its files, and the log. */
export async function mariadbBed(
  random: Random,
  { settings = [], isOfReplica }: Pick<Plot<MariadbBed>, 'settings' | 'isOfReplica'> = {},
): Promise<MariadbBed> {
  const server = await startMariadb('--log-bin=bin', '--server-id=1', ...settings);
  const backups = join(server.folder, 'backups');
  const binlog = join(backups, 'binlog');
  mkdirSync(binlog, { recursive: true });
  await server.sql('CREATE DATABASE svc');
  await server.sql('CREATE TABLE svc.ledger (seq INT PRIMARY KEY, at DATETIME(6)) ENGINE = InnoDB');
  await server.sql('CREATE TABLE svc.tasks (i INT PRIMARY KEY) ENGINE = InnoDB');
  const level = oneOf(random, ['header', 'full', 'full', 'full']);
  const socket = `--socket=${join(server.folder, 's')}`;
  const zone = oneOf(random, ['UTC', 'Asia/Tokyo', 'America/Los_Angeles']);
  const hasZone = random() < 0.6;
  const ofZone = `${hasZone ? `, timeZone: ${zone}` : ''}${fromServer(random, isOfReplica)}`;
  let nth = 0;
  let isLost = false;
  const bed: MariadbBed = {
    server,
    backups,
    binlog,
    level,
    hasZone,
    state: join(server.folder, 'state'),
    yaml: `stores: [{name: main, kind: mysql, address: '127.0.0.1:${server.port}', user: root, databases: {persistence: svc}}]
backups:
  - {name: dump, store: main, database: persistence, type: full, source: {files: {directory: ${backups}, pattern: '^dump-(?<time>\\d{8}T\\d{6}Z).*', settle: 1ms${ofZone}}}, integrity: {level: ${level}}}
  - {name: physical, store: main, database: persistence, type: full, source: {files: {directory: ${backups}, pattern: '^physical-(?<time>\\d{8}T\\d{6}Z)-\\d+$', settle: 1ms${ofZone}}}, integrity: {level: ${level}}}
  - {name: binlog, store: main, database: persistence, type: log, source: {segments: {directory: ${binlog}, log: binlog, settle: 1ms}}}
`,
    // This is one statement, which the server commits before it answers.
    write: (sequence) => server.sql(`INSERT INTO svc.ledger VALUES (${sequence}, NOW(6))`),
    async dump(name = `dump-${stamp()}-${nth++}.sql.gz`, ...more) {
      bed.begunMs = Date.now();
      const path = join(backups, name);
      const options = ['--no-defaults', socket, '--user=root', '--single-transaction', '--master-data=2'];
      const script = `mariadb-dump "\${@:2}" | gzip > "$1"`;
      const args = [
        '-o',
        'pipefail',
        '-c',
        script,
        'bash',
        path,
        ...options,
        ...(more.length > 0 ? more : ['svc']),
      ];
      await inBackground('bash', args, { env: { ...process.env, TZ: zone } });
      // This is the record that `svc-agent backup run` writes.
      const run = { startMs: bed.begunMs, endMs: Date.now(), status: 0 };
      const records = join(bed.state!, 'backup-runs');
      mkdirSync(records, { recursive: true });
      appendFileSync(join(records, 'dump.jsonl'), `${JSON.stringify(run)}\n`);
      return path;
    },
    async physical(of = server) {
      bed.begunMs = Date.now();
      const path = join(backups, `physical-${stamp()}-${nth++}`);
      const from = [`--socket=${join(of.folder, 's')}`, `--datadir=${join(of.folder, 'data')}`];
      const options = ['--no-defaults', '--backup', '--user=root', ...from];
      await inBackground('mariadb-backup', [...options, `--target-dir=${path}`], {
        env: { ...process.env, TZ: zone },
      });
      return path;
    },
    async archive(of = server) {
      bed.begunMs = Date.now();
      await of.sql('FLUSH BINARY LOGS');
      const closed = (await of.sql('SHOW BINARY LOGS')).map(({ Log_name }) => String(Log_name)).slice(0, -1);
      for (const name of closed)
        if (!existsSync(join(binlog, name))) cpSync(join(of.folder, 'data', name), join(binlog, name));
    },
    async lose() {
      isLost = true;
      // Its folder contains the backups, too, which stay until the bed is removed.
      server.signal('SIGKILL');
    },
    async restores() {
      const found: number[][] = [];
      for (const name of readdirSync(backups)) {
        const path = join(backups, name);
        if (/^dump-/.test(name)) found.push(await restoreDump(bed, path));
        if (/^physical-.*-\d+$/.test(name)) found.push(await restorePhysical(bed, path));
      }
      return found;
    },
    async remove() {
      if (!isLost) server.signal('SIGKILL');
      await server.stop();
    },
  };
  return bed;
}

const withLog = (backup: 'dump' | 'physical'): Plot<MariadbBed>['play'] =>
  async function play(bed, { random, rows }) {
    await bed[backup]();
    const files = 2 + Math.floor(random() * 3);
    for (let n = 0; n < files; n++) {
      await rows(3 + Math.floor(random() * 10));
      await bed.archive();
    }
  };
const dumpAndLog = withLog('dump');

const newest = (bed: MariadbBed, pattern: RegExp) =>
  join(
    bed.backups,
    readdirSync(bed.backups)
      .filter((name) => pattern.test(name))
      .sort()
      .at(-1)!,
  );

/** A dump that another server made of a database with the same name, beside the log files of this one. */
const dumpOfAnother: Plot<MariadbBed>['play'] = async (bed, { rows, random }) => {
  const other = await startMariadb('--log-bin=bin', '--server-id=2');
  try {
    await other.sql('CREATE DATABASE svc');
    await other.sql('CREATE TABLE svc.ledger (seq INT PRIMARY KEY, at DATETIME(6)) ENGINE = InnoDB');
    await other.sql('CREATE TABLE svc.tasks (i INT PRIMARY KEY) ENGINE = InnoDB');
    // The first rows went there before it was cut off from this server.
    const taken = 1 + Math.floor(random() * 5);
    await other.sql(`INSERT INTO svc.ledger SELECT seq, NOW(6) FROM svc.seq_1_to_${taken}`);
    await bed.dump(undefined, 'svc', `--socket=${join(other.folder, 's')}`);
  } finally {
    await other.stop();
  }
  for (let n = 0; n < 2; n++) {
    await rows(5);
    await bed.archive();
  }
};

/** Backups of a replica that has stopped applying what it receives, while its clock continues. */
const ofReplica =
  (
    play: (
      bed: MariadbBed,
      replica: Mariadb,
      moments: Parameters<Plot<MariadbBed>['play']>[1],
    ) => Promise<void>,
  ): Plot<MariadbBed>['play'] =>
  async (bed, moments) => {
    const logs = oneOf(moments.random, ['--log-slave-updates', '--skip-log-slave-updates']);
    const replica = await startMariadb('--log-bin=bin', '--server-id=2', logs);
    try {
      await replica.sql(
        `CHANGE MASTER TO MASTER_HOST = '127.0.0.1', MASTER_PORT = ${bed.server.port}, MASTER_USER = 'root', MASTER_USE_GTID = slave_pos; START SLAVE`,
      );
      await until('it has applied rows', async () => (await rowsOf(replica)).length > 0);
      await play(bed, replica, moments);
    } finally {
      await replica.stop();
    }
  };
const lag = async (replica: Mariadb, rows: (count: number) => Promise<void>) => {
  await replica.sql('STOP SLAVE SQL_THREAD');
  await rows(100);
};

export const mariadbPlots: readonly Plot<MariadbBed>[] = [
  { name: 'a dump with its log', isGood: true, play: dumpAndLog },
  { name: 'a copy of the files with the log', isGood: true, play: withLog('physical') },
  plot('the log was not copied for a while', async (bed, moments) => {
    await dumpAndLog(bed, moments);
    await moments.rows(60);
  }),
  {
    name: 'the copies were copied by cp -r',
    async play(bed, moments) {
      await dumpAndLog(bed, moments);
      await moments.rows(60);
    },
    after(bed) {
      execFileSync('cp', ['-r', bed.binlog, `${bed.binlog}.copy`]);
      rmSync(bed.binlog, { recursive: true });
      renameSync(`${bed.binlog}.copy`, bed.binlog);
    },
  },
  plot('half a binary log', dumpAndLog, (bed, random) => {
    const path = oneOf(random, logsOf(bed));
    truncateSync(path, Math.floor(statSync(path).size * (0.2 + 0.7 * random())));
  }),
  plot('the newest binary log is half', dumpAndLog, (bed, random) => {
    const path = logsOf(bed).at(-1)!;
    truncateSync(path, Math.floor(statSync(path).size * (0.3 + 0.6 * random())));
  }),
  plot('a damaged byte in a binary log', dumpAndLog, (bed, random) => {
    const path = oneOf(random, logsOf(bed));
    const bytes = readFileSync(path);
    bytes[Math.floor(bytes.length * (0.3 + 0.6 * random()))]! ^= 0x10;
    writeFileSync(path, bytes);
  }),
  {
    name: 'a binary log in the middle is gone',
    async play(bed, moments) {
      await dumpAndLog(bed, moments);
      await moments.rows(5);
      await bed.archive();
    },
    after: (bed, random) => unlinkSync(oneOf(random, logsOf(bed).slice(1, -1))),
  },
  plot('the log of the dump is gone', dumpAndLog, (bed) => {
    const log = /MASTER_LOG_FILE='([^']+)'/.exec(
      gunzipSync(readFileSync(newest(bed, /^dump-/))).toString(),
    )![1]!;
    for (const path of logsOf(bed)) if (path <= join(bed.binlog, log)) unlinkSync(path);
  }),
  plot('an old dump under a new name, without its log', async (bed, { rows }) => {
    const path = await bed.dump();
    await rows(150);
    renameSync(path, join(bed.backups, `dump-${stamp()}-new.sql.gz`));
  }),
  plot('half a dump', async (bed, { rows, random }) => {
    await bed.server.sql('INSERT INTO svc.tasks SELECT seq FROM svc.seq_1_to_5000');
    const path = await bed.dump();
    const text = gunzipSync(readFileSync(path));
    const half = text.subarray(0, Math.floor(text.length * (0.2 + 0.7 * random())));
    writeFileSync(path, gzipSync(half));
    await rows(10);
  }),
  ...[
    ['svc', 'ledger'],
    ['svc', '--ignore-table=svc.ledger'],
    ['svc', '--where=1 LIMIT 3'],
    ['svc', '--no-create-info'],
    ['svc', '--no-data'],
  ].map(
    (options): Plot<MariadbBed> => ({
      name: `a dump with ${options[1]}`,
      async play(bed, { rows }) {
        await bed.server.sql('CREATE TABLE svc.timers (seq INT PRIMARY KEY) ENGINE = InnoDB');
        await rows(5);
        await bed.dump(undefined, ...options);
        for (let n = 0; n < 2; n++) {
          await rows(5);
          await bed.archive();
        }
      },
    }),
  ),
  plot('gzip of an error message', async (bed, { rows }) => {
    const message = 'mariadb-dump: Got error: 1045: "Access denied for user" when trying to connect\n';
    writeFileSync(join(bed.backups, `dump-${stamp()}-0.sql.gz`), gzipSync(message));
    await rows(10);
  }),
  plot('a dump of another database', async (bed, { rows }) => {
    await bed.server.sql('CREATE DATABASE other; CREATE TABLE other.things (i INT PRIMARY KEY)');
    const socket = `--socket=${join(bed.server.folder, 's')}`;
    const path = join(bed.backups, `dump-${stamp()}-0.sql.gz`);
    const { status } = inShell(
      `mariadb-dump --no-defaults ${socket} --user=root --single-transaction --master-data=2 other | gzip > "$1"`,
      path,
    );
    if (status !== 0) throw new Error('mariadb-dump failed');
    await rows(10);
  }),
  {
    name: 'a copy of the files lacks a table',
    play: withLog('physical'),
    after(bed) {
      const path = newest(bed, /^physical-.*-\d+$/);
      for (const name of readdirSync(join(path, 'svc')))
        if (name.startsWith('ledger.')) unlinkSync(join(path, 'svc', name));
    },
  },
  {
    name: 'a copy of the files lacks a table that was created while it was made',
    play: withLog('physical'),
    after(bed) {
      // The tool names what was created meanwhile ledger.new until it is prepared.
      const path = newest(bed, /^physical-.*-\d+$/);
      for (const name of readdirSync(join(path, 'svc')))
        if (/^ledger\.(?:ibd|new)$/.test(name)) unlinkSync(join(path, 'svc', name));
    },
  },
  plot('a table without transactions', async (bed, moments) => {
    await bed.server.sql('ALTER TABLE svc.ledger ENGINE = Aria');
    // The table is dumped before, so that rows are written to the ledger meanwhile.
    await bed.server.sql('CREATE TABLE svc.executions ENGINE = InnoDB SELECT seq FROM svc.seq_1_to_300000');
    await dumpAndLog(bed, moments);
  }),
  {
    name: 'the server leaves the database out of its log',
    settings: ['--binlog-ignore-db=svc'],
    async play(bed, moments) {
      await dumpAndLog(bed, moments);
      await moments.rows(150);
      await bed.archive();
    },
  },
  {
    name: 'the server logs another database only',
    settings: ['--binlog-do-db=other'],
    play: withLog('physical'),
  },
  plot('the log was reset after the dump', async (bed, moments) => {
    await dumpAndLog(bed, moments);
    await bed.server.sql('RESET MASTER');
    // The copies of the first files belong to the new log.
    for (const path of logsOf(bed)) unlinkSync(path);
    for (let n = 0; n < 3; n++) {
      await moments.rows(40);
      await bed.archive();
    }
  }),
  {
    name: 'the server is started again',
    isGood: true,
    async play(bed, moments) {
      await dumpAndLog(bed, moments);
      if (moments.random() < 0.5) bed.server.signal('SIGKILL');
      bed.restarts = bed.server.restart();
      await bed.restarts;
      bed.restarts = undefined;
      await moments.rows(10);
      await bed.archive();
    },
  },
  plot('a session has set its time into the future', async (bed, moments) => {
    await dumpAndLog(bed, moments);
    await moments.rows(5);
    const client = `mysql --no-defaults --socket=${join(bed.server.folder, 's')} --user=root`;
    const statements = 'SET timestamp = UNIX_TIMESTAMP() + 20; INSERT INTO svc.tasks VALUES (1)';
    const [{ File }] = (await bed.server.sql('SHOW MASTER STATUS')) as [{ File: string }];
    const { status } = inShell(`${client} --execute="$1"`, statements);
    if (status !== 0) throw new Error('the session failed');
    cpSync(join(bed.server.folder, 'data', File), join(bed.binlog, File), { preserveTimestamps: true });
    await moments.rows(60);
  }),
  // The server was cut off: to call it the primary would be wrong, and nothing in the dump shows that.
  { name: 'a dump of another server', isOfReplica: true, play: dumpOfAnother },
  {
    name: 'a dump is of a replica that is behind',
    isOfReplica: true,
    play: ofReplica(async (bed, replica, { rows }) => {
      await lag(replica, rows);
      await bed.dump(undefined, 'svc', `--socket=${join(replica.folder, 's')}`);
      await rows(10);
    }),
  },
  {
    name: 'a copy of the files is of a replica that is behind',
    isOfReplica: true,
    play: ofReplica(async (bed, replica, { rows }) => {
      await lag(replica, rows);
      await bed.physical(replica);
      await rows(10);
    }),
  },
  {
    name: 'a dump and its log are of a replica that is behind',
    isOfReplica: true,
    play: ofReplica(async (bed, replica, { rows }) => {
      await bed.dump(undefined, 'svc', `--socket=${join(replica.folder, 's')}`);
      await rows(20);
      await bed.archive(replica);
      await lag(replica, rows);
      await bed.archive(replica);
    }),
  },
  plot('the position of the dump is behind the copies of the log', dumpAndLog, (bed) => {
    const path = newest(bed, /^dump-/);
    const text = gunzipSync(readFileSync(path)).toString('latin1');
    const later = text.replace(/(MASTER_LOG_FILE='bin\.)\d+/, '$1000009');
    writeFileSync(path, gzipSync(Buffer.from(later, 'latin1')));
  }),
  plot('a dump without its position', async (bed, { rows }) => {
    await bed.dump(undefined, '--skip-master-data', 'svc');
    for (let n = 0; n < 2; n++) {
      await rows(5);
      await bed.archive();
    }
  }),
];
