import { execFileSync } from 'node:child_process';
import {
  cpSync,
  existsSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  rmSync,
  truncateSync,
  unlinkSync,
  writeFileSync,
} from 'node:fs';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import type { BackupOptions } from '../../src/probes/backups/block.ts';
import { verifyBackup } from '../../src/probes/backups/verify.ts';
import { backupOptions, openBackups, recoveryOf } from '../backup-probes.ts';
import { type Cassandra, hasCassandra, startCassandra } from '../cassandra.ts';
import { manualClock } from '../clock.ts';
import { flip } from '../flip.ts';
import { isInstalled } from '../installed.ts';
import { hasMariadb, type Mariadb, startMariadb } from '../mariadb.ts';
import { folder } from '../run-folder.ts';
import { gauge, storeOn } from '../store-probe.ts';
import { command } from './process.ts';

const hasMariadbBackup = isInstalled('mariadb-backup');

/** Runs a tool through `svc-agent backup run`, and assesses what it left like a new agent does. */
function bed(backups: BackupOptions[], yaml: string) {
  const place = folder();
  const file = join(place.path, 'agent.yaml');
  const state = join(place.path, 'state');
  writeFileSync(
    file,
    `stateDirectory: ${state}
roles: [history]
services: {history: {logs: {paths: [${place.path}/none.log]}}}
stores: [{name: main, kind: mysql, address: '127.0.0.1:1', user: x, databases: {persistence: svc}}]
backups:
${yaml}`,
  );
  return {
    place,
    take: (job: string, argv: readonly string[]) =>
      command(['backup', 'run', '--job', job, '-c', file, '--', ...argv]),
    async judged() {
      const clock = manualClock(Date.now() + 1000);
      const stores = [storeOn(1, { kind: 'mysql' })];
      const { round, found, close } = await openBackups({ backups, state, stores }, () => ({ clock }));
      await round();
      await close();
      const first = found(`backup/${backups[0]!.name}`);
      const { ready, links } = recoveryOf(found('recovery/main/persistence'));
      const { reason, msg } = first;
      return { ready, links, reason, msg, integrity: gauge(first, 'svc_backup_integrity_ok') };
    },
  };
}

describe.skipIf(!hasMariadb || !hasMariadbBackup)('mariadb-backup', () => {
  let server: Mariadb;
  let full: string;
  let whole: string;
  let tools: ReturnType<typeof bed>;
  const flags = () => [
    '--no-defaults',
    '--backup',
    '--user=root',
    `--socket=${join(server.folder, 's')}`,
    `--datadir=${join(server.folder, 'data')}`,
  ];

  /**
   * Writes pages to the disk, so that the tool copies the same pages each time: otherwise it would find others in the redo log.
   */
  const flushed = async () => {
    await server.sql('FLUSH TABLES svc.executions, svc.tasks FOR EXPORT');
    await server.sql('UNLOCK TABLES');
  };

  beforeAll(async () => {
    server = await startMariadb('--log-bin=bin', '--server-id=1');
    await server.sql('CREATE DATABASE svc');
    await server.sql('CREATE TABLE svc.executions (i INT PRIMARY KEY, state VARCHAR(40))');
    await server.sql('CREATE TABLE svc.tasks (i INT PRIMARY KEY, state VARCHAR(40))');
    await server.sql('INSERT INTO svc.executions SELECT seq, SHA1(seq) FROM svc.seq_1_to_20000');
    await flushed();
    const directory = join(server.folder, 'backups');
    mkdirSync(directory);
    const source = (pattern: string) => ({
      kind: 'files' as const,
      directory,
      pattern,
      settleMs: 0,
      takenFrom: 'primary' as const,
    });
    full = join(directory, 'full');
    whole = join(server.folder, 'whole');
    tools = bed(
      [
        backupOptions('nightly', 'full', source('^full$')),
        backupOptions('hourly', 'incremental', source('^inc')),
      ],
      `  - {name: nightly, store: main, database: persistence, type: full, source: {files: {directory: ${directory}, pattern: '^full$'}}}
  - {name: hourly, store: main, database: persistence, type: incremental, source: {files: {directory: ${directory}, pattern: '^inc'}}}
`,
    );
  });
  afterAll(async () => {
    await server?.stop();
    tools?.place.remove();
  });

  test('a full backup and an incremental are good, page by page, and go on from each other', async () => {
    expect(tools.take('nightly', ['mariadb-backup', ...flags(), `--target-dir=${full}`]).status).toBe(0);
    await server.sql("INSERT INTO svc.executions VALUES (-1, 'x')");
    await flushed();
    const incremental = [`--target-dir=${join(full, '../inc-1')}`, `--incremental-basedir=${full}`];
    expect(tools.take('hourly', ['mariadb-backup', ...flags(), ...incremental]).status).toBe(0);
    expect(await tools.judged()).toMatchObject({
      ready: 1,
      reason: undefined,
      integrity: 1,
      links: ['full', 'incremental'],
    });
    cpSync(full, whole, { recursive: true });
    const checked = await verifyBackup({ path: join(full, '../inc-1'), level: 'full', bytesPerSecond: 1e9 });
    expect(checked).toMatchObject({
      result: 'ok',
      msg: expect.stringMatching(/pages in \d+ files of InnoDB/),
    });
  });

  test.each<[string, (path: string) => void, RegExp]>([
    [
      'a flipped byte',
      (path) => flip(join(path, 'svc/executions.ibd'), 16_384 * 6 + 5000),
      /svc\/executions\.ibd: page 6 does not match/,
    ],
    [
      'a flipped byte of the system tablespace',
      (path) => flip(join(path, 'ibdata1'), 200),
      /ibdata1: page 0 does not match/,
    ],
    [
      'a file that is cut off',
      (path) => truncateSync(join(path, 'svc/executions.ibd'), 16_384 * 5),
      /svc\/executions\.ibd is cut off/,
    ],
    [
      'one cut off within a page',
      (path) => truncateSync(join(path, 'svc/tasks.ibd'), 40_000),
      /svc\/tasks\.ibd is cut off/,
    ],
    [
      'a redo log that is cut off',
      // Only the header is left; how much is after it depends on the server's last checkpoint.
      (path) => truncateSync(join(path, 'ib_logfile0'), 12_288),
      /ib_logfile0 is cut off/,
    ],
    [
      'a table that is missing',
      (path) => unlinkSync(join(path, 'svc/tasks.ibd')),
      /svc\/tasks\.ibd is missing/,
    ],
    ['a redo log that is missing', (path) => unlinkSync(join(path, 'ib_logfile0')), /redo log .* is missing/],
    ['the information file', (path) => unlinkSync(join(path, 'xtrabackup_info')), /damaged/],
  ])('%s', async (_, damage, why) => {
    rmSync(full, { recursive: true });
    cpSync(whole, full, { recursive: true });
    damage(full);
    if (why.source === 'damaged') unlinkSync(join(full, 'backup-my.cnf'));
    expect(await tools.judged()).toMatchObject({
      ready: 0,
      reason: 'corrupt',
      integrity: 0,
      msg: expect.stringMatching(why),
    });
  });

  test('without the file that the tool writes last it is incomplete', async () => {
    rmSync(full, { recursive: true });
    cpSync(whole, full, { recursive: true });
    unlinkSync(join(full, 'xtrabackup_checkpoints'));
    expect(await tools.judged()).toMatchObject({ ready: 0 });
  });

  test('an incremental that is damaged, and one that is prepared is still verified', async () => {
    const incremental = join(full, '../inc-1');
    rmSync(full, { recursive: true });
    cpSync(whole, full, { recursive: true });
    const delta = join(incremental, 'svc/executions.ibd.delta');
    const good = readFileSync(delta);
    flip(delta, 16_384 + 3000);
    expect(await verifyBackup({ path: incremental, level: 'full', bytesPerSecond: 1e9 })).toMatchObject({
      result: 'corrupt',
    });
    writeFileSync(delta, good.subarray(0, good.length - 16_384));
    expect(await verifyBackup({ path: incremental, level: 'full', bytesPerSecond: 1e9 })).toMatchObject({
      result: 'corrupt',
      msg: 'svc/executions.ibd.delta is cut off',
    });
    execFileSync('mariadb-backup', ['--no-defaults', '--prepare', `--target-dir=${full}`], { stdio: 'pipe' });
    expect(await verifyBackup({ path: full, level: 'full', bytesPerSecond: 1e9 })).toMatchObject({
      result: 'ok',
    });
  });
});

describe.skipIf(!hasCassandra)('a snapshot by nodetool', () => {
  let server: Cassandra;
  let keyspace: string;
  let tools: ReturnType<typeof bed>;

  const table = (name: string) =>
    join(keyspace, readdirSync(keyspace).find((each) => each.startsWith(`${name}-`))!);
  const partOf = (name: string) => join(table(name), 'snapshots', 'nightly-1');
  const tables = ['executions', 'tasks'];
  /** The copy of a table's snapshot as nodetool created it: nodetool takes seconds to create another. */
  const wholeOf = (name: string) => join(tools.place.path, 'whole', name);
  /**
   * Restores the snapshot from the copy. Its files are links to those of the node: a copy can be damaged without damaging the
   * node's data.
   */
  const restore = () => {
    for (const name of tables) {
      rmSync(partOf(name), { recursive: true, force: true });
      cpSync(wholeOf(name), partOf(name), { recursive: true, preserveTimestamps: true });
    }
  };
  const dataOf = (name: string) =>
    join(partOf(name), readdirSync(partOf(name)).find((each) => each.endsWith('-Data.db'))!);

  beforeAll(async () => {
    server = await startCassandra({ settings: '\nincremental_backups: true\n' });
    keyspace = join(server.data, 'svc');
    await server.run(
      "CREATE KEYSPACE svc WITH replication = {'class': 'SimpleStrategy', 'replication_factor': 1}",
      ...tables.flatMap((name) => [
        `CREATE TABLE svc.${name} (i int PRIMARY KEY, state text)`,
        ...Array.from(
          { length: 20 },
          (_, i) => `INSERT INTO svc.${name} (i, state) VALUES (${i}, 'state ${i}')`,
        ),
      ]),
    );
    tools = bed(
      [backupOptions('nightly', 'full', { kind: 'snapshot', dataDirectory: server.data, keyspace: 'svc' })],
      `  - {name: nightly, store: main, database: persistence, type: full, source: {snapshot: {dataDirectory: ${server.data}, keyspace: svc}}}
`,
    );
  });
  afterAll(async () => {
    await server?.remove();
    tools?.place.remove();
  });

  test('is good with the digest of every file, and clears; incrementals are written', async () => {
    expect(await tools.judged()).toMatchObject({ ready: 0 });
    const snapshot = server.nodetool('snapshot', '-t', 'nightly-1', 'svc');
    const { status, stdout, stderr } = tools.take('nightly', snapshot);
    expect({ status, stdout }, stderr + stdout).toMatchObject({
      status: 0,
      stdout: expect.stringContaining('nightly-1'),
    });
    expect(readdirSync(partOf('executions'))).toEqual(
      expect.arrayContaining(['manifest.json', 'schema.cql']),
    );
    expect(await tools.judged()).toMatchObject({ ready: 1, reason: undefined, integrity: 1 });
    expect(existsSync(join(table('executions'), 'backups'))).toBe(true);
    for (const name of tables)
      cpSync(partOf(name), wholeOf(name), { recursive: true, preserveTimestamps: true });
  });

  test.each<[string, () => void, { reason?: string; msg?: RegExp }]>([
    [
      'a flipped byte',
      () => flip(dataOf('executions'), 30),
      { reason: 'corrupt', msg: /does not match its digest/ },
    ],
    [
      'a file that is cut off',
      () => truncateSync(dataOf('tasks'), 10),
      { reason: 'corrupt', msg: /does not match its digest/ },
    ],
    ['a file that is missing', () => unlinkSync(dataOf('tasks')), {}],
    ['a table that is missing', () => rmSync(partOf('tasks'), { recursive: true }), {}],
    ['a manifest that is missing', () => unlinkSync(join(partOf('tasks'), 'manifest.json')), {}],
  ])('%s', async (_, damage, { reason, msg }) => {
    restore();
    expect(await tools.judged()).toMatchObject({ ready: 1 });
    damage();
    const after = await tools.judged();
    expect(after.ready).toBe(0);
    expect(after.reason).toBe(reason ?? 'incomplete');
    if (msg) expect(after).toMatchObject({ integrity: 0, msg: expect.stringMatching(msg) });
  });
});
