import { execFileSync } from 'node:child_process';
import { mkdirSync, readdirSync, rmSync, statfsSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, onTestFinished, test } from 'vitest';
import { command, mainFile, start } from '../e2e/process.ts';
import { type Role, startRole } from '../e2e/role.ts';
import { hasMariadb, schemaStatements, startMariadb, usersStatements } from '../mariadb.ts';
import {
  connectionTo,
  hasPostgres,
  ownedByPostgres,
  postgresFolder,
  postgresProgram,
  schemaTable,
  startPostgres,
} from '../postgres.ts';
import { folder } from '../run-folder.ts';
import { canMount, tmpfs } from './state/mount.ts';

// Disks that are full, or fill up, in each step of a recovery. The recovery is refused before anything is stopped, or it says
// what is down, loses nothing, and continues when there is space.

const canFill = canMount() && process.getuid?.() === 0;
const mebibyte = 2 ** 20;

/** Fills a file system except for `leftBytes`; returns the undo. */
function fill(directory: string, leftBytes: number): () => void {
  const { bavail, bsize } = statfsSync(directory);
  const file = join(directory, 'filler');
  execFileSync('fallocate', ['-l', String(Math.max(bsize, bavail * bsize - leftBytes)), file]);
  return () => rmSync(file, { force: true });
}

async function open(): Promise<{ path: string; role: Role }> {
  const { path, remove } = folder();
  onTestFinished(remove);
  const role = await startRole(path);
  onTestFinished(role.remove);
  return { path, role };
}

function configure(path: string, { start: up, stop, health }: Role, rest: string): void {
  writeFileSync(
    join(path, 'agent.yaml'),
    `roles: [history]
services: {history: {health: '${health}'}}
recovery: {allowExecute: true, commands: {stopServices: [${stop}], startServices: [${up}]}}
${rest}`,
  );
}

async function recover(path: string, ...args: string[]) {
  const words = ['recover', 'database-corruption', '-c', join(path, 'agent.yaml'), '--database'];
  const run = start(process.execPath, [
    ...[mainFile, ...words, 'persistence', '--execute', '--yes', '--confirm', 'main', ...args],
  ]);
  run.child.stdin?.end();
  return { status: await run.ended, output: run.output() };
}

const taken = (path: string, ...words: string[]) => {
  const { status, stderr } = command([
    ...['backup', 'run', '--job', 'nightly', '-c', join(path, 'agent.yaml'), '--', ...words],
  ]);
  expect(status, stderr).toBe(0);
};

const down = (role: Role) => `The services are stopped. To start them: $ ${role.start.join(' ')}`;

test.skipIf(!hasPostgres || !canFill)('the disk of PostgreSQL, and that of the journal', async () => {
  const { directory: disk } = tmpfs('160m');
  const { directory: state } = tmpfs('2m');
  const { path, role } = await open();
  const log = postgresFolder();
  onTestFinished(() => rmSync(log, { recursive: true, force: true }));
  ownedByPostgres(disk);
  const data = join(disk, 'data');
  // A server whose log has no space ends, so only its data is on the small disk.
  const kind = ['-U', 'postgres', '-A', 'trust', '--no-sync', '--wal-segsize=1', '-X', join(log, 'wal')];
  postgresProgram('initdb', ['-D', data, ...kind]);
  const server = await startPostgres({ data });
  onTestFinished(() => server.stop());
  const dumps = join(path, 'dumps');
  mkdirSync(dumps);
  configure(
    path,
    role,
    `stateDirectory: ${state}
stores: [{name: main, kind: postgres, address: '127.0.0.1:${server.port}', user: postgres, databases: {persistence: svc}}]
backups:
  - {name: nightly, store: main, database: persistence, type: full, source: {files: {directory: ${dumps}, pattern: '\\.dump$', settle: 1ms, takenFrom: primary}}}
`,
  );
  await server.query('CREATE DATABASE svc');
  await server.query(
    "CREATE TABLE executions AS SELECT i, repeat('x', 400) FROM generate_series(1, 40000) i",
    'svc',
  );
  await server.query(schemaTable, 'svc');
  const at = connectionTo(server);
  taken(path, 'pg_dump', ...at, '-Fc', '-f', join(dumps, 'a.dump'), 'svc');
  await server.query('DELETE FROM executions WHERE i > 10', 'svc');
  const count = async () => {
    const { rows } = await server.query('SELECT count(*)::int AS n FROM executions', 'svc');
    await server.disconnect();
    return rows[0].n;
  };
  expect(await count()).toBe(10);

  const undo = fill(disk, 9 * mebibyte);
  const refused = await recover(path);
  expect(refused).toMatchObject({
    status: 1,
    output: expect.stringMatching(
      /FAILED +the server has space for the safety copy: .*--no-safety-copy leaves the copy out/,
    ),
  });
  expect(refused.output).toContain('refused before anything was changed');
  expect(await role.isUp()).toBe(true);

  const full = await recover(path, '--no-safety-copy');
  expect(full).toMatchObject({ status: 1, output: expect.stringContaining('No space left on device') });
  expect(full.output).toContain(down(role));
  expect(await role.isUp()).toBe(false);
  // The restore is one transaction.
  expect(await count()).toBe(10);

  undo();
  const undoState = fill(state, 0);
  const unwritten = await recover(path, '--no-safety-copy');
  expect(unwritten.status).toBe(1);
  expect(unwritten.output).toMatch(/cannot be read or written.*ENOSPC/);
  expect(unwritten.output).toContain(down(role));
  undoState();

  const after = await recover(path, '--no-safety-copy');
  expect(after).toMatchObject({ status: 0, output: expect.stringContaining('Done in the earlier run.') });
  expect(await count()).toBe(40_000);
  expect(await role.isUp()).toBe(true);
});

test.skipIf(!hasMariadb || !canFill)('the disk of the safety copy of MariaDB', async () => {
  const { directory: disk } = tmpfs('8m');
  const { path, role } = await open();
  const server = await startMariadb();
  onTestFinished(() => server.stop());
  configure(
    path,
    role,
    `stateDirectory: ${join(path, 'state')}
stores: [{name: main, kind: mysql, address: '127.0.0.1:${server.port}', user: full, password: swordfish, databases: {persistence: svc_main}, schema: {persistence: '0.8'}}]
backups:
  - {name: nightly, store: main, database: persistence, type: full, source: {files: {directory: ${disk}, pattern: '\\.sql\\.gz$', settle: 1ms, takenFrom: primary, timeZone: ${Intl.DateTimeFormat().resolvedOptions().timeZone}}}}
`,
  );
  await server.sql(schemaStatements('svc_main'));
  await server.sql(`${usersStatements} GRANT PROCESS ON *.* TO full@'%';`);
  const rows = (from: number, to: number) =>
    server.sql(
      `INSERT INTO svc_main.executions SELECT seq, SHA2(seq, 512) FROM svc_main.seq_${from}_to_${to}`,
    );
  await rows(1, 10_000);
  const client = `--no-defaults --host=127.0.0.1 --port=${server.port} --user=root`;
  const line = `mariadb-dump ${client} --single-transaction --hex-blob svc_main | gzip > ${disk}/a.sql.gz`;
  taken(path, 'bash', '-o', 'pipefail', '-c', line);
  const count = async () => Number((await server.sql('SELECT COUNT(*) AS n FROM svc_main.executions'))[0]!.n);

  const tooSmall = fill(disk, 200_000);
  const refused = await recover(path);
  expect(refused).toMatchObject({
    status: 1,
    output: expect.stringMatching(/FAILED +the safety copy can be written/),
  });
  expect(await role.isUp()).toBe(true);
  tooSmall();

  // The content takes more space than the dump.
  await rows(10_001, 60_000);
  const undo = fill(disk, 2 * mebibyte);
  const full = await recover(path);
  expect(full).toMatchObject({ status: 1, output: expect.stringContaining('No space left on device') });
  expect(full.output).toContain(down(role));
  expect(full.output).not.toContain('may be restored in part');
  expect(await count()).toBe(60_000);
  expect(readdirSync(join(disk, 'before-recovery'))).toEqual([]);
  undo();
  const after = await recover(path);
  expect(after).toMatchObject({ status: 0 });
  expect(await count()).toBe(10_000);
  expect(await role.isUp()).toBe(true);
});
