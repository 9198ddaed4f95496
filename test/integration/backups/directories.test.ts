import { copyFileSync, mkdirSync, rmSync, utimesSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { beforeEach, expect, test } from 'vitest';
import { planBackups } from '../../../src/probes/backups/backups.ts';
import type { BackupOptions } from '../../../src/probes/backups/block.ts';
import { listBackupDirectory } from '../../../src/probes/backups/files.ts';
import type { ProbeRow } from '../../../src/probes/probe.ts';
import { manualClock } from '../../clock.ts';
import { newFolder } from '../../folder.ts';
import { bench, gauge } from '../../store-probe.ts';

// What directories show about backups: sentinels of dumps, and copies of live configuration files.

const hourMs = 36e5;
let place: string;
beforeEach(() => {
  place = newFolder();
});

/** The probe of one backup, with a clock that the test advances. */
async function probeOf(type: BackupOptions['type'], source: BackupOptions['source']) {
  const clock = manualClock(Date.now());
  const backup: BackupOptions = {
    ...{ name: 'b', store: 'main', database: 'persistence', type, source, intervalMs: 60_000 },
    schedule: { everyMs: type === 'config' ? undefined : 24 * hourMs, usualGraceMs: 300_000 },
    objectives: { rpoMs: 24 * hourMs, rtoMs: hourMs },
    retention: { minCount: 1 },
    integrity: { level: 'none', minBytes: 1, maxShrink: 1, bytesPerSecond: 1e9, everyMs: 7 * 864e5 },
  };
  const [row] = planBackups({ stores: [], backups: [backup], stateDirectory: place }) as [ProbeRow];
  const probe = await row.open({ ...bench().deps, clock });
  let recalled: unknown;
  return async (laterMs: number) => {
    clock.advance(laterMs);
    const finding = await probe.check(AbortSignal.timeout(30_000), recalled);
    recalled = finding.remember;
    return {
      reason: finding.reason,
      success: gauge(finding, 'svc_backup_last_success_timestamp_seconds'),
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
