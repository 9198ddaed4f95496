import { slowByDesign } from '../../alerts/requests.ts';
import {
  at,
  column,
  type Dashboard,
  type PanelRow,
  percentiles,
  table,
  timeline,
  timeseries,
} from '../dashboard.ts';
import { domain, instance, type Queries } from '../queries.ts';

const worker = 'svc_service="worker"';
const archive = 'archive, scheme';

const role = ({ highest, quantile, rate, share }: Queries): PanelRow => ({
  title: 'Worker',
  panels: [
    timeline(
      'Health of the workers',
      'Result of the health check of each instance.',
      'up',
      highest(`svc_role_up{${worker}}`, 'instance'),
      { width: 8, height: 8, runbooks: ['SvcHealthFailing'] },
    ),
    timeseries(
      'Calls of the workers',
      'Calls of the workers to the frontend and to the store.',
      'requestsPerSecond',
      [
        { name: 'frontend', expr: rate(`svc_frontend_client_requests{${worker}}`) },
        { name: 'store', expr: rate(`svc_persistence_requests{${worker}}`) },
      ],
    ),
    timeseries(
      'Share of failed calls of the workers',
      'Share of the calls of the workers that failed.',
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
      'Percentiles of the calls of the workers, without long polls and lists.',
      'seconds',
      percentiles((q) => quantile(q, `svc_frontend_client_latency{${worker}, ${slowByDesign}}`)),
      { width: 12 },
    ),
    timeseries(
      'Goroutines of the workers',
      'Goroutines grow with the load. If they grow without it, something leaks.',
      'count',
      highest(`svc_num_goroutines{${worker}}`, 'instance'),
      { width: 12 },
    ),
  ],
});

const archives = ({ age, highest, moment, rate }: Queries): PanelRow => ({
  title: 'Archival',
  panels: [
    timeline('Archives', 'Whether each archive can be used.', 'up', highest('svc_archival_up', archive), {
      width: 8,
      height: 8,
      runbooks: ['SvcArchiveDown'],
    }),
    timeseries(
      'Age of the newest object',
      'Time since something was archived. It is a problem only while workflows complete.',
      'duration',
      `time() - ${highest('svc_archival_newest_object_timestamp_seconds', archive)}`,
      {
        limits: at('SvcArchivalStalled'),
        runbooks: ['SvcArchivalNeverWritten', 'SvcRetentionBeforeArchive'],
      },
    ),
    timeseries(
      'Workflows completed',
      'Workflows that completed and are to be archived.',
      'perSecond',
      rate('svc_workflow_completed'),
    ),
    timeseries(
      'Deleted before they were archived',
      'Closed workflows whose retention has elapsed while the newest object in the archive is older.',
      'count',
      highest('svc_archival_unarchived_workflows', archive),
      { width: 12 },
    ),
    table(
      'What retention deletes next',
      'Closed workflows whose retention elapses within 24 hours, and when the first of them is deleted.',
      { cluster: 'Cluster', archive: 'Archive', scheme: 'Scheme' },
      [
        column('Within 24 hours', 'count', highest('svc_archival_due_workflows', archive)),
        column('First', 'ago', moment('svc_archival_next_deletion_timestamp_seconds', archive)),
      ],
      { width: 12 },
    ),
    table(
      'Archive state',
      'State of each archive, and when its newest object was written.',
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
      'What each domain archives.',
      { cluster: 'Cluster', domain: 'Domain', archive: 'Archive' },
      [
        column('Archival', 'count', highest('svc_domain_archival_enabled', 'domain, archive'), {
          state: 'on',
        }),
      ],
      { width: 12, runbooks: ['SvcArchivalOff'] },
    ),
  ],
});

export const workerAndArchival: Dashboard = {
  name: 'worker',
  title: 'Worker and archival',
  description: 'The worker role, and the archival of closed workflows.',
  choices: [instance, domain('svc_domain_retention_seconds')],
  rows: (queries) => [archives(queries), role(queries)],
};
