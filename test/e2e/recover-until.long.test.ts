import { execFileSync } from 'node:child_process';
import { mkdirSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, onTestFinished, test } from 'vitest';
import { newFolder } from '../folder.ts';
import {
  connectionTo,
  copyInto,
  hasPostgres,
  ownedFolder,
  type Postgres,
  postgresFolder,
  postgresProgram,
  startPostgres,
} from '../postgres.ts';
import { until } from '../until.ts';
import { command } from './process.ts';

// The end of a restore, on real servers: the lines that `recover` prints for a base backup are run as they are, and PostgreSQL
// replays the archived log up to the requested time, transaction, restore point or timeline.

describe.skipIf(!hasPostgres || process.getuid?.() !== 0)('the end of a restore', () => {
  const place = newFolder(afterAll);
  const file = join(place, 'agent.yaml');
  let backups: string;
  let base: string;
  /** The id of the last transaction before the bad statement. */
  let goodXid: string;
  /** A time between the restore point and the bad statement. */
  let beforeBad: string;
  /** A time after the last transaction, before the last checkpoint. */
  let behindLast: string;
  const wal = () => join(backups, 'wal');

  const configure = (recovery = '') =>
    writeFileSync(
      file,
      `stateDirectory: ${join(place, 'state')}
stores: [{name: main, kind: postgres, address: '127.0.0.1:1', user: postgres, databases: {persistence: postgres}}]
backups:
  - {name: base, store: main, type: full, source: {files: {directory: ${backups}, pattern: '^base-', settle: 1ms}}}
  - {name: wal, store: main, type: log, source: {segments: {directory: ${wal()}, log: wal, settle: 1ms}}}
${recovery}`,
    );
  const recover = (...args: string[]) =>
    command([
      ...['recover', 'database-corruption', '-c', file, '--store', 'main', '--database', 'persistence'],
      ...args,
    ]);
  /** A time that has passed, with nothing in between. */
  const moment = async (server: Postgres) => {
    const { rows } = await server.query("SELECT date_trunc('milliseconds', clock_timestamp()) AS at");
    const at = new Date(rows[0].at.getTime() + 2);
    await until('the moment has passed', async () => {
      const passed = await server.query('SELECT clock_timestamp() AS at');
      return passed.rows[0].at.getTime() > at.getTime() + 2;
    });
    return at.toISOString();
  };
  const insert = (server: Postgres, note: string) =>
    server.query(`INSERT INTO executions VALUES ('${note}') RETURNING pg_current_xact_id()::text AS xid`);
  const baseOf = (server: Postgres, name: string) => {
    const at = connectionTo(server);
    const path = join(backups, name);
    postgresProgram('pg_basebackup', [...at, '-D', path, '--wal-method=none', '--checkpoint=fast']);
    return path;
  };

  /** Starts a server on what the printed lines restore. */
  const restored = async (args: readonly string[], archives = false): Promise<Postgres> => {
    const { status, stdout, stderr } = recover('--plan', '--json', ...args);
    expect(status, stderr).toBe(0);
    const plan = JSON.parse(stdout) as { steps: { id: string; byHand?: string }[] };
    const data = join(postgresFolder(), 'data');
    mkdirSync(data);
    const lines = plan.steps.find(({ id }) => id === 'restore')!.byHand!;
    execFileSync('bash', ['-euc', lines.replaceAll('DATA_DIRECTORY', data)]);
    const server = await startPostgres({ data, settings: archives ? [] : ['archive_mode=off'] });
    await until('the log is replayed', async () => {
      const { rows } = await server.query('SELECT pg_is_in_recovery() AS still');
      return rows[0].still === false;
    });
    return server;
  };
  const notes = async (server: Postgres) =>
    (await server.query('SELECT note FROM executions ORDER BY note')).rows.map(({ note }) => note);
  const notesAfter = async (...args: string[]) => {
    const server = await restored(args);
    onTestFinished(() => server.stop());
    return notes(server);
  };

  beforeAll(async () => {
    backups = postgresFolder();
    ownedFolder(wal());
    configure();
    const server = await startPostgres({ archiveCommand: `test ! -f ${wal()}/%f && ${copyInto(wal())}` });
    await server.query('CREATE TABLE executions (note text)');
    await insert(server, 'a: in the backup');
    base = baseOf(server, 'base-20260101T000000Z');
    // The label of a backup has its time in whole seconds.
    const taken = Date.now();
    await until('the second of the backup is over', () => Date.now() >= taken + 1000);
    goodXid = (await insert(server, 'b: good')).rows[0].xid;
    await server.query("SELECT pg_create_restore_point('before the release')");
    beforeBad = await moment(server);
    await server.query('DELETE FROM executions');
    await insert(server, 'c: late');
    behindLast = await moment(server);
    // The time of a checkpoint is in whole seconds.
    await until('a checkpoint behind it', async () => {
      await server.query('CHECKPOINT');
      const { rows } = await server.query('SELECT checkpoint_time AS at FROM pg_control_checkpoint()');
      return rows[0].at.getTime() > Date.parse(behindLast);
    });
    await server.archiveWal();
    await server.stop();
  });
  afterAll(() => {
    if (backups) rmSync(backups, { recursive: true, force: true });
  });

  const good = ['a: in the backup', 'b: good'];

  test('a bad statement is left out by a time, a transaction and a restore point', async () => {
    expect(await notesAfter()).toEqual(['c: late']);
    expect(await notesAfter('--until', beforeBad)).toEqual(good);
    expect(await notesAfter('--until-xid', goodXid)).toEqual(good);
    expect(await notesAfter('--until-name', 'before the release')).toEqual(good);
  });

  test('behind the last transaction there is nothing to leave out, and the server starts', async () => {
    expect(await notesAfter('--until', behindLast)).toEqual(['c: late']);
  });

  test('what the log does not have is refused before anything is stopped', async () => {
    const beforeBase = new Date(Date.parse(beforeBad) - 3_600_000).toISOString();
    const moved = join(place, 'moved');
    execFileSync('cp', ['-a', base, moved]);
    const refused = [
      [['--until', beforeBase], /the newest backup is of .*, after --until: name an older one/],
      [['--until', beforeBase, '--backup', moved], /the backup began at .*, after --until/],
      [
        ['--until', new Date().toISOString()],
        /the log only reaches to .*, which is before --until: leave --until out/,
      ],
      [
        ['--until-xid', '4000000000'],
        /no transaction 4000000000: it has transactions up to .*, then 0000000100000000000000\w\w is not/,
      ],
      [['--until-name', 'after the release'], /no restore point after the release/],
      [['--until-timeline', '9'], /the log has no timeline 9; it has 1/],
    ] as const;
    for (const [args, message] of refused) {
      const { status, stdout } = recover('--yes', ...args);
      expect(status).toBe(1);
      expect(stdout).toMatch(/FAILED {2}the restore reaches as far as asked/);
      expect(stdout).toMatch(message);
    }
    // A command that does not know where to end would restore the bad statement, too.
    configure("recovery: {commands: {restore: ['true', '{file}']}}\n");
    for (const option of [['--until', beforeBad] as const, ['--until-xid', goodXid] as const]) {
      const { status, stdout } = recover('--yes', ...option);
      expect({ status, stdout }).toMatchObject({
        status: 1,
        stdout: expect.stringContaining(`recovery.commands.restore does not take ${option[0]}`),
      });
    }
    configure();
  });

  test('settings of an earlier recovery in a base backup, and its timeline, do not end the next one', async () => {
    // The server continues the archive on a new timeline.
    const second = await restored(['--until-xid', goodXid], true);
    await insert(second, 'd: on timeline 2');
    const later = baseOf(second, 'base-20260102T000000Z');
    await insert(second, 'e: on timeline 2');
    await second.archiveWal();
    await second.stop();
    const onSecond = [...good, 'd: on timeline 2', 'e: on timeline 2'];
    expect(await notesAfter('--backup', later)).toEqual(onSecond);
    expect(await notesAfter('--backup', base)).toEqual(onSecond);
    expect(await notesAfter('--backup', base, '--until-timeline', '1')).toEqual(['c: late']);
    expect(await notesAfter('--backup', base, '--until', beforeBad, '--until-timeline', '1')).toEqual(good);
  });
});
