import { storeCheckSeverities, storeChecks, storeChecksOf } from './check-severity.ts';

/**
 * Every closed list of the agent: label values that dashboards and alerts may rely on. A value outside of its list does not
 * compile. `svc-agent schema --reasons` prints this table.
 */

/** Why a log line was dropped. */
export const lineDropReasons = ['invalid_json', 'not_object', 'not_console', 'too_long'] as const;
export type LineDropReason = (typeof lineDropReasons)[number];

/** Why bytes of a log file were skipped, or were gone before they were read. */
export const skipReasons = ['start_at_end', 'truncated', 'vanished', 'nul_hole', 'unreadable'] as const;
export type SkipReason = (typeof skipReasons)[number];

/** Why a file that a log pattern matches is not read. */
const passedOverReasons = ['compressed'] as const;
export type PassedOverReason = (typeof passedOverReasons)[number];

/** Why a series, or a part of one, was refused by the registry. */
const refusalReasons = [
  'limit_metric',
  'limit_total',
  'limit_memory',
  'kind_conflict',
  'suffix_taken',
  'reserved_name',
  'duplicate_source',
  'not_additive',
  'unequal_buckets',
  'tag_collision',
] as const;
export type RefusalReason = (typeof refusalReasons)[number];

/** Why a scrape failed; `svc_agent_dropped_total` folds most of them into `failed`. */
const scrapeFailureReasons = [
  'resolve',
  'refused',
  'unreachable',
  'reset',
  'tls',
  'credentials',
  'too_slow',
  'status',
  'redirect',
  'content_type',
  'content_encoding',
  'cut_off',
  'invalid_body',
  'too_large',
  'too_many_samples',
  'label_too_long',
  'own_endpoint',
  'failed',
] as const;
export type ScrapeFailureReason = (typeof scrapeFailureReasons)[number];

/** Why a push failed; labels `svc_agent_report_failures_total`. */
export const pushFailureReasons = [
  'no_view',
  'resolve',
  'refused',
  'too_large',
  'no_buffers',
  'unreachable',
  'failed',
] as const;
export type PushFailureReason = (typeof pushFailureReasons)[number];

/** Why a batch did not reach the hosted platform, or could not be queued; labels `svc_agent_report_failures_total`. */
export const hostedFailureReasons = [
  'no_view',
  'queue_disk',
  'resolve',
  'refused',
  'unreachable',
  'reset',
  'tls',
  'credentials',
  'too_slow',
  'redirect',
  'throttled',
  'server_error',
  'too_large',
  'rejected',
  'failed',
] as const;
export type HostedFailureReason = (typeof hostedFailureReasons)[number];

/** What a probe checks; the first part of its name. */
const probeKinds = [
  'health',
  'store',
  'cluster',
  'domain',
  'replication',
  'archive',
  'backup',
  'recovery',
  'rehearsal',
] as const;
export type ProbeKind = (typeof probeKinds)[number];

/** Why a connection of a probe failed, whatever its protocol. */
const connectionFailures = [
  'resolve',
  'refused',
  'unreachable',
  'reset',
  'connect_timeout',
  'tls',
  'tls_expired',
  'tls_untrusted',
  'tls_hostname',
  'too_slow',
  'credentials',
  'failed',
] as const;

/** Why a role's health check failed; labels `svc_role_health_failures_total`. */
export const healthFailureReasons = [
  ...connectionFailures,
  'first_byte_timeout',
  'body_timeout',
  'too_large',
  'http_status',
  'invalid_answer',
  'unimplemented',
  'not_ok',
  'not_in_ring',
  'persistence',
  'warming_up',
  'shutting_down',
] as const;
export type HealthFailureReason = (typeof healthFailureReasons)[number];

/** Why a store probe failed; labels `svc_store_failures_total`. */
export const storeFailureReasons = [
  ...connectionFailures,
  'protocol',
  'too_many_connections',
  'denied',
  'database_missing',
  'query_failed',
  'starting',
  'shutting_down',
] as const;
export type StoreFailureReason = (typeof storeFailureReasons)[number];

/** Why a command that a probe runs failed. */
export const commandFailureReasons = [
  'command_missing',
  'command_failed',
  'too_slow',
  'too_large',
  'invalid_answer',
] as const;
export type CommandFailureReason = (typeof commandFailureReasons)[number];

/** Why an archive cannot be used. */
export const archiveFailureReasons = [
  ...connectionFailures,
  'not_found',
  'denied',
  'not_writable',
  'no_space',
  'http_status',
  'invalid_answer',
  'too_large',
  'clock_skew',
] as const;
export type ArchiveFailureReason = (typeof archiveFailureReasons)[number];

/** Why a domain is not as it should be. */
export const domainFailureReasons = ['clusters_disagree', 'version_mismatch'] as const;
export type DomainFailureReason = (typeof domainFailureReasons)[number];

/** Kinds of backups in the spec's schedule table; labels `backup_type`. */
export const backupTypes = ['full', 'incremental', 'log', 'config'] as const;
export type BackupType = (typeof backupTypes)[number];

/** How thoroughly a backup is verified; labels `svc_backup_integrity_ok`. */
export const integrityLevels = ['none', 'header', 'checksum', 'full'] as const;
export type IntegrityLevel = (typeof integrityLevels)[number];

/** What a verification found; `unknown` means that the backup cannot be verified at the requested level. */
const integrityResults = ['ok', 'corrupt', 'unknown'] as const;
export type IntegrityResult = (typeof integrityResults)[number];

/** What became of a backup that was due; labels `svc_backup_runs_total`. */
export const backupResults = [
  'success',
  'failed',
  'late',
  'missed',
  'incomplete',
  'corrupt',
  'shrunken',
] as const;
export type BackupResult = (typeof backupResults)[number];

/** Why a backup is not as it should be, or cannot be assessed. */
export const backupFailureReasons = [
  'no_backup',
  'directory_gone',
  'late',
  'backup_failed',
  'incomplete',
  'corrupt',
  'shrunken',
  'log_gap',
  'chain_broken',
  'drifted',
  'retention',
  'offsite_missing',
  'snapshot_not_cleared',
  'evidence_unreadable',
  'too_slow',
  'failed',
] as const;
export type BackupFailureReason = (typeof backupFailureReasons)[number];

/** Why a database cannot be recovered within its objectives. */
export const recoveryFailureReasons = [
  'no_backup',
  'unverified',
  'chain_broken',
  'recovery_point_unknown',
  'recovery_point_too_old',
  'drill_missing',
  'drill_too_slow',
  'drifted',
  'late',
  'evidence_unreadable',
  'too_slow',
  'failed',
] as const;
export type RecoveryFailureReason = (typeof recoveryFailureReasons)[number];

/** Why a recovery is not proven by a rehearsal. */
export const rehearsalFailureReasons = [
  'rehearsal_failed',
  'rehearsal_missing',
  'rehearsal_unknown',
  'recovery_point_too_old',
  'drill_too_slow',
  'evidence_unreadable',
  'too_slow',
  'failed',
] as const;
export type RehearsalFailureReason = (typeof rehearsalFailureReasons)[number];

/** The parts of a rehearsal, in their order; labels `svc_recovery_rehearsal_duration_seconds`. */
const rehearsalPhases = ['create', 'copy', 'restore', 'log', 'check', 'remove'] as const;
export type RehearsalPhase = (typeof rehearsalPhases)[number];

/** The spec's recovery procedures; labels `svc_restore_drill_*`. */
export const recoveryProcedures = [
  'database-corruption',
  'datacenter-failure',
  'failback',
  'cluster-loss',
] as const;
export type RecoveryProcedure = (typeof recoveryProcedures)[number];

/** Why a run of a probe failed, whatever it checks; labels `svc_probe_failures_total`. */
const probeFailureReasons = [
  ...new Set([
    ...healthFailureReasons,
    ...storeFailureReasons,
    ...commandFailureReasons,
    ...archiveFailureReasons,
    ...domainFailureReasons,
    ...backupFailureReasons,
    ...recoveryFailureReasons,
    ...rehearsalFailureReasons,
  ]),
] as const;
export type ProbeFailureReason = (typeof probeFailureReasons)[number];

/** Why a run of a probe was skipped; labels `svc_probe_skipped_total`. */
export const probeSkipReasons = ['overlap', 'backlog'] as const;
export type ProbeSkipReason = (typeof probeSkipReasons)[number];

/** The damped state of a probe's target; labels `svc_role_health_transitions_total`. */
export const probeStates = ['up', 'down'] as const;
export type ProbeState = (typeof probeStates)[number];

/** Drops by the component that dropped; each component has its own list. */
export const dropReasons = {
  logs: [...lineDropReasons, 'future_timestamp'],
  rules: ['no_value', 'negative_value'],
  registry: [
    'negative_delta',
    'not_finite',
    'refused_series',
    'forbidden_tag',
    'forbidden_value',
    'tag_collision',
  ],
  scrape: [
    'invalid_line',
    'invalid_body',
    'too_large',
    'too_many_samples',
    'label_too_long',
    'too_slow',
    'failed',
  ],
  statsd: [
    'invalid_line',
    'invalid_value',
    'invalid_rate',
    'unsupported_type',
    'unsupported_tags',
    'sender_not_allowed',
    'line_too_long',
    'too_many_connections',
    'handshake_failed',
    'buffer_full',
  ],
  pull: ['slow_reader', 'too_many_connections', 'too_many_requests', 'handshake_failed', 'unauthorized'],
  push: ['line_too_long', 'send_failed', 'resolve_failed', 'not_additive', 'not_finite'],
  hosted: ['queue_full', 'too_old', 'rejected', 'partial_success', 'corrupt'],
  probes: ['output_too_large'],
  agent: ['log_write'],
} as const;
export type Component = keyof typeof dropReasons;
export type RegistryDrop = (typeof dropReasons)['registry'][number];
export type DropReason = { [C in Component]: (typeof dropReasons)[C][number] }[Component];

/** The levels of the spec, then the level for everything else. */
export const logLevels = ['debug', 'info', 'warn', 'error', 'fatal'] as const;
const entryLevels = [...logLevels, 'other'] as const;

/** The states of the agent's own health. */
const healthStates = ['starting', 'ready', 'stopping'] as const;
export type HealthState = (typeof healthStates)[number];

/** Why the state is degraded: the step of a commit that failed, or that there is nowhere to write. */
const degradedReasons = ['no_directory', 'open', 'write', 'sync', 'rename'] as const;
export type DegradedReason = (typeof degradedReasons)[number];

/** Everything above by name, for `svc-agent schema --reasons`. */
export const closedLists = {
  'svc_log_lines_dropped_total.reason': lineDropReasons,
  'svc_log_skipped_bytes_total.reason': skipReasons,
  'svc_log_entries_total.level': entryLevels,
  'svc_agent_series_refused_total.reason': refusalReasons,
  'scrape.failure': scrapeFailureReasons,
  'push.failure': pushFailureReasons,
  'hosted.failure': hostedFailureReasons,
  ...Object.fromEntries(
    Object.entries(dropReasons).map(([component, list]) => [
      `svc_agent_dropped_total.reason{component="${component}"}`,
      list,
    ]),
  ),
  'svc_role_health_failures_total.reason': healthFailureReasons,
  'svc_role_health_transitions_total.to': probeStates,
  'svc_store_failures_total.reason': storeFailureReasons,
  'svc_store_check_ok.check': storeChecks,
  ...Object.fromEntries(
    storeCheckSeverities.map((severity) => [
      `svc_store_check_ok.check{severity="${severity}"}`,
      storeChecksOf(severity),
    ]),
  ),
  'svc_probe_failures_total.reason': probeFailureReasons,
  'svc_probe_skipped_total.reason': probeSkipReasons,
  'probe.kind': probeKinds,
  'command.failure': commandFailureReasons,
  'archive.failure': archiveFailureReasons,
  'domain.failure': domainFailureReasons,
  'svc_backup_runs_total.result': backupResults,
  'svc_backup_integrity_ok.level': integrityLevels,
  'backup.type': backupTypes,
  'backup.failure': backupFailureReasons,
  'integrity.result': integrityResults,
  'recovery.failure': recoveryFailureReasons,
  'recovery.procedure': recoveryProcedures,
  'state.degraded': degradedReasons,
  'health.state': healthStates,
} as const satisfies Record<string, readonly string[]>;
