import { execFileSync, spawnSync } from 'node:child_process';
import {
  cpSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmSync,
  unlinkSync,
  writeFileSync,
} from 'node:fs';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { archivesOf, drillName, planBackups } from '../../src/probes/backups/backups.ts';
import type { BackupOptions } from '../../src/probes/backups/block.ts';
import { journalPath, recordRun } from '../../src/probes/backups/journal.ts';
import type { BackupSource } from '../../src/probes/backups/source-blocks.ts';
import { verifyBackup } from '../../src/probes/backups/verify.ts';
import { planStores } from '../../src/probes/stores/stores.ts';
import { backupOptions, openProbes, recoveryOf } from '../backup-probes.ts';
import { createBarman } from '../barman.ts';
import { manualClock } from '../clock.ts';
import { flip } from '../flip.ts';
import { newFolder } from '../folder.ts';
import { createPgBackRest } from '../pgbackrest.ts';
import {
  asPostgres,
  hasPostgres,
  ownedFolder,
  type Postgres,
  postgresFolder,
  postgresPrograms,
  printedBy,
  startPostgres,
} from '../postgres.ts';
import { storeOn } from '../store-probe.ts';
import { command } from './process.ts';

// Real backups of a real PostgreSQL by the tools themselves, which the agent reads through the configured command.

const hourMs = 3_600_000;
const has = (program: string, ...args: string[]) => spawnSync(program, args).status === 0;
const hasPgBackRest = hasPostgres && has('pgbackrest', 'version');
const hasBarman = hasPostgres && has('barman', '--version');
/** Debian has no package of WAL-G: its tests run only where it is installed. */
const hasWalG = hasPostgres && has('wal-g', '--version');

async function writeSegment(server: Postgres): Promise<void> {
  await server.query('INSERT INTO executions SELECT generate_series(1, 1000)');
  await server.archiveWal();
}

/** Records a drill: without one the time to replay the log is not known. */
const recordDrill = (state: string) =>
  recordRun(journalPath(state, 'recovery', drillName('database-corruption', 'main', 'persistence')), {
    ...{ startMs: Date.now() - 60_000, endMs: Date.now(), status: 0 },
  });

/** Checks the store and its backups like an agent that was started now, at a time `laterMs` from now. */
async function judged(server: Postgres, backups: readonly BackupOptions[], state: string, laterMs = 0) {
  const clock = manualClock(Date.now() + 1000);
  await recordDrill(state);
  const options = {
    ...{ services: [], backups, stateDirectory: state },
    stores: [storeOn(server.port, { user: 'postgres' })],
  };
  const rows = [
    ...planStores({ ...options, archivesOf: archivesOf(options) }),
    ...planBackups(options, { verify: verifyBackup }),
  ];
  const { round, found, close } = await openProbes(rows, (latest) => ({ clock, latest }));
  await round();
  if (laterMs > 0) {
    clock.jumpTo(Date.now() + laterMs);
    await round();
  }
  await close();
  const of = (name: string) => {
    const { reason, msg } = found(`backup/${name}`);
    return { reason, msg };
  };
  return { of, ...recoveryOf(found('recovery/main/persistence')) };
}

/** Judges as `judged` does, each time with another state. */
function judging(server: () => Postgres) {
  const place = newFolder(afterAll);
  let states = 0;
  return (backups: readonly BackupOptions[], laterMs = 0) =>
    judged(server(), backups, join(place, `state-${states++}`), laterMs);
}

/** When the server archived its newest segment, ms since the epoch. */
async function archivedAtMs(server: Postgres): Promise<number> {
  const { rows } = await server.query(
    'SELECT extract(epoch FROM last_archived_time) AS at FROM pg_stat_archiver',
  );
  return Math.floor(1000 * rows[0].at);
}

/** Damages a folder of backups, runs a check, and puts a copy of the whole folder back. */
async function damaged<T>(path: string, damage: () => void, check: () => Promise<T>): Promise<T> {
  const whole = `${path}.whole`;
  cpSync(path, whole, { recursive: true, preserveTimestamps: true });
  execFileSync('chown', ['-R', '--reference', path, whole]);
  try {
    damage();
    return await check();
  } finally {
    rmSync(path, { recursive: true, force: true });
    renameSync(whole, path);
  }
}

describe.skipIf(!hasPgBackRest)('pgBackRest', () => {
  let server: Postgres;
  let base: string;
  let pgBackRest: ReturnType<typeof createPgBackRest>;
  let repository: string;
  const place = newFolder(afterAll);
  const tool = (...args: string[]) => pgBackRest.tool(...args);
  const run = (...args: string[]) => printedBy(tool(...args));
  const report = (verify: boolean): BackupSource => ({
    ...{ kind: 'command', format: 'pgbackrest', timeoutMs: 60_000, command: tool('info', '--output=json') },
    verify: verify ? tool('verify', '--output=text', '--verbose') : undefined,
  });
  const archive = () => join(repository, 'archive/main/15-1'.replace('15', major()));
  const major = () => readFileSync(join(server.data, 'PG_VERSION'), 'utf8').trim();
  const segments = (): BackupSource => ({ kind: 'segments', directory: archive(), log: 'wal', settleMs: 0 });
  const nightly = (verify = true, level: BackupOptions['integrity']['level'] = 'full') =>
    backupOptions('nightly', 'full', report(verify), { level });
  const all = () => [
    nightly(),
    backupOptions('hourly', 'incremental', report(true)),
    backupOptions('wal', 'log', segments()),
  ];
  const labels = () => readdirSync(join(repository, 'backup/main')).filter((name) => /^\d/.test(name));
  const archived = () => {
    const [inside] = readdirSync(archive());
    return readdirSync(join(archive(), inside!))
      .filter((name) => /^[0-9A-F]{24}-/.test(name))
      .sort()
      .map((name) => join(archive(), inside!, name));
  };
  const after = <T>(damage: () => void, check: () => Promise<T>) => damaged(repository, damage, check);
  const judgeAll = judging(() => server);
  const judge = (backups = all(), laterMs = 0) => judgeAll(backups, laterMs);

  beforeAll(async () => {
    base = postgresFolder();
    pgBackRest = createPgBackRest(base);
    repository = pgBackRest.repository;
    server = await startPostgres({ archiveCommand: pgBackRest.archiveCommand });
    pgBackRest.configure(server);
    await server.query('CREATE TABLE executions (i int)');
    run('stanza-create');
  });
  afterAll(async () => {
    await server?.stop();
    if (base) rmSync(base, { recursive: true, force: true });
  });

  test('no backup yet; then a full one, one upon it and the log: verified by the tool, and ready', async () => {
    expect(await judge()).toMatchObject({ ready: 0, recovery: { reason: 'no_backup' } });
    run('backup', '--type=full');
    await writeSegment(server);
    run('backup', '--type=incr');
    // A differential backup builds upon the full backup and skips the one between them.
    run('backup', '--type=diff');
    await writeSegment(server);
    const whole = await judge();
    expect(whole).toMatchObject({ ready: 1, links: ['full', 'incremental', 'log'] });
    expect(whole.of('nightly')).toMatchObject({ reason: undefined });
    expect(whole.of('wal')).toMatchObject({ reason: undefined });
  });

  test('the report alone does not show whether the log is there that a backup needs', async () => {
    for (const backup of [nightly(false, 'header'), nightly()])
      expect(await judge([backup])).toMatchObject({
        ...{ ready: 0, recoveryPointMs: undefined },
        recovery: { reason: 'recovery_point_unknown', msg: expect.stringContaining('no entry of type log') },
      });
    expect(await judge([nightly(false)])).toMatchObject({ ready: 0, recovery: { reason: 'unverified' } });
  });

  test('a flipped byte in a file of the full backup is found by the tool, and nothing is left upon it', async () => {
    const flipOne = () => {
      const full = labels().find((label) => label.endsWith('F'))!;
      const files = readdirSync(join(repository, 'backup/main', full, 'pg_data/base/1'));
      flip(
        join(
          repository,
          'backup/main',
          full,
          'pg_data/base/1',
          files.find((name) => /^\d+\.gz$/.test(name))!,
        ),
      );
    };
    const found = await after(flipOne, () => judge());
    expect(found).toMatchObject({ ready: 0, links: [] });
    expect(found.of('nightly')).toMatchObject({
      reason: 'corrupt',
      msg: expect.stringMatching(/pgbackrest verify: invalid/),
    });
  });

  test('a backup that was deleted behind the back of the tool, which still reports it', async () => {
    const remove = () => {
      const full = labels().find((label) => label.endsWith('F'))!;
      rmSync(join(repository, 'backup/main', full), { recursive: true });
    };
    const found = await after(remove, () => judge());
    expect(found).toMatchObject({ ready: 0 });
    expect(found.of('nightly')).toMatchObject({
      reason: 'corrupt',
      msg: expect.stringMatching(/does not find/),
    });
  });

  test('a segment that is missing in the archive is a gap, which the tool does not tell', async () => {
    const found = await after(
      () => unlinkSync(archived().at(-2)!),
      () => judge(),
    );
    expect(found.of('wal')).toMatchObject({ reason: 'log_gap' });
    // The log before it still counts, whatever range the tool reports.
    expect(found.recoveryPointMs).toBeLessThan(await archivedAtMs(server));
  });

  test('a segment that is damaged', async () => {
    const found = await after(
      () => flip(archived().at(-1)!),
      () => judge(),
    );
    expect(found.of('wal')).toMatchObject({ reason: 'corrupt' });
  });

  test('a repository that is gone', async () => {
    const found = await after(
      () => rmSync(join(repository, 'backup'), { recursive: true }),
      () => judge(),
    );
    expect(found.of('nightly')).toMatchObject({ reason: 'no_backup' });
    expect(found).toMatchObject({ ready: 0 });
  });

  test('a day and more later it is late, and the recovery point is too old', async () => {
    const found = await judge(all(), 27 * hourMs);
    expect(found.of('nightly')).toMatchObject({ reason: 'late' });
    expect(found).toMatchObject({ ready: 0, recovery: { reason: 'recovery_point_too_old' } });
  });

  test('through the built program, with the command of agent.yaml', async () => {
    const file = join(place, 'agent.yaml');
    const list = (argv: readonly string[]) => JSON.stringify(argv);
    // The tool reads the whole repository: at the lowest priority that takes minutes on a busy machine.
    const verified = join(place, 'verified');
    writeFileSync(verified, run('verify', '--output=text', '--verbose'));
    writeFileSync(
      file,
      `stateDirectory: ${join(place, 'state')}
roles: [history]
services: {history: {logs: {paths: [${place}/none.log]}}}
stores: [{name: main, kind: postgres, address: '127.0.0.1:${server.port}', user: postgres, databases: {persistence: postgres}}]
backups:
  - name: nightly
    store: main
    database: persistence
    type: full
    integrity: {level: full}
    source: {command: {format: pgbackrest, command: ${list(tool('info', '--output=json'))}, verify: [cat, ${verified}]}}
  - {name: wal, store: main, type: log, objectives: {rpo: 24h}, source: {segments: {directory: ${archive()}, log: wal, settle: 1ms}}}
`,
    );
    await recordDrill(join(place, 'state'));
    const { status, stdout, stderr } = command(['probe', 'backup', 'recovery', '-c', file]);
    expect({ status, stdout, stderr }).toMatchObject({ status: 0 });
    expect(stdout).toMatch(/recovery\/main\/persistence +ok/);
  });
});

describe.skipIf(!hasBarman)('Barman', () => {
  let server: Postgres;
  let base: string;
  let barman: ReturnType<typeof createBarman>;
  const run = (...args: string[]) => printedBy(barman.tool(...args));
  const report = (verify = true): BackupSource => ({
    ...{ kind: 'command', format: 'barman', timeoutMs: 60_000, command: ['sh', '-c', barman.report] },
    verify: verify ? barman.tool('verify-backup', 'main', '{id}') : undefined,
  });
  const segments = (): BackupSource => ({
    ...{ kind: 'segments', log: 'wal', settleMs: 0 },
    directory: barman.wals,
  });
  const nightly = (verify = true) => backupOptions('nightly', 'full', report(verify));
  const all = () => [nightly(), backupOptions('wal', 'log', segments())];
  const after = <T>(damage: () => void, check: () => Promise<T>) => damaged(barman.home, damage, check);
  const judgeAll = judging(() => server);
  const judge = (backups = all(), laterMs = 0) => judgeAll(backups, laterMs);
  const ids = () => readdirSync(join(barman.home, 'main/base')).sort();
  /** Does what Barman's cron job does with new segments. */
  const filed = () => run('archive-wal', 'main');

  beforeAll(async () => {
    base = postgresFolder();
    barman = createBarman(base);
    server = await startPostgres({ archiveCommand: barman.archiveCommand });
    barman.configure(server);
    await server.query('CREATE TABLE executions (i int)');
    await writeSegment(server);
    filed();
  });
  afterAll(async () => {
    await server?.stop();
    if (base) rmSync(base, { recursive: true, force: true });
  });

  test('no backup yet; then one with its log: verified by the tool, and ready', async () => {
    expect(await judge()).toMatchObject({ ready: 0 });
    // Its end waits for a segment that the switch of the backup itself archives.
    run('backup', 'main');
    await writeSegment(server);
    await writeSegment(server);
    filed();
    const whole = await judge();
    expect(whole).toMatchObject({ ready: 1, links: ['full', 'log'] });
    expect(whole.of('nightly')).toMatchObject({ reason: undefined });
    expect(whole.of('wal')).toMatchObject({ reason: undefined });
  });

  test('the range that Barman reports keeps segments that were deleted', async () => {
    expect(await judge([nightly()])).toMatchObject({
      ...{ ready: 0, recoveryPointMs: undefined },
      recovery: { reason: 'recovery_point_unknown', msg: expect.stringContaining('no entry of type log') },
    });
    expect(await judge([nightly(false)])).toMatchObject({ ready: 0, recovery: { reason: 'unverified' } });
  });

  test('a segment that never reached Barman is a gap of its report', async () => {
    const damage = () => {
      // Barman has its own list of what has arrived.
      const list = join(barman.wals, 'xlog.db');
      const lines = readFileSync(list, 'utf8').split('\n');
      const segments = lines.filter((line) => /^[0-9A-F]{24}\t/.test(line));
      writeFileSync(list, lines.filter((line) => line !== segments.at(-2)).join('\n'));
    };
    const found = await after(damage, () => judge([nightly()]));
    expect(found.of('nightly')).toMatchObject({ reason: 'log_gap' });
    expect(found.recoveryPointMs).toBeUndefined();
  });

  test('a segment that was deleted afterwards is a gap of the archive', async () => {
    const damage = () => {
      const names = readdirSync(barman.walFolder()).filter((name) => /^[0-9A-F]{24}$/.test(name));
      unlinkSync(join(barman.walFolder(), names.sort().at(-2)!));
    };
    const found = await after(damage, () => judge());
    expect(found.of('wal')).toMatchObject({ reason: 'log_gap' });
    expect(found.recoveryPointMs).toBeLessThan(await archivedAtMs(server));
  });

  test('a flipped byte in the backup', async () => {
    const damage = () => flip(join(barman.home, 'main/base', ids()[0]!, 'data/base/1/1255'));
    const found = await after(damage, () => judge());
    expect(found).toMatchObject({ ready: 0 });
    expect(found.of('nightly')).toMatchObject({
      reason: 'corrupt',
      msg: expect.stringMatching(/checksum mismatch for file "base\/1\/1255"/),
    });
  });

  test('a backup whose files were deleted', async () => {
    const damage = () => rmSync(join(barman.home, 'main/base', ids()[0]!, 'data'), { recursive: true });
    const found = await after(damage, () => judge());
    expect(found).toMatchObject({ ready: 0 });
    expect(found.of('nightly')).toMatchObject({ reason: 'corrupt' });
  });

  test('a day and more later it is late', async () => {
    // A server at rest whose segments are all archived loses nothing, however much later.
    await server.query('INSERT INTO executions VALUES (1)');
    const found = await judge(all(), 27 * hourMs);
    expect(found.of('nightly')).toMatchObject({ reason: 'late' });
    expect(found).toMatchObject({ ready: 0 });
  });

  test('a backup that failed is a failure of its own, and the one before stays good', async () => {
    const whole = readFileSync(barman.config, 'utf8');
    const programs = join(base, 'programs');
    mkdirSync(programs);
    const pgBaseBackup = `#!/bin/sh
case "$*" in *--version*) exec ${postgresPrograms}/pg_basebackup "$@";; esac
exit 1
`;
    writeFileSync(join(programs, 'pg_basebackup'), pgBaseBackup, { mode: 0o755 });
    const damage = () => {
      writeFileSync(barman.config, whole.replace(/path_prefix=.*/, `path_prefix=${programs}`));
      expect(() => run('backup', 'main')).toThrow();
      writeFileSync(barman.config, whole);
    };
    const found = await after(damage, () => judge());
    expect(found.of('nightly')).toMatchObject({ reason: 'backup_failed' });
    expect(found).toMatchObject({ ready: 1 });
  });
});

describe.skipIf(!hasWalG)('WAL-G', () => {
  let server: Postgres;
  let base: string;
  let repository: string;
  const tool = (...args: string[]) =>
    asPostgres([
      ...['env', `WALG_FILE_PREFIX=${repository}`, 'WALG_DELTA_MAX_STEPS=3'],
      ...[`PGHOST=${server.folder}`, `PGPORT=${server.port}`, 'PGUSER=postgres', 'PGDATABASE=postgres'],
      ...['wal-g', ...args],
    ]);
  const run = (...args: string[]) => printedBy(tool(...args));
  const source = (...args: string[]): BackupSource => ({
    ...{ kind: 'command', format: 'walg', timeoutMs: 60_000, command: tool(...args) },
    verify: undefined,
  });
  const show = ['wal-show', '--detailed-json'];
  const nightly = (args = show) => backupOptions('nightly', 'full', source(...args), { level: 'header' });
  const hourly = () => backupOptions('hourly', 'incremental', source(...show), { level: 'header' });
  const judge = judging(() => server);

  beforeAll(async () => {
    base = postgresFolder();
    repository = join(base, 'repository');
    ownedFolder(repository);
    server = await startPostgres({ archiveCommand: `WALG_FILE_PREFIX=${repository} wal-g wal-push %p` });
    await server.query('CREATE TABLE executions (i int)');
  });
  afterAll(async () => {
    await server?.stop();
    if (base) rmSync(base, { recursive: true, force: true });
  });

  test('no backup yet; then a full one, a delta upon it, and the range of the log', async () => {
    expect(await judge([nightly()])).toMatchObject({ ready: 0, recovery: { reason: 'no_backup' } });
    run('backup-push', server.data);
    await writeSegment(server);
    run('backup-push', server.data);
    await writeSegment(server);
    const found = await judge([nightly(), hourly()]);
    expect(found.of('nightly')).toMatchObject({ reason: undefined });
    expect(found.of('hourly')).toMatchObject({ reason: undefined });
    // WAL-G reads nothing again, so its backups are not verified.
    expect(found).toMatchObject({ ready: 0, recovery: { reason: 'unverified' } });
    const listed = await judge([nightly(['backup-list', '--detail', '--json'])]);
    expect(listed.of('nightly')).toMatchObject({ reason: undefined });
  });

  test('a script that verifies makes it ready', async () => {
    const verifying = { ...source(...show), verify: ['true'] } as BackupSource;
    const found = await judge([backupOptions('nightly', 'full', verifying)]);
    expect(found).toMatchObject({ ready: 1 });
    // The time at which a segment was archived says nothing about its content.
    expect(found.recoveryPointMs).toBeLessThanOrEqual(Date.now() + 1000);
  });

  test('a segment that is missing is a gap of its report', async () => {
    const remove = () => {
      const names = readdirSync(join(repository, 'wal_005')).filter((name) =>
        /^[0-9A-F]{24}\.\w+$/.test(name),
      );
      unlinkSync(join(repository, 'wal_005', names.sort().at(-2)!));
    };
    const found = await damaged(repository, remove, () => judge([nightly()]));
    expect(found.of('nightly')).toMatchObject({ reason: 'log_gap' });
  });
});
