import { at, column, type Dashboard, type PanelRow, table, timeline, timeseries } from '../dashboard.ts';
import { backup, type Queries, store } from '../queries.ts';

const identity = 'backup, store, database, backup_type';
const point = 'store, database, backup_type';
const success = 'svc_backup_last_success_timestamp_seconds';
const offsite = 'svc_backup_offsite_last_success_timestamp_seconds';
const timed = '{backup_type!="config"}';

const now = ({ age, grownOnce, lastKnown, moment }: Queries): PanelRow => ({
  title: 'Current state',
  panels: [
    table(
      'Backups',
      'Configured backups. A backup without a last success had none in the shown range.',
      { cluster: 'Cluster', backup: 'Backup', store: 'Store', database: 'Database', backup_type: 'Type' },
      [
        column('Configured', 'count', lastKnown('svc_backup_configured', identity), { state: 'yes' }),
        column('Last success', 'ago', moment(success, identity)),
        column('Age', 'duration', age(`${success}${timed}`, identity), { limits: at('SvcBackupAge') }),
        column('Last failure', 'ago', moment('svc_backup_last_failure_timestamp_seconds', identity)),
        column('Restorable to', 'ago', moment('svc_backup_recovery_point_timestamp_seconds', identity)),
        column('Off-site copy', 'ago', moment(offsite, identity)),
        column('Failures', 'count', grownOnce('svc_backup_failures_total', identity), { anyIs: 'orange' }),
      ],
      {
        height: 10,
        sortBy: 'Age',
        runbooks: [
          'SvcBackupNeverSucceeded',
          'SvcBackupFailures',
          'SvcBackupRetention',
          'SvcBackupClockSkew',
        ],
      },
    ),
  ],
});

const time = ({ age, highest }: Queries): PanelRow => ({
  title: 'Ages',
  panels: [
    timeseries(
      'Time since the last success',
      'Backups of configuration run on change and are left out.',
      'duration',
      age(`${success}${timed}`, identity),
      { limits: at('SvcBackupAge') },
    ),
    timeseries(
      'Time since the last off-site copy',
      'Age of the newest backup that survives the loss of the site.',
      'duration',
      age(`${offsite}${timed}`, identity),
      { limits: at('SvcBackupOffsiteAge') },
    ),
    timeseries(
      'Potential data loss',
      'Time since the newest point that can be restored, and the recovery point objective.',
      'duration',
      [
        { name: 'loss', expr: age('svc_backup_recovery_point_timestamp_seconds', point) },
        { name: 'objective', expr: highest('svc_rpo_objective_seconds', point) },
      ],
      { runbooks: ['SvcRecoveryObjectiveMissed'] },
    ),
  ],
});

const runs = ({ highest, lastKnown, rateOnce }: Queries): PanelRow => ({
  title: 'Runs',
  panels: [
    timeseries(
      'Runs by result',
      'Ended runs by result.',
      'perSecond',
      rateOnce('svc_backup_runs_total', 'backup, result'),
      { runbooks: ['SvcBackupFailures'] },
    ),
    timeseries(
      'Size',
      'Size of the last successful backup. After a sudden drop, check that nothing is missing.',
      'bytes',
      lastKnown('svc_backup_last_size_bytes', identity),
    ),
    timeseries(
      'Duration',
      'Duration of the last successful backup.',
      'duration',
      lastKnown('svc_backup_last_duration_seconds', identity),
    ),
    timeline(
      'Integrity',
      'Whether the last backup passed its integrity test, by agent and by level of the test.',
      'ok',
      highest('svc_backup_integrity_ok', 'backup, database, level, instance'),
      { runbooks: ['SvcBackupIntegrity'] },
    ),
    timeline(
      'Retention',
      'Whether backups are kept for the configured time.',
      'ok',
      highest('svc_backup_retention_compliant', 'backup, database'),
      { runbooks: ['SvcBackupRetention'] },
    ),
  ],
});

export const backups: Dashboard = {
  name: 'backups',
  title: 'Backups',
  description: 'Configured backups: age, size, integrity, retention and potential data loss.',
  choices: [store('svc_backup_configured'), backup('svc_backup_configured')],
  rows: (queries) => [now(queries), time(queries), runs(queries)],
};
