import { execFileSync } from 'node:child_process';
import {
  copyFileSync,
  mkdtempSync,
  readFileSync,
  symlinkSync,
  truncateSync,
  utimesSync,
  writeFileSync,
} from 'node:fs';
import { join } from 'node:path';
import { gzipSync } from 'node:zlib';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import type { BackupOptions } from '../../src/probes/backups/block.ts';
import type { BackupSource } from '../../src/probes/backups/source-blocks.ts';
import { backupOptions, openBackups } from '../backup-probes.ts';
import { manualClock } from '../clock.ts';
import { newFolder } from '../folder.ts';
import {
  asPostgres,
  connectionTo,
  hasPostgres,
  type Postgres,
  postgresFolder,
  postgresProgram,
  postgresPrograms,
  startPostgres,
} from '../postgres.ts';
import { gauge, storeOn } from '../store-probe.ts';

// Files that look like a fresh dump by their names or times, and are none.

const minuteMs = 60_000;
const hourMs = 60 * minuteMs;
const ownZone = Intl.DateTimeFormat().resolvedOptions().timeZone;

interface Circumstances {
  laterMs?: number;
  level?: BackupOptions['integrity']['level'];
  /** The zone in the configuration; '' for none. */
  timeZone?: string;
  takenFrom?: 'primary' | 'replica' | undefined;
}

describe.skipIf(!hasPostgres)('a dump that is not what its file looks like', () => {
  let server: Postgres;
  let folder: string;
  const place = newFolder(afterAll);
  const dump = (name: string, database: string, ...args: string[]) => {
    const path = join(place, name);
    const connection = connectionTo(server);
    writeFileSync(path, postgresProgram('pg_dump', [...connection, ...args, database]), 'latin1');
    return path;
  };
  beforeAll(async () => {
    server = await startPostgres();
    await server.query('CREATE DATABASE svc');
    await server.query('CREATE DATABASE other');
    const sql =
      'CREATE TABLE domains (i int); CREATE TABLE executions AS SELECT i, md5(i::text) AS state FROM generate_series(1, 2000) i';
    for (const database of ['svc', 'other'])
      postgresProgram('psql', [...connectionTo(server), '-c', sql, database]);
    const connection = [...connectionTo(server), '-Fc'];
    const write = (name: string, ...args: string[]) => {
      const target = join(folder, name);
      postgresProgram('pg_dump', [...connection, ...args, '-f', target]);
      copyFileSync(target, join(place, name));
    };
    folder = postgresFolder();
    write('good', 'svc');
    write('other', 'other');
    write('schema', '--schema-only', 'svc');
    write('without', '--exclude-table-data=executions', 'svc');
    dump('plain', 'svc', '-Fp');
  });
  afterAll(() => server?.stop());

  /** What the agent says about a directory with only this file, this long after the dumps were made. */
  async function said(
    make: (directory: string) => void,
    { laterMs = minuteMs, level = 'full', timeZone = ownZone, ...where }: Circumstances = {},
  ) {
    const directory = mkdtempSync(join(place, 'dumps-'));
    make(directory);
    const source: BackupSource = {
      kind: 'files',
      directory,
      pattern: '^svc-(?<time>\\d{8}T\\d{6}Z)',
      settleMs: 0,
      timeZone: timeZone || undefined,
      takenFrom: 'takenFrom' in where ? where.takenFrom : 'primary',
    };
    const backups = [backupOptions('nightly', 'full', source, { level })];
    const stores = [storeOn(server.port, { databases: { persistence: 'svc' } })];
    const clock = manualClock(Date.now() + laterMs);
    const watched = { backups, stores, state: join(directory, 'state') };
    const { round, found, close } = await openBackups(watched, () => ({ clock }));
    await round();
    await close();
    const [own, recovery] = [found('backup/nightly'), found('recovery/main/persistence')];
    return {
      ready: gauge(recovery, 'svc_recovery_ready'),
      reason: recovery.reason,
      msg: `${own.msg}; ${recovery.msg}`,
      pointMs: 1000 * (gauge(own, 'svc_backup_recovery_point_timestamp_seconds') ?? Number.NaN),
    };
  }
  const stamp = (ms: number) => new Date(ms).toISOString().replaceAll(/[-:]|\.\d+/g, '');
  const file = (directory: string, extension = 'dump', ms = Date.now()) =>
    join(directory, `svc-${stamp(ms)}.${extension}`);
  /** When pg_restore says that the good dump was made. */
  const createdMs = () => {
    const list = execFileSync('pg_restore', ['--list', join(place, 'good')], { encoding: 'utf8' });
    return Date.parse(/Archive created at (\S+ \S+)/.exec(list)![1]!.replace(' ', 'T'));
  };

  test('a dump of a host whose clock is ahead, under a new name, with new times', async () => {
    const path = join(folder, 'ahead');
    const connection = [...connectionTo(server), '-Fc'];
    const beganMs = Date.now();
    const [program, ...args] = asPostgres([
      ...['env', 'TZ=Asia/Tokyo', join(postgresPrograms, 'pg_dump'), ...connection, '-f', path, 'svc'],
    ]);
    execFileSync(program!, args);
    // It is the next day, when the time in the file is no longer in the future.
    const laterMs = 20 * hourMs;
    const copied = (directory: string) => {
      const copy = file(directory, 'dump', Date.now() + laterMs - minuteMs);
      copyFileSync(path, copy);
      const seconds = (Date.now() + laterMs - minuteMs) / 1000;
      utimesSync(copy, seconds, seconds);
    };
    const silent = await said(copied, { laterMs, timeZone: '' });
    expect(silent.pointMs).toBeLessThanOrEqual(beganMs);
    expect(silent.msg).toMatch(/its time has no zone; set source\.files\.timeZone/);
    const told = await said(copied, { laterMs, timeZone: 'Asia/Tokyo' });
    expect(told.pointMs).toBe(Math.floor(told.pointMs / 1000) * 1000);
    expect(told.pointMs).toBeGreaterThan(beganMs - 1000);
    expect(told.pointMs).toBeLessThanOrEqual(Date.now());
  });

  test('a dump that a host whose clock is ahead copied with its times: its time is not used', async () => {
    // Read as a time of the westernmost zone, the time in the dump is 12 to 26 hours ahead.
    const told = await said(
      (directory) => {
        const copy = file(directory);
        copyFileSync(join(place, 'good'), copy);
        const seconds = (Date.now() + 27 * hourMs) / 1000;
        utimesSync(copy, seconds, seconds);
      },
      { laterMs: 28 * hourMs, timeZone: 'Etc/GMT+12' },
    );
    expect(told).toMatchObject({ ready: 0, reason: 'recovery_point_unknown', pointMs: Number.NaN });
    expect(told.msg).toMatch(/is older than its content; compare the clocks/);
  });

  test('a good one is known by the time in it, whatever its name and its times are', async () => {
    const good = (name: (directory: string) => string) => (directory: string) => {
      copyFileSync(join(place, 'good'), name(directory));
    };
    const ready = { ready: 1, reason: undefined, pointMs: createdMs() };
    expect(await said(good(file))).toMatchObject(ready);
    expect(
      await said(good((directory) => file(directory, 'dump', Date.now() + 55 * minuteMs))),
    ).toMatchObject(ready);
    // Three days later the dump has a name of that day: it was copied, with the time of the copy, or is a link.
    const laterMs = 72 * hourMs;
    const old = { ready: 0, reason: 'recovery_point_too_old', pointMs: createdMs() };
    const renewed = (directory: string) => {
      const path = file(directory, 'dump', Date.now() + laterMs);
      copyFileSync(join(place, 'good'), path);
      const copied = new Date(Date.now() + laterMs);
      utimesSync(path, copied, copied);
    };
    expect(await said(renewed, { laterMs })).toMatchObject(old);
    const linked = (directory: string) =>
      symlinkSync(join(place, 'good'), file(directory, 'dump', Date.now() + laterMs));
    expect(await said(linked, { laterMs })).toMatchObject(old);
  });

  test.each<[string, string, (path: string) => void, string, RegExp]>([
    [
      'of another database',
      'dump',
      (path) => copyFileSync(join(place, 'other'), path),
      'no_backup',
      /a backup of other, not of svc/,
    ],
    [
      'of the schema alone',
      'dump',
      (path) => copyFileSync(join(place, 'schema'), path),
      'no_backup',
      /no data of any table/,
    ],
    [
      'without the data of a table',
      'dump',
      (path) => copyFileSync(join(place, 'without'), path),
      'no_backup',
      /no data of public.executions/,
    ],
    [
      'half of one',
      'dump',
      (path) => {
        copyFileSync(join(place, 'good'), path);
        truncateSync(path, 4000);
      },
      'no_backup',
      /the middle of its data/,
    ],
    [
      'an error message in gzip',
      'gz',
      (path) => writeFileSync(path, gzipSync('pg_dump: error: connection refused\n')),
      'unverified',
      /./,
    ],
    [
      'one in gzip twice',
      'gz',
      (path) => writeFileSync(path, gzipSync(gzipSync(readFileSync(join(place, 'plain'))))),
      'unverified',
      /./,
    ],
    [
      'a custom dump in gzip',
      'gz',
      (path) => writeFileSync(path, gzipSync(readFileSync(join(place, 'good')))),
      'unverified',
      /./,
    ],
    [
      'SQL without a time',
      'sql',
      (path) => copyFileSync(join(place, 'plain'), path),
      'recovery_point_unknown',
      /does not say when it began/,
    ],
  ])('%s', async (_, extension, make, reason, msg) => {
    const answer = await said((directory) => make(file(directory, extension)));
    expect(answer).toMatchObject({ ready: 0, reason, msg: expect.stringMatching(msg), pointMs: Number.NaN });
  });

  test('the beginning of one does not show that it is complete', async () => {
    const whole = (directory: string) => copyFileSync(join(place, 'good'), file(directory));
    expect(await said(whole, { level: 'header' })).toMatchObject({
      ...{ ready: 0, reason: 'recovery_point_unknown', pointMs: Number.NaN },
      msg: expect.stringContaining('set it to full'),
    });
  });
});
