import { at } from '../alerts.ts';
import { instance, roleOf } from '../choices.ts';
import { grown, highest, rate, top } from '../expr.ts';
import type { Dashboard } from '../model.ts';
import { stat, timeseries } from '../panels.ts';

const bad = 'svc_log_entries_total{level=~"error|fatal"}';

export const logs: Dashboard = {
  name: 'logs',
  title: 'Logs',
  description:
    'What the roles log, and whether every line of it was read. Derived from the logs by the agents.',
  choices: [roleOf('svc_log_bytes_total'), instance],
  rows: [
    {
      title: 'What is logged',
      panels: [
        stat(
          'Fatal entries',
          'In the shown range. Each one ends a process.',
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
          'Who complains; the 20 that do most.',
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
    },
    {
      title: 'Whether it is read',
      panels: [
        timeseries(
          'Not yet read',
          'Bytes that are written and not yet counted.',
          'bytes',
          highest('svc_log_lag_bytes', 'svc_service, instance'),
          { limits: at('SvcLogLag') },
        ),
        timeseries(
          'Since the newest entry',
          'How old the newest entry is by its own time. A role that is silent for long may have lost its log.',
          'duration',
          `time() - ${highest('svc_log_newest_entry_timestamp_seconds', 'svc_service, instance')}`,
        ),
        timeseries(
          'Read',
          'Bytes of complete lines.',
          'bytesPerSecond',
          rate('svc_log_bytes_total', 'svc_service'),
        ),
        timeseries(
          'Lines that are no entries',
          'Lines that could not be read, by reason.',
          'perSecond',
          rate('svc_log_lines_dropped_total', 'svc_service, reason'),
          { width: 12 },
        ),
        timeseries(
          'Bytes passed over',
          'By reason. start_at_end is what stood in a file before it was first looked at, by configuration; any other is lost.',
          'bytesPerSecond',
          rate('svc_log_skipped_bytes_total', 'svc_service, reason'),
          { width: 12, runbooks: ['SvcLogBytesLost'] },
        ),
      ],
    },
  ],
};
