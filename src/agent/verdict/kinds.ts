import type { Alert } from '../../monitoring/alert.ts';
import { alertsOf, pack } from '../../monitoring/packs.ts';
import type { ProblemSeverity, Undertaking } from '../report.ts';

interface KindRow {
  severity: ProblemSeverity;
  /** The noun and the predicate of a sentence: `role` `frontend` `is|are down`; `is|are` is the singular and the plural. */
  noun: string;
  predicate: string;
  /** The recommended alerts on the same condition. The runbook and the limit are those of the first alert. */
  alerts: readonly Alert['name'][];
  /** The undertakings that should wait until the problem is over. */
  blocks: readonly Undertaking[];
  /** Whether the subject does not work at all: `4 roles are down because of it`. */
  isDown?: true;
}

const every = ['deploy', 'upgrade', 'failback'] as const;
const data = ['upgrade', 'failback'] as const;
const rollout = ['deploy', 'upgrade'] as const;
const nothing = [] as const;

const row = (
  severity: ProblemSeverity,
  noun: string,
  predicate: string,
  alerts: readonly Alert['name'][],
  blocks: readonly Undertaking[],
  more: Pick<KindRow, 'isDown'> = {},
): KindRow => ({ severity, noun, predicate, alerts, blocks, ...more });

/**
 * Every kind of problem, causes before their effects: disk and server, store, role, domain, workflows, then backups and the agent
 * itself. Only a problem of an earlier row explains a problem (`causes.ts`). The limits come from the alerts, so that they are
 * declared once.
 */
const rows = {
  disk_full: row('critical', 'the disk of store', 'is|are almost full', ['SvcStoreDataAtRisk'], every),
  locks: row('warning', 'store', 'keeps|keep sessions waiting', ['SvcStoreLockWaits'], every),
  connections: row('warning', 'store', 'is|are short of connections', ['SvcStoreConnections'], every),
  store_down: row('critical', 'store', 'is|are down', ['SvcStoreDown'], every, { isDown: true }),
  read_only: row('critical', 'store', 'refuses|refuse writes', ['SvcStoreReadOnly'], every),
  schema: row('critical', 'database', 'has|have the wrong schema', ['SvcSchemaMismatch'], every),
  schema_unread: row('warning', 'the schema of database', 'is|are not known', ['SvcSchemaUnknown'], data),
  data_at_risk: row('critical', 'store', 'puts|put data at risk', ['SvcStoreDataAtRisk'], every),
  crash_loop: row(
    'critical',
    'role',
    'crashes|crash again and again',
    ['SvcCrashLooping', 'SvcHighRestartRate'],
    every,
    { isDown: true },
  ),
  heap: row('warning', 'role', 'has|have a large heap', ['SvcHeapMemory'], rollout),
  gc_pause: row('warning', 'role', 'pauses|pause for garbage collection', ['SvcGCPause'], rollout),
  role_down: row(
    'critical',
    'role',
    'is|are down',
    ['SvcRoleUnhealthy', 'SvcServiceDown', 'SvcAllRolesDown'],
    every,
    { isDown: true },
  ),
  fatal: row('critical', 'role', 'logged fatal errors', ['SvcFatalLogEntry'], every),
  role_failing: row('warning', 'role', 'failed a health check', ['SvcHealthFailing'], every),
  scrape_down: row('warning', 'role', 'cannot be scraped', ['SvcMetricsUnread', 'SvcInstanceDown'], every),
  persistence_errors: row(
    'critical',
    'role',
    'has|have persistence errors',
    ['SvcPersistenceErrorRate', 'SvcPersistenceErrorRatio'],
    every,
  ),
  persistence_latency: row('warning', 'store calls of role', 'are slow', ['SvcPersistenceLatency'], every),
  shard_movement: row('warning', 'shards of role', 'keep moving', ['SvcShardMovement'], rollout),
  task_latency: row('warning', 'the task queue', 'is|are late', ['SvcHistoryTaskLatency'], every),
  request_errors: row('warning', 'requests from', 'fail', ['SvcRequestErrors'], every),
  frontend_latency: row('warning', 'the frontend', 'answers slowly', ['SvcFrontendLatency'], every),
  cluster_down: row('critical', 'cluster', 'is|are unreachable', ['SvcClusterUnreachable'], data, {
    isDown: true,
  }),
  replication_failures: row(
    'warning',
    'replication',
    'has|have failing tasks',
    ['SvcReplicationTaskFailures'],
    data,
  ),
  replication_lag: row('critical', 'replication', 'lags|lag behind', ['SvcReplicationLag'], data),
  replication: row('warning', 'replication', 'cannot be read', ['SvcReplicationLagUnknown'], ['failback']),
  disagreement: row('critical', 'domain', 'differs|differ between clusters', ['SvcDomainDisagreement'], data),
  domain: row('warning', 'domain', 'cannot be read', ['SvcProbeStale'], ['failback'], { isDown: true }),
  failover: row('warning', 'domain', 'cannot fail over', ['SvcDomainTooFewClusters'], data),
  list_unpolled: row(
    'critical',
    'task list',
    'has|have tasks but no poller',
    ['SvcTaskListUnpolled', 'SvcTaskListAbandoned'],
    rollout,
  ),
  list_stalled: row('critical', 'task list', 'is|are stalled', ['SvcTaskListStalled'], rollout),
  backlog_growth: row(
    'warning',
    'the backlog of task list',
    'grows|grow fast',
    ['SvcTaskListBacklogGrowth'],
    rollout,
  ),
  workflow_timeouts: row(
    'warning',
    'workflows of domain',
    'time out',
    ['SvcWorkflowTimeouts', 'SvcWorkflowTimeoutShare'],
    rollout,
  ),
  workflow_failures: row('warning', 'workflows of domain', 'fail', ['SvcWorkflowFailures'], rollout),
  canary: row(
    'critical',
    'the canary in domain',
    'completes|complete no workflow',
    ['SvcCanaryFailing'],
    every,
  ),
  wal_stalled: row(
    'critical',
    'store',
    'does|do not archive its|their log',
    ['SvcWalArchivingStalled'],
    data,
  ),
  archive_down: row('warning', 'archive', 'cannot be used', ['SvcArchiveDown'], nothing, { isDown: true }),
  archival_stalled: row('warning', 'archive', 'receives|receive nothing', ['SvcArchivalStalled'], nothing),
  retention_unarchived: row(
    'critical',
    'archive',
    'has|have received nothing for longer than the retention',
    ['SvcRetentionBeforeArchive'],
    nothing,
  ),
  backup_failed: row('warning', 'backup', 'failed', ['SvcBackupFailures'], data),
  backup_missing: row('critical', 'backup', 'has|have never succeeded', ['SvcBackupNeverSucceeded'], data),
  backup_gone: row('critical', 'the directory of backup', 'is|are gone', ['SvcBackupAge'], data),
  backup_unread: row('warning', 'backup', 'cannot be read', ['SvcBackupFailures'], data),
  backup_late: row('critical', 'backup', 'is|are late', ['SvcBackupAge'], data),
  backup_damaged: row('critical', 'backup', 'is|are damaged', ['SvcBackupIntegrity'], data),
  backup_skew: row('warning', 'backup', 'ended in the future', ['SvcBackupClockSkew'], data),
  backup_offsite: row('warning', 'backup', 'has|have no off-site copy', ['SvcBackupOffsiteAge'], nothing),
  backup_retention: row(
    'warning',
    'backup',
    'breaks|break its|their retention',
    ['SvcBackupRetention'],
    nothing,
  ),
  recovery_weak: row('warning', 'store', 'lacks|lack what recovery needs', ['SvcStoreRecoveryWeak'], nothing),
  recovery: row(
    'critical',
    'database',
    'cannot be recovered within its|their objectives',
    ['SvcRecoveryObjectiveMissed', 'SvcRecoveryUnknown'],
    data,
  ),
  not_proven: row(
    'warning',
    'database',
    'is|are not proven to be recoverable',
    ['SvcRecoveryNotProven'],
    data,
  ),
  certificate: row(
    'warning',
    'the certificate of',
    'expires|expire soon',
    ['SvcCertificateExpiring'],
    nothing,
  ),
  flapping: row('warning', 'target', 'is|are flapping', ['SvcHealthFailing'], every),
  stale: row('warning', 'probe', 'has|have no new result|results', ['SvcProbeStale'], every),
  log_unread: row('warning', 'log file', 'is|are not read', ['SvcLogFault', 'SvcLogSilent'], nothing),
  log_deleted: row(
    'warning',
    'log file',
    'is|are deleted, but still written to',
    ['SvcLogFault', 'SvcLogSilent'],
    nothing,
  ),
  log_disk_full: row('warning', 'log file', 'cannot be written', ['SvcLogFault', 'SvcLogSilent'], nothing),
  log_gone: row('warning', 'log file', 'is|are gone', ['SvcLogFault', 'SvcLogSilent'], nothing),
  log_silent: row('warning', 'the log of role', 'does|do not grow', ['SvcLogSilent'], nothing),
  log_lag: row('warning', 'log file', 'is|are read late', ['SvcLogLag'], nothing),
  log_lost: row('warning', 'log lines of role', 'were lost', ['SvcLogBytesLost'], nothing),
  dropping: row('warning', 'data of', 'is dropped by the agent', ['SvcAgentDropping'], nothing),
  refused: row('warning', 'series of family', 'are refused', ['SvcAgentDropping'], nothing),
  state: row('warning', 'the state', 'cannot be written', ['SvcAgentStateDegraded'], nothing),
  reload: row('warning', 'the new configuration', 'was refused', ['SvcAgentReloadFailed'], nothing),
  report: row('warning', 'reporter', 'cannot deliver', ['SvcAgentReportFailing'], nothing),
} as const satisfies Readonly<Record<string, KindRow>>;
export type KindOfProblem = keyof typeof rows;

/** Problems of a role's process: its metrics, or more, are not available. */
export const processFaults = ['crash_loop', 'role_down', 'fatal', 'role_failing', 'scrape_down'] as const;
/** Problems during which the log of a role says nothing. */
export const logFaults = ['log_unread', 'log_deleted', 'log_disk_full', 'log_gone', 'log_silent'] as const;

export const kinds: Readonly<Record<KindOfProblem, KindRow>> = rows;
export const kindNames = Object.keys(rows) as readonly KindOfProblem[];

/** Words in the singular or the plural: `is|are down`. */
export const inNumber = (words: string, isPlural: boolean): string =>
  words.replace(/(\w+)\|(\w+)/g, isPlural ? '$2' : '$1');

/** The predicate of a kind when the problem is over: `store` `main` `recovered`. */
export const overPredicates: Readonly<Record<KindOfProblem, string>> = {
  disk_full: 'has space again',
  locks: 'no longer keeps sessions waiting',
  connections: 'has free connections again',
  store_down: 'recovered',
  read_only: 'accepts writes again',
  schema: 'has the right schema again',
  schema_unread: 'is known again',
  data_at_risk: 'no longer puts data at risk',
  persistence_latency: 'are fast again',
  crash_loop: 'no longer crashes',
  heap: 'has a smaller heap again',
  gc_pause: 'no longer pauses for garbage collection',
  role_down: 'recovered',
  fatal: 'logs no more fatal errors',
  role_failing: 'passes its health check again',
  scrape_down: 'can be scraped again',
  persistence_errors: 'has no more persistence errors',
  shard_movement: 'have settled',
  task_latency: 'is on time again',
  request_errors: 'succeed again',
  frontend_latency: 'answers fast again',
  cluster_down: 'recovered',
  replication_failures: 'has no more failing tasks',
  replication_lag: 'caught up',
  replication: 'can be read again',
  disagreement: 'is the same in all clusters again',
  domain: 'can be read again',
  failover: 'can fail over again',
  list_unpolled: 'is polled again',
  list_stalled: 'moves again',
  backlog_growth: 'no longer grows fast',
  workflow_timeouts: 'no longer time out',
  workflow_failures: 'no longer fail',
  canary: 'completes workflows again',
  wal_stalled: 'archives its log again',
  archive_down: 'can be used again',
  archival_stalled: 'receives objects again',
  retention_unarchived: 'receives objects again',
  backup_failed: 'succeeded again',
  backup_missing: 'succeeded for the first time',
  backup_gone: 'is there again',
  backup_unread: 'can be read again',
  backup_late: 'is on time again',
  backup_damaged: 'is intact again',
  backup_skew: 'no longer ends in the future',
  backup_offsite: 'has an off-site copy again',
  backup_retention: 'keeps its retention again',
  recovery_weak: 'has what recovery needs again',
  recovery: 'can be recovered within its objectives again',
  not_proven: 'is proven to be recoverable',
  certificate: 'was renewed',
  flapping: 'is stable again',
  stale: 'has new results again',
  log_unread: 'is read again',
  log_deleted: 'is in place again',
  log_disk_full: 'can be written again',
  log_gone: 'is there again',
  log_silent: 'grows again',
  log_lag: 'is read in time again',
  log_lost: 'are no longer lost',
  dropping: 'is no longer dropped',
  refused: 'are taken again',
  state: 'can be written again',
  reload: 'was replaced by a valid one',
  report: 'delivers again',
};

const places = new Map<string, number>(kindNames.map((kind, place) => [kind, place]));
/** The position of a kind in the table: a cause comes before its effects. */
export const placeOf = (kind: KindOfProblem): number => places.get(kind)!;
export const isKind = (text: string): text is KindOfProblem => places.has(text);

/** Recommended alerts without a kind of problem, and the reason. A test compares this and the table with the rules. */
export const unjudged: Readonly<Record<string, string>> = {
  SvcServiceRecovering: 'explains other alerts; it is no condition of its own',
  SvcAllRolesRecovering: 'explains other alerts; it is no condition of its own',
  SvcAgentsRecovering: 'explains other alerts; it is no condition of its own',
  SvcRoleRecovering: 'explains other alerts; it is no condition of its own',
  SvcStoreRecovering: 'explains other alerts; it is no condition of its own',
  SvcClusterRecovering: 'explains other alerts; it is no condition of its own',
  SvcMaintenance: 'planned work is no problem; the verdict says that it is under way',
  SvcRoleUnwatched: 'an agent that is down has no verdict',
  SvcAgentDown: 'an agent that is down has no verdict',
  SvcTargetsVanished: 'only Prometheus knows its targets',
  SvcRoleAbsent: 'only Prometheus knows its targets',
  SvcTaskListBacklogNotFalling: 'compares two hours; an agent keeps the values of a quarter of an hour',
  SvcDomainFailover:
    'a failover is a change, which the verdict lists beside the problems that began after it',
  SvcRoleReporterErrors:
    'a defect of the role that is there in health, too; svc_telemetry_truth_ratio says how much it hides',
  SvcIncident: 'is the verdict itself, as a source of inhibitions',
  SvcRoleExplained: 'is the verdict itself, as a source of inhibitions',
  SvcArchivalNeverWritten:
    'looks at what closed eight days ago; an agent keeps the values of a quarter of an hour',
  SvcArchivalOff: 'a change of a domain that its owner made',
};

const alerts = new Map<string, Alert>(alertsOf(pack('recommended')).map((alert) => [alert.name, alert]));

/** The recommended alert of this name. */
export function alertNamed(name: Alert['name']): Alert {
  return alerts.get(name)!;
}

export const limitOf = (name: Alert['name']): number => alertNamed(name).threshold!;

/** First steps for reasons that name the cause themselves, whatever could not be reached. */
const byReason: Readonly<Record<string, string>> = {
  tls: 'Check the keys tls of the configuration, and what the server offers: openssl s_client -connect HOST:PORT.',
  tls_expired: 'Renew the certificate on the server, and check that the server loaded it.',
  tls_hostname: 'Use a name of the certificate as the address, or set tls.serverName.',
  tls_untrusted:
    'Set tls.caFile to the certificate of the authority that signed the certificate of the server.',
  credentials:
    'Set auth of this target in the configuration to what the server asks for, and check that its secret can be read.',
  content_type: 'Check the address in the configuration, and what answers there.',
  redirect: 'Check the address in the configuration, and what answers there.',
  resolve: 'Check the name in the configuration, and the name resolution of this host.',
};

/** First steps for a backup that cannot be read, or whose directory is gone. */
const ofBackups: Readonly<Record<string, string>> = {
  directory_gone: 'Mount the file system of the backups, or correct the directory in source.',
  evidence_unreadable:
    'Let the agent’s user read the backup: check the rights of its files and of each directory above them, its file system, or its tool’s command.',
  too_slow: 'Raise the interval of the backup: a check has as long as that, and 30 s at most.',
  failed: 'Run svc-agent probe with the name of the probe.',
};

/** First steps for a store that answers, but not to the agent. */
const ofStores: Readonly<Record<string, string>> = {
  credentials:
    'Check user and password of the store in the configuration, that the secret can be read, and that the server accepts them.',
  denied:
    'Read the message of the store: grant the account of the agent what svc-agent probe --print-grants prints, or raise the limit of connections of the account.',
  database_missing:
    'Check the name in stores[].databases, and whether the database was renamed or dropped. If it is lost, restore it.',
  too_many_connections:
    'Find who keeps connections open; lower the maxConns of the service, or raise the limit of the store.',
};

const byProbe: Readonly<Record<string, Readonly<Record<string, string>>>> = {
  backup: ofBackups,
  store: ofStores,
};

/** The first steps for the reason of a failure of a probe of this kind; undefined if the steps of the kind of problem fit. */
export const firstStepsFor = (reason = '', probe?: string): string | undefined =>
  byProbe[probe ?? '']?.[reason] ?? byReason[reason];
