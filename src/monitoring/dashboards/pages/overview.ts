import { slowByDesign } from '../../alerts/requests.ts';
import { jobs } from '../../names.ts';
import {
  at,
  column,
  type Dashboard,
  type PanelRow,
  stat,
  table,
  timeline,
  timeseries,
} from '../dashboard.ts';
import { instance, type Queries, role, top } from '../queries.ts';
import { certificates } from './shared.ts';

const firing = 'ALERTS{alertstate="firing", alertname=~"Svc.+"}';
const firingLabels =
  'alertname, severity, svc_service, job, instance, store, database, domain, backup, remote_cluster';
/** Drops that are a loss; what the cardinality rules remove is not. */
const losses = 'svc_agent_dropped_total{reason!~"forbidden_tag|forbidden_value"}';

/** The number of firing alerts of a severity, 0 if an agent reports. */
const firingOf = ({ highest, s }: Queries, severity: string) =>
  `count by (cluster) (${s(`ALERTS{alertstate="firing", alertname=~"Svc.+", severity="${severity}"}`)})` +
  ` or 0 * ${highest('svc_agent_build_info')}`;

/** The panels to look at first after a page. */
const problems = (queries: Queries, { highest, howMany, rate } = queries): PanelRow => ({
  title: 'Current problems',
  panels: [
    stat('Critical alerts', 'Firing alerts that page someone.', 'count', firingOf(queries, 'critical'), {
      anyIs: 'red',
    }),
    stat('Warnings', 'Firing alerts that open a ticket.', 'count', firingOf(queries, 'warning'), {
      anyIs: 'orange',
    }),
    stat(
      'Unhealthy instances',
      'Instances of roles that fail their health check.',
      'count',
      howMany('svc_role_up', 'svc_service, instance', '== 0'),
      { anyIs: 'red', runbooks: ['SvcHealthFailing'] },
    ),
    stat(
      'Stores down',
      'Databases of stores that do not answer.',
      'count',
      howMany('svc_store_up', 'store, kind, database', '== 0'),
      { anyIs: 'red', runbooks: ['SvcStoreDown'] },
    ),
    stat(
      'Not recoverable',
      'Databases that do not meet their recovery objectives.',
      'count',
      howMany('svc_recovery_ready', 'store, database', '== 0'),
      { anyIs: 'red', runbooks: ['SvcRecoveryObjectiveMissed'] },
    ),
    stat(
      'Agents drop data',
      'Items that the agents drop per second, for any reason. Above 0, other numbers may be too low.',
      'perSecond',
      rate(losses),
      { limits: at('SvcAgentDropping') },
    ),
    table(
      'Firing alerts',
      'Firing alerts, and for how long their condition has held.',
      {
        severity: 'Severity',
        alertname: 'Alert',
        cluster: 'Cluster',
        svc_service: 'Role',
        job: 'Job',
        instance: 'Instance',
        store: 'Store',
        database: 'Database',
        domain: 'Domain',
        backup: 'Backup',
        remote_cluster: 'Remote cluster',
      },
      [
        column(
          'For',
          'duration',
          `(time() - ${highest('ALERTS_FOR_STATE{alertname=~"Svc.+"}', firingLabels)}) and ${highest(firing, firingLabels)}`,
        ),
      ],
      { height: 9, linkedLabel: 'alertname', sortBy: 'For' },
    ),
    timeline(
      'Health of the roles',
      'Result of the health check of each instance.',
      'up',
      highest('svc_role_up', 'svc_service, instance'),
      {
        width: 24,
        height: 8,
        runbooks: [
          'SvcRoleUnhealthy',
          'SvcRoleRecovering',
          'SvcHealthFailing',
          'SvcServiceDown',
          'SvcServiceRecovering',
          'SvcAllRolesDown',
          'SvcAllRolesRecovering',
          'SvcMetricsUnread',
          'SvcInstanceDown',
        ],
      },
    ),
  ],
});

/** The panels on changes, which may explain many problems at once. */
const changes = ({ events, highest }: Queries): PanelRow => ({
  title: 'What changed',
  panels: [
    timeseries(
      'Restarts',
      'Restarts of each instance, when they happened.',
      'count',
      events('svc_role_restarts_total', 'svc_service, instance'),
      { runbooks: ['SvcHighRestartRate', 'SvcCrashLooping'] },
    ),
    timeseries(
      'Failovers',
      'Failovers of each domain, when they happened; the 20 domains with the most failovers. The dashboard Replication and recovery shows where it is active.',
      'count',
      top(20, events('svc_domain_failovers_total', 'domain')),
      { runbooks: ['SvcDomainFailover'] },
    ),
    timeline(
      'Schema',
      'Whether the schema of each database has the configured version.',
      'compatible',
      highest('svc_store_schema_compatible', 'store, kind, database'),
      { width: 8, runbooks: ['SvcSchemaMismatch'] },
    ),
  ],
});

const dependencies = ({ age, highest, job, s }: Queries): PanelRow => ({
  title: 'Dependencies',
  panels: [
    timeline(
      'Targets',
      'Whether Prometheus can scrape the targets of each job. A job that is missing here has no target.',
      'up',
      highest(`up{${job(...jobs)}}`, 'job, instance'),
      {
        width: 8,
        runbooks: [
          'SvcServiceDown',
          'SvcRoleUnwatched',
          'SvcTargetsVanished',
          'SvcRoleAbsent',
          'SvcAgentDown',
        ],
      },
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
      'Time since the last success of the oldest backup. Backups of configuration run on change and are left out.',
      'duration',
      `max by (cluster) (${age('svc_backup_last_success_timestamp_seconds{backup_type!="config"}', 'backup, store, database, backup_type')})`,
      { limits: at('SvcBackupAge') },
    ),
    timeseries(
      'Replication lag',
      'The largest replication lag. No data: the lag is unknown.',
      'seconds',
      highest('svc_replication_lag_seconds', 'source_cluster, target_cluster'),
      { limits: at('SvcReplicationLag'), runbooks: ['SvcReplicationLagUnknown'] },
    ),
    certificates({ s }),
  ],
});

const service = ({ highest, quantile, rate, share, total }: Queries): PanelRow => ({
  title: 'Service',
  panels: [
    timeseries(
      'Traffic',
      'Calls to the frontend.',
      'requestsPerSecond',
      rate('svc_frontend_client_requests'),
    ),
    timeseries(
      'Failed calls between roles',
      'Share of the calls to each role that failed, by caller.',
      'share',
      ['frontend', 'history', 'matching'].map((callee) => ({
        name: `to ${callee} from`,
        expr: share(`svc_${callee}_client_errors`, `svc_${callee}_client_requests`, 'svc_service'),
      })),
      { limits: at('SvcRequestErrors') },
    ),
    timeseries(
      'Latency of the frontend',
      '95th percentile of calls to the frontend, without long polls, lists and histories.',
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
        runbooks: ['SvcTaskListBacklogGrowth', 'SvcTaskListStalled', 'SvcTaskListBacklogNotFalling'],
      },
    ),
    timeseries(
      'Persistence errors',
      'Persistence calls that failed, by role.',
      'perSecond',
      rate('svc_persistence_errors', 'svc_service'),
      { limits: at('SvcPersistenceErrorRate') },
    ),
    timeseries(
      'Largest heap',
      'Heap of the instance of each role that has the largest one.',
      'bytes',
      highest('svc_memory_heap', 'svc_service'),
      { limits: at('SvcHeapMemory') },
    ),
    timeseries(
      'Workflows closed',
      'Workflow executions that closed, by outcome.',
      'perSecond',
      ['completed', 'failed', 'timeout', 'canceled', 'continued_as_new'].map((outcome) => ({
        name: outcome.replaceAll('_', ' '),
        expr: rate(`svc_workflow_${outcome}`),
      })),
      {
        isStacked: true,
        width: 12,
        runbooks: ['SvcWorkflowTimeouts', 'SvcWorkflowTimeoutShare', 'SvcCanaryFailing'],
      },
    ),
    timeseries(
      'Log entries of level error and fatal',
      'Entries of level error and fatal. A fatal entry ends the process.',
      'perSecond',
      rate('svc_log_entries_total{level=~"error|fatal"}', 'svc_service, level'),
      { width: 12, runbooks: ['SvcFatalLogEntry'] },
    ),
  ],
});

export const overview: Dashboard = {
  name: 'overview',
  title: 'Overview',
  description: 'Current problems of the service, its stores, its backups and its agents.',
  choices: [role, instance],
  rows: (queries) => [problems(queries), changes(queries), dependencies(queries), service(queries)],
};
