import { mkdirSync, renameSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { drillName } from '../../../src/probes/backups/backups.ts';
import { journalPath, recordRun } from '../../../src/probes/backups/journal.ts';
import { firstConfig } from './configs.ts';
import { critical, type Fault, warning } from './fault.ts';
import type { Stage } from './stage.ts';

/** A backup as its tool reports it. Times are seconds from now. */
interface Reported {
  end: number;
  verified?: boolean;
  ok?: boolean;
}

interface Row {
  /** What the tool reports, and continues to report, during the fault. */
  ill: readonly Reported[];
  well: readonly Reported[];
  /** The configuration in addition to the name and the report. */
  more?: object;
  alerts: Fault['alerts'];
}

const day = 86_400;
const full = { cluster: 'dc1', store: 'main', database: 'persistence', backup_type: 'full' };
const sizeBytes = 3;
const alertsOn = (backup: string) => ({ ...full, backup });
const fresh: readonly Reported[] = [{ end: 0, verified: true }];

/**
 * Backups of one database, each with its own fault. Only the one that is too old is whole, so nothing can be restored in time.
 */
const backups: Readonly<Record<string, Row>> = {
  late: {
    ill: [{ end: -2 * day, verified: true }],
    well: fresh,
    alerts: [critical('SvcBackupAge', alertsOn('late'), /late .* last succeeded 2d 0h .* ago, above 1d 1h/)],
  },
  never: {
    ill: [],
    well: fresh,
    alerts: [critical('SvcBackupNeverSucceeded', alertsOn('never'), /never .* had no success within 25h/)],
  },
  failing: {
    ill: [{ end: -60 }, { end: 0, ok: false }],
    well: fresh,
    alerts: [
      warning(
        'SvcBackupFailures',
        alertsOn('failing'),
        /failing .* failed or was missed at .* and has not succeeded/,
      ),
    ],
  },
  damaged: {
    ill: [{ end: -60, verified: false }],
    well: fresh,
    alerts: [
      critical(
        'SvcBackupIntegrity',
        { ...alertsOn('damaged'), level: 'full' },
        /damaged .* fails its integrity test at level full/,
      ),
    ],
  },
  few: {
    ill: [{ end: -60 }],
    well: [{ end: -3600, verified: true }, ...fresh],
    more: { retention: { minCount: 2 } },
    alerts: [warning('SvcBackupRetention', alertsOn('few'), /few .* is kept for a shorter or longer time/)],
  },
  ahead: {
    ill: [{ end: 400 }],
    well: [{ end: 0 }],
    alerts: [warning('SvcBackupClockSkew', alertsOn('ahead'), /ahead .* ended 6m \d+s from now, above 5m/)],
  },
};

const placeOf = (directory: string) => join(directory, 'backups');
const reportOf = (directory: string, name: string) => join(placeOf(directory), `${name}.json`);

function report({ directory }: Stage, name: string, all: readonly Reported[]): void {
  const now = Math.floor(Date.now() / 1000);
  const reported = all.map(({ end, ...rest }) => ({
    ...{ id: String(now + end), start: now + end, end: now + end, size: sizeBytes },
    ...rest,
  }));
  const file = reportOf(directory, name);
  writeFileSync(`${file}.new`, JSON.stringify({ backups: reported }));
  renameSync(`${file}.new`, file);
}

const reportAll = (stage: Stage, state: 'ill' | 'well') => {
  for (const [name, row] of Object.entries(backups)) report(stage, name, row[state]);
};

const block = (directory: string, name: string, more: object = {}) => ({
  ...{ name, store: 'main', database: 'persistence', type: 'full' },
  source: { command: { command: ['cat', reportOf(directory, name)] } },
  ...more,
});

/** Copies the only backup to the off-site place; the copy is two days old. */
function copies({ directory }: Stage, id: string): void {
  const place = join(placeOf(directory), 'offsite');
  mkdirSync(place, { recursive: true });
  writeFileSync(join(place, id), 'x'.repeat(sizeBytes));
}

/** Faults of the backups of dc1's store. The healthy service has no backups. */
export const backupFaults: readonly Fault[] = [
  {
    what: 'backups that are late, missing, failing, damaged, too few, of a wrong clock or not copied are configured',
    async provoke(stage) {
      const { directory } = stage;
      const then = Math.floor(Date.now() / 1000) - 2 * day;
      mkdirSync(placeOf(directory), { recursive: true });
      copies(stage, String(then));
      reportAll(stage, 'ill');
      const offsite = { id: String(then), start: then, end: then, size: sizeBytes };
      writeFileSync(reportOf(directory, 'far'), JSON.stringify({ backups: [offsite] }));
      // Without a backup of the log, the settings of its archive are the owner's decision and cause no alert.
      report(stage, 'log', fresh);
      const became = await stage.agents.first.configure({
        ...firstConfig(stage),
        backups: [
          ...Object.entries(backups).map(([name, { more }]) => block(directory, name, more)),
          block(directory, 'far', { offsite: { directory: join(placeOf(directory), 'offsite') } }),
          block(directory, 'log', { type: 'log' }),
        ],
      });
      if (became !== 'taken') throw new Error('the configuration with backups was refused');
    },
    again: (stage) => {
      for (const name of ['failing', 'ahead']) report(stage, name, backups[name]!.ill);
    },
    async undo(stage) {
      reportAll(stage, 'well');
      // If there is a log, the duration of a restore must have been measured.
      const { stateDirectory } = stage.agents.first;
      const drill = journalPath(
        stateDirectory,
        'recovery',
        drillName('database-corruption', 'main', 'persistence'),
      );
      await recordRun(drill, { startMs: Date.now() - 1000, endMs: Date.now(), status: 0 });
      const now = Math.floor(Date.now() / 1000);
      copies(stage, String(now));
      const copied = { id: String(now), start: now, end: now, size: sizeBytes };
      writeFileSync(reportOf(stage.directory, 'far'), JSON.stringify({ backups: [copied] }));
      report(stage, 'log', fresh);
    },
    alerts: [
      ...Object.values(backups).flatMap(({ alerts }) => alerts),
      warning(
        'SvcBackupOffsiteAge',
        alertsOn('far'),
        /far .* last reached off-site storage 2d 0h .* ago, above 1d 1h/,
      ),
      {
        ...critical(
          'SvcRecoveryObjectiveMissed',
          { cluster: 'dc1', store: 'main', database: 'persistence' },
          /^By its backups, .* main\/persistence could not be restored/,
        ),
        heldBackBy: [
          ...['SvcBackupAge', 'SvcBackupNeverSucceeded', 'SvcBackupIntegrity', 'SvcWalArchivingStalled'],
        ].map((alert) => `${alert} recommended critical`),
      },
    ],
  },
];
