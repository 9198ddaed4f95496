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
import { domain, instance, type Queries, store } from '../queries.ts';

const pair = 'source_cluster, target_cluster';
const identity = 'store, kind, database';
const walOldest = 'svc_store_wal_oldest_unarchived_timestamp_seconds';
const drill = 'svc_restore_drill_last';
const rehearsal = 'svc_recovery_rehearsal';

const readiness = ({ highest, lastKnown, moment, rateOnce }: Queries): PanelRow => ({
  title: 'Recovery',
  panels: [
    timeline(
      'Recovery readiness',
      'Whether the recovery objectives are met, by backups, archived logs and restore drills, as each agent sees it.',
      'ready',
      highest('svc_recovery_ready', 'store, database, instance'),
      { width: 8, runbooks: ['SvcRecoveryObjectiveMissed', 'SvcRecoveryUnknown'] },
    ),
    timeline(
      'Store checks',
      'Checks of the settings and the state of each store.',
      'ok',
      highest('svc_store_check_ok', `${identity}, check`),
      { width: 16, runbooks: ['SvcStoreDataAtRisk', 'SvcStoreRecoveryWeak'] },
    ),
    timeseries(
      'Oldest unarchived log segment',
      'How long the oldest closed log segment has waited for archiving: a loss of the store would lose that much.',
      'duration',
      `time() - ${highest(walOldest, identity)}`,
      { width: 6, limits: at('SvcWalArchivingStalled') },
    ),
    timeseries(
      'Failed archiving',
      'Attempts to archive a log segment that failed.',
      'perSecond',
      rateOnce('svc_store_wal_archive_failures_total', identity),
      { width: 6, runbooks: ['SvcWalArchivingStalled'] },
    ),
    table(
      'Objectives',
      'How much data may be lost, and how long recovery may take.',
      { cluster: 'Cluster', store: 'Store', database: 'Database', backup_type: 'Backup type' },
      [
        column(
          'Recovery point',
          'duration',
          highest('svc_rpo_objective_seconds', 'store, database, backup_type'),
        ),
        column(
          'Recovery time',
          'duration',
          highest('svc_rto_objective_seconds', 'store, database, backup_type'),
        ),
      ],
      { width: 12, height: 8 },
    ),
    table(
      'Restore drills',
      'When each procedure last succeeded in a drill, and how long it took.',
      { cluster: 'Cluster', store: 'Store', database: 'Database', procedure: 'Procedure' },
      [
        column(
          'Last success',
          'ago',
          moment(`${drill}_success_timestamp_seconds`, 'store, database, procedure'),
        ),
        column('Duration', 'duration', lastKnown(`${drill}_duration_seconds`, 'store, database, procedure')),
      ],
    ),
    timeline(
      'Proven recovery',
      'Whether a rehearsal restored the newest backup into a throwaway server within the objectives.',
      'ok',
      highest('svc_recovery_proven', 'store, database'),
      { width: 8, runbooks: ['SvcRecoveryNotProven'] },
    ),
    table(
      'Rehearsals',
      'When a rehearsal last restored each database.',
      { cluster: 'Cluster', store: 'Store', database: 'Database' },
      [
        column(
          'Last success',
          'ago',
          moment(`${rehearsal}_last_success_timestamp_seconds`, 'store, database'),
        ),
      ],
      { width: 8 },
    ),
    timeseries(
      'Duration of rehearsals',
      'How long each phase of the last rehearsal took.',
      'duration',
      highest(`${rehearsal}_duration_seconds`, 'store, database, phase'),
      { width: 8 },
    ),
  ],
});

const flow = ({ age, highest, rate, rateOnce }: Queries): PanelRow => ({
  title: 'Replication',
  panels: [
    timeseries(
      'Lag',
      'Age of the oldest change that the other cluster does not have yet. No data: the lag is unknown.',
      'seconds',
      highest('svc_replication_lag_seconds', pair),
      { limits: at('SvcReplicationLag'), runbooks: ['SvcReplicationLagUnknown'] },
    ),
    timeseries(
      'Failed tasks',
      'Replication tasks that failed.',
      'perSecond',
      rateOnce('svc_replication_task_failures_total', pair),
      { limits: at('SvcReplicationTaskFailures') },
    ),
    timeseries(
      'Time since the last applied task',
      'Time since the last applied task. It also grows while the source has no changes; see the lag.',
      'duration',
      age('svc_replication_last_applied_timestamp_seconds', pair),
    ),
    timeseries(
      'Tasks applied',
      'Tasks from other clusters that were applied here.',
      'perSecond',
      rate('svc_history_replication_tasks_applied'),
    ),
    timeline(
      'Other clusters',
      'Whether the frontend of each other cluster answers.',
      'up',
      highest('svc_cluster_up', 'remote_cluster'),
      { width: 8, height: 8, runbooks: ['SvcClusterUnreachable', 'SvcClusterRecovering'] },
    ),
    timeseries(
      'Response time of other clusters',
      'How long the other cluster took to answer.',
      'seconds',
      highest('svc_cluster_probe_duration_seconds', 'remote_cluster'),
    ),
  ],
});

const domains = ({ grownOnce, highest, moment, s }: Queries): PanelRow => ({
  title: 'Domains',
  panels: [
    stat(
      'Clusters',
      'Enabled clusters of the cluster group, by its primary cluster.',
      'count',
      `max by (cluster, primary_cluster) (${s('svc_clusters')} * on (cluster) group_left (primary_cluster) ${highest('svc_cluster_group_info', 'primary_cluster')})`,
      { height: 8 },
    ),
    timeline(
      'Active cluster',
      'Where each domain is active, according to each cluster. Two bars of one domain at the same time: the clusters disagree.',
      'active',
      highest('svc_domain_active_cluster', 'domain, active_cluster'),
      { width: 20, height: 8, runbooks: ['SvcDomainDisagreement', 'SvcDomainFailover'] },
    ),
    table(
      'Domains',
      'Clusters of each domain, and its failovers in the shown range.',
      { cluster: 'Cluster', domain: 'Domain' },
      [
        column('Global', 'count', highest('svc_domain_global', 'domain'), { state: 'yes' }),
        column('Clusters', 'count', highest('svc_domain_clusters', 'domain'), {
          limits: at('SvcDomainTooFewClusters'),
        }),
        column('Retention', 'duration', highest('svc_domain_retention_seconds', 'domain')),
        column('Ready to fail over', 'count', highest('svc_domain_failover_ready', 'domain'), {
          state: 'yes',
        }),
        column('Failover version', 'count', highest('svc_domain_failover_version', 'domain')),
        column('Failovers', 'count', grownOnce('svc_domain_failovers_total', 'domain')),
        column('Last failover', 'ago', moment('svc_domain_last_failover_timestamp_seconds', 'domain')),
      ],
    ),
  ],
});

export const replication: Dashboard = {
  name: 'dr',
  title: 'Replication and recovery',
  description: 'Recovery readiness, replication lag, and the active cluster of each domain.',
  choices: [instance, store('svc_store_up'), domain('svc_domain_active_cluster')],
  rows: (queries) => [readiness(queries), flow(queries), domains(queries)],
};
