import { group } from './group.ts';

export const logs = group('logs', ['svc_service'], {
  svc_log_entries_total: ['counter', 'none', 'Log entries by level and logger.', ['level', 'logger']],
  svc_log_persistence_errors_total: [
    'counter',
    'none',
    'Log entries that report a persistence error.',
    ['operation'],
  ],
  svc_log_bytes_total: ['counter', 'bytes', 'Bytes of complete log lines, newlines included.'],
  svc_log_lines_dropped_total: [
    'counter',
    'none',
    'Log lines that could not be read as entries.',
    ['reason'],
  ],
  svc_log_skipped_bytes_total: [
    'counter',
    'bytes',
    'Log bytes passed over or gone before they were read.',
    ['reason'],
  ],
  svc_log_lag_bytes: ['gauge', 'bytes', 'Log bytes written and not yet counted.'],
  svc_log_newest_entry_timestamp_seconds: ['gauge', 'timestamp', 'Time stamped on the newest log entry.'],
});

export const roleMetrics = group('roles', ['svc_service'], {
  svc_role_up: ['gauge', 'none', 'Whether the health check passed: 1 or 0.'],
  svc_role_health_check_duration_seconds: ['gauge', 'seconds', 'Duration of the last health check.'],
  svc_role_health_failures_total: ['counter', 'none', 'Health checks that failed.', ['reason']],
  svc_role_health_transitions_total: ['counter', 'none', 'Changes of health, by what it changed to.', ['to']],
  svc_role_restarts_total: [
    'counter',
    'none',
    'Restarts seen in health checks, scrapes and logs, each once.',
  ],
  svc_role_scrape_up: ['gauge', 'none', 'Whether the last scrape of the role succeeded: 1 or 0.'],
});

export const probes = group('probes', ['probe'], {
  svc_probe_last_run_timestamp_seconds: ['gauge', 'timestamp', 'When the probe last had a result.'],
  svc_probe_skipped_total: ['counter', 'none', 'Runs that were left out.', ['reason']],
  svc_probe_tls_not_after_timestamp_seconds: [
    'gauge',
    'timestamp',
    'When the first certificate of the chain expires.',
  ],
});

export const stores = group('stores', ['store', 'kind', 'database'], {
  svc_store_up: ['gauge', 'none', 'Whether the store answered: 1 or 0.'],
  svc_store_probe_duration_seconds: ['gauge', 'seconds', 'Duration of the last look at the store.'],
  svc_store_failures_total: ['counter', 'none', 'Looks at the store that failed.', ['reason']],
  svc_store_schema_version_info: [
    'gauge',
    'none',
    'Always 1; the label is the schema version found.',
    ['version'],
  ],
  svc_store_schema_compatible: [
    'gauge',
    'none',
    'Whether the schema is what the configuration asks for: 1 or 0.',
  ],
  svc_store_connections: ['gauge', 'none', 'Connections the store has open.', ['state']],
  svc_store_connections_max: ['gauge', 'none', 'Connections the store allows.'],
  svc_store_read_only: ['gauge', 'none', 'Whether the store refuses writes: 1 or 0.'],
  svc_store_check_ok: ['gauge', 'none', 'Whether a check of the store passed: 1 or 0.', ['check']],
  svc_store_wal_oldest_unarchived_timestamp_seconds: [
    'gauge',
    'timestamp',
    'When the oldest log segment not yet archived was closed.',
  ],
  svc_store_wal_archive_failures_total: ['counter', 'none', 'Attempts to archive a log segment that failed.'],
});
