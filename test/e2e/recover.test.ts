import { execFileSync } from 'node:child_process';
import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { newFolder } from '../folder.ts';
import { connectionTo, hasPostgres, type Postgres, schemaTable, startPostgres } from '../postgres.ts';
import { command, commandHere } from './process.ts';
import {
  dumpsIn,
  endOf,
  postgresStore,
  recoverMain,
  startRecovery,
  takeBackup,
  writeRecovery,
} from './recover-round.ts';
import { type Role, startRole } from './role.ts';

// database-corruption on a real store, through the built program.
describe.skipIf(!hasPostgres)('recover', () => {
  let server: Postgres;
  let role: Role;
  const place = newFolder(afterAll);
  const dumps = join(place, 'dumps');
  const file = join(place, 'agent.yaml');
  const recover = (...args: string[]) => recoverMain(file, ...args);

  /** Runs a query without leaving a session behind, which would refuse a restore. */
  const query = async (sql: string, database = 'svc') => {
    const { rows } = await server.query(sql, database);
    await server.disconnect();
    return rows;
  };
  const count = async () => (await query('SELECT count(*)::int AS n FROM executions'))[0].n;
  const configure = (commands = '', store = postgresStore(server.port, '')) =>
    writeRecovery(place, role, {
      store,
      backups: dumpsIn(dumps, { more: ', integrity: {level: full}' }),
      commands,
    });
  const edit = (found: string | RegExp, text: string) =>
    writeFileSync(file, readFileSync(file, 'utf8').replace(found, text));

  beforeAll(async () => {
    execFileSync('mkdir', ['-m', '777', dumps]);
    role = await startRole(place);
    server = await startPostgres();
    await server.query('CREATE DATABASE svc');
    await server.query('CREATE TABLE executions AS SELECT i FROM generate_series(1, 5000) i', 'svc');
    await server.query(schemaTable, 'svc');
    configure();
    takeBackup(file, 'pg_dump', ...connectionTo(server), '-Fc', '-f', join(dumps, 'a.dump'), 'svc');
  });
  afterAll(async () => {
    await server?.stop();
    role?.remove();
  });

  const drill = () =>
    (
      JSON.parse(command(['probe', 'recovery', 'backup', '-c', file, '--json']).stdout) as {
        name: string;
        details: { drill?: object };
      }[]
    ).find(({ name }) => name === 'recovery/main/persistence')?.details.drill;

  test('the plan names the backup and the commands, and changes nothing', async () => {
    const { status, output } = await endOf(startRecovery(file, '--plan'));
    expect(status).toBe(0);
    expect(output).toContain(`pg_restore --host 127.0.0.1 --port ${server.port}`);
    expect(output).toContain(join(dumps, 'a.dump'));
    const plan = JSON.parse((await endOf(startRecovery(file, '--plan', '--json'))).output);
    expect(plan.steps.map(({ id }: { id: string }) => id)).toEqual([
      ...['confirm', 'stop-services', 'safety-copy', 'restore', 'verify-data', 'start-services'],
      'verify-workflows',
    ]);
    expect(await count()).toBe(5000);
    expect(await role.isUp()).toBe(true);
  });

  test.each([
    [['--confirm', 'other'], '', /main was not confirmed; add --confirm main/],
    [[], 'restore: [no-such-program, "{file}"], ', /no-such-program is not in the path/],
    [['--until', '2020-01-01T00:00:00Z'], '', /no log can be applied to a dump of PostgreSQL/],
  ])('%j with %j is refused before the services stop', async (args, commands, message) => {
    configure(commands);
    const { status, output } = await recover(...args);
    expect({ status, output }).toMatchObject({ status: 1, output: expect.stringMatching(message) });
    expect(output).toContain('refused before anything was changed');
    expect(await role.isUp()).toBe(true);
    expect(await count()).toBe(5000);
    configure();
  });

  test('a role without a health check, and a restore that nothing would start again, are refused', async () => {
    edit(/, startServices: .*/, '}}');
    const noStart = await recover();
    expect(noStart).toMatchObject({
      status: 1,
      output: expect.stringContaining('recovery.commands.startServices'),
    });
    edit(/services: .*/, 'services: {history: {statsd: 127.0.0.1:0}}');
    const blind = await recover();
    expect(blind.output).toMatch(/unknown every role has a health check: set services\.history\.health/);
    expect(await role.isUp()).toBe(true);
    configure();
  });

  test('a run that fails says what is down, and goes on where it was; the rows come back', async () => {
    await query('DELETE FROM executions WHERE i > 10');
    configure(`restore: ['false'], `);
    const failed = await recover();
    expect(failed).toMatchObject({
      status: 1,
      output: expect.stringContaining('false ended with exit status 1'),
    });
    expect(failed.output).toContain(`The services are stopped. To start them: $ ${role.start.join(' ')}`);
    expect(failed.output).toContain(
      'persistence of main may be restored in part. Run the same command again',
    );
    expect(await role.isUp()).toBe(false);
    configure();
    const { status, output } = await recover();
    expect({ status, output }).toMatchObject({ status: 0 });
    expect(await count()).toBe(5000);
    expect(output).toContain('Done in the earlier run.');
    expect(await role.isUp()).toBe(true);
    expect(output).toMatch(/Restores up to \d{4}-.*: what was written later is lost/);
    // Nothing in this configuration tells the schema's version: the output says so, and the run is no drill.
    expect(output).toMatch(/Not proved: .*schema/);
    expect(output).toContain('This run is not recorded as a drill.');
    expect(drill()).toBeUndefined();
  });

  test('what was there is kept in a second database, and what the backup does not have is named', async () => {
    const copies = async () =>
      (await query("SELECT datname FROM pg_database WHERE datname LIKE 'svc_before_%'", 'postgres')).map(
        ({ datname }) => datname as string,
      );
    const before = await copies();
    expect(before).toHaveLength(1);
    expect((await query('SELECT count(*)::int AS n FROM executions', before[0]))[0].n).toBe(10);
    await query('CREATE TABLE later AS SELECT 1 AS i');
    const { status, output } = await recover('--no-safety-copy');
    expect({ status, output }).toMatchObject({ status: 0 });
    expect(output).toMatch(/not in the backup, and stay as they are: public\.later/);
    expect(await copies()).toEqual(before);
    expect(await query('SELECT i FROM later')).toEqual([{ i: 1 }]);
    await query('DROP TABLE later');
    await query(`DROP DATABASE "${before[0]}"`, 'postgres');
  });

  test('with everything proved the run is a drill', async () => {
    const psql = (statement: string) =>
      `[psql, -h, 127.0.0.1, -p, '${server.port}', -U, postgres, -Atc, '${statement}', '{database}']`;
    const commands = `countWorkflows: ${psql('SELECT count(*) FROM executions')}, newestRow: ${psql('SELECT extract(epoch FROM max(creation_time)) FROM schema_version')}, `;
    const client = "[sh, -c, 'echo $3 $4 of $2 > /dev/stderr; echo one; echo two', sh]";
    configure(commands, postgresStore(server.port));
    edit('allowExecute: true', `allowExecute: true, client: ${client}`);
    const matching = `matching: {health: '${role.health}', scrape: '${role.metrics}'}`;
    edit('roles: [history]\nservices: {', `roles: [history, matching]\nservices: {${matching}, `);
    const { status, output } = await recover('--domain', 'orders');
    expect({ status, output }).toMatchObject({ status: 0 });
    expect(output).toMatch(/ok +there are workflows in persistence of main: 5000 workflows/);
    expect(output).toMatch(/ok +the service lists workflows of orders: 2 lines/);
    expect(output).toMatch(/ok +the newest row is as old as the recovery point/);
    expect(output).toMatch(/ok +workers poll for tasks: \d+ polls/);
    expect(output).not.toContain('Not proved');
    expect(drill()).toMatchObject({ procedure: 'database-corruption' });
    configure();
    const without = await recover();
    expect(without.output).toMatch(/Not proved: there are workflows.*set recovery.commands.countWorkflows/);
    expect(without.output).toMatch(/Not proved: the service lists workflows of a domain: name a domain/);
  });

  test('a database that is gone as a whole is created again', async () => {
    await query('DROP DATABASE svc WITH (FORCE)', 'postgres');
    const { status, output } = await recover();
    expect({ status, output }).toMatchObject({ status: 0 });
    expect(output).toContain('Nothing to run: there is no database svc');
    expect(await count()).toBe(5000);
  });

  test('a backup that is named is itself verified', async () => {
    const whole = readFileSync(join(dumps, 'a.dump'));
    const cut = join(place, 'cut.dump');
    writeFileSync(cut, whole.subarray(0, whole.length - 100));
    const refused = await recover('--backup', cut);
    expect(refused).toMatchObject({ status: 1, output: expect.stringMatching(/FAILED +a verified backup/) });
    expect(await count()).toBe(5000);
  });

  test('without a backup that is good, a restore is refused; force is recorded with its reason', async () => {
    const dump = join(dumps, 'a.dump');
    const whole = readFileSync(dump);
    writeFileSync(dump, whole.subarray(0, whole.length / 2));
    const refused = await recover();
    expect(refused.status).toBe(1);
    expect(refused.output).toContain('--force REASON overrides this');
    await recover('--force', 'nothing better is left');
    const name = 'database-corruption.main.persistence.steps.jsonl';
    const journal = readFileSync(join(place, 'state', 'recovery-runs', name), 'utf8');
    expect(journal).toContain('"reason":"nothing better is left"');
    writeFileSync(dump, whole);
  });

  test('nothing is executed unless the configuration allows it', async () => {
    edit(/^recovery: .*/m, '');
    const { status, output } = await recover();
    expect({ status, output }).toMatchObject({
      status: 2,
      output: expect.stringContaining('recovery.allowExecute'),
    });
  });

  test.each([
    [['recover'], /no procedure; use database-corruption/],
    [['recover', 'failbak'], /unknown procedure, got "failbak"; did you mean failback\?/],
    [['recover', 'database-corruption', '--store', 'main'], /--database is missing/],
    [
      ['recover', 'database-corruption', '--store', 'x', '--database', 'persistence'],
      /no such store, got "x"; there is main/,
    ],
    [
      ['recover', 'database-corruption', '--store', 'main', '--database', 'visibility'],
      /no such database, got "visibility"; set stores\[\]\.databases\.visibility of main; it has persistence/,
    ],
    [
      ['recover', 'database-corruption', '--database', 'persistence', '--backup', '/nowhere/a.dump'],
      /--backup does not exist, got "\/nowhere\/a\.dump"/,
    ],
    [['recover', 'failback', '--to', 'dc1'], /--domain is missing/],
  ])('%j is wrong usage', async (args, message) => {
    const { status, stderr } = await commandHere([...args, '-c', file]);
    expect({ status, stderr }).toMatchObject({ status: 2, stderr: expect.stringMatching(message) });
  });
});
