import { slowByDesign } from '../../rules/alerts/requests.ts';
import { at } from '../alerts.ts';
import { domain, instance } from '../choices.ts';
import { age, highest, moment, quantile, rate, share } from '../expr.ts';
import type { Dashboard, Row } from '../model.ts';
import { column, percentiles, table, timeline, timeseries } from '../panels.ts';

const worker = 'svc_service="worker"';
const archive = 'archive, scheme';

const role: Row = {
  title: 'Worker',
  panels: [
    timeline(
      'Health of the workers',
      'What the health check of each instance says.',
      'up',
      highest(`svc_role_up{${worker}}`, 'instance'),
      { width: 8, height: 8, runbooks: ['SvcHealthFailing'] },
    ),
    timeseries(
      'Calls of the workers',
      'Calls that the workers make to the frontend and to the store.',
      'requestsPerSecond',
      [
        { name: 'frontend', expr: rate(`svc_frontend_client_requests{${worker}}`) },
        { name: 'store', expr: rate(`svc_persistence_requests{${worker}}`) },
      ],
    ),
    timeseries(
      'Share of failed calls of the workers',
      'Of their calls to the frontend and to the store.',
      'share',
      [
        {
          name: 'frontend',
          expr: share(`svc_frontend_client_errors{${worker}}`, `svc_frontend_client_requests{${worker}}`),
        },
        {
          name: 'store',
          expr: share(`svc_persistence_errors{${worker}}`, `svc_persistence_requests{${worker}}`),
        },
      ],
      { limits: at('SvcRequestErrors') },
    ),
    timeseries(
      'Latency of the frontend for the workers',
      'Percentiles of the calls that the workers make; those that are slow by design are left out.',
      'seconds',
      percentiles((q) => quantile(q, `svc_frontend_client_latency{${worker}, ${slowByDesign}}`)),
      { width: 12 },
    ),
    timeseries(
      'Goroutines of the workers',
      'They grow with the work; where they grow without it, something leaks.',
      'count',
      highest(`svc_num_goroutines{${worker}}`, 'instance'),
      { width: 12 },
    ),
  ],
};

const archives: Row = {
  title: 'Archival',
  panels: [
    timeline('Archives', 'Whether each archive answers.', 'up', highest('svc_archival_up', archive), {
      width: 8,
      height: 8,
      runbooks: ['SvcArchiveDown'],
    }),
    timeseries(
      'Age of the newest object',
      'Seconds since something was archived. Only bad while workflows complete.',
      'duration',
      `time() - ${highest('svc_archival_newest_object_timestamp_seconds', archive)}`,
      { limits: at('SvcArchivalStalled') },
    ),
    timeseries(
      'Workflows completed',
      'What there is to archive.',
      'perSecond',
      rate('svc_workflow_completed'),
    ),
    table(
      'Archives now',
      'Each archive, and when the newest object was written.',
      { cluster: 'Cluster', archive: 'Archive', scheme: 'Scheme' },
      [
        column('State', 'count', highest('svc_archival_up', archive), { state: 'up' }),
        column('Newest object', 'ago', moment('svc_archival_newest_object_timestamp_seconds', archive)),
        column('Age', 'duration', age('svc_archival_newest_object_timestamp_seconds', archive), {
          limits: at('SvcArchivalStalled'),
        }),
      ],
      { width: 12 },
    ),
    table(
      'Archival of the domains',
      'Which domains archive what.',
      { cluster: 'Cluster', domain: 'Domain', archive: 'Archive' },
      [
        column('Archival', 'count', highest('svc_domain_archival_enabled', 'domain, archive'), {
          state: 'on',
        }),
      ],
      { width: 12, runbooks: ['SvcArchivalOff'] },
    ),
  ],
};

export const workerAndArchival: Dashboard = {
  name: 'worker',
  title: 'Worker and archival',
  description:
    'The role that works for the service itself, and the way of closed workflows into long-term storage.',
  choices: [instance, domain('svc_domain_retention_seconds')],
  rows: [archives, role],
};
