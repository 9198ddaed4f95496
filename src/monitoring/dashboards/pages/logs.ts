import { at, type Dashboard, type PanelRow, stat, timeseries } from '../dashboard.ts';
import { instance, type Queries, roleOf, top } from '../queries.ts';

const bad = 'svc_log_entries_total{level=~"error|fatal"}';

const entries = ({ grown, rate }: Queries): PanelRow => ({
  title: 'Log entries',
  panels: [
    stat(
      'Fatal entries',
      'Fatal entries in the shown range. Each one ends a process.',
      'count',
      grown('svc_log_entries_total{level="fatal"}'),
      { limits: at('SvcFatalLogEntry'), height: 8 },
    ),
    timeseries(
      'Entries by level',
      'Entries of all chosen roles.',
      'perSecond',
      rate('svc_log_entries_total', 'level'),
      { width: 10, isStacked: true },
    ),
    timeseries(
      'Errors by role',
      'Entries of level error and fatal.',
      'perSecond',
      rate(bad, 'svc_service, level'),
      { width: 10, runbooks: ['SvcFatalLogEntry'] },
    ),
    timeseries(
      'Errors by logger',
      'Entries of level error and fatal by logger; the 20 most frequent.',
      'perSecond',
      top(20, rate(bad, 'svc_service, logger')),
      { width: 12 },
    ),
    timeseries(
      'Persistence errors by operation',
      'Entries that report a failed call to the store; the 20 most frequent.',
      'perSecond',
      top(20, rate('svc_log_persistence_errors_total', 'svc_service, operation')),
      { width: 12, runbooks: ['SvcPersistenceErrorRate'] },
    ),
  ],
});

const reading = ({ highest, rate, total }: Queries): PanelRow => ({
  title: 'Reading',
  panels: [
    timeseries(
      'Lag',
      'Bytes that are written and not yet read.',
      'bytes',
      highest('svc_log_lag_bytes', 'svc_service, instance'),
      { limits: at('SvcLogLag') },
    ),
    timeseries(
      'Time since the newest entry',
      'Age of the newest entry by its timestamp. If it grows while the role is up, the agent may watch the wrong file.',
      'duration',
      `time() - ${highest('svc_log_newest_entry_timestamp_seconds', 'svc_service, instance')}`,
    ),
    timeseries(
      'Bytes read',
      'Bytes of complete lines.',
      'bytesPerSecond',
      rate('svc_log_bytes_total', 'svc_service'),
      { runbooks: ['SvcLogFault', 'SvcLogSilent'] },
    ),
    timeseries(
      'Dropped lines',
      'Lines that could not be parsed, by reason.',
      'perSecond',
      rate('svc_log_lines_dropped_total', 'svc_service, reason'),
      { width: 8 },
    ),
    timeseries(
      'Errors of the roles’ own reporters',
      'Warnings that the reporter of a role lost series: its metrics are incomplete.',
      'perSecond',
      rate('svc_role_reporter_errors_total', 'svc_service'),
      { width: 8, runbooks: ['SvcRoleReporterErrors'] },
    ),
    timeseries(
      'Errors that the metrics show',
      'Share of the persistence errors in the log of a role that its own metrics show: 1 is all of them. If the share is lower, alerts on its metrics may not fire.',
      'count',
      highest('svc_telemetry_truth_ratio', 'svc_service'),
      { width: 8 },
    ),
    timeseries(
      'Skipped bytes',
      'By reason. start_at_end: content from before the first scan, skipped by configuration; other reasons are losses.',
      'bytesPerSecond',
      rate('svc_log_skipped_bytes_total', 'svc_service, reason'),
      { width: 8, runbooks: ['SvcLogBytesLost'] },
    ),
    timeseries(
      'Files that are not read',
      'Files that a pattern matches and that the agent does not read, by reason.',
      'count',
      total('svc_agent_log_files_passed_over', 'svc_service, reason'),
      { width: 8 },
    ),
  ],
});

export const logs: Dashboard = {
  name: 'logs',
  title: 'Logs',
  description: 'What the roles log, counted by the agents, and whether the agents read all of it.',
  choices: [roleOf('svc_log_bytes_total'), instance],
  rows: (queries) => [entries(queries), reading(queries)],
};
