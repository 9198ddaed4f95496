import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { verifyBackup } from '../../src/probes/backups/verify.ts';
import { newFolder } from '../folder.ts';
import { connectionTo, hasPostgres, type Postgres, postgresProgram, startPostgres } from '../postgres.ts';

// A job that appends the dump of one database to that of another, and pg_dumpall, which does so by itself. The last line of the
// first dump is no evidence for the second.
describe.skipIf(!hasPostgres)('several dumps of a real PostgreSQL in one file', () => {
  let server: Postgres;
  let dumps: Record<'one' | 'svc' | 'all', string>;
  const run = (program: string, ...args: string[]) =>
    postgresProgram(program, [...connectionTo(server), ...args]);
  const verify = (text: string) => {
    const path = join(newFolder(), 'dump.sql');
    writeFileSync(path, text);
    return verifyBackup({ path, level: 'full', bytesPerSecond: 1e12 });
  };
  /** Without the second half of the rows of the last table. */
  const cut = (text: string) => text.slice(0, text.lastIndexOf('\n300\n') + 1);
  const corrupt = { result: 'corrupt', msg: expect.stringContaining('the dump is not complete') };

  beforeAll(async () => {
    server = await startPostgres();
    for (const name of ['one', 'svc']) {
      await server.query(`CREATE DATABASE ${name}`);
      await server.query('CREATE TABLE executions AS SELECT generate_series(1, 500) i', name);
    }
    dumps = {
      one: run('pg_dump', '--verbose', 'one'),
      svc: run('pg_dump', '--verbose', 'svc'),
      all: run('pg_dumpall', '--verbose'),
    };
  });
  afterAll(() => server?.stop());

  test('each of them is whole', async () => {
    for (const text of [dumps.svc, dumps.one + dumps.svc, dumps.all])
      expect(await verify(text)).toMatchObject({ result: 'ok' });
  });

  test('the second is cut off, or the first', async () => {
    expect(await verify(dumps.one + cut(dumps.svc))).toMatchObject(corrupt);
    expect(await verify(cut(dumps.one) + dumps.svc)).toMatchObject(corrupt);
    expect(await verify(cut(dumps.all))).toMatchObject(corrupt);
    // The databases are there, and not the end.
    const end = dumps.all.lastIndexOf('-- PostgreSQL database cluster dump complete');
    expect(await verify(dumps.all.slice(0, end))).toMatchObject(corrupt);
  });

  test('the databases in it are known, if it names them', async () => {
    const databasesIn = async (text: string) => (await verify(text)).content?.databases;
    expect(await databasesIn(dumps.all)).toEqual(expect.arrayContaining(['one', 'svc']));
    expect(await databasesIn(run('pg_dumpall', '--exclude-database=svc'))).not.toContain('svc');
    expect(await databasesIn(run('pg_dump', '--create', 'one'))).toEqual(['one']);
    expect(await databasesIn(dumps.one)).toBeUndefined();
  });

  test('they reach the time at which the first began', async () => {
    const later = dumps.svc.replace(/^-- Started on .*$/m, '-- Started on 2036-01-01 00:00:00 UTC');
    const { content: alone } = await verify(dumps.one);
    expect((await verify(dumps.one + later)).content?.startMs).toBe(alone!.startMs);
  });

  test('a row that looks like the last line', async () => {
    await server.query("CREATE TABLE zz AS SELECT '-- PostgreSQL database dump complete' AS text", 'svc');
    await server.query('INSERT INTO zz SELECT generate_series(1, 300)', 'svc');
    const text = run('pg_dump', 'svc');
    expect(await verify(text)).toMatchObject({ result: 'ok' });
    expect(await verify(text.slice(0, text.lastIndexOf('\n300\n')))).toMatchObject(corrupt);
  });
});
