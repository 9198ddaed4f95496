import { execFileSync } from 'node:child_process';
import { chmodSync, chownSync, existsSync, mkdirSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest';
import { newFolder } from '../folder.ts';
import { connectionTo, hasPostgres, type Postgres, schemaTable, startPostgres } from '../postgres.ts';
import { bySize } from '../size.ts';
import { until } from '../until.ts';
import { mainFile, start } from './process.ts';
import {
  dumpsIn,
  endOf,
  postgresStore,
  recoverMain,
  startRecovery,
  takeBackup,
  unattended,
  writeRecovery,
} from './recover-round.ts';
import { type Role, startRole } from './role.ts';

// What may happen to an operator at three in the morning: services that come back by themselves, commands that hang, signals,
// backups that cannot be read, and checks that find nothing to check.
describe.skipIf(!hasPostgres)('recover', () => {
  let server: Postgres;
  let role: Role;
  const place = newFolder(afterAll);
  const dumps = join(place, 'dumps');
  const file = join(place, 'agent.yaml');

  interface Settings {
    commands?: string;
    stop?: string;
    begin?: string;
    services?: string;
    schema?: string;
  }
  const configure = ({ schema, ...settings }: Settings = {}) =>
    writeRecovery(place, role, {
      store: postgresStore(server.port, schema),
      backups: dumpsIn(dumps),
      ...settings,
    });
  const recover = (...args: string[]) => recoverMain(file, ...args);
  const query = async (sql: string) => {
    const { rows } = await server.query(sql, 'svc');
    await server.disconnect();
    return rows;
  };
  const count = async () => (await query('SELECT count(*)::int AS n FROM executions'))[0].n;
  const dump = (name: string) =>
    takeBackup(file, 'pg_dump', ...connectionTo(server), '-Fc', '-f', join(dumps, name), 'svc');
  const startText = () => `The services are stopped. To start them: $ ${role.start.join(' ')}`;

  beforeAll(async () => {
    execFileSync('mkdir', ['-m', '755', dumps]);
    chmodSync(place, 0o755);
    role = await startRole(place);
    server = await startPostgres();
    await server.query('CREATE DATABASE svc');
    await query('CREATE TABLE executions AS SELECT i FROM generate_series(1, 500) i');
    await query(schemaTable);
    configure();
    dump('a.dump');
  });
  beforeEach(async () => {
    rmSync(join(place, 'state', 'recovery-runs'), { recursive: true, force: true });
    configure();
    execFileSync(role.start[0]!, role.start.slice(1), { stdio: 'ignore' });
    await until('the role answers', async () => (await role.isUp()) || undefined);
  });
  afterAll(async () => {
    await server?.stop();
    role?.remove();
  });

  test('services that a supervisor starts again while the restore runs: it is done again', async () => {
    await query('DELETE FROM executions WHERE i > 10');
    const answers = `until curl --silent --output /dev/null ${role.health}; do :; done`;
    configure({ commands: `restore: [sh, -c, '${role.start.join(' ')}; ${answers}'], ` });
    const disturbed = await recover();
    expect(disturbed.status).toBe(1);
    expect(disturbed.output).toMatch(
      /Stopped: Restore .*: the check "every role of the service refuses connections" failed while the step was running, so the step has to be done again: history still answers/,
    );
    expect(disturbed.output).toContain('persistence of main may be restored in part.');
    execFileSync(role.stop[0]!, role.stop.slice(1));
    configure();
    const { status, output } = await recover();
    expect({ status, output }).toMatchObject({ status: 0 });
    expect(output).toContain(startText());
    expect(await count()).toBe(500);
    expect(await role.isUp()).toBe(true);
  });

  test('a stop command that hangs and ignores signals: it is said, and the second signal kills it', async () => {
    configure({ stop: `[sh, -c, 'trap "" TERM INT; echo hangs; while :; do sleep 0.2; done']` });
    const run = startRecovery(file, ...unattended);
    await until('it hangs', () => run.output().includes('\nhangs'));
    run.child.kill('SIGINT');
    await until('it says so', () => run.output().includes('a second signal kills it'));
    run.child.kill('SIGINT');
    const { status, output } = await endOf(run);
    expect({ status, output }).toMatchObject({ status: 1 });
    expect(output).toContain('Stopped: Stop the services: sh ended with SIGKILL');
    expect(output).toContain(startText());
  });

  test.each(bySize({ short: [], long: ['SIGTERM'], nightly: ['SIGTERM', 'SIGINT', 'SIGHUP'] } as const))(
    '%s while a check waits for services that do not stop: what is down is said, and the run goes on',
    async (signal) => {
      configure({ stop: "['true']" });
      const run = startRecovery(file, ...unattended);
      await until('it waits', () => run.output().includes('Step 3 of 7'));
      run.child.kill(signal);
      const { status, output } = await endOf(run);
      expect({ status, output }).toMatchObject({ status: 1 });
      expect(output).toContain('interrupted by a signal');
      expect(output).toContain(startText());
      execFileSync(role.stop[0]!, role.stop.slice(1));
      const again = await recover();
      expect(again).toMatchObject({ status: 0 });
      expect(await role.isUp()).toBe(true);
    },
  );

  test('a start command that fails: the services may be down, and it is said how to start them', async () => {
    configure({ begin: "['false']" });
    const { status, output } = await recover();
    expect({ status, output }).toMatchObject({ status: 1 });
    expect(output).toContain('The services may be down: nothing has shown yet that they started.');
    expect(output).toContain('To start them: $ false');
    expect(output).not.toContain('The services are stopped.');
    expect(await role.isUp()).toBe(false);
    configure();
    expect(await recover()).toMatchObject({ status: 0 });
    expect(await role.isUp()).toBe(true);
  });

  test('a second run beside the first is refused, and says what is down', async () => {
    configure({ commands: `safetyCopy: [sh, -c, 'echo copies; exec sleep 600.125'], ` });
    const run = startRecovery(file, ...unattended);
    await until('it copies', () => run.output().includes('\ncopies'));
    const second = await recover('--restart');
    expect(second).toMatchObject({
      status: 1,
      output: expect.stringMatching(/a run of database-corruption \(pid \d+, since .*\) is under way/),
    });
    expect(second.output).toContain(startText());
    run.child.kill('SIGTERM');
    expect(await run.ended).toBe(1);
  });

  test('a backup that is encrypted, empty or a directory of something else is refused before anything is stopped', async () => {
    const path = (name: string) => join(place, name);
    const encrypted = Buffer.alloc(20_000, 'Salted__\x93\x11\xfe');
    writeFileSync(path('a.dump.gpg'), encrypted);
    writeFileSync(path('b.dump'), encrypted);
    writeFileSync(path('empty.dump'), '');
    mkdirSync(path('folder'), { recursive: true });
    writeFileSync(join(path('folder'), 'PG_VERSION'), '15\n');
    for (const name of ['a.dump.gpg', 'b.dump', 'empty.dump', 'folder']) {
      const { status, output } = await recover('--backup', path(name));
      expect({ status, output }).toMatchObject({
        status: 1,
        output: expect.stringMatching(/(?:FAILED |unknown) a verified backup can be restored/),
      });
      expect(output).toContain('refused before anything was changed');
      expect(await role.isUp()).toBe(true);
    }
  });

  test.skipIf(process.getuid?.() !== 0 || !existsSync('/usr/bin/setpriv'))(
    'a backup that the user of the run may not read is refused before anything is stopped',
    async () => {
      const state = join(place, 'state-of-nobody');
      mkdirSync(state, { recursive: true });
      chownSync(state, 65534, 65534);
      const dumped = join(dumps, 'a.dump');
      chmodSync(dumped, 0o600);
      configure();
      execFileSync('sed', ['-i', `s|^stateDirectory:.*|stateDirectory: ${state}|`, file]);
      const words = ['recover', 'database-corruption', '-c', file, '--database', 'persistence'];
      const run = start('setpriv', [
        ...['--reuid=65534', '--regid=65534', '--clear-groups', process.execPath, mainFile, ...words],
        ...['--execute', '--yes', '--confirm', 'main'],
      ]);
      run.child.stdin?.end();
      const { status, output } = await endOf(run);
      chmodSync(dumped, 0o644);
      expect({ status, output }).toMatchObject({ status: 1 });
      expect(output).toMatch(/(?:FAILED |unknown) a verified backup can be restored: .*/);
      expect(output).toContain('refused before anything was changed');
      expect(await role.isUp()).toBe(true);
    },
  );

  test.each([
    [
      'no role is configured',
      { services: '' },
      [/Not proved: the roles are healthy: no role has a health check/],
    ],
    [
      'nothing tells the schema, the workflows and the newest row',
      { schema: '' },
      [
        /Not proved: the schema has the version.*set stores\[\]\.schema/,
        /Not proved: there are workflows in persistence of main: set/,
        /Not proved: the newest row is as old as the recovery point: set/,
      ],
    ],
  ] as const)('%s: that is not proved, and the run is no drill', async (_, settings, messages) => {
    configure(settings);
    const args = 'services' in settings ? ['--force', 'nothing to look at'] : [];
    const { status, output } = await recover(...args);
    expect({ status, output }).toMatchObject({ status: 0 });
    for (const message of messages) expect(output).toMatch(message);
    expect(output).toContain('This run is not recorded as a drill.');
  });

  test('a restored store that is empty, or has no schema table, keeps the services down', async () => {
    const psql = `[psql, -h, 127.0.0.1, -p, '${server.port}', -U, postgres, -Atc, SELECT count(*) FROM executions, '{database}']`;
    await query('ALTER TABLE executions RENAME TO kept; CREATE TABLE executions (i int)');
    dump('b.dump');
    configure({ commands: `countWorkflows: ${psql}, ` });
    const empty = await recover('--backup', join(dumps, 'b.dump'));
    expect(empty).toMatchObject({
      status: 1,
      output: expect.stringMatching(/FAILED +there are workflows in persistence of main: there are none/),
    });
    expect(empty.output).toContain(startText());
    expect(await role.isUp()).toBe(false);
    await query('ALTER TABLE schema_version RENAME TO old_version');
    dump('c.dump');
    const missing = await recover('--restart', '--backup', join(dumps, 'c.dump'));
    expect(missing).toMatchObject({
      status: 1,
      output: expect.stringMatching(/FAILED +(?:the schema has the version|main answers)/),
    });
    expect(missing.output).toContain(startText());
    expect(await role.isUp()).toBe(false);
  });
});
