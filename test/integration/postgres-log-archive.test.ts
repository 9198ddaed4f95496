import { readdirSync, rmSync, unlinkSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { archivesOf, planBackups } from '../../src/probes/backups/backups.ts';
import { verifyBackup } from '../../src/probes/backups/verify.ts';
import { planStores } from '../../src/probes/stores/stores.ts';
import { backupOptions, openProbes } from '../backup-probes.ts';
import { manualClock } from '../clock.ts';
import { newFolder } from '../folder.ts';
import { hasPostgres, type Postgres, startArchiving } from '../postgres.ts';
import { checksOf, gauge, storeOn } from '../store-probe.ts';
import { pollUntil } from '../until.ts';

const minuteMs = 60_000;
const log = (store: string, directory: string) =>
  backupOptions(
    'wal',
    'log',
    { kind: 'segments', directory, log: 'wal', settleMs: 0 },
    {
      ...{ store, database: undefined, level: 'header' },
    },
  );

describe.skipIf(!hasPostgres)('the archive of a real PostgreSQL', () => {
  let server: Postgres;
  let archive: string;
  const state = newFolder(afterAll);
  const clock = manualClock(Date.now() + 1000);

  beforeAll(async () => {
    ({ archive, server } = await startArchiving({
      settings: ['archive_timeout=1', 'checkpoint_timeout=30s'],
    }));
    await server.query('CREATE TABLE executions (id int)');
  });
  afterAll(() => server?.stop());

  /** Opens the store's probe, and the backup's probe, which sees the last finding of the store's probe. */
  const open = async () => {
    const options = {
      services: [],
      stores: [storeOn(server.port, { user: 'postgres' })],
      backups: [log('main', archive)],
      stateDirectory: state,
    };
    const rows = [
      ...planStores({ ...options, archivesOf: archivesOf(options) }),
      ...planBackups(options, { verify: verifyBackup }),
    ].filter(({ kind }) => kind === 'store' || kind === 'backup');
    const { round, found, close } = await openProbes(rows, (latest) => ({ clock, latest }));
    return {
      async poll() {
        await round();
        const finding = found('store/main/persistence');
        const backup = found('backup/wal');
        return {
          check: checksOf(finding).wal_archive,
          wholeUntilMs: (finding.details!.log as { wholeUntilMs?: number } | undefined)?.wholeUntilMs,
          reason: backup.reason,
          endMs: 1000 * gauge(backup, 'svc_backup_last_success_timestamp_seconds')!,
          runs: (backup.totals ?? []).concat(backup.gauges ?? []).length,
        };
      },
      close,
    };
  };

  const position = async () =>
    (await server.query('SELECT pg_current_wal_insert_lsn()::text AS lsn')).rows[0].lsn as string;
  const archived = async () =>
    (await server.query('SELECT last_archived_wal AS wal FROM pg_stat_archiver')).rows[0].wal as
      | string
      | null;
  /** Writes a row, and closes the segment in which it is. */
  const closeSegment = async (id: number) => {
    await server.query(`INSERT INTO executions VALUES (${id})`);
    await server.query('SELECT pg_switch_wal()');
  };
  /** Waits until the server has archived everything. */
  const atRest = () =>
    pollUntil(
      async () => {
        const waiting = await server.query(
          `SELECT count(*)::int AS n FROM pg_ls_archive_statusdir() WHERE name LIKE '%.ready'`,
        );
        return waiting.rows[0].n === 0 && (await archived()) !== null;
      },
      (rests) => rests,
    );

  test('while nothing is written, the log of an idle server reaches as far as the last poll', async () => {
    await server.query('INSERT INTO executions VALUES (1)');
    // This wakes the checkpointer, which after a start sleeps for checkpoint_timeout before it closes a segment.
    await server.query('CHECKPOINT');
    await atRest();
    const { poll, close } = await open();
    let before = await position();
    const first = await poll();
    expect(first).toMatchObject({ check: true, reason: undefined });
    let polls = 0;
    let knownUntilMs = 0;
    for (let minutes = 2; minutes <= 60; minutes += 2) {
      clock.advance(2 * minuteMs);
      const start = await position();
      const found = await poll();
      // The server writes a record of its own now and then: a poll that meets it, or follows it, cannot know whether it matters.
      const isStill = (await position()) === before;
      before = start;
      if (!isStill) continue;
      polls++;
      knownUntilMs = clock.nowMs();
      expect(found, `after ${minutes} minutes`).toMatchObject({
        wholeUntilMs: clock.nowMs(),
        endMs: clock.nowMs(),
        reason: undefined,
      });
    }
    expect(polls).toBeGreaterThan(20);
    // What is written after that is in no segment yet.
    server.configure(['archive_timeout=0']);
    await pollUntil(
      async () => (await server.query('SHOW archive_timeout')).rows[0].archive_timeout,
      (timeout) => timeout === '0',
    );
    // The checkpointer closes segments. It reads its settings before the checkpoint.
    await server.query('CHECKPOINT');
    await server.query('INSERT INTO executions VALUES (2)');
    clock.advance(11 * minuteMs);
    expect(await poll()).toMatchObject({ wholeUntilMs: undefined, endMs: knownUntilMs });
    await close();
  });

  test('a segment with anything in it proves nothing without archive_timeout; a closed one does', async () => {
    const { poll, close } = await open();
    await poll();
    clock.advance(60 * minuteMs);
    const { reason, wholeUntilMs } = await poll();
    expect({ reason, wholeUntilMs }).toEqual({ reason: 'late', wholeUntilMs: undefined });
    const before = await archived();
    await server.query('CHECKPOINT');
    await server.query('SELECT pg_switch_wal()');
    await pollUntil(archived, (wal) => wal !== before);
    expect(await poll()).toMatchObject({ check: true, reason: undefined, wholeUntilMs: clock.nowMs() });
    await close();
  });

  test('an archive command that succeeds and archives nothing; a segment that is gone', async () => {
    const { poll, close } = await open();
    server.configure(['archive_command=test -f %p']);
    await pollUntil(
      async () => {
        await closeSegment(3);
        return readdirSync(archive).includes((await archived())!);
      },
      (isThere) => !isThere,
    );
    expect(await poll()).toMatchObject({ check: false });
    // The server never archives that segment again: from now on there is a gap.
    server.configure([`archive_command=cp %p ${archive}/%f`]);
    // The archiver reads its settings when it next wakes, so it may still skip another segment.
    await pollUntil(
      async () => {
        await closeSegment(4);
        return readdirSync(archive).includes((await archived())!);
      },
      (isThere) => isThere,
    );
    expect(readdirSync(archive)).toContain(await archived());
    // A server at rest writes a record of its own within 15 s. After that, a poll finds the log late, until its segment is closed.
    const found = await pollUntil(
      async () => {
        await closeSegment(5);
        await atRest();
        return poll();
      },
      ({ reason }) => reason === 'log_gap',
    );
    expect(found).toMatchObject({ check: false });
    unlinkSync(join(archive, (await archived())!));
    expect(await poll()).toMatchObject({ check: false });
    await close();
  });

  test('an archive that does not exist is a finding, one that the agent cannot read is unknown', async () => {
    const { poll, close } = await open();
    rmSync(archive, { recursive: true });
    expect(await poll()).toMatchObject({ check: false });
    // The archive is not a directory.
    writeFileSync(archive, '');
    expect(await poll()).toMatchObject({ check: 'unknown', reason: 'evidence_unreadable' });
    await close();
  });
});
