import type { RuleGroup } from '../alert.ts';

const identity = 'cluster, backup, store, database, backup_type';
/** The newest that any agent knew within three days: a host that dies takes no backup's age with it. */
const newest = (metric: string, matcher = '') =>
  `max by (${identity}) (last_over_time(${metric}${matcher}[3d]))`;
const success = 'svc_backup_last_success_timestamp_seconds';
const failure = newest('svc_backup_last_failure_timestamp_seconds');
const named =
  'Backup {{ $labels.backup }} ({{ $labels.backup_type }}) of {{ $labels.store }}/{{ $labels.database }}';

/** Backups; those of configuration are due on change, so that their age says nothing. */
export const backups: RuleGroup = {
  name: 'svc-backups',
  alerts: [
    {
      name: 'SvcBackupAge',
      severity: 'critical',
      expr: `time() - ${newest(success, '{backup_type!="config"}')} > $threshold`,
      threshold: 90_000,
      summary: 'The last good backup is too old.',
      description: `${named} last succeeded {{ $value | humanizeDuration }} ago, above $threshold s.`,
      dashboard: 'backups',
    },
    {
      name: 'SvcBackupNeverSucceeded',
      severity: 'critical',
      expr: `max by (${identity}) (last_over_time(svc_backup_configured[1h])) == 1 unless ${newest(success)}`,
      for: '25h',
      summary: 'A configured backup has never succeeded.',
      description: `${named} is configured ({{ $value }}) and had no success within 25h.`,
      dashboard: 'backups',
    },
    {
      name: 'SvcBackupFailures',
      severity: 'warning',
      expr: `${failure} > (${newest(success)} or 0 * ${failure})`,
      summary: 'The last run of a backup failed.',
      description: `${named} failed at {{ $value | humanizeTimestamp }} and has not succeeded since.`,
      dashboard: 'backups',
    },
    {
      name: 'SvcBackupIntegrity',
      severity: 'critical',
      expr: `max by (${identity}, level) (svc_backup_integrity_ok) == 0`,
      for: '5m',
      summary: 'The last backup fails its integrity test.',
      description: `${named} fails its integrity test ({{ $labels.level }}): svc_backup_integrity_ok is {{ $value }}.`,
      dashboard: 'backups',
    },
    {
      name: 'SvcBackupOffsiteAge',
      severity: 'warning',
      expr: `time() - ${newest('svc_backup_offsite_last_success_timestamp_seconds', '{backup_type!="config"}')} > $threshold`,
      threshold: 90_000,
      summary: 'The last backup off site is too old.',
      description: `${named} last reached off-site storage {{ $value | humanizeDuration }} ago, above $threshold s.`,
      dashboard: 'backups',
    },
    {
      name: 'SvcBackupRetention',
      severity: 'warning',
      expr: `max by (${identity}) (svc_backup_retention_compliant) == 0`,
      for: '1h',
      summary: 'Backups are not kept as long as asked, or too long.',
      description: `${named} breaks its retention: svc_backup_retention_compliant is {{ $value }}.`,
      dashboard: 'backups',
    },
    {
      name: 'SvcBackupClockSkew',
      severity: 'warning',
      expr: `max by (${identity}) (${success}) - time() > $threshold`,
      threshold: 300,
      for: '5m',
      summary: 'A backup says that it ended in the future.',
      description: `${named} ended {{ $value | humanizeDuration }} from now: a clock is wrong, and its age cannot be trusted.`,
      dashboard: 'backups',
    },
  ],
};
