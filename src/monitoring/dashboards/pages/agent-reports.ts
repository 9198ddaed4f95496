import { at } from '../alerts.ts';
import { age, highest, rate } from '../expr.ts';
import type { Row } from '../model.ts';
import { timeseries } from '../panels.ts';

const since = (metric: string, by = 'instance') => `time() - ${highest(metric, by)}`;

/** What the agents send of their own accord, and what waits to be sent. */
export const reports: Row = {
  title: 'Reports',
  panels: [
    timeseries(
      'Failed reports',
      'Reports that did not arrive, by reason.',
      'perSecond',
      rate('svc_agent_report_failures_total', 'instance, reason'),
      { limits: at('SvcAgentReportFailing') },
    ),
    timeseries(
      'Since the last report',
      'How long ago a report was last delivered.',
      'duration',
      age('svc_agent_report_last_success_timestamp_seconds', 'instance'),
      { runbooks: ['SvcAgentReportFailing'] },
    ),
    timeseries(
      'Queue on disk',
      'What waits to be sent.',
      'bytes',
      highest('svc_agent_queue_bytes', 'instance'),
    ),
    timeseries(
      'Oldest in the queue',
      'How long the oldest batch has waited. The oldest are dropped first once the queue is full.',
      'duration',
      since('svc_agent_queue_oldest_timestamp_seconds'),
      { width: 12 },
    ),
    timeseries(
      'Since totals were saved',
      'Totals are saved before they are shown; what is shown is as old as this.',
      'duration',
      since('svc_agent_state_last_commit_timestamp_seconds'),
      { width: 12 },
    ),
  ],
};
