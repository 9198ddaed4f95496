import { slowByDesign } from '../../rules/alerts/requests.ts';
import { at } from '../alerts.ts';
import { instance, role } from '../choices.ts';
import { age, highest, quantile, rate, share, total } from '../expr.ts';
import type { Dashboard, Row } from '../model.ts';
import { timeline, timeseries } from '../panels.ts';
import { wrongNow } from './wrong-now.ts';

const around: Row = {
  title: 'What the service stands on',
  panels: [
    timeline(
      'Targets',
      'Whether Prometheus reaches the target of each job. A job that is missing here has no target at all.',
      'up',
      highest('up{job=~"frontend|history|matching|worker|svc-agent"}', 'job, instance'),
      { width: 8, runbooks: ['SvcServiceDown', 'SvcTargetsVanished', 'SvcRoleAbsent', 'SvcAgentDown'] },
    ),
    timeline(
      'Stores',
      'Whether each database of each store answers.',
      'up',
      highest('svc_store_up', 'store, kind, database'),
      { width: 8, runbooks: ['SvcStoreDown'] },
    ),
    timeline(
      'Other clusters',
      'Whether the frontend of each other cluster of the group answers.',
      'up',
      highest('svc_cluster_up', 'remote_cluster'),
      { width: 8, runbooks: ['SvcClusterUnreachable'] },
    ),
    timeseries(
      'Oldest backup',
      'Seconds since the last success of the backup that is worst off; those of configuration are due on change.',
      'duration',
      `max by (cluster) (${age('svc_backup_last_success_timestamp_seconds{backup_type!="config"}', 'backup, store, database, backup_type')})`,
      { limits: at('SvcBackupAge') },
    ),
    timeseries(
      'Replication lag',
      'How far the standby cluster that is worst off is behind. Nothing is shown where nobody knows.',
      'seconds',
      highest('svc_replication_lag_seconds', 'source_cluster, target_cluster'),
      { limits: at('SvcReplicationLag'), runbooks: ['SvcReplicationLagUnknown'] },
    ),
    timeseries(
      'Certificates',
      'How long the certificate that each probe meets is still good.',
      'duration',
      'min by (cluster, probe) (svc_probe_tls_not_after_timestamp_seconds) - time()',
      { limits: at('SvcCertificateExpiring') },
    ),
  ],
};

const golden: Row = {
  title: 'How the service does',
  panels: [
    timeseries(
      'Traffic',
      'Calls to the frontend.',
      'requestsPerSecond',
      rate('svc_frontend_client_requests'),
    ),
    timeseries(
      'Failed calls between roles',
      'Share of the calls to each role that failed, by who called.',
      'share',
      ['frontend', 'history', 'matching'].map((callee) => ({
        name: `to ${callee} from`,
        expr: share(`svc_${callee}_client_errors`, `svc_${callee}_client_requests`, 'svc_service'),
      })),
      { limits: at('SvcRequestErrors') },
    ),
    timeseries(
      'Latency of the frontend',
      '95th percentile of calls to the frontend; those that are slow by design (polls, lists, histories) are left out.',
      'seconds',
      quantile(0.95, `svc_frontend_client_latency{${slowByDesign}}`),
      { limits: at('SvcFrontendLatency') },
    ),
    timeseries(
      'Backlog',
      'Tasks that wait in all task lists.',
      'count',
      total('svc_matching_tasklist_backlog'),
      {
        runbooks: ['SvcTaskListBacklogGrowth', 'SvcTaskListStalled'],
      },
    ),
    timeseries(
      'Persistence errors',
      'Calls to the store that failed, by role.',
      'perSecond',
      rate('svc_persistence_errors', 'svc_service'),
      { limits: at('SvcPersistenceErrorRate') },
    ),
    timeseries(
      'Largest heap',
      'Heap of the largest instance of each role.',
      'bytes',
      highest('svc_memory_heap', 'svc_service'),
      { limits: at('SvcHeapMemory') },
    ),
    timeseries(
      'Workflows closed',
      'Workflow executions that ended, by how.',
      'perSecond',
      ['completed', 'failed', 'timeout', 'canceled', 'continued_as_new'].map((outcome) => ({
        name: outcome.replaceAll('_', ' '),
        expr: rate(`svc_workflow_${outcome}`),
      })),
      { isStacked: true, width: 12, runbooks: ['SvcWorkflowTimeouts', 'SvcWorkflowTimeoutShare'] },
    ),
    timeseries(
      'Log entries of level error and fatal',
      'What the roles themselves complain of. A fatal entry ends the process.',
      'perSecond',
      rate('svc_log_entries_total{level=~"error|fatal"}', 'svc_service, level'),
      { width: 12, runbooks: ['SvcFatalLogEntry'] },
    ),
  ],
};

export const overview: Dashboard = {
  name: 'overview',
  title: 'Overview',
  description: 'What is wrong with the service, its stores, its backups and its agents, and since when.',
  choices: [role, instance],
  rows: [wrongNow, around, golden],
};
