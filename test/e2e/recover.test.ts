import { execFileSync } from 'node:child_process';
import { existsSync, readFileSync, writeFileSync } from 'node:fs';
import { createServer, type Server } from 'node:http';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { freePort } from '../ports.ts';
import { hasPostgres, type Postgres, startPostgres } from '../postgres.ts';
import { command, commandHere, folder, mainFile, start } from './process.ts';

// database-corruption on a real store, through the built program.
describe.skipIf(!hasPostgres)('recover', () => {
  let server: Postgres;
  let history: Server;
  let port = 0;
  const place = folder();
  const dumps = join(place.path, 'dumps');
  const file = join(place.path, 'agent.yaml');
  /** The history role is down while this file is there. */
  const stopped = join(place.path, 'stopped');
  const subject = ['--store', 'main', '--database', 'persistence'];
  const execute = [...subject, '--execute', '--yes'];

  const recover = async (...args: string[]) => {
    const running = start(process.execPath, [
      mainFile,
      'recover',
      'database-corruption',
      '-c',
      file,
      ...args,
    ]);
    running.child.stdin?.end();
    return { status: await running.ended, output: running.output() };
  };
  const count = async () =>
    (await server.query('SELECT count(*)::int AS n FROM executions', 'svc')).rows[0].n;
  const configure = (more: string) =>
    writeFileSync(
      file,
      `stateDirectory: ${join(place.path, 'state')}
roles: [history]
services: {history: {health: 'http://127.0.0.1:${port}/health'}}
stores: [{name: main, kind: postgres, address: '127.0.0.1:${server.port}', user: postgres, databases: {persistence: svc}}]
backups:
  - name: nightly
    store: main
    database: persistence
    type: full
    source: {files: {directory: ${dumps}, pattern: '\\.dump$', settle: 1ms}}
    integrity: {level: full}
${more}`,
    );

  beforeAll(async () => {
    execFileSync('mkdir', ['-m', '777', dumps]);
    port = await freePort();
    history = createServer((_, response) =>
      response.end(JSON.stringify({ ok: !existsSync(stopped), msg: '' })),
    );
    await new Promise<void>((resolve) => history.listen(port, '127.0.0.1', resolve));
    server = await startPostgres();
    await server.query('CREATE DATABASE svc');
    await server.query('CREATE TABLE executions AS SELECT i FROM generate_series(1, 5000) i', 'svc');
    await server.query(
      "CREATE TABLE schema_version AS SELECT 'svc' AS db_name, now() AS creation_time, '0.8' AS curr_version, '0.8' AS min_compatible_version",
      'svc',
    );
    configure(`recovery:
  allowExecute: true
  commands: {stopServices: [touch, ${stopped}], startServices: [rm, ${stopped}]}
`);
    const dumped = command([
      ...['backup', 'run', '--job', 'nightly', '-c', file, '--'],
      ...['pg_dump', '-h', '127.0.0.1', '-p', String(server.port), '-U', 'postgres', '-Fc'],
      ...['-f', join(dumps, 'a.dump'), 'svc'],
    ]);
    expect(dumped.status, dumped.stderr).toBe(0);
  });
  afterAll(async () => {
    await server?.stop();
    history?.close();
    place.remove();
  });

  test('the plan names the backup and the commands, and changes nothing', async () => {
    const { status, output } = await recover(...subject, '--plan');
    expect(status).toBe(0);
    expect(output).toContain(`pg_restore --host 127.0.0.1 --port ${server.port}`);
    expect(output).toContain(join(dumps, 'a.dump'));
    const plan = JSON.parse((await recover(...subject, '--plan', '--json')).output);
    expect(plan.steps.map(({ id }: { id: string }) => id)).toEqual([
      ...['confirm', 'stop-services', 'restore', 'verify-schema', 'start-services', 'verify-workflows'],
    ]);
    expect(await count()).toBe(5000);
    expect(existsSync(stopped)).toBe(false);
  });

  test('what would change a store for good wants its name', async () => {
    const { status, output } = await recover(...execute, '--confirm', 'other');
    expect(status).toBe(1);
    expect(output).toContain('main was not confirmed');
    expect(await count()).toBe(5000);
  });

  test('an interrupted run goes on where it was, the rows come back, and the drill is recorded', async () => {
    expect(existsSync(stopped)).toBe(true);
    await server.query('DELETE FROM executions WHERE i > 10', 'svc');
    const { status, output } = await recover(...execute, '--confirm', 'main');
    expect({ status, output }).toMatchObject({ status: 0 });
    expect(await count()).toBe(5000);
    // The run before, which was refused at the restore, had stopped the services.
    expect(output).toContain('Done in the earlier run.');
    expect(existsSync(stopped)).toBe(false);
    // Nothing in this configuration tells the schema's version: that is said, not passed over.
    expect(output).toMatch(/Not proved: .*schema/);
    const probed = JSON.parse(command(['probe', 'recovery', 'backup', '-c', file, '--json']).stdout) as {
      name: string;
      details: { drill: object };
    }[];
    expect(probed.find(({ name }) => name === 'recovery/main/persistence')?.details.drill).toMatchObject({
      procedure: 'database-corruption',
    });
  });

  test('the procedure ends with a count and a listing of workflows, each with what would prove it', async () => {
    const psql = `[psql, -h, 127.0.0.1, -p, '${server.port}', -U, postgres, -Atc, 'SELECT count(*) FROM executions', '{database}']`;
    const client = "[sh, -c, 'echo $3 $4 of $2 > /dev/stderr; echo one; echo two', sh]";
    configure(
      `recovery: {allowExecute: true, client: ${client}, commands: {countWorkflows: ${psql}, stopServices: [touch, ${stopped}], startServices: [rm, ${stopped}]}}\n`,
    );
    const { status, output } = await recover(...execute, '--confirm', 'main', '--domain', 'orders');
    expect({ status, output }).toMatchObject({ status: 0 });
    expect(output).toMatch(/ok +there are workflows in persistence of main: 5000 workflows/);
    expect(output).toMatch(/ok +the service lists workflows of orders: 2 lines/);
    expect(output).not.toMatch(/Not proved: .*workflows/);
    configure(
      `recovery: {allowExecute: true, commands: {stopServices: [touch, ${stopped}], startServices: [rm, ${stopped}]}}\n`,
    );
    const without = await recover(...execute, '--confirm', 'main');
    expect(without.output).toMatch(/Not proved: there are workflows.*set recovery.commands.countWorkflows/);
    expect(without.output).toMatch(/Not proved: the service lists workflows of a domain: name a domain/);
  });

  test('a database that is gone as a whole is created again', async () => {
    await server.query('DROP DATABASE svc WITH (FORCE)');
    const { status, output } = await recover(...execute, '--confirm', 'main');
    expect({ status, output }).toMatchObject({ status: 0 });
    expect(await count()).toBe(5000);
  });

  test('a backup that is named is itself verified', async () => {
    const whole = readFileSync(join(dumps, 'a.dump'));
    const cut = join(place.path, 'cut.dump');
    writeFileSync(cut, whole.subarray(0, whole.length - 100));
    const refused = await recover(...execute, '--confirm', 'main', '--backup', cut);
    expect(refused).toMatchObject({ status: 1, output: expect.stringMatching(/FAILED +a verified backup/) });
    expect(await count()).toBe(5000);
  });

  test('a service that goes on writing refuses the restore', async () => {
    configure(
      `recovery: {allowExecute: true, commands: {stopServices: ['true'], startServices: ['true']}}\n`,
    );
    const { status, output } = await recover(...execute, '--confirm', 'main');
    expect(status).toBe(1);
    expect(output).toContain('the history service still answers');
  });

  test('without a backup that is good, a restore is refused; force is recorded with its reason', async () => {
    const dump = join(dumps, 'a.dump');
    const whole = readFileSync(dump);
    writeFileSync(dump, whole.subarray(0, whole.length / 2));
    const refused = await recover(...execute, '--confirm', 'main');
    expect(refused.status).toBe(1);
    expect(refused.output).toContain('--force REASON overrides this');
    await recover(...execute, '--confirm', 'main', '--force', 'nothing better is left');
    const name = 'database-corruption.main.persistence.steps.jsonl';
    const journal = readFileSync(join(place.path, 'state', 'recovery-runs', name), 'utf8');
    expect(journal).toContain('"reason":"nothing better is left"');
    writeFileSync(dump, whole);
  });

  test('nothing is executed unless the configuration allows it', async () => {
    configure('');
    const { status, output } = await recover(...execute);
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
      /--backup is not there, got "\/nowhere\/a\.dump"/,
    ],
    [['recover', 'failback', '--to', 'dc1'], /--domain is missing/],
  ])('%j is wrong usage', async (args, message) => {
    const { status, stderr } = await commandHere([...args, '-c', file]);
    expect({ status, stderr }).toMatchObject({ status: 2, stderr: expect.stringMatching(message) });
  });
});
