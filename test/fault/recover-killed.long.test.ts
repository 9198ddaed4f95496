import { execFileSync } from 'node:child_process';
import { once } from 'node:events';
import { mkdirSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, onTestFinished, test } from 'vitest';
import { command, folder, mainFile, type Running, start } from '../e2e/process.ts';
import { type Role, startRole } from '../e2e/role.ts';
import { hasMariadb, schemaStatements, startMariadb, usersStatements } from '../mariadb.ts';
import { hasPostgres, startPostgres } from '../postgres.ts';
import { bySize } from '../size.ts';
import { until } from '../until.ts';

// `svc-agent recover` is killed after lines of its journal, which is written before and after everything that it does,
// and run again: the right data, and services that are up, or said to be down.

/** The last ones are more than any procedure writes: then the run ends by itself. */
const lines = bySize({
  short: [],
  long: [11, 16],
  nightly: Array.from({ length: 28 }, (_, index) => index + 1),
});

interface Stage {
  procedure: 'database-corruption' | 'cluster-loss';
  /** Folder of the configuration `agent.yaml` and of the state. */
  place: string;
  role: Role;
  /** Damages the database. */
  damage(): Promise<void>;
  /** What must be in the database after the restore; leaves no session behind. */
  content(): Promise<unknown>;
}

async function killedEverywhere({ procedure, place, role, damage, content }: Stage): Promise<void> {
  const state = join(place, 'state', 'recovery-runs');
  const journal = join(state, `${procedure}.main.persistence.steps.jsonl`);
  const written = () => {
    try {
      return readFileSync(journal, 'utf8').split('\n').filter(Boolean).length;
    } catch {
      return 0;
    }
  };
  const recover = (...args: string[]): Running => {
    const words = ['recover', procedure, '-c', join(place, 'agent.yaml'), '--store', 'main'];
    const run = start(process.execPath, [mainFile, ...words, '--database', 'persistence', ...args]);
    run.child.stdin?.end();
    return run;
  };
  const confirmed = ['--execute', '--yes', '--confirm', 'main'];
  const whole = await content();
  for (const line of lines) {
    rmSync(state, { recursive: true, force: true });
    await damage();
    const killed = recover(...confirmed);
    const gone = once(killed.child, 'exit');
    await until(`line ${line}`, () => written() >= line || killed.child.exitCode !== null);
    killed.child.kill('SIGKILL');
    await gone;
    const isDone = () => readFileSync(journal, 'utf8').includes('"event":"done"');
    if (!isDone() && procedure === 'database-corruption' && !(await role.isUp())) {
      // Before the restore is done, it is refused for lack of a confirmation; after it, it goes on to its end.
      const said = await until('what a command left behind has ended', async () => {
        const next = recover('--execute', '--yes');
        const status = await next.ended;
        return next.output().includes('still runs') ? undefined : { status, output: next.output() };
      });
      if (said.status !== 0) expect(said.output).toContain('The services are stopped. To start them: $ sh ');
    }
    // Of a run that ended by itself nothing is left.
    const isLeft = !isDone();
    let { status, output } = { status: 1 as number | string, output: 'still runs' };
    while (isLeft && output.includes('still runs')) {
      const again = recover(...confirmed);
      [status, output] = [await again.ended, again.output()];
    }
    if (isLeft) expect(status, `${line}: ${output}`).toBe(0);
    expect(await content(), `after a kill at line ${line}`).toEqual(whole);
    expect(await role.isUp(), `after a kill at line ${line}`).toBe(true);
  }
}

function configure(place: string, role: Role, store: string, backups: string): void {
  writeFileSync(
    join(place, 'agent.yaml'),
    `stateDirectory: ${join(place, 'state')}
roles: [history]
services: {history: {health: '${role.health}'}}
stores: [${store}]
backups:
${backups}recovery: {allowExecute: true, commands: {stopServices: [${role.stop}], startServices: [${role.start}], deploy: [${role.start}]}}
`,
  );
}

const backUp = (place: string, line: string) => {
  const file = join(place, 'agent.yaml');
  const { status, stderr } = command([
    ...['backup', 'run', '--job', 'nightly', '-c', file, '--', 'bash', '-o', 'pipefail', '-c', line],
  ]);
  expect(status, stderr).toBe(0);
};

test.skipIf(!hasPostgres).each(['database-corruption', 'cluster-loss'] as const)(
  '%s on PostgreSQL',
  async (procedure) => {
    const { path, remove } = folder();
    onTestFinished(remove);
    const role = await startRole(path);
    onTestFinished(role.remove);
    const server = await startPostgres();
    onTestFinished(() => server.stop());
    const dumps = join(path, 'dumps');
    mkdirSync(dumps);
    configure(
      path,
      role,
      `{name: main, kind: postgres, address: '127.0.0.1:${server.port}', user: postgres, databases: {persistence: svc}, schema: {persistence: '0.8'}}`,
      `  - {name: nightly, store: main, database: persistence, type: full, source: {files: {directory: ${dumps}, pattern: '\\.dump$', settle: 1ms}}, integrity: {level: full}}\n`,
    );
    await server.query('CREATE DATABASE svc');
    await server.query(
      `CREATE TABLE executions AS SELECT i, md5(i::text) AS data FROM generate_series(1, 2000) i;
       CREATE TABLE schema_version AS SELECT 'svc' AS db_name, now() AS creation_time, '0.8' AS curr_version, '0.8' AS min_compatible_version`,
      'svc',
    );
    await server.disconnect();
    backUp(path, `pg_dump -h 127.0.0.1 -p ${server.port} -U postgres -Fc -f ${dumps}/a.dump svc`);
    const content = async () => {
      const sum = 'SELECT count(*)::int AS n, sum(hashtext(data)) AS sum FROM executions';
      const { rows } = await server.query(sum, 'svc');
      await server.disconnect();
      return rows;
    };
    await killedEverywhere({
      ...{ procedure, place: path, role, content },
      async damage() {
        if (procedure === 'cluster-loss') execFileSync(role.stop[0]!, role.stop.slice(1));
        await server.query('DELETE FROM executions WHERE i > 10', 'svc');
        await server.disconnect();
      },
    });
  },
);

test.skipIf(!hasMariadb)('database-corruption on MariaDB, with the binary log', async () => {
  const { path, remove } = folder();
  onTestFinished(remove);
  const role = await startRole(path);
  onTestFinished(role.remove);
  const server = await startMariadb('--log-bin=bin', '--server-id=1', '--binlog-format=ROW');
  onTestFinished(() => server.stop());
  const [dumps, logs] = [join(path, 'dumps'), join(path, 'logs')];
  for (const each of [dumps, logs]) mkdirSync(each);
  configure(
    path,
    role,
    `{name: main, kind: mysql, address: '127.0.0.1:${server.port}', user: full, password: swordfish, databases: {persistence: svc_main}, schema: {persistence: '0.8'}}`,
    `  - {name: nightly, store: main, database: persistence, type: full, source: {files: {directory: ${dumps}, pattern: '\\.sql\\.gz$', settle: 1ms}}, integrity: {level: full}}
  - {name: log, store: main, type: log, source: {segments: {directory: ${logs}, log: binlog, settle: 1ms}}}
`,
  );
  await server.sql(schemaStatements('svc_main'));
  await server.sql(`${usersStatements} GRANT PROCESS ON *.* TO full@'%';`);
  await server.sql('INSERT INTO svc_main.executions SELECT seq, SHA1(seq) FROM svc_main.seq_1_to_2000');
  const client = `--no-defaults --host=127.0.0.1 --port=${server.port} --user=root`;
  backUp(
    path,
    `mariadb-dump ${client} --single-transaction --master-data=2 --hex-blob svc_main | gzip > ${dumps}/a.sql.gz`,
  );
  await server.sql(
    'USE svc_main; CREATE TABLE later (i INT PRIMARY KEY); INSERT INTO later VALUES (1); USE mysql',
  );
  await server.sql('INSERT INTO svc_main.executions SELECT seq, SHA1(seq) FROM svc_main.seq_2001_to_2500');
  await server.sql('FLUSH BINARY LOGS');
  const [first] = await server.sql('SHOW BINARY LOGS');
  const fetch = `mysqlbinlog ${client} --read-from-remote-server --raw --to-last-log ${first!.Log_name}`;
  execFileSync('sh', ['-c', fetch], { cwd: logs });
  rmSync(join(logs, readdirSync(logs).sort().at(-1)!));
  await killedEverywhere({
    ...{ procedure: 'database-corruption', place: path, role },
    damage: async () => {
      await server.sql('SET sql_log_bin = 0');
      await server.sql('DELETE FROM svc_main.executions WHERE shard_id > 10; DROP TABLE svc_main.later');
      await server.sql('SET sql_log_bin = 1');
    },
    content: async () => ({
      rows: await server.sql('SELECT COUNT(*) AS n, SUM(CRC32(data)) AS sum FROM svc_main.executions'),
      later: await server.sql('SELECT i FROM svc_main.later'),
    }),
  });
});
