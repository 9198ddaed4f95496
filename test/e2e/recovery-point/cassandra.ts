import {
  cpSync,
  existsSync,
  mkdirSync,
  readdirSync,
  rmSync,
  statSync,
  truncateSync,
  unlinkSync,
  writeFileSync,
} from 'node:fs';
import { basename, dirname, join } from 'node:path';
import { Client } from 'cassandra-driver';
import { type Cassandra, startCassandra } from '../../cassandra.ts';
import { folder } from '../../run-folder.ts';
import { command, mainFile, start } from '../process.ts';
import { type Bed, flipByte, oneOf, type Plot, plot, type Random } from './round.ts';

// A node with snapshots and incremental backups, made by the jobs that `svc-agent backup plan` writes, or left on the node.

interface CassandraBed extends Bed {
  server: Cassandra;
  /** Below this directory, `svc/TABLE-ID` has the directories `snapshots` and `backups`. */
  root: string;
  snapshot(): Promise<void>;
  /** Writes the rows in memory into an incremental backup. */
  flush(): Promise<void>;
  /** Makes the next rows go to a new table. */
  addTable(): Promise<void>;
}

const keyspace = 'svc';
const shellQuoted = (words: readonly string[]) =>
  words.map((word) => `'${word.replaceAll("'", `'\\''`)}'`).join(' ');
const entriesOf = (path: string) => (existsSync(path) ? readdirSync(path).sort() : []);
const rowsIn = (table: string) => `CREATE TABLE ${table} (seq int PRIMARY KEY, pad text)`;
const nameOf = (directory: string) => directory.slice(0, directory.lastIndexOf('-'));

/** Directories of one SSTable each, so that a damaged one does not prevent the import of the others. */
function apart(directory: string, scratch: string): string[] {
  const tables = new Map<string, string>();
  for (const file of entriesOf(directory)) {
    const stem = /^(.+-(?:big|bti))-[A-Za-z_]+\.\w+$/.exec(file)?.[1];
    if (stem === undefined) continue;
    const own = tables.get(stem) ?? join(scratch, `${tables.size}`);
    tables.set(stem, own);
    mkdirSync(own, { recursive: true });
    cpSync(join(directory, file), join(own, file));
  }
  return [...tables.values()];
}

const run = async (argv: readonly string[], env: Record<string, string> = {}) => {
  const [program, ...args] = argv;
  const running = start(program!, args, env);
  const status = await running.ended;
  return { status, output: running.output() };
};

export async function cassandraBed(random: Random): Promise<CassandraBed> {
  const server = await startCassandra({ settings: '\nincremental_backups: true\n' });
  const place = folder();
  const [jobs, programs, file] = [
    join(place.path, 'jobs'),
    join(place.path, 'bin'),
    join(place.path, 'agent.yaml'),
  ];
  const state = join(place.path, 'state');
  const copies = join(place.path, 'copies');
  const isOnNode = random() < 0.4;
  const level = oneOf(random, ['header', 'full', 'full', 'full']);
  const root = isOnNode ? server.data : join(copies, 'main-persistence');
  let tables = ['executions', 'tasks'];
  const client = new Client({
    contactPoints: [`${server.host}:${server.port}`],
    localDataCenter: 'datacenter1',
    socketOptions: { readTimeout: 5000 },
  });
  await client.connect();
  await client.execute(
    `CREATE KEYSPACE ${keyspace} WITH replication = {'class': 'SimpleStrategy', 'replication_factor': 1}`,
  );
  for (const table of tables) await client.execute(rowsIn(`${keyspace}.${table}`));
  const stores = `stores: [{name: main, kind: widecolumn, address: '127.0.0.1:${server.port}', databases: {persistence: ${keyspace}}}]\n`;
  const entry = (name: string, type: string, kind: string) =>
    `  - {name: main-persistence-${name}, store: main, database: persistence, type: ${type}, source: {${kind}: {dataDirectory: ${root}, keyspace: ${keyspace}}}, integrity: {level: ${level}}}\n`;
  const yaml = `${stores}backups:
${entry('full', 'full', 'snapshot')}${entry('incremental', 'incremental', 'incrementals')}`;
  const head = `stateDirectory: ${state}
roles: [history]
services: {history: {logs: {paths: [${place.path}/none.log]}}}
`;
  writeFileSync(file, head + stores);
  const planned = command(['backup', 'plan', '--directory', copies, '--out', jobs, '-c', file]);
  if (planned.status !== 0) throw new Error(planned.stderr);
  writeFileSync(file, head + yaml);
  mkdirSync(programs);
  writeFileSync(join(programs, 'nodetool'), `#!/bin/sh\nexec ${shellQuoted(server.nodetool())} "$@"\n`, {
    mode: 0o755,
  });
  const env = { PATH: `${programs}:${process.env.PATH}`, CASSANDRA_CONF: dirname(server.data) };
  const take = async (job: string, script: readonly string[]) => {
    const own = ['backup', 'run', '--job', `main-persistence-${job}`, '-c', file, '--'];
    const { status, output } = await run([process.execPath, mainFile, ...own, ...script], env);
    if (status !== 0) throw new Error(`${job}: ${output}`);
  };
  const planOf = (job: string) => [join(jobs, `main-persistence-${job}.sh`)];
  let nth = 0;
  let isLost = false;

  const importInto = async (
    target: Cassandra,
    into: string,
    sources: ReadonlyMap<string, readonly string[]>,
  ) => {
    await target.run(
      `CREATE KEYSPACE ${into} WITH replication = {'class': 'SimpleStrategy', 'replication_factor': 1}`,
      ...[...sources.keys()].map((table) => rowsIn(`${into}.${table}`)),
    );
    const found: number[] = [];
    for (const [table, directories] of sources) {
      const scratch = join(place.path, `import-${into}-${table}`);
      const single = directories.flatMap((directory, at) => apart(directory, join(scratch, String(at))));
      // nodetool reports a damaged one, and imports the others.
      if (single.length > 0) await run(target.nodetool('import', '--copy-data', into, table, ...single));
      rmSync(scratch, { recursive: true, force: true });
      const rows = await target.rows(`SELECT seq FROM ${into}.${table}`).catch(() => []);
      found.push(...rows.map(({ seq }) => Number(seq)));
    }
    return found;
  };

  const bed: CassandraBed = {
    server,
    root,
    level,
    yaml,
    state,
    async write(sequence) {
      const table = tables[sequence % tables.length];
      await client.execute(
        `INSERT INTO ${keyspace}.${table} (seq, pad) VALUES (${sequence}, 'row ${sequence}')`,
      );
    },
    async snapshot() {
      bed.begunMs = Date.now();
      const name = `by-hand-${nth++}`;
      await take('full', isOnNode ? ['nodetool', 'snapshot', '--tag', name, keyspace] : planOf('full'));
    },
    async flush() {
      bed.begunMs = Date.now();
      await take('incremental', isOnNode ? ['nodetool', 'flush', keyspace] : planOf('incremental'));
    },
    async addTable() {
      await client.execute(rowsIn(`${keyspace}.timers`));
      tables = [...tables, 'timers'];
    },
    async lose() {
      isLost = true;
      await server.end('SIGKILL');
      await client.shutdown();
    },
    async restores() {
      const directories = entriesOf(join(root, keyspace)).map((name) => join(root, keyspace, name));
      const names = new Set(directories.flatMap((path) => entriesOf(join(path, 'snapshots'))));
      const empty = await startCassandra();
      try {
        const found: number[][] = [];
        for (const [at, name] of [...names].entries()) {
          const sources = directories.map((path) => {
            const own = [join(path, 'snapshots', name), join(path, 'backups')];
            return [nameOf(basename(path)), own.filter((each) => existsSync(each))] as const;
          });
          found.push(await importInto(empty, `restored_${at}`, new Map(sources)));
        }
        return found;
      } finally {
        await empty.remove();
      }
    },
    async remove() {
      if (!isLost) await bed.lose();
      await server.remove();
      place.remove();
    },
  };
  return bed;
}

const partsOf = (bed: CassandraBed, below: 'snapshots' | 'backups') =>
  entriesOf(join(bed.root, keyspace))
    .map((name) => join(bed.root, keyspace, name, below))
    .flatMap((path) => (below === 'backups' ? [path] : entriesOf(path).map((name) => join(path, name))))
    .filter((path) => entriesOf(path).length > 0);

const dataFiles = (directories: readonly string[]) =>
  directories.flatMap((path) =>
    entriesOf(path)
      .filter((name) => name.endsWith('-Data.db'))
      .map((name) => join(path, name)),
  );

/** All files of an SSTable. */
const componentsOf = (data: string) => {
  const stem = basename(data, 'Data.db');
  return entriesOf(dirname(data))
    .filter((name) => name.startsWith(stem))
    .map((name) => join(dirname(data), name));
};

type Play = Plot<CassandraBed>['play'];

const snapshotAlone: Play = async (bed, { rows }) => {
  await bed.snapshot();
  await rows(10);
};

const snapshotAndFlushes: Play = async (bed, { random, rows }) => {
  await bed.snapshot();
  const flushes = 2 + Math.floor(random() * 2);
  for (let n = 0; n < flushes; n++) {
    await rows(4 + Math.floor(random() * 20));
    await bed.flush();
  }
};

const newestSnapshot = (bed: CassandraBed) => {
  const parts = partsOf(bed, 'snapshots').filter((path) => !/^(?:dropped|truncated)-/.test(basename(path)));
  const newest = parts
    .map((path) => basename(path))
    .sort()
    .at(-1);
  return parts.filter((path) => basename(path) === newest);
};

export const cassandraPlots: readonly Plot<CassandraBed>[] = [
  { name: 'a snapshot', isGood: true, play: snapshotAlone },
  { name: 'a snapshot and flushes', isGood: true, play: snapshotAndFlushes },
  {
    name: 'a table was created after the snapshot',
    isGood: true,
    async play(bed, { rows }) {
      await bed.snapshot();
      await rows(5);
      await bed.addTable();
      await rows(10);
      await bed.flush();
    },
  },
  plot('the node has had no backup for a while', async (bed, moments) => {
    await snapshotAndFlushes(bed, moments);
    await moments.rows(150);
  }),
  plot('the snapshot lacks a table', snapshotAlone, (bed, random) =>
    rmSync(oneOf(random, newestSnapshot(bed)), { recursive: true }),
  ),
  plot('the snapshot lacks a table, and flushes follow', snapshotAndFlushes, (bed, random) => {
    const part = oneOf(random, newestSnapshot(bed));
    // Only what was written later is left of the table.
    rmSync(part, { recursive: true });
  }),
  {
    name: 'the second snapshot lacks a table',
    async play(bed, moments) {
      await snapshotAlone(bed, moments);
      await snapshotAlone(bed, moments);
    },
    after: (bed, random) => rmSync(oneOf(random, newestSnapshot(bed)), { recursive: true }),
  },
  plot('an SSTable of the snapshot is gone', snapshotAndFlushes, (bed, random) =>
    componentsOf(oneOf(random, dataFiles(newestSnapshot(bed)))).forEach(unlinkSync),
  ),
  plot('a file of an SSTable of the snapshot is gone', snapshotAlone, (bed, random) => {
    const needed = componentsOf(oneOf(random, dataFiles(newestSnapshot(bed)))).filter((path) =>
      /-(?:Data|Statistics|Partitions|CompressionInfo)\.db$/.test(path),
    );
    unlinkSync(oneOf(random, needed));
  }),
  plot('a byte of the snapshot is damaged', snapshotAlone, (bed, random) =>
    flipByte(oneOf(random, dataFiles(newestSnapshot(bed))), random),
  ),
  plot('an SSTable of the snapshot is cut off', snapshotAlone, (bed, random) => {
    const path = oneOf(random, dataFiles(newestSnapshot(bed)));
    truncateSync(path, Math.floor(statSync(path).size * random()));
  }),
  plot('an incremental backup is missing', snapshotAndFlushes, (bed, random) =>
    componentsOf(oneOf(random, dataFiles(partsOf(bed, 'backups')))).forEach(unlinkSync),
  ),
  plot('all incremental backups of a table are missing', snapshotAndFlushes, (bed, random) =>
    rmSync(oneOf(random, partsOf(bed, 'backups')), { recursive: true }),
  ),
  plot('an incremental backup is damaged', snapshotAndFlushes, (bed, random) =>
    flipByte(oneOf(random, dataFiles(partsOf(bed, 'backups'))), random),
  ),
  plot('a file of an incremental backup is gone', snapshotAndFlushes, (bed, random) => {
    const needed = componentsOf(oneOf(random, dataFiles(partsOf(bed, 'backups')))).filter((path) =>
      /-(?:Data|Statistics|CompressionInfo)\.db$/.test(path),
    );
    unlinkSync(oneOf(random, needed));
  }),
  plot('the node writes no incremental backups', async (bed, moments) => {
    await bed.snapshot();
    await run(bed.server.nodetool('disablebackup'));
    await moments.rows(10);
    await bed.flush().catch(() => {});
    await moments.rows(10);
    await bed.flush().catch(() => {});
  }),
  {
    name: 'the copies were copied by cp -r',
    async play(bed, moments) {
      await snapshotAndFlushes(bed, moments);
      await moments.rows(40);
    },
    after(bed) {
      const [from, aside] = [join(bed.root, keyspace), join(bed.root, 'aside')];
      for (const name of entriesOf(from)) {
        cpSync(join(from, name), join(aside, name), { recursive: true });
        rmSync(join(from, name), { recursive: true });
        cpSync(join(aside, name), join(from, name), { recursive: true });
      }
      rmSync(aside, { recursive: true });
    },
  },
];
