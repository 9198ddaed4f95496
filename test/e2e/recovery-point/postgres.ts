import { execFile, execFileSync } from 'node:child_process';
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
  symlinkSync,
  truncateSync,
  unlinkSync,
  utimesSync,
  writeFileSync,
} from 'node:fs';
import { basename, join } from 'node:path';
import { promisify } from 'node:util';
import { gunzipSync, gzipSync } from 'node:zlib';
import pg from 'pg';
import { createBarman } from '../../barman.ts';
import { flip } from '../../flip.ts';
import { createPgBackRest } from '../../pgbackrest.ts';
import {
  asPostgres,
  connectionTo,
  copyInto,
  ownedByPostgres,
  ownedFolder,
  type Postgres,
  postgresFolder,
  postgresProgram,
  postgresPrograms,
  printedBy,
  startPostgres,
} from '../../postgres.ts';
import { until } from '../../until.ts';
import { type Bed, flipByte, fromServer, oneOf, type Plot, plot, type Random } from './round.ts';

export interface PostgresBed extends Bed {
  server: Postgres;
  /** The directory of base backups and dumps. */
  backups: string;
  /** The directory of the archived log. */
  wal: string;
  /** While this file exists, the archiver fails. */
  blocked: string;
  /** Makes a base backup of its server, or of another one. */
  base(of?: Postgres): Promise<void>;
  dump(
    format?: 'custom' | 'sql',
    more?: readonly string[],
    database?: string,
    name?: string,
  ): Promise<string>;
  /** Ends a segment and waits until it is archived. */
  archive(): Promise<void>;
  /** For a tool, program and arguments that restore the backup {id} into {directory}, as the server's owner. */
  restore?: readonly string[];
}

/** Runs in parallel with the writer, whose rows may be in the backup or not. */
const inBackground = promisify(execFile);
const beside = (argv: readonly string[], env: Record<string, string> = {}) => {
  const [program, ...args] = argv;
  return inBackground(program!, args, { cwd: '/', env: { ...process.env, ...env }, maxBuffer: 64 << 20 });
};

const stamp = (ms = Date.now()) => `${new Date(ms).toISOString().replace(/[-:]|\..*/g, '')}Z`;
const chownAll = (path: string) => {
  if (process.getuid?.() === 0) execFileSync('chown', ['-R', 'postgres:', path]);
};

const isSegment = (name: string) => /^[0-9A-F]{24}$/.test(name);
export const segmentsOf = (bed: PostgresBed): string[] =>
  readdirSync(bed.wal)
    .filter(isSegment)
    .sort()
    .map((name) => join(bed.wal, name));

/** The rows of the ledger in a restored server. */
async function rowsOf(server: Pick<Postgres, 'query'>, database: string): Promise<number[]> {
  const { rows } = await server.query('SELECT seq FROM ledger ORDER BY seq', database);
  return rows.map(({ seq }) => Number(seq));
}

/** Starts what was restored to `data`, lets it replay everything, and reads the ledger; nothing if it does not start. */
async function readRestored(data: string, restoreCommand?: string): Promise<number[]> {
  const settings = ['archive_mode=off', ...(restoreCommand ? [`restore_command=${restoreCommand}`] : [])];
  let server: Postgres | undefined;
  try {
    server = await startPostgres({ data, settings });
    const restored = server;
    await until('the log is replayed', async () => {
      const { rows } = await restored.query('SELECT pg_is_in_recovery() AS still');
      return rows[0].still === false;
    });
    return await rowsOf(restored, 'svc');
  } catch {
    return [];
  } finally {
    await server?.stop();
    rmSync(data, { recursive: true, force: true });
  }
}

const isBase = (path: string) => ['PG_VERSION', 'base.tar'].some((name) => existsSync(join(path, name)));

async function restoreBase(bed: PostgresBed, path: string): Promise<number[]> {
  const data = join(postgresFolder(), 'data');
  if (existsSync(join(path, 'base.tar'))) {
    mkdirSync(data);
    execFileSync('tar', ['-xf', join(path, 'base.tar'), '-C', data]);
    const log = join(path, 'pg_wal.tar');
    if (existsSync(log)) execFileSync('tar', ['-xf', log, '-C', join(data, 'pg_wal')]);
  } else cpSync(path, data, { recursive: true });
  // A standby's own mark would make the server wait for more.
  rmSync(join(data, 'standby.signal'), { force: true });
  writeFileSync(join(data, 'recovery.signal'), '');
  // The files of the lost server have its own paths and ports.
  appendFileSync(join(data, 'postgresql.conf'), "recovery_target_timeline = 'latest'\n");
  chownAll(data);
  execFileSync('chmod', ['700', data]);
  // The server refuses to start with a segment that was cut off, so an operator leaves it out.
  const isWhole = `case %f in *.*) true;; *) test "$(stat -c %%s ${bed.wal}/%f)" = 16777216;; esac`;
  const unpacked = `gunzip -c ${bed.wal}/%f.gz > %p.part && mv %p.part %p`;
  return readRestored(
    data,
    `if test -e ${bed.wal}/%f.gz; then ${unpacked}; else ${isWhole} && cp ${bed.wal}/%f %p; fi`,
  );
}

async function restoreDump(scratch: Postgres, path: string, nth: number): Promise<number[]> {
  const database = `restored_${nth}`;
  const at = [...connectionTo(scratch), '-d', database];
  await scratch.query(`CREATE DATABASE ${database}`);
  try {
    const bytes = readFileSync(path);
    const plain = bytes[0] === 0x1f ? gunzipSync(bytes) : bytes;
    if (plain.subarray(0, 5).toString() === 'PGDMP')
      postgresProgram('pg_restore', [...at, '--no-owner', path]);
    else postgresProgram('psql', [...at, '-v', 'ON_ERROR_STOP=1', '-q'], plain.toString());
  } catch {
    // What a tool restored before it failed is read all the same.
  }
  return rowsOf(scratch, database).catch(() => []);
}

/** A server with an archive of its log, and a configuration that observes bases, dumps and the log. */
export async function plainBed(
  random: Random,
  { isOfReplica }: Pick<Plot<PostgresBed>, 'isOfReplica'> = {},
): Promise<PostgresBed> {
  const backups = postgresFolder();
  const [wal, blocked] = [join(backups, 'wal'), join(backups, 'blocked')];
  ownedFolder(wal);
  const server = await startPostgres({ archiveCommand: `test ! -e ${blocked} && ${copyInto(wal)}` });
  await server.query('CREATE DATABASE svc');
  await server.query('CREATE TABLE ledger (seq int PRIMARY KEY, at timestamptz)', 'svc');
  const port = connectionTo(server);
  const walMethod = oneOf(random, ['none', 'stream']);
  const format = oneOf(random, ['plain', 'plain', 'tar']);
  // The log and a base belong to the whole server.
  const database = oneOf(random, ['', ' database: persistence,']);
  const level = oneOf(random, ['header', 'full', 'full', 'full']);
  // The zone of the host that dumps, which an operator states in the configuration or does not.
  const zone = oneOf(random, ['UTC', 'Asia/Tokyo', 'America/Los_Angeles']);
  const hasZone = random() < 0.6;
  const takenFrom = fromServer(random, isOfReplica);
  let nth = 0;
  const bed: PostgresBed = {
    server,
    backups,
    wal,
    blocked,
    level,
    hasZone,
    yaml: `stores: [{name: main, kind: postgres, address: '127.0.0.1:${server.port}', user: postgres, databases: {persistence: svc}}]
backups:
  - {name: base, store: main,${database} type: full, source: {files: {directory: ${backups}, pattern: '^base-(?<time>\\d{8}T\\d{6}Z)', settle: 1ms}}, integrity: {level: ${level}}}
  - {name: dump, store: main, database: persistence, type: full, source: {files: {directory: ${backups}, pattern: '^dump-(?<time>\\d{8}T\\d{6}Z).*', settle: 1ms${hasZone ? `, timeZone: ${zone}` : ''}${takenFrom}}}, integrity: {level: ${level}}}
  - {name: wal, store: main, database: persistence, type: log, source: {segments: {directory: ${wal}, log: wal, settle: 1ms}}}
`,
    write: (sequence) => server.query(`INSERT INTO ledger VALUES (${sequence}, clock_timestamp())`, 'svc'),
    async base(of = server) {
      bed.begunMs = Date.now();
      const path = join(backups, `base-${stamp()}-${nth++}`);
      const options = ['-D', path, `--wal-method=${walMethod}`, `--format=${format}`, '--checkpoint=fast'];
      const from = connectionTo(of);
      await beside(asPostgres([join(postgresPrograms, 'pg_basebackup'), ...from, ...options]));
    },
    async dump(format = 'custom', more = [], database = 'svc', name = `dump-${stamp()}-${nth++}`) {
      bed.begunMs = Date.now();
      const path = join(backups, name);
      const kind = format === 'custom' ? ['--format=custom', '--compress=1'] : ['--verbose'];
      const options = [...port, ...kind, ...more, '-f', path, database];
      await beside(asPostgres([join(postgresPrograms, 'pg_dump'), ...options]), { TZ: zone });
      return path;
    },
    async archive() {
      bed.begunMs = Date.now();
      await server.archiveWal();
    },
    lose: () => server.kill(),
    async restores() {
      const found: number[][] = [];
      const paths = readdirSync(backups).map((name) => join(backups, name));
      for (const path of paths.filter(isBase)) found.push(await restoreBase(bed, path));
      const dumps = paths.filter((path) => basename(path).startsWith('dump-'));
      if (dumps.length === 0) return found;
      const scratch = await startPostgres();
      for (const [at, path] of dumps.entries()) found.push(await restoreDump(scratch, path, at));
      await scratch.stop();
      return found;
    },
    async remove() {
      await server.stop();
      rmSync(backups, { recursive: true, force: true });
    },
  };
  return bed;
}

type Play = Plot<PostgresBed>['play'];

/** Makes a base, then some segments. */
const baseAndLog: Play = async (bed, { random, rows }) => {
  await bed.base();
  const segments = 3 + Math.floor(random() * 3);
  for (let n = 0; n < segments; n++) {
    await rows(3 + Math.floor(random() * 10));
    await bed.archive();
  }
};

function compress(path: string): void {
  execFileSync('gzip', [path]);
}

/** The number of bytes in which records begin and end: the rest of a switched segment is zeroes. */
function usedBytes(path: string): number {
  const bytes = readFileSync(path);
  let end = bytes.length;
  while (end > 0 && bytes[end - 1] === 0) end--;
  return end;
}

const newestDump = (bed: PostgresBed) =>
  join(
    bed.backups,
    readdirSync(bed.backups)
      .filter((name) => name.startsWith('dump-'))
      .sort()
      .at(-1)!,
  );

const dumpThen = (change: (path: string, bed: PostgresBed) => void): Plot<PostgresBed>['play'] =>
  async function play(bed, { rows }) {
    change(await bed.dump(), bed);
    await rows(10);
  };

/** A dump whose data is more than half of it. */
const bigDump: Play = async (bed, { rows }) => {
  const rowsOfTable = 'SELECT i, md5(i::text) FROM generate_series(1, 5000) i';
  await bed.server.query(`CREATE TABLE executions AS ${rowsOfTable}`, 'svc');
  await bed.dump();
  await rows(10);
};

/** A base of a standby that has received nothing for a while, without an archive of what was written meanwhile. */
const baseOfStandby: Play = async (bed, { rows }) => {
  const data = join(postgresFolder(), 'standby');
  const port = connectionTo(bed.server);
  await beside(
    asPostgres([join(postgresPrograms, 'pg_basebackup'), ...port, '-D', data, '--checkpoint=fast']),
  );
  writeFileSync(join(data, 'standby.signal'), '');
  ownedByPostgres(join(data, 'standby.signal'));
  const standby = await startPostgres({ data, settings: ['archive_mode=off'] });
  try {
    await bed.archive();
    await rows(100);
    await bed.base(standby);
    await rows(10);
  } finally {
    await standby.stop();
    rmSync(data, { recursive: true, force: true });
  }
  // Only the part of the log that the base itself needs is left.
  const last = readdirSync(bed.wal).filter(isSegment).sort().at(-1)!;
  for (const path of segmentsOf(bed)) if (basename(path) > last) unlinkSync(path);
};

/** A dump of a standby that has stopped replaying, while its host and the clocks continue. */
const dumpOfStandby: Play = async (bed, { rows, random }) => {
  const data = join(postgresFolder(), 'standby');
  const port = connectionTo(bed.server);
  const program = join(postgresPrograms, 'pg_basebackup');
  await beside(asPostgres([program, ...port, '-R', '-D', data, '--checkpoint=fast']));
  const standby = await startPostgres({ data, settings: ['archive_mode=off'] });
  try {
    await until('it replays rows', async () => (await rowsOf(standby, 'svc').catch(() => [])).length > 0);
    await standby.query('SELECT pg_wal_replay_pause()');
    await rows(100);
    await bed.dump(oneOf(random, ['custom', 'sql']), ['-p', String(standby.port)]);
    await rows(10);
  } finally {
    await standby.stop();
    rmSync(data, { recursive: true, force: true });
  }
};

/** A dump with a snapshot that a session exported long before. */
const dumpOfSnapshot: Play = async (bed, { rows }) => {
  const session = new pg.Client({
    ...{ host: '127.0.0.1', port: bed.server.port, user: 'postgres', database: 'svc', ssl: false },
  });
  await session.connect();
  try {
    await session.query('BEGIN ISOLATION LEVEL REPEATABLE READ');
    const { rows: found } = await session.query('SELECT pg_export_snapshot() AS id');
    await rows(100);
    await bed.dump('custom', [`--snapshot=${found[0].id}`]);
  } finally {
    await session.end();
  }
  await rows(10);
};

/** Replaces segments by segments of another cluster that has written as much. */
async function mixWal(bed: PostgresBed, paths: readonly string[]): Promise<void> {
  const wal = join(bed.backups, 'other-wal');
  ownedFolder(wal);
  const other = await startPostgres({
    initdb: ['--data-checksums'],
    archiveCommand: `cp %p ${wal}/%f`,
  });
  try {
    await other.query('CREATE TABLE ledger (seq int PRIMARY KEY, at timestamptz)');
    const newest = basename(paths.at(-1)!);
    for (let n = 0; !existsSync(join(wal, newest)) && n < 40; n++) {
      await other.query(`INSERT INTO ledger VALUES (${n}, clock_timestamp())`);
      await other.archiveWal();
    }
  } finally {
    await other.stop();
  }
  for (const path of paths) cpSync(join(wal, basename(path)), path);
  rmSync(wal, { recursive: true });
}

/** The table of faults. Each is played with and without the fault, with the level and the method of the round. */
export const plainPlots: readonly Plot<PostgresBed>[] = [
  { name: 'a base with its log', isGood: true, play: baseAndLog },
  { name: 'a dump', isGood: true, needsZone: true, play: dumpThen(() => {}) },
  {
    name: 'a dump in SQL',
    isGood: true,
    needsZone: true,
    async play(bed, { rows }) {
      await bed.dump('sql');
      await rows(10);
    },
  },
  plot('the log is not archived', baseAndLog, (bed) => segmentsOf(bed).forEach(unlinkSync)),
  plot('the first segment of the base is pruned', baseAndLog, (bed) => {
    const start = readdirSync(bed.wal)
      .find((name) => name.endsWith('.backup'))!
      .slice(0, 24);
    for (const path of segmentsOf(bed)) if (basename(path) <= start) unlinkSync(path);
  }),
  plot('a segment in the middle is gone', baseAndLog, (bed, random) =>
    unlinkSync(oneOf(random, segmentsOf(bed).slice(1, -1))),
  ),
  plot('the archiver is behind', async (bed, moments) => {
    await baseAndLog(bed, moments);
    writeFileSync(bed.blocked, '');
    await moments.rows(20);
    await bed.server.query('SELECT pg_switch_wal()');
    await moments.rows(20);
  }),
  {
    name: 'the archiver is behind, and the archive was copied by cp -r',
    async play(bed, moments) {
      await baseAndLog(bed, moments);
      writeFileSync(bed.blocked, '');
      await moments.rows(40);
    },
    after(bed) {
      execFileSync('cp', ['-r', bed.wal, `${bed.wal}.copy`]);
      rmSync(bed.wal, { recursive: true });
      renameSync(`${bed.wal}.copy`, bed.wal);
      chownAll(bed.wal);
    },
  },
  {
    name: 'the timeline was switched, and the first segments of the new one are missing',
    async play(bed, moments) {
      await baseAndLog(bed, moments);
      // The same data continues as a standby that is promoted.
      const promoted = async () => {
        await bed.server.restart([], () => {
          writeFileSync(join(bed.server.data, 'standby.signal'), '');
          ownedByPostgres(join(bed.server.data, 'standby.signal'));
        });
        await bed.server.query('SELECT pg_promote()');
        await until('it takes rows', () => bed.write(1_000_000).then(() => true));
      };
      bed.restarts = promoted();
      await bed.restarts;
      bed.restarts = undefined;
      for (let n = 0; n < 3; n++) {
        await moments.rows(3);
        await bed.archive();
      }
    },
    after(bed) {
      const [first] = segmentsOf(bed).filter((path) => basename(path).startsWith('00000002'));
      if (first) unlinkSync(first);
    },
  },
  plot('a segment is damaged', baseAndLog, (bed, random) => {
    const path = oneOf(random, segmentsOf(bed).slice(1));
    flip(path, Math.floor(usedBytes(path) * (0.1 + 0.8 * random())));
  }),
  plot('a segment is cut off', baseAndLog, (bed, random) => {
    const path = oneOf(random, segmentsOf(bed).slice(1));
    truncateSync(path, Math.floor(statSync(path).size * random()));
  }),
  {
    name: 'the log is compressed',
    isGood: true,
    play: baseAndLog,
    after: (bed) => segmentsOf(bed).forEach(compress),
  },
  plot('a compressed segment is cut off or damaged', baseAndLog, (bed, random) => {
    const paths = segmentsOf(bed);
    paths.forEach(compress);
    const path = `${oneOf(random, paths.slice(1))}.gz`;
    if (random() < 0.5) truncateSync(path, Math.floor(statSync(path).size * random()));
    else flipByte(path, random);
  }),
  plot('the rest of a segment is zeroes', baseAndLog, (bed, random) => {
    const path = oneOf(random, segmentsOf(bed).slice(1));
    const bytes = readFileSync(path);
    bytes.fill(0, Math.floor(usedBytes(path) * (0.1 + 0.8 * random())));
    writeFileSync(path, bytes);
  }),
  plot('a segment is empty', baseAndLog, (bed, random) =>
    truncateSync(oneOf(random, segmentsOf(bed).slice(1)), 0),
  ),
  plot('the log of another cluster is in the archive', baseAndLog, (bed, random) =>
    mixWal(bed, segmentsOf(bed).slice(random() < 0.5 ? 0 : 2)),
  ),
  { name: 'the base is of a standby that is behind', play: baseOfStandby },
  { name: 'a dump is of a standby that is behind', isOfReplica: true, play: dumpOfStandby },
  { name: 'a dump has the snapshot of an old session', isOfReplica: true, play: dumpOfSnapshot },
  plot('a table is not logged', async (bed, moments) => {
    await bed.server.query('ALTER TABLE ledger SET UNLOGGED', 'svc');
    await baseAndLog(bed, moments);
  }),
  plot('a file of the base is gone', baseAndLog, (bed, random) => {
    const path = join(bed.backups, readdirSync(bed.backups).find((name) => name.startsWith('base-'))!);
    const names = ['backup_label', 'global/pg_control', 'PG_VERSION', 'base.tar'];
    const there = names.filter((name) => existsSync(join(path, name)));
    unlinkSync(join(path, oneOf(random, there)));
  }),
  {
    name: 'the base is behind a link, and its files are links',
    isGood: true,
    async play(bed, moments) {
      await baseAndLog(bed, moments);
      const name = readdirSync(bed.backups).find((each) => each.startsWith('base-'))!;
      const aside = join(bed.backups, 'aside');
      execFileSync('cp', ['-al', join(bed.backups, name), aside]);
      rmSync(join(bed.backups, name), { recursive: true });
      symlinkSync(aside, join(bed.backups, name));
    },
  },
  plot('the newest segment is one of before under a new name', baseAndLog, (bed) => {
    const all = segmentsOf(bed);
    cpSync(all.at(-2)!, all.at(-1)!);
  }),
  plot('an old dump under a new name', async (bed, { rows }) => {
    const path = await bed.dump();
    await rows(150);
    renameSync(path, join(bed.backups, `dump-${stamp()}-new`));
  }),
  plot('an old dump copied under a new name', async (bed, { rows }) => {
    const path = await bed.dump(undefined, [], 'svc', 'old');
    await rows(150);
    cpSync(path, join(bed.backups, `dump-${stamp()}-new`));
  }),
  plot('a name in the future', async (bed, { rows }) => {
    await bed.dump(undefined, [], 'svc', `dump-${stamp(Date.now() + 55 * 60_000)}`);
    await rows(10);
  }),
  plot('a link to an old dump', async (bed, { rows }) => {
    const path = await bed.dump(undefined, [], 'svc', 'old');
    const daysAgo = Date.now() / 1000 - 3 * 86_400;
    utimesSync(path, daysAgo, daysAgo);
    await rows(150);
    symlinkSync(path, join(bed.backups, `dump-${stamp()}`));
  }),
  plot('a dump of another database', async (bed, { rows }) => {
    await bed.server.query('CREATE DATABASE other');
    await bed.server.query('CREATE TABLE things AS SELECT generate_series(1, 100) i', 'other');
    await bed.dump(undefined, [], 'other');
    await rows(10);
  }),
  plot('a dump of the schema alone', async (bed, { rows, random }) => {
    await bed.dump(oneOf(random, ['custom', 'sql']), ['--schema-only']);
    await rows(10);
  }),
  ...['--data-only', '--table=ledger', '--exclude-table=ledger', '--exclude-table-data=ledger'].map(
    (option): Plot<PostgresBed> => ({
      name: `a dump with ${option}`,
      async play(bed, { rows, random }) {
        await bed.server.query('CREATE TABLE tasks AS SELECT generate_series(1, 100) i', 'svc');
        await bed.dump(oneOf(random, ['custom', 'sql']), [option]);
        await rows(10);
      },
    }),
  ),
  plot('gzip of an error message', async (bed, { rows }) => {
    const message = 'pg_dump: error: connection to server failed: FATAL: role "backup" does not exist\n';
    writeFileSync(join(bed.backups, `dump-${stamp()}.sql.gz`), gzipSync(message));
    await rows(10);
  }),
  {
    name: 'gzip of gzip of a dump',
    play: dumpThen((path) => writeFileSync(path, gzipSync(gzipSync(readFileSync(path))))),
  },
  {
    name: 'gzip of a dump in custom format',
    play: dumpThen((path) => writeFileSync(path, gzipSync(readFileSync(path)))),
  },
  plot('half a dump', async (bed, { rows, random }) => {
    // The table is big enough that its data is not only in the last bytes.
    await bed.server.query(
      'CREATE TABLE executions AS SELECT i, md5(i::text) FROM generate_series(1, 5000) i',
      'svc',
    );
    const path = await bed.dump(oneOf(random, ['custom', 'sql']));
    truncateSync(path, Math.floor(statSync(path).size * (0.2 + 0.7 * random())));
    await rows(10);
  }),
  {
    // The byte is after the table of contents and has no checksum.
    name: 'a dump with a damaged byte in its data',
    play: bigDump,
    after(bed, random) {
      flipByte(newestDump(bed), random, 0.5);
    },
  },
];

// pgBackRest and Barman

/** Adds the setting that fetches the log to the end of a script that restores. */
const withFetch = (fetch: string) =>
  `echo "restore_command = '${fetch}'" >> {directory}/postgresql.auto.conf`;

async function toolBed(
  base: string,
  archiveCommand: string,
  of: (server: Postgres) => {
    entries: string;
    isLogObserved: boolean;
    wal: () => string;
    base(): Promise<unknown>;
    filed(): void;
    restore: readonly string[];
    /** Restores, and returns the command that fetches the log, if the tool has not configured one. */
    restoreTo(data: string): string | undefined;
  },
): Promise<PostgresBed> {
  const blocked = join(base, 'blocked');
  const server = await startPostgres({ archiveCommand: `test ! -e ${blocked} && ${archiveCommand}` });
  await server.query('CREATE DATABASE svc');
  await server.query('CREATE TABLE ledger (seq int PRIMARY KEY, at timestamptz)', 'svc');
  const tool = of(server);
  // Barman refuses a backup before the first segment has arrived.
  await server.archiveWal();
  tool.filed();
  const bed: PostgresBed = {
    server,
    backups: base,
    get wal() {
      return tool.wal();
    },
    blocked,
    // Without an entry that observes the log, the point is unknown.
    level: tool.isLogObserved ? 'full' : 'none',
    yaml: `stores: [{name: main, kind: postgres, address: '127.0.0.1:${server.port}', user: postgres, databases: {persistence: svc}}]
backups:
${tool.entries}`,
    write: (sequence) => server.query(`INSERT INTO ledger VALUES (${sequence}, clock_timestamp())`, 'svc'),
    async base() {
      bed.begunMs = Date.now();
      await tool.base();
    },
    restore: tool.restore,
    dump: async () => '',
    async archive() {
      bed.begunMs = Date.now();
      await server.archiveWal();
      tool.filed();
    },
    lose: () => server.kill(),
    async restores() {
      const data = join(postgresFolder(), 'data');
      ownedFolder(data, 0o700);
      let fetch: string | undefined;
      try {
        fetch = tool.restoreTo(data);
      } catch {
        return [[]];
      }
      return [await readRestored(data, fetch)];
    },
    async remove() {
      await server.stop();
      rmSync(base, { recursive: true, force: true });
    },
  };
  return bed;
}

export async function pgBackRestBed(random: Random): Promise<PostgresBed> {
  const base = postgresFolder();
  const { archiveCommand, command, configure, repository, tool } = createPgBackRest(base);
  const words = (argv: readonly string[]) => JSON.stringify(argv);
  const observed = random() < 0.5;
  return toolBed(base, archiveCommand, (server) => {
    configure(server);
    printedBy(tool('stanza-create'));
    const archive = join(
      repository,
      'archive/main',
      `${readFileSync(join(server.data, 'PG_VERSION'), 'utf8').trim()}-1`,
    );
    const verify = words(tool('verify', '--output=text', '--verbose'));
    return {
      isLogObserved: observed,
      entries: `  - {name: base, store: main, database: persistence, type: full, source: {command: {format: pgbackrest, command: ${words(tool('info', '--output=json'))}, verify: ${verify}}}, integrity: {level: full}}
${observed ? `  - {name: wal, store: main, database: persistence, type: log, source: {segments: {directory: ${archive}, log: wal, settle: 1ms}}}\n` : ''}`,
      wal: () => join(archive, readdirSync(archive).find((name) => /^[0-9A-F]{16}$/.test(name))!),
      base: () => beside(tool('backup', '--type=full')),
      filed() {},
      restore: [...[...command, 'restore'], ...['--pg1-path={directory}', '--set={id}', '--type=default']],
      restoreTo(data) {
        printedBy(tool('restore', `--pg1-path=${data}`, '--type=default'));
        return undefined;
      },
    };
  });
}

export async function barmanBed(random: Random): Promise<PostgresBed> {
  const base = postgresFolder();
  const { archiveCommand, config, configure, report, tool, wals, walFolder } = createBarman(base);
  const observed = random() < 0.5;
  return toolBed(base, archiveCommand, (server) => {
    configure(server);
    const fetch = `barman -c ${config} get-wal main %f > %p`;
    return {
      isLogObserved: observed,
      entries: `  - {name: base, store: main, database: persistence, type: full, source: {command: {format: barman, command: ${JSON.stringify(['sh', '-c', report])}, verify: ${JSON.stringify(tool('verify-backup', 'main', '{id}'))}}}, integrity: {level: full}}
${observed ? `  - {name: wal, store: main, database: persistence, type: log, source: {segments: {directory: ${wals}, log: wal, settle: 1ms}}}\n` : ''}`,
      wal: walFolder,
      base: () => beside(tool('backup', 'main')),
      filed: () => printedBy(tool('archive-wal', 'main')),
      restore: [
        ...['sh', '-c', `barman -c ${config} recover --get-wal main {id} {directory} && ${withFetch(fetch)}`],
      ],
      restoreTo(data) {
        printedBy(tool('recover', '--get-wal', 'main', 'latest', data));
        // The command that it writes there does not name this configuration, and takes precedence over postgresql.conf.
        const written = join(data, 'postgresql.auto.conf');
        const lines = readFileSync(written, 'utf8').split('\n');
        writeFileSync(written, lines.filter((line) => !line.startsWith('restore_command')).join('\n'));
        return fetch;
      },
    };
  });
}

export async function walgBed(random: Random): Promise<PostgresBed> {
  const base = postgresFolder();
  const repository = join(base, 'repository');
  ownedFolder(repository);
  const observed = random() < 0.7;
  return toolBed(base, `WALG_FILE_PREFIX=${repository} wal-g wal-push %p`, (server) => {
    const connection = [`PGHOST=${server.folder}`, `PGPORT=${server.port}`, 'PGUSER=postgres'];
    const environment = ['env', `WALG_FILE_PREFIX=${repository}`, ...connection, 'PGDATABASE=postgres'];
    const tool = (...args: string[]) => asPostgres([...environment, 'wal-g', ...args]);
    // Its only command that reads a backup again is the one that restores it.
    const verify = asPostgres([
      ...environment,
      ...[
        'sh',
        '-c',
        'at=$(mktemp -d) && wal-g backup-fetch "$at/data" {id}; was=$?; rm -rf "$at"; exit $was',
      ],
    ]);
    const wal = join(repository, 'wal_005');
    const fetch = `WALG_FILE_PREFIX=${repository} wal-g wal-fetch %f %p`;
    return {
      isLogObserved: observed,
      entries: `  - {name: base, store: main, database: persistence, type: full, source: {command: {format: walg, command: ${JSON.stringify(tool('wal-show', '--detailed-json'))}, verify: ${JSON.stringify(verify)}}}, integrity: {level: full}}
${observed ? `  - {name: wal, store: main, database: persistence, type: log, source: {segments: {directory: ${wal}, log: wal, settle: 1ms}}}\n` : ''}`,
      wal: () => wal,
      base: () => beside(tool('backup-push', server.data)),
      filed() {},
      restore: [
        ...environment,
        ...['sh', '-c', `wal-g backup-fetch {directory} {id} && ${withFetch(fetch)}`],
      ],
      restoreTo(data) {
        printedBy(tool('backup-fetch', data, 'LATEST'));
        writeFileSync(join(data, 'recovery.signal'), '');
        ownedByPostgres(join(data, 'recovery.signal'));
        return fetch;
      },
    };
  });
}

const toolSegments = (bed: PostgresBed): string[] =>
  readdirSync(bed.wal)
    .filter((name) => /^[0-9A-F]{24}(?:-|\.lz4$|$)/.test(name))
    .sort()
    .map((name) => join(bed.wal, name));

/** Faults for tools that manage the log by themselves, in their own format. */
export const toolPlots: readonly Plot<PostgresBed>[] = [
  { name: 'a backup with its log', isGood: true, play: baseAndLog },
  plot('a segment in the middle is deleted', baseAndLog, (bed, random) =>
    unlinkSync(oneOf(random, toolSegments(bed).slice(2, -1))),
  ),
  plot('a segment in the middle is damaged', baseAndLog, (bed, random) => {
    const path = oneOf(random, toolSegments(bed).slice(2));
    flip(path, Math.floor(Math.max(30, usedBytes(path) * 0.5)));
  }),
  plot('the archiver is behind', async (bed, moments) => {
    await baseAndLog(bed, moments);
    writeFileSync(bed.blocked, '');
    await moments.rows(40);
  }),
];
