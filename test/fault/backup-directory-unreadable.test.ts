import { execFileSync, spawnSync } from 'node:child_process';
import {
  chmodSync,
  cpSync,
  existsSync,
  mkdirSync,
  rmSync,
  symlinkSync,
  utimesSync,
  writeFileSync,
} from 'node:fs';
import { dirname, join } from 'node:path';
import { afterEach, beforeEach, describe, expect, onTestFinished, test } from 'vitest';
import { systemClock } from '../../src/core/clock.ts';
import { planBackups } from '../../src/probes/backups/backups.ts';
import type { BackupOptions } from '../../src/probes/backups/block.ts';
import type { BackupSource } from '../../src/probes/backups/source-blocks.ts';
import type { Finding } from '../../src/probes/probe.ts';
import { backupOptions, openProbes } from '../backup-probes.ts';
import { mainFile } from '../e2e/process.ts';
import { newFolder } from '../folder.ts';
import { folder } from '../run-folder.ts';

// What cannot be read is unknown: no backup counts as good, missing or damaged because of it.

const isRoot = process.getuid?.() === 0;
let place: string;
let mounted: string | undefined;
beforeEach(() => {
  place = newFolder();
  chmodSync(place, 0o755);
});
afterEach(() => {
  if (mounted) spawnSync('umount', ['-l', mounted]);
  mounted = undefined;
});

const path = (...names: string[]) => join(place, ...names);
const write = (name: string, text: string) => {
  mkdirSync(dirname(path(name)), { recursive: true });
  writeFileSync(path(name), text);
};

describe.skipIf(!isRoot || !existsSync('/usr/bin/setpriv'))(
  'the built program as a user without rights',
  () => {
    /** The findings of `svc-agent probe` as nobody, by the name of the probe. */
    function probeAsNobody(
      source: string,
      level = 'none',
    ): Record<string, { ok: boolean; reason: string; msg: string }> {
      // The program may be in a folder that only its owner may read.
      cpSync(dirname(mainFile), path('dist'), { recursive: true });
      symlinkSync(join(dirname(mainFile), '..', 'node_modules'), path('node_modules'));
      mkdirSync(path('state'), { mode: 0o777 });
      chmodSync(path('state'), 0o777);
      write(
        'agent.yaml',
        `stateDirectory: ${path('state')}
roles: [history]
services: {history: {logs: {paths: [${path('none.log')}]}}}
stores: [{name: main, kind: postgres, address: '127.0.0.1:1', databases: {persistence: svc}}]
backups:
  - {name: nightly, store: main, database: persistence, type: full, source: ${source}, integrity: {level: ${level}}}
`,
      );
      const { stdout, stderr } = spawnSync(
        'setpriv',
        [
          ...['--reuid=65534', '--regid=65534', '--clear-groups', process.execPath, path('dist', 'main.js')],
          ...['probe', 'backup', 'recovery', '-c', path('agent.yaml'), '--json'],
        ],
        { encoding: 'utf8', cwd: '/' },
      );
      if (!stdout.startsWith('[')) throw new Error(stderr || stdout);
      const findings = JSON.parse(stdout) as { name: string; ok: boolean; reason: string; msg: string }[];
      return Object.fromEntries(findings.map((finding) => [finding.name, finding]));
    }

    const files = (directory: string) =>
      `{files: {directory: ${directory}, pattern: '^a', settle: 1ms, takenFrom: primary}}`;

    test.each([
      [
        'a directory',
        files('DUMPS'),
        () => {
          write('dumps/a.dump', 'x');
          chmodSync(path('dumps'), 0o700);
        },
      ],
      [
        'a directory above it',
        files('DUMPS/deep'),
        () => {
          write('dumps/deep/a.dump', 'x');
          chmodSync(path('dumps'), 0o700);
        },
      ],
      [
        'a directory that may be listed and not entered',
        files('DUMPS'),
        () => {
          write('dumps/a.dump', 'x');
          chmodSync(path('dumps'), 0o744);
        },
      ],
      [
        'a part of a backup that is a directory',
        files('DUMPS'),
        () => {
          write('dumps/a/backup_manifest', '{}');
          write('dumps/a/base/1', 'x');
          chmodSync(path('dumps', 'a', 'base'), 0o700);
        },
      ],
      [
        'the archive of a log',
        '{segments: {directory: DUMPS, log: wal}}',
        () => {
          write('dumps/000000010000000000000001', 'x');
          chmodSync(path('dumps'), 0o700);
        },
      ],
      [
        'the manifest of a snapshot',
        '{snapshot: {dataDirectory: PLACE, keyspace: dumps}}',
        () => {
          write('dumps/t-1/snapshots/s/manifest.json', '{"files": []}');
          chmodSync(path('dumps/t-1/snapshots/s/manifest.json'), 0o600);
        },
      ],
    ])('%s', (_, source, prepare) => {
      prepare();
      const found = probeAsNobody(source.replace('DUMPS', path('dumps')).replace('PLACE', place));
      expect(found['backup/nightly']).toMatchObject({ ok: false, reason: 'evidence_unreadable' });
      expect(found['backup/nightly']!.msg).toMatch(/cannot be read: .*permission denied/i);
      expect(found['recovery/main/persistence']).toMatchObject({ ok: false, reason: 'evidence_unreadable' });
    });
    test.each([
      ['a dump', files('DUMPS'), 'a.dump', 'unverified'],
      [
        'a segment of a log',
        '{segments: {directory: DUMPS, log: wal, settle: 1ms}}',
        '000000010000000000000001',
        'evidence_unreadable',
      ],
    ])('%s that may be listed and not read', (_, source, name, recovery) => {
      write(`dumps/${name}`, 'x');
      chmodSync(path('dumps', name), 0o600);
      const found = probeAsNobody(source.replace('DUMPS', path('dumps')), 'full');
      expect(found['backup/nightly']).toMatchObject({ ok: false, reason: 'evidence_unreadable' });
      expect(found['backup/nightly']!.msg).toMatch(
        new RegExp(`^cannot be read: .*EACCES.*'${path('dumps', name)}'$`),
      );
      expect(found['recovery/main/persistence']).toMatchObject({ ok: false, reason: recovery });
    });
  },
);

describe('a file system that is unmounted', () => {
  const canMount =
    isRoot &&
    (() => {
      const probe = folder();
      const { status } = spawnSync('mount', ['-t', 'tmpfs', 'none', probe.path]);
      if (status === 0) execFileSync('umount', [probe.path]);
      probe.remove();
      return status === 0;
    })();

  /** Mounts an empty file system on a folder, with one file in it. */
  const mount = (name: string) => {
    execFileSync('mount', ['-t', 'tmpfs', 'none', path(name)]);
    mounted = path(name);
    write(`${name}/a.dump`, 'x');
    // The agent's clock counts whole milliseconds: a file of the present millisecond would not be settled yet.
    utimesSync(path(name, 'a.dump'), new Date(), new Date(Date.now() - 1000));
  };
  const unmount = (name: string) => execFileSync('umount', [path(name)]);

  /** Checks the backups of the directory `dumps` and then the recovery, with what the check before remembered. */
  async function watching(more: Partial<BackupOptions> = {}) {
    const directory = path('dumps');
    const source: BackupSource = {
      kind: 'files',
      directory,
      pattern: '^a',
      settleMs: 0,
      takenFrom: 'primary',
    };
    const backups = [
      backupOptions('nightly', 'full', source, {
        ...{ level: 'header', schedule: { everyMs: 864e5, usualGraceMs: 0 }, retention: { minCount: 0 } },
        ...more,
      }),
    ];
    const rows = planBackups({ backups, stores: [], stateDirectory: path('state') } as never, {
      verify: async () => ({ result: 'ok', msg: '', content: { startMs: Date.now() - 1000 } }),
    });
    const probes = await openProbes(rows, () => ({ clock: systemClock }));
    onTestFinished(probes.close);
    return async (): Promise<Finding[]> => [...(await probes.round()).values()];
  }
  const ready = (findings: Finding[]) =>
    findings[1]!.gauges?.find(({ name }) => name === 'svc_recovery_ready')?.value;

  test.skipIf(!canMount)('its backups are not known, neither good nor gone, until it is back', async () => {
    mkdirSync(path('dumps'));
    const runCheck = await watching();
    mount('dumps');
    expect(ready(await runCheck())).toBe(1);
    unmount('dumps');
    for (let times = 0; times < 2; times++) {
      const found = await runCheck();
      expect(found.map(({ reason }) => reason)).toEqual(['evidence_unreadable', 'evidence_unreadable']);
      expect(found[0]!.msg).toContain('is on another file system than before');
      // If it is not known, the database is not ready.
      expect(ready(found)).toBe(0);
      expect(found[0]!.increases).toBeUndefined();
    }
    mount('dumps');
    const back = await runCheck();
    expect(back.map(({ reason }) => reason)).toEqual([undefined, undefined]);
    expect(ready(back)).toBe(1);
    // A file that is deleted on the file system that is there is a loss, and is reported as one.
    rmSync(path('dumps', 'a.dump'));
    expect(ready(await runCheck())).toBe(0);
  });

  test.skipIf(!canMount)('of an off-site one no copy is missing, and the backups count', async () => {
    write('dumps/a.dump', 'x');
    mkdirSync(path('away'));
    const runCheck = await watching({
      offsite: { directory: path('away', 'copies'), maxLagMs: 0, checksums: true },
    });
    const found = async () => {
      const findings = await runCheck();
      expect(ready(findings)).toBe(1);
      return findings[0]!;
    };
    mount('away');
    write('away/copies/a.dump', 'x');
    expect(await found()).not.toHaveProperty('reason');
    unmount('away');
    // The directory was on the file system.
    expect(await found()).toMatchObject({
      reason: 'evidence_unreadable',
      msg: expect.stringMatching(/^off-site: .*copies does not exist; mount its file system, or create it/),
    });
    // The directory also exists below the mount point.
    mkdirSync(path('away', 'copies'));
    for (let times = 0; times < 2; times++)
      expect(await found()).toMatchObject({
        reason: 'evidence_unreadable',
        msg: expect.stringContaining('is on another file system than before'),
      });
    mount('away');
    write('away/copies/a.dump', 'x');
    expect(await found()).not.toHaveProperty('reason');
    // A file that is deleted on the file system that is there is a loss.
    rmSync(path('away', 'copies', 'a.dump'));
    expect(await found()).toMatchObject({ reason: 'offsite_missing' });
  });
});
