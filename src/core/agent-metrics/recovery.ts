import { group } from './group.ts';

export const backups = group('backups', ['backup', 'store', 'database', 'backup_type'], {
  svc_backup_configured: ['gauge', 'none', 'Always 1 for each backup of the configuration.'],
  svc_backup_last_success_timestamp_seconds: ['gauge', 'timestamp', 'End of the last backup that succeeded.'],
  svc_backup_last_failure_timestamp_seconds: ['gauge', 'timestamp', 'End of the last backup that failed.'],
  svc_backup_recovery_point_timestamp_seconds: ['gauge', 'timestamp', 'Newest moment that can be restored.'],
  svc_backup_runs_total: ['counter', 'none', 'Backup runs by result.', ['result']],
  svc_backup_failures_total: ['counter', 'none', 'Backup runs that failed.'],
  svc_backup_last_size_bytes: ['gauge', 'bytes', 'Size of the last backup that succeeded.'],
  svc_backup_last_duration_seconds: ['gauge', 'seconds', 'Duration of the last backup that succeeded.'],
  svc_backup_integrity_ok: [
    'gauge',
    'none',
    'Whether the last backup passed its integrity test: 1 or 0.',
    ['level'],
  ],
  svc_backup_offsite_last_success_timestamp_seconds: [
    'gauge',
    'timestamp',
    'When a backup last reached off-site storage.',
  ],
  svc_backup_retention_compliant: [
    'gauge',
    'none',
    'Whether backups are kept as long as asked and no longer: 1 or 0.',
  ],
});

export const recovery = group('recovery', ['store', 'database'], {
  svc_recovery_ready: ['gauge', 'none', 'Whether the recovery objectives are met, by evidence: 1 or 0.'],
  svc_rpo_objective_seconds: ['gauge', 'seconds', 'Recovery point objective.', ['backup_type']],
  svc_rto_objective_seconds: ['gauge', 'seconds', 'Recovery time objective.', ['backup_type']],
  svc_restore_drill_last_success_timestamp_seconds: [
    'gauge',
    'timestamp',
    'When a restore drill last succeeded.',
    ['procedure'],
  ],
  svc_restore_drill_last_duration_seconds: [
    'gauge',
    'seconds',
    'Duration of the last restore drill.',
    ['procedure'],
  ],
});

export const archives = group('archives', ['archive', 'scheme'], {
  svc_archival_up: ['gauge', 'none', 'Whether the archive answered: 1 or 0.'],
  svc_archival_newest_object_timestamp_seconds: [
    'gauge',
    'timestamp',
    'When the newest archived object was written.',
  ],
});
