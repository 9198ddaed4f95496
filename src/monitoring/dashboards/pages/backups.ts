import { at } from '../alerts.ts';
import { backup, store } from '../choices.ts';
import { age, grownOnce, highest, lastKnown, moment, rateOnce } from '../expr.ts';
import type { Dashboard, Row } from '../model.ts';
import { column, table, timeline, timeseries } from '../panels.ts';

const identity = 'backup, store, database, backup_type';
const point = 'store, database, backup_type';
const success = 'svc_backup_last_success_timestamp_seconds';
const offsite = 'svc_backup_offsite_last_success_timestamp_seconds';
const timed = '{backup_type!="config"}';

const now: Row = {
  title: 'Backups now',
  panels: [
    table(
      'Backups',
      'Every configured backup. A row without a last success has had none in the shown range.',
      { cluster: 'Cluster', backup: 'Backup', store: 'Store', database: 'Database', backup_type: 'Type' },
      [
        column('Configured', 'count', lastKnown('svc_backup_configured', identity), { state: 'yes' }),
        column('Last success', 'ago', moment(success, identity)),
        column('Age', 'duration', age(`${success}${timed}`, identity), { limits: at('SvcBackupAge') }),
        column('Last failure', 'ago', moment('svc_backup_last_failure_timestamp_seconds', identity)),
        column('Restorable to', 'ago', moment('svc_backup_recovery_point_timestamp_seconds', identity)),
        column('Off site', 'ago', moment(offsite, identity)),
        column('Size', 'bytes', lastKnown('svc_backup_last_size_bytes', identity)),
        column('Took', 'duration', lastKnown('svc_backup_last_duration_seconds', identity)),
        column('Retention', 'count', lastKnown('svc_backup_retention_compliant', identity), { state: 'ok' }),
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
};

const time: Row = {
  title: 'Ages',
  panels: [
    timeseries(
      'Since the last success',
      'Those of configuration are due on change, and left out.',
      'duration',
      age(`${success}${timed}`, identity),
      { limits: at('SvcBackupAge') },
    ),
    timeseries(
      'Since the last copy off site',
      'How old the newest backup is that a lost site leaves behind.',
      'duration',
      age(`${offsite}${timed}`, identity),
      { limits: at('SvcBackupOffsiteAge') },
    ),
    timeseries(
      'What would be lost now',
      'Seconds since the newest moment that can be restored, and how many may be lost by the objective.',
      'duration',
      [
        { name: 'lost', expr: age('svc_backup_recovery_point_timestamp_seconds', point) },
        { name: 'objective', expr: highest('svc_rpo_objective_seconds', point) },
      ],
      { runbooks: ['SvcRecoveryObjectiveMissed'] },
    ),
  ],
};

const runs: Row = {
  title: 'Runs',
  panels: [
    timeseries(
      'Runs by result',
      'How many runs ended, and how.',
      'perSecond',
      rateOnce('svc_backup_runs_total', 'backup, result'),
      { runbooks: ['SvcBackupFailures'] },
    ),
    timeseries(
      'Size',
      'Size of the last backup that succeeded. A sudden fall: something is left out.',
      'bytes',
      lastKnown('svc_backup_last_size_bytes', identity),
    ),
    timeseries(
      'Duration',
      'Duration of the last backup that succeeded.',
      'duration',
      lastKnown('svc_backup_last_duration_seconds', identity),
    ),
    timeline(
      'Integrity',
      'Whether the last backup passed its test, by level of the test.',
      'ok',
      highest('svc_backup_integrity_ok', 'backup, database, level'),
      { runbooks: ['SvcBackupIntegrity'] },
    ),
    timeline(
      'Retention',
      'Whether backups are kept as long as asked and no longer.',
      'ok',
      highest('svc_backup_retention_compliant', 'backup, database'),
      { runbooks: ['SvcBackupRetention'] },
    ),
  ],
};

export const backups: Dashboard = {
  name: 'backups',
  title: 'Backups',
  description:
    'Every configured backup: how old, how large, whether it was tested, and what would be lost now.',
  choices: [store('svc_backup_configured'), backup('svc_backup_configured')],
  rows: [now, time, runs],
};
