import { chmodSync, copyFileSync, linkSync, mkdirSync, rmSync, utimesSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { beforeEach, expect, test } from 'vitest';
import { planBackups } from '../../../src/probes/backups/backups.ts';
import type { BackupOptions } from '../../../src/probes/backups/block.ts';
import { listBackupDirectory, readFiles } from '../../../src/probes/backups/files.ts';
import type { SegmentReadings } from '../../../src/probes/backups/formats/segment-readings.ts';
import { readSegments } from '../../../src/probes/backups/log-evidence.ts';
import type { BackupSource } from '../../../src/probes/backups/source-blocks.ts';
import type { ProbeRow } from '../../../src/probes/probe.ts';
import { backupOptions } from '../../backup-probes.ts';
import { manualClock } from '../../clock.ts';
import { newFolder } from '../../folder.ts';
import { bench, gauge } from '../../store-probe.ts';
import { until } from '../../until.ts';

// What directories show about backups: sentinels of dumps, and copies of live configuration files.

const hourMs = 36e5;
const backupOf = (type: BackupOptions['type'], source: BackupSource) =>
  backupOptions('b', type, source, {
    ...{ level: 'none', objectives: { rpoMs: 24 * hourMs, rtoMs: hourMs } },
    schedule: { everyMs: type === 'config' ? undefined : 24 * hourMs, usualGraceMs: 300_000 },
  });
let place: string;
beforeEach(() => {
  place = newFolder();
});

/** The probe of one backup, with a clock that the test advances. */
async function probeOf(type: BackupOptions['type'], source: BackupOptions['source']) {
  const clock = manualClock(Date.now());
  const [row] = planBackups({
    ...{ stores: [], backups: [backupOf(type, source)], stateDirectory: place },
  }) as [ProbeRow];
  const probe = await row.open({ ...bench().deps, clock });
  let recalled: unknown;
  return async (laterMs: number) => {
    clock.advance(laterMs);
    const finding = await probe.check(AbortSignal.timeout(30_000), recalled);
    recalled = finding.remember;
    return {
      reason: finding.reason,
      success: gauge(finding, 'svc_backup_last_success_timestamp_seconds'),
      counted: finding.increases?.map(({ labels, value }) => [labels?.result, value]),
    };
  };
}

test('a dump counts with its sentinel only', async () => {
  const directory = join(place, 'dumps');
  mkdirSync(directory);
  const dump = join(directory, 'main.dump');
  writeFileSync(dump, 'data');
  const endSeconds = Math.floor(Date.now() / 1000) - 600;
  utimesSync(dump, endSeconds, endSeconds);
  const source = { kind: 'files', directory, pattern: '\\.dump$', settleMs: 1000, sentinel: '.ok' } as const;
  const runCheck = await probeOf('full', source);
  expect((await runCheck(0)).success).toBeUndefined();
  writeFileSync(`${dump}.ok`, '');
  expect((await runCheck(60_000)).success).toBe(endSeconds);
});

test('rights and hard links change nothing about a backup that is a directory', async () => {
  const directory = join(place, 'dumps');
  const backup = join(directory, 'base');
  mkdirSync(join(backup, 'data'), { recursive: true });
  for (const name of ['toc.dat', 'data/1.dat']) writeFileSync(join(backup, name), 'x');
  const runCheck = await probeOf('full', { kind: 'files', directory, pattern: '^base$', settleMs: 1000 });
  expect((await runCheck(0)).counted).toEqual([]);
  const { counted, success } = await runCheck(2000);
  expect(counted).toEqual([['success', 1]]);
  // In a file system the time stands still for some milliseconds.
  await until('the time has passed', () => Date.now() / 1000 - success! > 0.1);
  chmodSync(join(backup, 'data', '1.dat'), 0o640);
  linkSync(join(backup, 'toc.dat'), join(place, 'toc.link'));
  expect(await runCheck(1)).toEqual({ reason: undefined, success, counted: [] });
  // Another content is another backup.
  writeFileSync(join(backup, 'toc.dat'), 'y');
  expect((await runCheck(2000)).counted).toEqual([['success', 1]]);
});

test('what is copied again is there, although its files have not settled', async () => {
  const nowMs = Date.now();
  const write = (name: string, ageMs: number) => {
    writeFileSync(join(place, name), 'x');
    utimesSync(join(place, name), new Date(), new Date(nowMs - ageMs));
  };
  for (const [name, ageMs] of [
    ['log.000001', 2000],
    ['log.000002', 999],
    ['log.000003', 1000],
  ] as const)
    write(name, ageMs);
  const log = await readSegments(
    { kind: 'segments', directory: place, log: 'binlog', settleMs: 1000 },
    nowMs,
  );
  expect([log.log.placed.length, log.unsettled]).toEqual([2, 1]);
  write('log.000004.part', 0);
  const files = { kind: 'files', directory: place, pattern: '^log', settleMs: 1000 } as const;
  const { artifacts, unsettled } = await readFiles({ ...files, takenFrom: 'primary' }, [], nowMs);
  expect([artifacts.length, unsettled]).toEqual([2, 1]);
});

test('the time of a server whose clock was ahead is limited by that of the segment', async () => {
  const nowMs = Date.now();
  const endMs = Math.floor(nowMs / 1000) * 1000 - 60_000;
  const logOf = async (newestMs: number) => {
    writeFileSync(join(place, 'log.000001'), 'x');
    utimesSync(join(place, 'log.000001'), endMs / 1000, endMs / 1000);
    const readings: SegmentReadings = {
      find: (name, identity) => ({ name, identity, atMs: nowMs, content: { newestMs } }),
      keep: async () => {},
      keepOnly: async () => {},
    };
    const source = { kind: 'segments', directory: place, log: 'binlog', settleMs: 1 } as const;
    return (await readSegments(source, nowMs, { readings })).artifacts.map((artifact) => artifact.endMs);
  };
  expect(await logOf(endMs + 600_000)).toEqual([endMs]);
  expect(await logOf(endMs - 600_000)).toEqual([endMs - 600_000]);
});

test('a directory that is still copied with its times is not settled', async () => {
  const directory = join(place, 'dumps');
  mkdirSync(join(directory, 'base'), { recursive: true });
  writeFileSync(join(directory, 'base', 'toc.dat'), 'x');
  const long = Date.now() / 1000 - 86_400;
  for (const name of ['base/toc.dat', 'base']) utimesSync(join(directory, name), long, long);
  const runCheck = await probeOf('full', { kind: 'files', directory, pattern: '^base$', settleMs: 1000 });
  expect((await runCheck(0)).counted).toEqual([]);
  expect((await runCheck(2000)).counted).toEqual([['success', 1]]);
});

test('a check with a short interval ends in its time while a verification goes on', async () => {
  // A file of this very moment may be newer than the clock, and then it has not settled.
  const clock = manualClock(Date.now() + 1_000);
  writeFileSync(join(place, 'a.dump'), 'x');
  const [row] = planBackups(
    {
      stores: [],
      backups: [
        backupOptions(
          'b',
          'full',
          { kind: 'files', directory: place, pattern: 'dump$', settleMs: 0 },
          { intervalMs: 3000 },
        ),
      ],
      stateDirectory: place,
    },
    { verify: () => new Promise(() => {}) },
  ) as [ProbeRow];
  const probe = await row.open({ ...bench().deps, clock });
  const checking = probe.check(AbortSignal.timeout(30_000), undefined);
  await until('the check waits', () => clock.waiting > 0);
  clock.advance(1500);
  expect(row.schedule.timeoutMs).toBe(3000);
  expect(await checking).toMatchObject({ msg: 'the newest backup is being verified' });
  await probe.close?.();
});

test('a live file that differs from its newest copy is late after the grace, until it is copied', async () => {
  const [live, copies] = [join(place, 'production.yaml'), join(place, 'copies')];
  mkdirSync(join(copies, 'first'), { recursive: true });
  writeFileSync(live, 'log: {level: info}\n');
  copyFileSync(live, join(copies, 'first', 'production.yaml'));
  const runCheck = await probeOf('config', { kind: 'configuration', files: [live], directory: copies });
  const first = await runCheck(0);
  const second = await runCheck(hourMs);
  expect(first.reason).toBeUndefined();
  // The copy is good at each check, so its time advances.
  expect(second.success! - first.success!).toBeCloseTo(3600, 0);
  writeFileSync(live, 'log: {level: warn}\n');
  await runCheck(60_000);
  expect((await runCheck(400_000)).reason).toBe('drifted');
  mkdirSync(join(copies, 'second'));
  copyFileSync(live, join(copies, 'second', 'production.yaml'));
  expect((await runCheck(60_000)).reason).toBeUndefined();
});

test('of a directory with more entries than are read, nothing is known, and the message says what to do', async () => {
  const crowded = join(place, 'crowded');
  mkdirSync(crowded);
  for (let index = 0; index <= 20_000; index++) writeFileSync(join(crowded, `${index}.dump`), '');
  await expect(listBackupDirectory(crowded)).rejects.toMatchObject({
    reason: 'evidence_unreadable',
    message: expect.stringContaining('more than 20000 entries'),
  });
  rmSync(join(crowded, '0.dump'));
  expect(await listBackupDirectory(crowded)).toHaveLength(20_000);
});
