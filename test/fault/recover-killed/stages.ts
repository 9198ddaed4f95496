import { execFileSync } from 'node:child_process';
import { chmodSync, existsSync, mkdirSync, readdirSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, onTestFinished } from 'vitest';
import { startCassandra } from '../../cassandra.ts';
import {
  basesIn,
  dumpsIn,
  logIn,
  mariadbStore,
  openRole,
  postgresStore,
  runBackup,
  writeRecovery,
} from '../../e2e/recover-round.ts';
import type { Role } from '../../e2e/role.ts';
import { schemaStatements, startMariadb, usersStatements } from '../../mariadb.ts';
import { freePort } from '../../ports.ts';
import {
  asPostgres,
  connectionTo,
  copyInto,
  ownedFolder,
  postgresFolder,
  postgresProgram,
  postgresPrograms,
  schemaTable,
  startPostgres,
} from '../../postgres.ts';
import type { RestoreProcedure, Stage } from './killed.ts';

// One stage for each kind of store and backup: a real server, its backup, its damage.

export const kinds = {
  'PostgreSQL, a dump': postgresDump,
  'PostgreSQL, a base backup and its log': postgresBase,
  'MariaDB, a dump and the binary log': mariadbDump,
  'MariaDB, mariabackup': mariadbPhysical,
  'Cassandra, a snapshot': cassandraSnapshot,
} as const;

async function openPlace(): Promise<{ path: string; role: Role }> {
  const opened = await openRole();
  // Servers run as separate users.
  chmodSync(opened.path, 0o755);
  return opened;
}

const backUp = (file: string, line: string) => runBackup(file, 'bash', '-o', 'pipefail', '-c', line);

const taken = ({ status, stderr }: ReturnType<typeof backUp>) => expect(status, stderr).toBe(0);

/** For `cluster-loss`, stops the role: the whole cluster is down before it is built again. */
const down = (procedure: RestoreProcedure, { stop }: Role) => {
  if (procedure === 'cluster-loss') execFileSync(stop[0]!, stop.slice(1));
};

async function postgresDump(procedure: RestoreProcedure): Promise<Stage> {
  const { path, role } = await openPlace();
  const server = await startPostgres();
  onTestFinished(() => server.stop());
  const dumps = join(path, 'dumps');
  mkdirSync(dumps);
  const file = writeRecovery(path, role, { store: postgresStore(server.port), backups: dumpsIn(dumps) });
  await server.query('CREATE DATABASE svc');
  await server.query(
    `CREATE TABLE executions AS SELECT i, md5(i::text) AS data FROM generate_series(1, 2000) i; ${schemaTable}`,
    'svc',
  );
  await server.disconnect();
  const dump = (name: string) =>
    backUp(file, `pg_dump -h 127.0.0.1 -p ${server.port} -U postgres -Fc -f ${dumps}/${name}.dump svc`);
  taken(dump('a'));
  return {
    ...{ procedure, place: path, role },
    reset: () => rmSync(join(dumps, 'b.dump'), { force: true }),
    async damage() {
      down(procedure, role);
      await server.query('DELETE FROM executions WHERE i > 10', 'svc');
      await server.disconnect();
    },
    async content() {
      const sum = 'SELECT count(*)::int AS n, sum(hashtext(data)) AS sum FROM executions';
      const { rows } = await server.query(sum, 'svc');
      await server.disconnect();
      return rows;
    },
    meanwhile: () => void dump('b'),
  };
}

const quoted = (words: readonly string[]) =>
  words.map((word) => `'${word.replaceAll("'", `'\\''`)}'`).join(' ');

/** The words that start a server which belongs to no command: it outlives the run. */
const unmarked = 'env -u SVC_AGENT_RECOVERY_COMMAND setsid';

/** A stage whose server the restore itself stops and starts, as its service manager would. */
async function postgresBase(procedure: RestoreProcedure): Promise<Stage> {
  const { path, role } = await openPlace();
  const backups = postgresFolder();
  onTestFinished(() => rmSync(backups, { recursive: true, force: true }));
  const wal = join(backups, 'wal');
  ownedFolder(wal);
  const first = await startPostgres({ archiveCommand: copyInto(wal) });
  await first.query('CREATE DATABASE svc');
  await first.query(
    `CREATE TABLE executions AS SELECT i, md5(i::text) AS data FROM generate_series(1, 500) i; ${schemaTable}`,
    'svc',
  );
  const base = join(backups, 'base-20260101T000000Z');
  const at = connectionTo(first);
  postgresProgram('pg_basebackup', [...at, '-D', base, '--wal-method=none', '--checkpoint=fast']);
  await first.query('INSERT INTO executions SELECT i, md5(i::text) FROM generate_series(501, 700) i', 'svc');
  await first.archiveWal();
  await first.stop();

  const port = await freePort();
  const data = join(backups, 'data');
  const run = (program: string) => quoted(asPostgres([join(postgresPrograms, program)]));
  const [stopServer, startServer] = [join(path, 'stop.sh'), join(path, 'start.sh')];
  writeFileSync(stopServer, `cd /; ${run('pg_ctl')} -D ${data} -m immediate stop > /dev/null 2>&1 || true\n`);
  writeFileSync(
    startServer,
    `cd /; ${unmarked} ${run('pg_ctl')} -D ${data} -o "-p ${port} -c fsync=off -c unix_socket_directories=" -l ${backups}/log -w start > /dev/null || exit 1
until psql -h 127.0.0.1 -p ${port} -U postgres -Atc 'SELECT pg_is_in_recovery()' | grep -q f; do sleep 0.2; done
`,
  );
  const restore = join(path, 'restore.sh');
  writeFileSync(
    restore,
    `set -eu
sh ${stopServer}
rm -rf ${data}
cp -a "$1" ${data}
echo "restore_command = 'cp ${wal}/%f %p'" >> ${data}/postgresql.auto.conf
echo 'archive_mode = off' >> ${data}/postgresql.auto.conf
touch ${data}/recovery.signal
chown -R postgres: ${data} && chmod 700 ${data}
sh ${startServer}
`,
  );
  execFileSync('bash', [restore, base], { stdio: 'pipe' });
  onTestFinished(() => void execFileSync('sh', [stopServer], { stdio: 'ignore' }));
  writeRecovery(path, role, {
    store: postgresStore(port),
    backups: basesIn(backups, wal),
    commands: `restore: [bash, ${restore}, '{file}'], safetyCopy: ['true'], `,
  });
  const ask = (sql: string) => postgresProgram('psql', [...connectionTo({ port }), '-Atc', sql, 'svc']);
  return {
    ...{ procedure, place: path, role },
    async damage() {
      down(procedure, role);
      ask('DELETE FROM executions WHERE i > 10');
    },
    content: async () => ask('SELECT count(*), sum(hashtext(data)) FROM executions'),
  };
}

export async function mariadbDump(procedure: RestoreProcedure): Promise<Stage & { bin: string }> {
  const { path, role } = await openPlace();
  const server = await startMariadb('--log-bin=bin', '--server-id=1', '--binlog-format=ROW');
  onTestFinished(() => server.stop());
  const [dumps, logs, bin] = [join(path, 'dumps'), join(path, 'logs'), join(path, 'bin')];
  for (const each of [dumps, logs, bin]) mkdirSync(each);
  const file = writeRecovery(path, role, {
    store: mariadbStore(server.port),
    backups: dumpsIn(dumps, { isSql: true }) + logIn(logs, 'binlog'),
  });
  await server.sql(schemaStatements('svc_main'));
  await server.sql(`${usersStatements} GRANT PROCESS ON *.* TO full@'%';`);
  await server.sql('INSERT INTO svc_main.executions SELECT seq, SHA1(seq) FROM svc_main.seq_1_to_2000');
  const client = `--no-defaults --host=127.0.0.1 --port=${server.port} --user=root`;
  const dump = (name: string) =>
    backUp(
      file,
      `mariadb-dump ${client} --single-transaction --master-data=2 --hex-blob svc_main | gzip > ${dumps}/${name}.sql.gz`,
    );
  /** Copies the files that the server has closed. */
  const archive = async () => {
    await server.sql('FLUSH BINARY LOGS');
    const [first] = await server.sql('SHOW BINARY LOGS');
    const fetch = `mysqlbinlog ${client} --read-from-remote-server --raw --to-last-log ${first!.Log_name}`;
    execFileSync('sh', ['-c', fetch], { cwd: logs });
    rmSync(join(logs, readdirSync(logs).sort().at(-1)!));
  };
  taken(dump('a'));
  await server.sql(
    'USE svc_main; CREATE TABLE later (i INT PRIMARY KEY); INSERT INTO later VALUES (1); USE mysql',
  );
  await server.sql('INSERT INTO svc_main.executions SELECT seq, SHA1(seq) FROM svc_main.seq_2001_to_2500');
  await archive();
  const kept = new Set(readdirSync(logs));
  return {
    ...{ procedure, place: path, role, bin },
    reset() {
      rmSync(join(dumps, 'b.sql.gz'), { force: true });
      for (const name of readdirSync(logs)) if (!kept.has(name)) rmSync(join(logs, name));
    },
    async damage() {
      down(procedure, role);
      await server.sql('SET sql_log_bin = 0');
      await server.sql('DELETE FROM svc_main.executions WHERE shard_id > 10; DROP TABLE svc_main.later');
      await server.sql('SET sql_log_bin = 1');
    },
    content: async () => ({
      rows: await server.sql('SELECT COUNT(*) AS n, SUM(CRC32(data)) AS sum FROM svc_main.executions'),
      later: await server.sql('SELECT i FROM svc_main.later'),
    }),
    // Runs the jobs of the plan: what the restore itself writes gets into the archive, and half a database into a dump.
    async meanwhile() {
      await archive();
      dump('b');
    },
  };
}

async function mariadbPhysical(procedure: RestoreProcedure): Promise<Stage> {
  const { path, role } = await openPlace();
  const first = await startMariadb();
  await first.sql(schemaStatements('svc_main'));
  await first.sql(`${usersStatements} GRANT PROCESS ON *.* TO full@'%';`);
  await first.sql('INSERT INTO svc_main.executions SELECT seq, SHA1(seq) FROM svc_main.seq_1_to_2000');
  const backups = join(path, 'backups');
  mkdirSync(backups);
  const physical = join(backups, 'main-physical-20260101T000000Z');
  const socket = join(first.folder, 's');
  execFileSync(
    'mariabackup',
    [
      ...['--no-defaults', '--backup', `--socket=${socket}`, '--user=root'],
      `--datadir=${join(first.folder, 'data')}`,
      `--target-dir=${physical}`,
    ],
    { stdio: 'pipe' },
  );
  await first.stop();

  const port = await freePort();
  const place = join(path, 'server');
  execFileSync('install', ['-d', '-o', 'mysql', place]);
  const [data, sock, pid] = ['data', 's', 'pid'].map((name) => join(place, name));
  const [stopServer, restore] = [join(path, 'stop.sh'), join(path, 'restore.sh')];
  writeFileSync(
    stopServer,
    `[ ! -e ${pid} ] || kill -9 "$(cat ${pid})" 2> /dev/null
while [ -e ${pid} ] && kill -0 "$(cat ${pid})" 2> /dev/null; do sleep 0.1; done
rm -f ${pid} ${sock}
`,
  );
  const small = '--innodb-log-file-size=4M --innodb-buffer-pool-size=8M --skip-name-resolve';
  writeFileSync(
    restore,
    `set -eu
sh ${stopServer}
rm -rf ${data} ${place}/prepared
cp -a "$1" ${place}/prepared
mariabackup --no-defaults --prepare --target-dir=${place}/prepared > ${place}/log 2>&1
mariabackup --no-defaults --copy-back --target-dir=${place}/prepared --datadir=${data} >> ${place}/log 2>&1
chown -R mysql: ${data}
${unmarked} mariadbd --no-defaults --user=mysql --datadir=${data} --socket=${sock} --pid-file=${pid} --tmpdir=${place} --bind-address=127.0.0.1 --port=${port} ${small} >> ${place}/log 2>&1 < /dev/null &
until mysql --no-defaults --socket=${sock} --user=root --execute='SELECT 1' > /dev/null 2>&1; do sleep 0.2; done
`,
  );
  execFileSync('bash', [restore, physical], { stdio: 'pipe' });
  onTestFinished(() => void execFileSync('sh', [stopServer], { stdio: 'ignore' }));
  writeRecovery(path, role, {
    store: mariadbStore(port),
    backups: `  - {name: physical, store: main, type: full, source: {files: {directory: ${backups}, pattern: '^main-physical-', settle: 1ms, takenFrom: primary}}}\n`,
    commands: `restore: [bash, ${restore}, '{file}'], safetyCopy: ['true'], `,
  });
  const ask = (sql: string) =>
    execFileSync('mysql', ['--no-defaults', `--socket=${sock}`, '--user=root', '-BNe', sql], {
      encoding: 'utf8',
    });
  return {
    ...{ procedure, place: path, role },
    async damage() {
      down(procedure, role);
      ask('DELETE FROM svc_main.executions WHERE shard_id > 10');
    },
    content: async () => ask('SELECT COUNT(*), SUM(CRC32(data)) FROM svc_main.executions'),
  };
}

async function cassandraSnapshot(procedure: RestoreProcedure): Promise<Stage> {
  const { path, role } = await openPlace();
  const server = await startCassandra();
  onTestFinished(() => server.remove());
  const tables = ['executions', 'tasks'];
  await server.run(
    "CREATE KEYSPACE svc WITH replication = {'class': 'NetworkTopologyStrategy', 'datacenter1': 1}",
    'CREATE TABLE svc.schema_version (keyspace_name text PRIMARY KEY, curr_version text)',
    "INSERT INTO svc.schema_version (keyspace_name, curr_version) VALUES ('svc', '0.8')",
    ...tables.flatMap((name) => [
      `CREATE TABLE svc.${name} (i int PRIMARY KEY, state text)`,
      ...Array.from({ length: 20 }, (_, i) => `INSERT INTO svc.${name} (i, state) VALUES (${i}, 's ${i}')`),
    ]),
  );
  const nodetool = (...args: string[]) => quoted(server.nodetool(...args));
  const [copies, restore] = [join(path, 'copies'), join(path, 'restore.sh')];
  mkdirSync(copies);
  writeFileSync(
    restore,
    `set -eu
for folder in ${copies}/*; do
  ${nodetool('import', '--copy-data', 'svc')} "$(basename "$folder")" "$folder"
done
`,
  );
  const file = writeRecovery(path, role, {
    store: `{name: main, kind: widecolumn, address: '127.0.0.1:${server.port}', databases: {persistence: svc}, schema: {persistence: '0.8'}}`,
    backups: `  - {name: nightly, store: main, database: persistence, type: full, source: {snapshot: {dataDirectory: ${server.data}, keyspace: svc}}}\n`,
    commands: `restore: [bash, ${restore}], safetyCopy: ['true'], `,
  });
  // The snapshot stays on the node as evidence; its copy is the one that an operator stores elsewhere.
  const copied = backUp(
    file,
    `${nodetool('snapshot', '--tag', 'nightly-1', 'svc')}
for folder in ${server.data}/svc/*/snapshots/nightly-1; do
  table=$(basename "$(dirname "$(dirname "$folder")")")
  cp -r "$folder" "${copies}/\${table%%-*}"
done`,
  );
  taken(copied);
  const sorted = (rows: readonly object[]) => rows.map((row) => JSON.stringify(row)).sort();
  return {
    ...{ procedure, place: path, role },
    async damage() {
      down(procedure, role);
      await server.run(...[...tables, 'schema_version'].map((name) => `TRUNCATE svc.${name}`));
    },
    content: async () => [
      sorted(await server.rows('SELECT i, state FROM svc.executions')),
      sorted(await server.rows('SELECT i, state FROM svc.tasks')),
    ],
  };
}

export const hasMariabackup = existsSync('/usr/bin/mariabackup');
