import { execFileSync, spawnSync } from 'node:child_process';
import {
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  truncateSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { gzipSync } from 'node:zlib';
import { afterAll, beforeAll, describe, expect, onTestFinished, test } from 'vitest';
import type { RehearsalAnswer, RehearsalRequest } from '../../src/probes/rehearsal/rehearsal.ts';
import { newFolder } from '../folder.ts';
import { hasMariadb, type Mariadb, schemaStatements, startMariadb } from '../mariadb.ts';
import { freePort } from '../ports.ts';
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
import { command, type RunningAgent, startAgent } from './process.ts';
import { processesIn, rehearsalFolder, rehearsed, requestOf } from './rehearsal-program.ts';

// Rehearsals by the built program with backups of real servers.

const schema = [
  'CREATE TABLE executions AS SELECT i, md5(i::text) AS data FROM generate_series(1, 3000) i',
  schemaTable,
];

describe.skipIf(!hasPostgres)('a rehearsal of PostgreSQL', () => {
  let server: Postgres;
  let backups: string;
  let directory: string;
  const wal = () => join(backups, 'wal');
  const base = () => join(backups, 'base-20260101T000000Z');
  const dump = () => join(backups, 'a.dump');
  const address = () => connectionTo(server);
  /** When the newest row in the archived log was committed. */
  let newestMs: number;

  beforeAll(async () => {
    directory = rehearsalFolder();
    backups = postgresFolder();
    ownedFolder(wal());
    server = await startPostgres({
      archiveCommand: copyInto(wal()),
      settings: ['track_commit_timestamp=on'],
    });
    await server.query('CREATE DATABASE svc');
    await server.query('CREATE ROLE service');
    for (const statement of schema) await server.query(statement, 'svc');
    await server.query('ALTER TABLE executions OWNER TO service', 'svc');
    const port = address();
    postgresProgram('pg_basebackup', [...port, '-D', base(), '--wal-method=none', '--checkpoint=fast']);
    postgresProgram('pg_dump', [...port, '-Fc', '-f', dump(), 'svc']);
    writeFileSync(join(backups, 'a.sql.gz'), gzipSync(postgresProgram('pg_dump', [...port, 'svc'])));
    await server.query('INSERT INTO executions VALUES (-1, NULL)', 'svc');
    const { rows } = await server.query(
      'SELECT extract(epoch FROM pg_xact_commit_timestamp(xmin)) * 1000 AS ms FROM executions WHERE i = -1',
      'svc',
    );
    newestMs = Number(rows[0].ms);
    await server.archiveWal();
  });
  afterAll(async () => {
    await server?.stop();
    for (const path of [backups, directory]) if (path) rmSync(path, { recursive: true, force: true });
  });
  const request = (over: Partial<RehearsalRequest>) => requestOf(directory, over);

  test('a dump in custom format and one in SQL: all rows, the version, and the time of each phase', () => {
    const newestRow = 'SELECT max(creation_time) FROM schema_version';
    const answer = rehearsed(request({ backup: dump(), newestRow }));
    expect(answer).toMatchObject({ result: 'ok', workflows: 3000, schemaVersion: '0.8' });
    expect(Object.keys(answer.phasesMs)).toEqual(['create', 'restore', 'check', 'remove']);
    expect(answer.newestRowMs).toBeLessThanOrEqual(newestMs);
    expect(rehearsed(request({ backup: join(backups, 'a.sql.gz') }))).toMatchObject({
      result: 'ok',
      workflows: 3000,
    });
  });

  test('a base backup with its log: the rows of the log, too, and the commit time of the newest', async () => {
    const rowsBefore = await server.query('SELECT count(*)::int AS n FROM executions', 'svc');
    const answer = rehearsed(request({ backup: base(), log: { directory: wal(), last: '' } }));
    expect(answer, JSON.stringify(answer)).toMatchObject({ result: 'ok', workflows: 3001 });
    expect(Object.keys(answer.phasesMs)).toEqual(['copy', 'log', 'check', 'remove']);
    expect(Math.abs(answer.newestRowMs! - newestMs)).toBeLessThanOrEqual(1);
    // The real server and its archive are unchanged.
    expect((await server.query('SELECT count(*)::int AS n FROM executions', 'svc')).rows).toEqual(
      rowsBefore.rows,
    );
    expect(readdirSync(wal()).filter((name) => /^0000000[2-9]/.test(name))).toEqual([]);
  });

  test.each<
    [string, (copy: string) => Partial<RehearsalRequest>, Partial<RehearsalAnswer> & { msg: unknown }]
  >([
    [
      'half a dump',
      (copy) => {
        const path = join(copy, 'half.dump');
        writeFileSync(path, readFileSync(dump()).subarray(0, 20_000));
        return { backup: path };
      },
      {
        result: 'failed',
        msg: expect.stringMatching(/pg_restore: exit status 1: .*(?:end of file|could not)/),
      },
    ],
    [
      'gzip of an error message',
      (copy) => {
        const path = join(copy, 'error.sql.gz');
        writeFileSync(path, gzipSync('pg_dump: error: connection to server failed\n'));
        return { backup: path };
      },
      { result: 'failed', msg: expect.stringMatching(/psql: .*syntax error/) },
    ],
    [
      'a base backup without its log',
      () => ({ backup: base(), log: undefined }),
      { result: 'failed', msg: expect.stringMatching(/the server does not start from the backup: .*FATAL/) },
    ],
    [
      'a schema that is too old',
      () => ({ backup: dump(), schemaVersion: '0.9' }),
      { result: 'failed', msg: 'the schema has version 0.8, expected 0.9 or newer' },
    ],
    [
      'a dump of another database',
      () => ({ backup: dump(), role: 'visibility' }),
      { result: 'failed', msg: expect.stringMatching(/executions_visibility.*does not exist/) },
    ],
    [
      'a statement of the configuration that fails',
      () => ({ backup: dump(), newestRow: 'SELECT max(close_time) FROM executions_visibility' }),
      {
        result: 'unknown',
        msg: expect.stringMatching(
          /^the backup was restored, but recovery.rehearsal.newestRow fails in svc: .*"executions_visibility" does not exist/,
        ),
      },
    ],
    [
      'more than it may take on the disk',
      () => ({ backup: dump(), maxBytes: 1 << 20 }),
      { result: 'unknown', msg: 'it takes more than 1 MiB; set recovery.rehearsal.maxBytes' },
    ],
    [
      'more time than it may take',
      () => ({ backup: dump(), timeoutMs: 1 }),
      { result: 'unknown', msg: expect.stringMatching(/not done within .* set recovery.rehearsal.timeout/) },
    ],
    [
      'a backup that is gone',
      () => ({ backup: '/nowhere/a.dump' }),
      { result: 'unknown', msg: '/nowhere/a.dump cannot be read (ENOENT)' },
    ],
  ])('%s', (_, make, expected) => {
    const copy = newFolder();
    const answer = rehearsed(request(make(copy)));
    expect(answer, JSON.stringify(answer)).toMatchObject(expected);
  });

  test('a log that creates a tablespace is not replayed: the files of the store in it stay as they are', async () => {
    const space = join(backups, 'space');
    ownedFolder(space);
    await server.query(`CREATE TABLESPACE other LOCATION '${space}'`);
    await server.query('CREATE TABLE much TABLESPACE other AS SELECT generate_series(1, 50000) AS i', 'svc');
    await server.query('DELETE FROM much WHERE i > 10', 'svc');
    await server.query('VACUUM much', 'svc');
    await server.query('INSERT INTO much SELECT generate_series(1, 50000)', 'svc');
    await server.query('CHECKPOINT');
    await server.archiveWal();
    const inSpace = () =>
      execFileSync('bash', ['-c', `find ${space} -type f | sort | xargs ls -ln --full-time`]);
    const before = inSpace().toString();
    const msg = `the log creates a tablespace in "${space}", where a throwaway server would write into the files of the store; make a base backup that has it`;
    expect(rehearsed(request({ backup: base(), log: { directory: wal(), last: '' } }))).toMatchObject({
      result: 'unknown',
      msg,
    });
    expect(inSpace().toString()).toBe(before);
    // A dump is restored without it, and into the database that is there.
    for (const options of [['-Fc'], [], ['--create', '--clean']]) {
      const inSpaces = join(backups, 'spaces.dump');
      postgresProgram('pg_dump', [...address(), ...options, '-f', inSpaces, 'svc']);
      expect(rehearsed(request({ backup: inSpaces }))).toMatchObject({ result: 'ok', workflows: 3001 });
    }
    const copy = join(backups, 'base-20260103T000000Z');
    execFileSync('cp', ['-a', base(), copy]);
    execFileSync('bash', ['-c', `cp -a ${wal()}/* ${copy}/pg_wal`]);
    onTestFinished(() => rmSync(copy, { recursive: true }));
    expect(rehearsed(request({ backup: copy }))).toMatchObject({ result: 'unknown', msg });
    expect(inSpace().toString()).toBe(before);
  });

  test('a backup with a link to files that are not of the backup is not copied', () => {
    const copy = join(backups, 'base-20260102T000000Z');
    execFileSync('cp', ['-a', base(), copy]);
    execFileSync('ln', ['-s', server.data, join(copy, 'pg_tblspc', '16999')]);
    onTestFinished(() => rmSync(copy, { recursive: true }));
    expect(rehearsed(request({ backup: copy }))).toMatchObject({
      result: 'unknown',
      msg: expect.stringMatching(/16999 is a link to what the manifest/),
    });
  });
});

const hasMariadbTools = ['mariadb-dump', 'mariadb-backup', 'mariadb-binlog'].every(
  (name) => spawnSync(name, ['--version']).status === 0,
);

/**
 * Creates a temporary table like those of a server on the host: another server that starts with the same directory for temporary
 * files removes it.
 */
function temporaryTable(): string {
  const path = `/tmp/#sql-temptable-svc-agent-${process.pid}.MAI`;
  writeFileSync(path, '');
  if (process.getuid?.() === 0) execFileSync('chown', ['mysql', path]);
  onTestFinished(() => rmSync(path, { force: true }));
  return path;
}

describe.skipIf(!hasMariadb || !hasMariadbTools)('a rehearsal of MariaDB', () => {
  let server: Mariadb;
  let directory: string;
  let log: { directory: string; last: string };
  const path = (name: string) => join(server.folder, name);
  let newestMs: number;

  beforeAll(async () => {
    directory = rehearsalFolder();
    server = await startMariadb('--log-bin=bin', '--server-id=1');
    await server.sql(schemaStatements('svc'));
    await server.sql('INSERT INTO svc.executions SELECT seq, SHA1(seq) FROM svc.seq_1_to_3000');
    const socket = `--socket=${path('s')}`;
    execFileSync('bash', [
      '-c',
      `mariadb-dump --no-defaults ${socket} --user=root --single-transaction --master-data=2 svc | gzip > ${path('a.sql.gz')}`,
    ]);
    const options = ['--no-defaults', '--backup', '--user=root', socket, `--datadir=${path('data')}`];
    execFileSync('mariadb-backup', [...options, `--target-dir=${path('full')}`], { stdio: 'pipe' });
    await server.sql('FLUSH BINARY LOGS');
    await server.sql("INSERT INTO svc.executions VALUES (-1, 'x')");
    // Neither the changes of another database of the server nor its default database disturb the restore.
    await server.sql('CREATE DATABASE other; CREATE TABLE other.executions (i INT PRIMARY KEY)');
    await server.sql('USE other; INSERT INTO executions VALUES (1); USE mysql');
    newestMs = Date.now();
    await server.sql('FLUSH BINARY LOGS');
    const names = (await server.sql('SHOW BINARY LOGS')).map(({ Log_name }) => String(Log_name)).slice(0, -1);
    mkdirSync(path('binlog'));
    for (const name of names) execFileSync('cp', [path(`data/${name}`), path(`binlog/${name}`)]);
    log = { directory: path('binlog'), last: names.at(-1)! };
  });
  afterAll(async () => {
    await server?.stop();
    if (directory) rmSync(directory, { recursive: true, force: true });
  });
  const request = (over: Partial<RehearsalRequest>) => requestOf(directory, { kind: 'mysql', log, ...over });

  test.each([
    ['a dump', () => path('a.sql.gz'), ['create', 'restore', 'log', 'check', 'remove']],
    ['a copy of the files', () => path('full'), ['copy', 'restore', 'log', 'check', 'remove']],
  ])(
    '%s with the binary log: the rows of the log, too, and the time of its last commit',
    (_, backup, phases) => {
      const ofTheHost = temporaryTable();
      const answer = rehearsed(request({ backup: backup() }));
      expect(existsSync(ofTheHost)).toBe(true);
      expect(answer, JSON.stringify(answer)).toMatchObject({
        result: 'ok',
        workflows: 3001,
        schemaVersion: '0.8',
      });
      expect(Object.keys(answer.phasesMs).sort()).toEqual([...phases].sort());
      // The log has whole seconds.
      expect(newestMs - answer.newestRowMs!).toBeGreaterThanOrEqual(0);
      expect(newestMs - answer.newestRowMs!).toBeLessThan(2000);
    },
  );

  test('half a binary log, a missing one, and a copy without a table fail with the reason', () => {
    const half = path('half');
    execFileSync('cp', ['-r', path('binlog'), half]);
    truncateSync(join(half, log.last), 300);
    expect(rehearsed(request({ backup: path('a.sql.gz'), log: { ...log, directory: half } }))).toMatchObject({
      result: 'failed',
      msg: expect.stringMatching(/mariadb-binlog/),
    });
    rmSync(join(half, readdirSync(half).sort().at(-2)!));
    expect(rehearsed(request({ backup: path('a.sql.gz'), log: { ...log, directory: half } }))).toMatchObject({
      result: 'failed',
      msg: expect.stringMatching(/the binary log has a gap/),
    });
    const lacking = path('lacking');
    execFileSync('bash', ['-c', `cp -r ${path('full')} ${lacking} && rm ${lacking}/svc/executions.*`]);
    expect(rehearsed(request({ backup: lacking, log: undefined }))).toMatchObject({
      result: 'failed',
      msg: expect.stringMatching(/svc\.executions.* doesn't exist/),
    });
  });
});

describe.skipIf(!hasMariadb || !hasMariadbTools)('a copy of the files of a MariaDB server that runs', () => {
  let server: Mariadb;
  let directory: string;
  let undo: string;
  const path = (name: string) => join(server.folder, name);
  const copyAs = (name: string) => {
    const options = ['--no-defaults', '--backup', '--user=root', `--socket=${path('s')}`];
    const from = [`--datadir=${path('data')}`, `--innodb-undo-directory=${undo}`];
    execFileSync('mariadb-backup', [...options, ...from, `--target-dir=${path(name)}`], { stdio: 'pipe' });
    return path(name);
  };
  const rehearse = (backup: string) => rehearsed(requestOf(directory, { kind: 'mysql', backup }));

  beforeAll(async () => {
    directory = rehearsalFolder();
    undo = mkdtempSync(join(tmpdir(), 'svc-agent-test-'));
    if (process.getuid?.() === 0) execFileSync('chown', ['mysql', undo]);
    server = await startMariadb(`--innodb-undo-directory=${undo}`, '--innodb-undo-tablespaces=3');
    await server.sql(schemaStatements('svc'));
    await server.sql("INSERT INTO svc.executions VALUES (1, 'x')");
  });
  afterAll(async () => {
    await server?.stop();
    for (const one of [directory, undo]) if (one) rmSync(one, { recursive: true, force: true });
  });

  test('the undo logs that the server has in another directory are not opened there', () => {
    const backup = copyAs('full');
    expect(readFileSync(join(backup, 'backup-my.cnf'), 'utf8')).toMatch(/^innodb_undo_directory=\//m);
    expect(rehearse(backup)).toMatchObject({ result: 'ok', workflows: 1 });
  });
  test('a table with a DATA DIRECTORY is not opened there', async () => {
    const elsewhere = newFolder();
    if (process.getuid?.() === 0) execFileSync('chown', ['mysql', elsewhere]);
    await server.sql(`CREATE TABLE svc.other (i INT) DATA DIRECTORY = '${elsewhere}'`);
    const msg =
      'table svc.other has a DATA DIRECTORY, in which a throwaway server would open the file of the store';
    expect(rehearse(copyAs('linked'))).toMatchObject({ result: 'unknown', msg });
    const dump = path('linked.sql');
    const client = ['--no-defaults', `--socket=${path('s')}`, '--user=root', `--result-file=${dump}`];
    execFileSync('mariadb-dump', [...client, 'svc']);
    expect(readFileSync(dump, 'utf8')).toContain(`DATA DIRECTORY='${elsewhere}`);
    // As when the store is lost: a file would be in the way of its restore.
    await server.sql('DROP TABLE svc.other');
    expect(rehearse(dump)).toMatchObject({ result: 'ok', workflows: 1 });
    expect(readdirSync(elsewhere, { recursive: true }).filter((name) => /\./.test(String(name)))).toEqual([]);
  });
});

describe.skipIf(!hasPostgres)('an agent that rehearses', () => {
  let server: Postgres;
  let backups: string;
  let directory: string;
  const place = newFolder(afterAll);
  const file = join(place, 'agent.yaml');
  const agents: RunningAgent[] = [];

  beforeAll(async () => {
    directory = rehearsalFolder();
    backups = postgresFolder();
    server = await startPostgres();
    await server.query('CREATE DATABASE svc');
    for (const statement of schema) await server.query(statement, 'svc');
    postgresProgram('pg_dump', [
      ...connectionTo(server),
      '-Fc',
      ...['-f', join(backups, 'main-1.dump'), 'svc'],
    ]);
    writeFileSync(
      file,
      `stateDirectory: ${join(place, 'state')}
metrics: {pullmetrics: {listenAddress: 127.0.0.1:0}}
admin: {listenAddress: 127.0.0.1:${await freePort()}}
roles: [history]
services: {history: {logs: {paths: [${place}/none.log]}}}
stores: [{name: main, kind: postgres, address: '127.0.0.1:${server.port}', user: postgres, databases: {persistence: svc}, schema: {persistence: '0.8'}}]
backups:
  - {name: full, store: main, database: persistence, type: full, interval: 1s, source: {files: {directory: ${backups}, pattern: '^main-', settle: 1ms, takenFrom: primary}}, integrity: {level: full}}
recovery: {rehearsal: {directory: ${directory}, newestRow: SELECT max(creation_time) FROM schema_version}}
`,
    );
  });
  afterAll(async () => {
    for (const agent of agents) await agent.end('SIGKILL');
    await server?.stop();
    for (const path of [backups, directory]) if (path) rmSync(path, { recursive: true, force: true });
  });
  const run = async () => {
    const agent = await startAgent(file);
    agents.push(agent);
    return agent;
  };
  const check = (agent: RunningAgent, name: string) =>
    fetch(`http://${agent.address('admin')}/probe?name=${encodeURIComponent(name)}`);
  const rehearsalChild = () =>
    processesIn(directory).length > 0 &&
    readdirSync('/proc')
      .filter((name) => /^\d+$/.test(name))
      .find((name) => {
        try {
          const words = readFileSync(`/proc/${name}/cmdline`, 'utf8');
          return words.includes('rehearse.mjs') && words.includes(directory);
        } catch {
          return false;
        }
      });
  /** Makes the agent check until a rehearsal is under way; returns the pid of its process. */
  const underWay = async (agent: RunningAgent) =>
    Number(
      await until('a rehearsal is under way', async () => {
        const child = rehearsalChild();
        if (!child)
          for (const probe of ['backup/full', 'recovery/main/persistence', 'rehearsal/main/persistence'])
            await check(agent, probe);
        return child;
      }),
    );

  test('killed in the middle, with and without its process: nothing is left, and the next agent proves the recovery', async () => {
    const first = await run();
    await underWay(first);
    await first.end('SIGKILL');
    // The process notices that its agent is gone.
    await until(
      'nothing is left',
      () => processesIn(directory).length === 0 && readdirSync(directory).length === 0,
    );

    const second = await run();
    const child = await underWay(second);
    process.kill(child, 'SIGSTOP');
    await second.end('SIGKILL');
    process.kill(child, 'SIGKILL');
    expect(readdirSync(directory)).toHaveLength(1);

    const third = await run();
    await until('the recovery is proven', async () => {
      for (const probe of ['backup/full', 'recovery/main/persistence', 'rehearsal/main/persistence'])
        await check(third, probe);
      const page = await (await fetch(`http://${third.address('metrics')}/metrics`)).text();
      return /^svc_recovery_proven\{[^}]*store="main"[^}]*\} 1$/m.test(page);
    });
    expect(readdirSync(directory)).toEqual([]);
    expect(processesIn(directory)).toEqual([]);
    const shown = async (name: string) => {
      const page = await (await fetch(`http://${third.address('metrics')}/metrics`)).text();
      return new RegExp(`^${name}.* [\\d.]+$`, 'm').test(page);
    };
    await until('the drill is shown', () =>
      shown('svc_restore_drill_last_success_timestamp_seconds{[^}]*procedure="rehearsal"'),
    );
    expect(await shown('svc_recovery_rehearsal_last_success_timestamp_seconds')).toBe(true);
    for (const phase of ['create', 'restore', 'check', 'remove'])
      expect(await shown(`svc_recovery_rehearsal_duration_seconds{[^}]*phase="${phase}"`)).toBe(true);
    const { stdout } = command(['probe', 'rehearsal', '-c', file]);
    expect(stdout).toMatch(
      /rehearsal\/main\/persistence +ok .*restored in .* with 3000 workflows; the newest row was .* old/,
    );

    // The cost now, as the running agent knows it, and without an agent.
    const record = readFileSync(join(place, 'state/recovery-runs/rehearsal.main.persistence.jsonl'), 'utf8');
    const { startMs, endMs } = JSON.parse(record.trim()) as { startMs: number; endMs: number };
    const cost = () => {
      const { stdout, stderr } = command(['recover', '--cost', '--json', '-c', file]);
      if (stdout === '') throw new Error(stderr);
      return (JSON.parse(stdout) as { costs: { timeSeconds: number; lossSeconds: number }[] }).costs;
    };
    const known = {
      subject: 'main/persistence',
      timeSeconds: (endMs - startMs) / 1000,
      basis: expect.stringMatching(/^the restore alone, as rehearsed /),
    };
    const expected = ['database-corruption', 'cluster-loss'].map((procedure) => ({ procedure, ...known }));
    const costs = cost();
    expect(costs).toMatchObject(
      expected.map((one) => ({
        ...one,
        unknown: [expect.stringMatching(/^the number of workflows: no role sends/)],
      })),
    );
    await third.end();
    expect(cost()).toMatchObject(
      expected.map((one) => ({ ...one, unknown: [expect.stringMatching(/: the agent does not answer, /)] })),
    );
    expect(cost()[0]!.lossSeconds).toBeGreaterThanOrEqual(costs[0]!.lossSeconds);
  });
});
