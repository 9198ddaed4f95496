import { execFileSync } from 'node:child_process';
import { mkdirSync, readdirSync, rmSync, statfsSync } from 'node:fs';
import { join } from 'node:path';
import { expect, onTestFinished, test } from 'vitest';
import {
  dumpsIn,
  mariadbStore,
  openRole,
  postgresStore,
  recoverMain,
  takeBackup,
  writeRecovery,
} from '../e2e/recover-round.ts';
import type { Role } from '../e2e/role.ts';
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

const down = (role: Role) => `The services are stopped. To start them: $ ${role.start.join(' ')}`;

test.skipIf(!hasPostgres || !canFill)('the disk of PostgreSQL, and that of the journal', async () => {
  const { directory: disk } = tmpfs('160m');
  const { directory: state } = tmpfs('2m');
  const { path, role } = await openRole();
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
  const file = writeRecovery(path, role, {
    store: postgresStore(server.port, ''),
    backups: dumpsIn(dumps),
    state,
  });
  await server.query('CREATE DATABASE svc');
  await server.query(
    "CREATE TABLE executions AS SELECT i, repeat('x', 400) FROM generate_series(1, 40000) i",
    'svc',
  );
  await server.query(schemaTable, 'svc');
  const at = connectionTo(server);
  takeBackup(file, 'pg_dump', ...at, '-Fc', '-f', join(dumps, 'a.dump'), 'svc');
  await server.query('DELETE FROM executions WHERE i > 10', 'svc');
  const count = async () => {
    const { rows } = await server.query('SELECT count(*)::int AS n FROM executions', 'svc');
    await server.disconnect();
    return rows[0].n;
  };
  expect(await count()).toBe(10);

  const undo = fill(disk, 9 * mebibyte);
  const refused = await recoverMain(file);
  expect(refused).toMatchObject({
    status: 1,
    output: expect.stringMatching(
      /FAILED +the server has space for the safety copy: .*--no-safety-copy leaves the copy out/,
    ),
  });
  expect(refused.output).toContain('refused before anything was changed');
  expect(await role.isUp()).toBe(true);

  const full = await recoverMain(file, '--no-safety-copy');
  expect(full).toMatchObject({ status: 1, output: expect.stringContaining('No space left on device') });
  expect(full.output).toContain(down(role));
  expect(await role.isUp()).toBe(false);
  // The restore is one transaction.
  expect(await count()).toBe(10);

  undo();
  const undoState = fill(state, 0);
  const unwritten = await recoverMain(file, '--no-safety-copy');
  expect(unwritten.status).toBe(1);
  expect(unwritten.output).toMatch(/cannot be read or written.*ENOSPC/);
  expect(unwritten.output).toContain(down(role));
  undoState();

  const after = await recoverMain(file, '--no-safety-copy');
  expect(after).toMatchObject({ status: 0, output: expect.stringContaining('Done in the earlier run.') });
  expect(await count()).toBe(40_000);
  expect(await role.isUp()).toBe(true);
});

test.skipIf(!hasMariadb || !canFill)('the disk of the safety copy of MariaDB', async () => {
  const { directory: disk } = tmpfs('8m');
  const { path, role } = await openRole();
  const server = await startMariadb();
  onTestFinished(() => server.stop());
  const store = mariadbStore(server.port);
  const file = writeRecovery(path, role, { store, backups: dumpsIn(disk, { isSql: true }) });
  await server.sql(schemaStatements('svc_main'));
  await server.sql(`${usersStatements} GRANT PROCESS ON *.* TO full@'%';`);
  const rows = (from: number, to: number) =>
    server.sql(
      `INSERT INTO svc_main.executions SELECT seq, SHA2(seq, 512) FROM svc_main.seq_${from}_to_${to}`,
    );
  await rows(1, 10_000);
  const client = `--no-defaults --host=127.0.0.1 --port=${server.port} --user=root`;
  const line = `mariadb-dump ${client} --single-transaction --hex-blob svc_main | gzip > ${disk}/a.sql.gz`;
  takeBackup(file, 'bash', '-o', 'pipefail', '-c', line);
  const count = async () => Number((await server.sql('SELECT COUNT(*) AS n FROM svc_main.executions'))[0]!.n);

  const tooSmall = fill(disk, 200_000);
  const refused = await recoverMain(file);
  expect(refused).toMatchObject({
    status: 1,
    output: expect.stringMatching(/FAILED +the safety copy can be written/),
  });
  expect(await role.isUp()).toBe(true);
  tooSmall();

  // The content takes more space than the dump.
  await rows(10_001, 60_000);
  const undo = fill(disk, 2 * mebibyte);
  const full = await recoverMain(file);
  expect(full).toMatchObject({ status: 1, output: expect.stringContaining('No space left on device') });
  expect(full.output).toContain(down(role));
  expect(full.output).not.toContain('may be restored in part');
  expect(await count()).toBe(60_000);
  expect(readdirSync(join(disk, 'before-recovery'))).toEqual([]);
  undo();
  const after = await recoverMain(file);
  expect(after).toMatchObject({ status: 0 });
  expect(await count()).toBe(10_000);
  expect(await role.isUp()).toBe(true);
});
