import { execFileSync } from 'node:child_process';
import { readdirSync, rmSync, writeFileSync } from 'node:fs';
import { type AddressInfo, connect, createServer as createListener, type Server as Listener } from 'node:net';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { newFolder } from '../folder.ts';
import {
  connectionTo,
  copyInto,
  hasPostgres,
  ownedFolder,
  type Postgres,
  postgresFolder,
  postgresProgram,
  schemaTable,
  startPostgres,
} from '../postgres.ts';
import { until } from '../until.ts';
import { mainFile, start } from './process.ts';
import { basesIn, postgresStore, writeRecovery } from './recover-round.ts';
import { type Role, startRole } from './role.ts';

// database-corruption with a base backup and the archived log: the operator runs the lines that the program prints.
describe.skipIf(!hasPostgres || process.getuid?.() !== 0)('recover from a base backup', () => {
  const place = newFolder(afterAll);
  const file = join(place, 'agent.yaml');
  let server: Postgres;
  let role: Role;
  /** The address of the server, which has another port after a restart. */
  let front: Listener;
  const frontPort = () => (front.address() as AddressInfo).port;
  let backups: string;
  const wal = () => join(backups, 'wal');
  const count = async () =>
    (await server.query('SELECT count(*)::int AS n FROM executions', 'svc')).rows[0].n;

  beforeAll(async () => {
    backups = postgresFolder();
    ownedFolder(wal());
    role = await startRole(place);
    front = createListener((client) => {
      const behind = connect(server.port, '127.0.0.1');
      client.on('error', () => behind.destroy()).pipe(behind);
      behind.on('error', () => client.destroy()).pipe(client);
    });
    await new Promise<void>((resolve) => front.listen(0, '127.0.0.1', resolve));
    server = await startPostgres({ archiveCommand: copyInto(wal()) });
    await server.query('CREATE DATABASE svc');
    await server.query('CREATE TABLE executions AS SELECT generate_series(1, 500) i', 'svc');
    await server.query(schemaTable, 'svc');
    const port = connectionTo(server);
    const base = join(backups, 'base-20260101T000000Z');
    postgresProgram('pg_basebackup', [...port, '-D', base, '--wal-method=none', '--checkpoint=fast']);
    await server.query('INSERT INTO executions SELECT generate_series(501, 700)', 'svc');
    await server.archiveWal();
  });
  afterAll(async () => {
    await server?.stop();
    role?.remove();
    front?.close();
    if (backups) rmSync(backups, { recursive: true, force: true });
  });

  test('the rows come back, those of the log too, and the drill is recorded', async () => {
    const psql = `[psql, --host=127.0.0.1, --port=${frontPort()}, --username=postgres, --no-align, --tuples-only`;
    writeRecovery(place, role, {
      store: postgresStore(frontPort(), ''),
      backups: basesIn(backups, wal(), ', integrity: {level: checksum}'),
      commands: `countWorkflows: ${psql}, '--command=SELECT count(*) FROM executions', '{database}'], `,
    });
    const at = frontPort();
    await server.kill();
    // Connections are refused, as on a host where the address is the server's own.
    await new Promise((resolve) => front.close(resolve));
    // This makes a PostgreSQL server end at its start.
    writeFileSync(join(server.data, 'global', 'pg_control'), '');
    const words = ['database-corruption', '-c', file, '--store', 'main', '--database', 'persistence'];
    const run = start(process.execPath, [mainFile, 'recover', ...words, '--execute']);
    let read = 0;
    const answer = async (question: string, text: string) => {
      await until(question, () => {
        const at = run.output().indexOf(question, read);
        if (at < 0 && run.child.exitCode !== null) throw new Error(run.output());
        if (at >= 0) read = at + question.length;
        return at >= 0;
      });
      run.child.stdin!.write(`${text}\n`);
    };
    await answer('Run it?', 'y');
    await answer('Type main', 'main');
    const shown = /By hand: (.*?)\n *This cannot/s.exec(run.output())![1]!;
    const lines = shown.split('\n').map((line) => line.trim().replaceAll('DATA_DIRECTORY', server.data));
    expect(lines.join('\n')).toContain(`cp -a ${backups}/base-20260101T000000Z/. ${server.data}`);
    await server.restart([], () => {
      execFileSync('bash', ['-euc', lines.join('\n')]);
    });
    await new Promise<void>((resolve) => front.listen(at, '127.0.0.1', resolve));
    await until('the log is replayed', async () => {
      const { rows } = await server.query('SELECT pg_is_in_recovery() AS still');
      return rows[0].still === false;
    });
    await answer('Is it done?', 'y');
    await answer('Run it?', 'y');
    const status = await run.ended;
    expect(run.output()).toContain('700');
    expect(status, run.output()).toBe(0);
    expect(await count()).toBe(700);
    expect(readdirSync(server.data)).not.toContain('recovery.signal');
    expect(await role.isUp()).toBe(true);
  });
});
