import { at } from '../alerts.ts';
import { domain, instance, store } from '../choices.ts';
import { age, grownOnce, highest, lastKnown, moment, rate, rateOnce } from '../expr.ts';
import type { Dashboard, Row } from '../model.ts';
import { column, stat, table, timeline, timeseries } from '../panels.ts';

const pair = 'source_cluster, target_cluster';
const identity = 'store, kind, database';
const walOldest = 'svc_store_wal_oldest_unarchived_timestamp_seconds';
const drill = 'svc_restore_drill_last';

const readiness: Row = {
  title: 'Could it be brought back',
  panels: [
    timeline(
      'Recovery readiness',
      'Whether the recovery objectives are met, by evidence: fresh backups, archived logs, drills that succeeded.',
      'ready',
      highest('svc_recovery_ready', 'store, database'),
      { width: 8, runbooks: ['SvcRecoveryObjectiveMissed'] },
    ),
    timeline(
      'Set-up of the stores',
      'Checks of what recovery depends on.',
      'ok',
      highest('svc_store_check_ok', `${identity}, check`),
      { width: 16, runbooks: ['SvcStoreCheckFailing'] },
    ),
    timeseries(
      'Wait for archiving',
      'How long the oldest closed log segment has waited to be archived: what would be lost.',
      'duration',
      `time() - ${highest(walOldest, identity)}`,
      { limits: at('SvcWalArchivingStalled') },
    ),
    timeseries(
      'Failed archiving',
      'Attempts to archive a log segment that failed.',
      'perSecond',
      rateOnce('svc_store_wal_archive_failures_total', identity),
      { runbooks: ['SvcWalArchivingStalled'] },
    ),
    table(
      'Objectives',
      'How much may be lost and how long recovery may take.',
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
      { width: 8, height: 8 },
    ),
    table(
      'Restore drills',
      'When each procedure was last tried with success, and how long it took: the recovery time that is proven.',
      { cluster: 'Cluster', store: 'Store', database: 'Database', procedure: 'Procedure' },
      [
        column(
          'Last success',
          'ago',
          moment(`${drill}_success_timestamp_seconds`, 'store, database, procedure'),
        ),
        column('Took', 'duration', lastKnown(`${drill}_duration_seconds`, 'store, database, procedure')),
      ],
    ),
  ],
};

const flow: Row = {
  title: 'Replication',
  panels: [
    timeseries(
      'Lag',
      'Age of the oldest change that is not yet in the other cluster. Absent where nobody knows; that is no 0.',
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
      'Since a task was applied',
      'It grows while nothing changes in the source, too: read it beside the lag.',
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
      { width: 8, height: 8, runbooks: ['SvcClusterUnreachable'] },
    ),
    timeseries(
      'Duration of the look at other clusters',
      'How long the other cluster took to answer.',
      'seconds',
      highest('svc_cluster_probe_duration_seconds', 'remote_cluster'),
    ),
  ],
};

const domains: Row = {
  title: 'Domains',
  panels: [
    stat('Clusters', 'Enabled clusters of the cluster group.', 'count', highest('svc_clusters'), {
      height: 8,
    }),
    timeline(
      'Active cluster',
      'Where each domain is active, as each cluster says. Two bars of one domain at the same time: they disagree.',
      'active',
      highest('svc_domain_active_cluster', 'domain, active_cluster'),
      { width: 20, height: 8, runbooks: ['SvcDomainDisagreement'] },
    ),
    table(
      'Domains now',
      'How each domain is spread, and how often it was failed over in the shown range.',
      { cluster: 'Cluster', domain: 'Domain' },
      [
        column('Global', 'count', highest('svc_domain_global', 'domain'), { state: 'yes' }),
        column('Clusters', 'count', highest('svc_domain_clusters', 'domain'), {
          limits: at('SvcDomainTooFewClusters'),
        }),
        column('Retention', 'duration', highest('svc_domain_retention_seconds', 'domain')),
        column('Failover version', 'count', highest('svc_domain_failover_version', 'domain')),
        column('Failovers', 'count', grownOnce('svc_domain_failovers_total', 'domain')),
        column('Last failover', 'ago', moment('svc_domain_last_failover_timestamp_seconds', 'domain')),
      ],
    ),
  ],
};

export const replication: Dashboard = {
  name: 'dr',
  title: 'Replication and recovery',
  description:
    'Whether the service could be brought back, how far other clusters are behind, and where domains are active.',
  choices: [instance, store('svc_store_up'), domain('svc_domain_active_cluster')],
  rows: [readiness, flow, domains],
};
