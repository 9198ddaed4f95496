import { copyFileSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { drillName } from '../../../src/probes/backups/backups.ts';
import { journalPath, recordRun } from '../../../src/probes/backups/journal.ts';
import type { BackupSource } from '../../../src/probes/backups/source-blocks.ts';
import { backupOptions, openBackups } from '../../backup-probes.ts';
import { manualClock } from '../../clock.ts';
import { newFolder } from '../../folder.ts';
import {
  connectionTo,
  copyInto,
  hasPostgres,
  ownedFolder,
  type Postgres,
  postgresFolder,
  postgresProgram,
  startPostgres,
} from '../../postgres.ts';
import { gauge } from '../../store-probe.ts';

const minuteMs = 60_000;
const backup = (name: string, type: 'full' | 'log', source: BackupSource) =>
  backupOptions(name, type, source, {
    ...{ level: 'checksum', objectives: { rpoMs: 5 * minuteMs, rtoMs: 240 * minuteMs } },
  });

describe.skipIf(!hasPostgres)('a byte flipped in the archived log of a real PostgreSQL', () => {
  let server: Postgres;
  let folder: string;
  let archive: string;
  let probes: Awaited<ReturnType<typeof openBackups>>;
  const clock = manualClock(Date.now());
  const state = newFolder(afterAll);

  const segments = () =>
    readdirSync(archive)
      .filter((name) => /^[0-9A-F]{24}$/.test(name))
      .sort();
  const writeSegment = async (rows: number) => {
    await server.query(`INSERT INTO executions SELECT i, md5(i::text) FROM generate_series(1, ${rows}) i`);
    await server.archiveWal();
    clock.jumpTo(Math.max(clock.nowMs(), Date.now() + 1));
  };
  const open = async () => {
    const backups = [
      backup('full', 'full', {
        kind: 'files',
        directory: join(folder, 'full'),
        pattern: '^base',
        settleMs: 0,
      }),
      backup('wal', 'log', { kind: 'segments', directory: archive, log: 'wal', settleMs: 0 }),
    ];
    probes = await openBackups({ backups, state }, () => ({ clock }));
  };
  const poll = async () => {
    await probes.round();
    const log = probes.found('backup/wal');
    const counted = Object.fromEntries(
      (log.increases ?? []).map(({ labels, value }) => [labels.result, value]),
    );
    return {
      ready: gauge(probes.found('recovery/main/persistence'), 'svc_recovery_ready'),
      reason: log.reason,
      integrity: gauge(log, 'svc_backup_integrity_ok'),
      corrupt: counted.corrupt,
      msg: log.msg,
    };
  };

  beforeAll(async () => {
    folder = postgresFolder();
    archive = join(folder, 'archive');
    for (const path of [archive, join(folder, 'full')]) ownedFolder(path);
    // A segment gets its name once it is whole, because the test damages it as soon as it is there.
    const archiveCommand = copyInto(archive);
    server = await startPostgres({
      initdb: ['--wal-segsize=1'],
      archiveCommand,
    });
    await server.query('CREATE TABLE executions (i int, state text)');
    postgresProgram('pg_basebackup', [
      ...connectionTo(server),
      '--checkpoint=fast',
      ...['-D', join(folder, 'full', 'base-1'), '--no-sync'],
    ]);
    await writeSegment(3000);
    // Without a drill the time to replay the log is not known.
    const drill = journalPath(state, 'recovery', drillName('database-corruption', 'main', 'persistence'));
    await recordRun(drill, { startMs: Date.now() - 1000, endMs: Date.now(), status: 0 });
    await open();
  });
  afterAll(async () => {
    await probes?.close();
    await server?.stop();
  });

  test('it is found, told by its own reason, counted once, and recovery is not ready any more', async () => {
    await poll();
    expect(await poll()).toMatchObject({ ready: 1, reason: undefined, integrity: 1 });
    await writeSegment(3000);
    const last = segments().at(-1)!;
    const whole = readFileSync(join(archive, last));
    const flipped = Buffer.from(whole);
    // Up to seven bytes between two records are padding, which no checksum covers.
    for (let at = 9000; at < 9008; at++) flipped[at]! ^= 0x10;
    writeFileSync(join(archive, last), flipped);
    clock.jumpTo(Date.now() + 1);
    expect(await poll()).toMatchObject({
      reason: 'corrupt',
      integrity: 0,
      corrupt: 1,
      msg: expect.stringContaining(last),
    });
    expect(await poll()).toMatchObject({ reason: 'corrupt', corrupt: undefined });
    // Later segments are good, but cannot be replayed.
    await writeSegment(10);
    clock.advance(20 * minuteMs);
    await open();
    expect(await poll()).toMatchObject({ ready: 0, reason: 'corrupt', integrity: 0, corrupt: undefined });
    expect(probes.found('recovery/main/persistence').reason).toBe('recovery_point_too_old');

    // A good copy from elsewhere repairs it.
    writeFileSync(join(archive, last), whole);
    await writeSegment(10);
    clock.jumpTo(Date.now() + 1);
    expect(await poll()).toMatchObject({ ready: 1, reason: undefined, integrity: 1 });
  });

  test('a segment that is cut off, and one under the name of another', async () => {
    const names = segments();
    await writeSegment(3000);
    const cut = segments().at(-1)!;
    writeFileSync(join(archive, cut), readFileSync(join(archive, cut)).subarray(0, 300_000));
    clock.jumpTo(Date.now() + 1);
    expect(await poll()).toMatchObject({
      reason: 'corrupt',
      corrupt: 1,
      msg: expect.stringContaining('cut off'),
    });
    rmSync(join(archive, cut));
    await writeSegment(10);
    expect(await poll()).toMatchObject({ reason: 'log_gap' });
    copyFileSync(join(archive, names[0]!), join(archive, cut));
    clock.jumpTo(Date.now() + 1);
    // The segment is new, although segments after it were verified already.
    expect(await poll()).toMatchObject({ reason: 'corrupt' });
  });
});
