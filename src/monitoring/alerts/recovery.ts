import {
  type StoreCheck,
  type StoreCheckSeverity,
  storeCheckNeededBy,
  storeChecksOf,
} from '../../core/check-severity.ts';
import { type BackupType, backupTypes } from '../../core/reasons.ts';
import { alertGroup, recovering } from '../alert.ts';
import { type Names, site, withStore } from '../names.ts';

const backup = `${site}, backup, store, database, backup_type`;
/**
 * The highest value that several agents report about one backup. Every node of a wide-column store has its own backups, which
 * have the same name: the backups of one node do not hide that another node has none.
 */
function ofBackups({ m }: Names, by: string, series: string): string {
  const nodes = `max by (${site}, store) (last_over_time(${m('svc_store_up')}{kind="widecolumn"}[1h]))`;
  return [
    `(max by (${by}) (${series} unless on (${site}, store) ${nodes})`,
    `or max by (${by}, instance) (${series} and on (${site}, store) ${nodes}))`,
  ].join('\n');
}

/** The newest value within three days: the age of a backup outlives the host whose agent reported it. */
const newest = (names: Names, series: string): string =>
  ofBackups(names, backup, `last_over_time(${series}[3d])`);
const success = 'svc_backup_last_success_timestamp_seconds';
const onNode = '{{ with $labels.instance }} on {{ . }}{{ end }}';
const ofDatabase = '{{ $labels.store }}{{ with $labels.database }}/{{ . }}{{ end }}';
const backupName = `Backup {{ $labels.backup }} ({{ $labels.backup_type }}) of ${ofDatabase}${onNode}`;

/** The alerts on backups. Backups of the configuration are due when it changes, so their age means nothing. */
export const backups = alertGroup({
  name: 'svc-backups',
  dashboard: 'backups',
  alerts: [
    {
      name: 'SvcBackupFailures',
      severity: 'warning',
      expr: (names) => {
        const failure = newest(names, names.m('svc_backup_last_failure_timestamp_seconds'));
        return `${failure}\n> (${newest(names, names.m(success))} or 0 * ${failure})`;
      },
      summary: `${backupName} failed or was missed.`,
      description: `${backupName} failed or was missed at {{ $value | humanizeTimestamp }} and has not succeeded since.`,
      firstSteps:
        'Check whether the job ran, and read its output; check space and credentials; run the job again.',
    },
    {
      name: 'SvcBackupAge',
      severity: 'critical',
      expr: (names, threshold) =>
        `time() - ${newest(names, `${names.m(success)}{backup_type!="config"}`)} > ${threshold}`,
      threshold: 90_000,
      unit: 'seconds',
      summary: `${backupName} is too old.`,
      description: `${backupName} last succeeded {{ $value | humanizeDuration }} ago, above $threshold.`,
      firstSteps: 'Check whether the job ran and what it printed; run it now.',
    },
    {
      name: 'SvcBackupNeverSucceeded',
      severity: 'critical',
      expr: (names) =>
        [
          `${ofBackups(names, backup, `last_over_time(${names.m('svc_backup_configured')}[1h])`)} == 1`,
          `unless ${newest(names, names.m(success))}`,
        ].join('\n'),
      for: '25h',
      summary: `${backupName} has never succeeded.`,
      description: `${backupName} is configured (svc_backup_configured is {{ $value }}) and had no success within 25h.`,
      firstSteps: 'Check whether the job is scheduled and reports to the agent; run it once by hand.',
    },
    {
      name: 'SvcBackupIntegrity',
      severity: 'critical',
      isState: true,
      expr: (names) => `${ofBackups(names, `${backup}, level`, names.m('svc_backup_integrity_ok'))} == 0`,
      for: '5m',
      summary: `${backupName} fails its integrity test.`,
      description: `${backupName} fails its integrity test at level {{ $labels.level }}: svc_backup_integrity_ok is {{ $value }}.`,
      firstSteps:
        'Treat the backup as lost: take a new one now, keep the older ones, check the disk and the transfer.',
    },
    {
      name: 'SvcBackupOffsiteAge',
      severity: 'warning',
      expr: (names, threshold) =>
        `time() - ${newest(names, `${names.m('svc_backup_offsite_last_success_timestamp_seconds')}{backup_type!="config"}`)} > ${threshold}`,
      threshold: 90_000,
      unit: 'seconds',
      summary: `The off-site copy of backup {{ $labels.backup }} of ${ofDatabase}${onNode} is too old.`,
      description: `${backupName} last reached off-site storage {{ $value | humanizeDuration }} ago, above $threshold.`,
      firstSteps: 'Check the upload: credentials, space and the network to the off-site storage.',
    },
    {
      name: 'SvcBackupRetention',
      severity: 'warning',
      isState: true,
      expr: (names) => `${ofBackups(names, backup, names.m('svc_backup_retention_compliant'))} == 0`,
      for: '1h',
      summary: `The retention of backup {{ $labels.backup }} of ${ofDatabase}${onNode} is not met.`,
      description: `${backupName} is kept for a shorter or longer time than configured: svc_backup_retention_compliant is {{ $value }}.`,
      firstSteps: 'List what is stored, oldest first; check the job that deletes old backups.',
    },
    {
      name: 'SvcBackupClockSkew',
      severity: 'warning',
      isState: true,
      expr: (names, threshold) => `${ofBackups(names, backup, names.m(success))} - time() > ${threshold}`,
      threshold: 300,
      unit: 'seconds',
      for: '5m',
      summary: `${backupName} ended in the future.`,
      description: `${backupName} ended {{ $value | humanizeDuration }} from now, above $threshold: a clock is wrong, and its age cannot be trusted.`,
      firstSteps: 'Compare the clocks of the backup host, of the agent and of Prometheus.',
    },
  ],
});

const store = `${site}, store, kind, database`;
const storeName = '{{ $labels.kind }} store {{ $labels.store }}/{{ $labels.database }}';

/** Checks that have their own alert. */
const ownAlert: ReadonlySet<string> = new Set(['schema', 'connections', 'lock_waits', 'uptime']);

const neededBy: Readonly<Partial<Record<StoreCheck, BackupType>>> = storeCheckNeededBy;

/** Failing checks of one severity. Checks that only one type of backup needs count only if the store has such a backup. */
function failing({ m }: Names, severity: StoreCheckSeverity): string {
  const checks = storeChecksOf(severity).filter((check) => !ownAlert.has(check));
  const failed = (needed?: BackupType) => {
    const wanted = checks.filter((check) => neededBy[check] === needed);
    const matcher = `check${wanted.length === 1 ? '=' : '=~'}"${wanted.join('|')}"`;
    return wanted.length > 0 && `max by (${store}, check) (${m('svc_store_check_ok')}{${matcher}}) == 0`;
  };
  const configured = (type: BackupType) =>
    `max by (${site}, store) (last_over_time(${m('svc_backup_configured')}{backup_type="${type}"}[1h]))`;
  const withBackups = backupTypes
    .filter((type) => failed(type))
    .map((type) => `(${failed(type)}) and on (${site}, store) ${configured(type)}`);
  return [failed(), ...withBackups].join('\nor ');
}

/** The alerts on stores, and on whether their data could be restored. */
export const stores = alertGroup({
  name: 'svc-stores',
  dashboard: 'persistence',
  alerts: [
    {
      name: 'SvcStoreDown',
      severity: 'critical',
      isState: true,
      // The last value from an agent that is down itself is valid for an hour, unless another agent sees the store: the end of
      // the agent is not the end of the outage.
      expr: ({ m, job }) => {
        const up = m('svc_store_up');
        const lastWord = `last_over_time(${up}[1h]) and on (${site}, instance) up{${job('svc-agent')}} == 0`;
        return [
          `max by (${store}) (${up}) == 0`,
          `or (max by (${store}) (${lastWord}) == 0 unless max by (${store}) (${up}))`,
        ].join('\n');
      },
      for: '2m',
      summary: `No agent can connect to the ${storeName}.`,
      description: `No agent can connect to the ${storeName}, or none could when it was last seen: svc_store_up is {{ $value }}.`,
      firstSteps:
        'See svc_store_failures_total for the reason. refused or unreachable: check the server; credentials: check the account of the agent.',
    },
    ...recovering({
      name: 'SvcStoreRecovering',
      of: 'SvcStoreDown',
      by: store,
      subject: `The ${storeName}`,
      windows: ['5m', '30m'],
    }),
    {
      name: 'SvcSchemaMismatch',
      severity: 'critical',
      isState: true,
      expr: ({ m }) => `max by (${store}) (${m('svc_store_schema_compatible')}) == 0`,
      for: '5m',
      summary: `The schema of the ${storeName} does not match.`,
      description: `The schema of the ${storeName} is not compatible with the configured version: svc_store_schema_compatible is {{ $value }}.`,
      firstSteps:
        'Compare svc_store_schema_version_info with the version of the service; after a restore, run the schema migration.',
    },
    {
      name: 'SvcSchemaUnknown',
      severity: 'warning',
      isState: true,
      // The verdict ends together with the expectation. Another agent may have the rights to read the version.
      expr: ({ m }) => {
        const unread = withStore(
          `group by (${site}, subject) (${m('svc_incident')}{cause="schema_unread"} == 1)`,
        );
        return [
          `(max by (${store}) (${m('svc_store_up')}) == 1)`,
          `* on (${site}, store, database) group_left () ${unread}`,
          `unless group by (${store}) (${m('svc_store_schema_compatible')})`,
        ].join('\n');
      },
      for: '15m',
      summary: `The schema of the ${storeName} is not known.`,
      description: `The ${storeName} answers (svc_store_up is {{ $value }}), but no agent can read the version of its schema, although the configuration expects one.`,
      firstSteps:
        'Run svc-agent probe store --json on the host of the agent: it says why. Run the statements of svc-agent probe --print-grants that are missing.',
    },
    {
      name: 'SvcStoreReadOnly',
      severity: 'critical',
      isState: true,
      expr: ({ m }) => `max by (${store}) (${m('svc_store_read_only')}) == 1`,
      for: '2m',
      summary: `The ${storeName} refuses writes.`,
      description: `The ${storeName} refuses writes: svc_store_read_only is {{ $value }}.`,
      firstSteps:
        'Check whether the address leads to a standby, whether the disk is full, and which setting refuses writes: default_transaction_read_only of the server or of the database (PostgreSQL), read_only (MySQL).',
    },
    {
      name: 'SvcStoreConnections',
      severity: 'warning',
      isState: true,
      expr: ({ m }, threshold) =>
        [
          `sum by (${store}) (max by (${store}, state) (${m('svc_store_connections')}))`,
          `/ max by (${store}) (${m('svc_store_connections_max')}) > ${threshold}`,
        ].join('\n'),
      threshold: 0.9,
      unit: 'share',
      for: '5m',
      summary: `The ${storeName} is running out of connections.`,
      description: `{{ $value | humanizePercentage }} of the connections of the ${storeName} are in use, above $threshold.`,
      firstSteps:
        'Check in which states the connections are; lower the pools of the roles or raise the limit.',
    },
    {
      name: 'SvcStoreLockWaits',
      severity: 'warning',
      isState: true,
      expr: ({ m }) => `max by (${store}) (${m('svc_store_check_ok')}{check="lock_waits"}) == 0`,
      for: '2m',
      summary: `Sessions of the ${storeName} wait for a lock.`,
      description: `A session of the ${storeName} holds a lock for which others wait: svc_store_check_ok is {{ $value }} for the check lock_waits. Requests of the roles can time out.`,
      firstSteps:
        'Run svc-agent probe store on the host of the cluster’s agent: it names the session. Find out what it does before you end it.',
    },
    {
      name: 'SvcStoreDataAtRisk',
      severity: 'critical',
      isState: true,
      expr: (names) => failing(names, 'data_at_risk'),
      for: '15m',
      summary: `Data of the ${storeName} is at risk: check {{ $labels.check }} fails.`,
      description: `Check {{ $labels.check }} of the ${storeName} fails: svc_store_check_ok is {{ $value }}. Data that is stored now may be damaged or lost.`,
      firstSteps:
        'Run svc-agent probe on the host of the cluster’s agent: it prints what it found and what to do.',
      dashboard: 'dr',
    },
    {
      name: 'SvcStoreRecoveryWeak',
      severity: 'warning',
      isState: true,
      expr: (names) => failing(names, 'recovery_weak'),
      for: '15m',
      summary: `Recovery of the ${storeName} is weaker than planned: check {{ $labels.check }} fails.`,
      description: `Check {{ $labels.check }} of the ${storeName} fails: svc_store_check_ok is {{ $value }}. A restore could lose more data than the configured backups allow.`,
      firstSteps:
        'Run svc-agent probe: it prints which setting to change. If the setting is intended, list the check under stores[].accept with the reason.',
      dashboard: 'dr',
    },
    {
      name: 'SvcWalArchivingStalled',
      severity: 'critical',
      isState: true,
      expr: ({ m }, threshold) =>
        `time() - max by (${store}) (${m('svc_store_wal_oldest_unarchived_timestamp_seconds')}) > ${threshold}`,
      threshold: 300,
      unit: 'seconds',
      for: '1m',
      summary: `The ${storeName} does not archive its log segments.`,
      description: `The oldest closed log segment of the ${storeName} has waited {{ $value | humanizeDuration }} for archiving, above $threshold.`,
      firstSteps:
        'Read the log of the server for archive failures; check the archive command, its credentials and the space.',
      dashboard: 'dr',
    },
    {
      name: 'SvcRecoveryObjectiveMissed',
      severity: 'critical',
      isState: true,
      expr: (names) => `${ofBackups(names, `${site}, store, database`, names.m('svc_recovery_ready'))} == 0`,
      for: '5m',
      summary: `${ofDatabase}${onNode} does not meet its recovery objectives.`,
      description: `By its backups, archived logs and restore drills, ${ofDatabase}${onNode} could not be restored within its objectives, or nothing shows that it could: svc_recovery_ready is {{ $value }}.`,
      firstSteps:
        'Run svc-agent probe recovery: it prints what is missing, and what would make the recovery point known.',
      dashboard: 'dr',
    },
    {
      name: 'SvcRecoveryUnknown',
      severity: 'critical',
      expr: (names) => {
        const { m } = names;
        const known = ofBackups(names, `${site}, store`, m('svc_recovery_ready'));
        const configured = `last_over_time(${m('svc_backup_configured')}{backup_type!="config"}[1h])`;
        return `${ofBackups(names, `${site}, store`, configured)} == 1\nunless ${known}`;
      },
      for: '15m',
      summary: `Nothing shows whether {{ $labels.store }}${onNode} could be recovered.`,
      description: `Store {{ $labels.store }}${onNode} has configured backups (svc_backup_configured is {{ $value }}) and no svc_recovery_ready.`,
      firstSteps:
        'Check whether the agent that observes the backups runs; run svc-agent probe backup recovery on its host.',
      dashboard: 'dr',
    },
    {
      name: 'SvcRecoveryNotProven',
      severity: 'warning',
      isState: true,
      // A rehearsal that no agent reports any more is missing.
      expr: ({ m }) => {
        const proven = `max by (${site}, store, database) (${m('svc_recovery_proven')})`;
        const before = `max by (${site}, store, database) (last_over_time(${m('svc_recovery_proven')}[3d]))`;
        return [`${proven} == 0`, `or 0 * (${before} unless ${proven})`].join('\n');
      },
      for: '15m',
      summary: 'The recovery of {{ $labels.store }}/{{ $labels.database }} is not proven.',
      description:
        'No rehearsal of the last two intervals restored {{ $labels.store }}/{{ $labels.database }} from its backups within the objectives, or no agent reports one any more: svc_recovery_proven is {{ $value }}.',
      firstSteps:
        'Run svc-agent probe rehearsal on the host of the agent: it says what failed. Treat a backup that cannot be restored as lost.',
      dashboard: 'dr',
    },
  ],
});
