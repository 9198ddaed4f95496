import { execFileSync } from 'node:child_process';
import { rmSync } from 'node:fs';
import { join } from 'node:path';
import { expect, onTestFinished, test } from 'vitest';
import { connectionTo, hasPostgres, type Postgres, startPostgres } from '../postgres.ts';
import { folder } from '../run-folder.ts';
import { mainFile, start } from './process.ts';
import { endOf, writeRecovery } from './recover-round.ts';
import { startRole } from './role.ts';

const databases = { persistence: 'svc', visibility: 'svc_visibility' } as const;
type Database = keyof typeof databases;
const names = Object.keys(databases) as Database[];

/** A cluster: its store, a history role that is down until it is deployed, and the agent's configuration. */
async function openCluster(directory: string, server: Postgres, dumps: string) {
  const role = await startRole(directory, { isDown: true });
  onTestFinished(role.remove);
  const backup = (database: Database) =>
    `  - {name: ${database}, store: main, database: ${database}, type: full, integrity: {level: full}, source: {files: {directory: ${dumps}, pattern: '^${database}.*\\.dump$', settle: 1ms, takenFrom: primary}}}\n`;
  const file = writeRecovery(directory, role, {
    store: `{name: main, kind: postgres, address: '127.0.0.1:${server.port}', user: postgres, databases: {persistence: svc, visibility: svc_visibility}, schema: {persistence: '0.8', visibility: '0.8'}}`,
    backups: names.map(backup).join(''),
  });
  // The child is not synchronous: the history role answers from this process.
  const agent = async (command: string, subcommand: string, ...args: string[]) => {
    const started = start(process.execPath, [mainFile, command, subcommand, '-c', file, ...args]);
    started.child.stdin?.end();
    return endOf(started);
  };
  return { role, agent };
}

test.skipIf(!hasPostgres)('cluster-loss on a new host: every database, then the services', async () => {
  const place = folder();
  onTestFinished(place.remove);
  const dumps = join(place.path, 'dumps');
  execFileSync('mkdir', ['-m', '777', dumps]);
  const directoryOf = (name: string) => {
    execFileSync('mkdir', [join(place.path, name)]);
    return join(place.path, name);
  };
  const lostServer = await startPostgres();
  for (const database of names) {
    await lostServer.query(`CREATE DATABASE ${databases[database]}`);
    await lostServer.query(
      `CREATE TABLE executions AS SELECT i FROM generate_series(1, 1000) i;
       CREATE TABLE schema_version AS SELECT '${databases[database]}' AS db_name, now() AS creation_time, '0.8' AS curr_version, '0.8' AS min_compatible_version`,
      databases[database],
    );
  }
  const lost = await openCluster(directoryOf('lost'), lostServer, dumps);
  for (const database of names) {
    const dump = ['pg_dump', ...connectionTo(lostServer), '-Fc'];
    const to = ['-f', join(dumps, `${database}.dump`), databases[database]];
    expect(await lost.agent('backup', 'run', '--job', database, '--', ...dump, ...to)).toMatchObject({
      status: 0,
    });
  }
  // The store, the host and the agent's state are gone; only the backups are left.
  await lostServer.stop();
  rmSync(join(place.path, 'lost'), { recursive: true });

  const server = await startPostgres();
  onTestFinished(() => server.stop());
  const { agent, role } = await openCluster(directoryOf('new'), server, dumps);
  const recover = (database: Database) =>
    agent(
      ...(['recover', 'cluster-loss', '--store', 'main', '--database', database] as const),
      ...['--execute', '--yes', '--confirm', 'main'],
    );
  const first = await recover('persistence');
  expect(first).toMatchObject({
    status: 1,
    output: expect.stringMatching(/FAILED +visibility of main is there/),
  });
  expect(await role.isUp(), 'services run before their databases are there').toBe(false);
  const second = await recover('visibility');
  expect(second).toMatchObject({ status: 0 });
  expect(await role.isUp()).toBe(true);
  // The services answer by now: the rest of the run starts no restore.
  const resumed = await recover('persistence');
  expect(resumed).toMatchObject({ status: 0, output: expect.stringContaining('Done in the earlier run.') });
  for (const database of names) {
    const { rows } = await server.query('SELECT count(*)::int AS n FROM executions', databases[database]);
    expect(rows, database).toEqual([{ n: 1000 }]);
  }
});
