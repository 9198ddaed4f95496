/**
 * Every closed list of the agent: label values that dashboards and alerts may rely on. A value outside its
 * list does not compile. `svc-agent schema --reasons` prints this table.
 */

/** Why a log line counted as nothing else. */
export const lineDropReasons = ['invalid_json', 'not_object', 'not_console', 'too_long'] as const;
export type LineDropReason = (typeof lineDropReasons)[number];

/** Why bytes of a log file were passed over or were gone before they were read. */
export const skipReasons = ['start_at_end', 'truncated', 'vanished', 'nul_hole', 'unreadable'] as const;
export type SkipReason = (typeof skipReasons)[number];

/** Why a series, or a part of one, was refused by the registry. */
export const refusalReasons = [
  'limit_metric',
  'limit_total',
  'kind_conflict',
  'suffix_taken',
  'reserved_name',
  'duplicate_source',
  'not_additive',
  'unequal_buckets',
  'tag_collision',
  'double',
] as const;
export type RefusalReason = (typeof refusalReasons)[number];

/** Why a role's page was not taken; `svc_agent_dropped_total` folds most of them into `failed`. */
export const scrapeFailureReasons = [
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

/** Why a push did not leave as it should; labels `svc_agent_report_failures_total`. */
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

/** Drops by the component that dropped; each component has its own list. */
export const dropReasons = {
  logs: lineDropReasons,
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
    'sender_not_allowed',
    'line_too_long',
    'too_many_connections',
    'handshake_failed',
  ],
  pull: ['slow_reader', 'too_many_connections', 'handshake_failed', 'unauthorized'],
  push: ['line_too_long', 'send_failed', 'resolve_failed', 'not_additive', 'not_finite'],
  hosted: ['queue_full', 'too_old', 'rejected', 'partial_success', 'corrupt'],
  probes: ['output_too_large'],
  agent: ['log_write'],
} as const;
export type Component = keyof typeof dropReasons;
export type RegistryDrop = (typeof dropReasons)['registry'][number];
export type DropReason = { [C in Component]: (typeof dropReasons)[C][number] }[Component];

/** Levels of the spec, then what everything else counts as. */
export const logLevels = ['debug', 'info', 'warn', 'error', 'fatal'] as const;
export const entryLevels = [...logLevels, 'other'] as const;

/** What the agent's own health can say is wrong with itself. */
export const healthStates = ['starting', 'ready', 'stopping'] as const;
export type HealthState = (typeof healthStates)[number];

/** Why the state is degraded: which step of a commit failed, or that there is nowhere to write. */
export const degradedReasons = ['no_directory', 'open', 'write', 'sync', 'rename'] as const;
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
  'state.degraded': degradedReasons,
  'health.state': healthStates,
} as const satisfies Record<string, readonly string[]>;
