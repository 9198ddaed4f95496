import { fires, type HandWritten, type Plan, type Series, scenes, series, state, within } from './case.ts';

const at = 'cluster="dc1", instance="a"';
const pair = 'source_cluster="dc1", target_cluster="dc2"';
const toDc2 = { source_cluster: 'dc1', target_cluster: 'dc2' };
const lag = series('svc_replication_lag_seconds', pair);

/** The series of an agent in `cluster` about the domain. */
const says = (cluster: string, active: string, values = '1x60', instance = cluster): Series => ({
  [`svc_cluster_group_info{cluster="${cluster}", instance="${instance}", primary_cluster="dc1"}`]: '1x60',
  [`svc_domain_active_cluster{cluster="${cluster}", instance="${instance}", domain="orders", active_cluster="${active}"}`]:
    values,
});

const disagrees = (cluster: string, active_cluster: string, value: string) => ({
  labels: { cluster, domain: 'orders', active_cluster, primary_cluster: 'dc1' },
  value,
});

const bothDisagree = [disagrees('dc1', 'dc1', '2'), disagrees('dc2', 'dc2', '2')];

const disagreement: HandWritten = {
  alert: 'SvcDomainDisagreement',
  at: 20,
  silent: {
    healthy: { ...says('dc1', 'dc1'), ...says('dc2', 'dc1') },
    'exactly on the threshold': {
      ...says('dc1', 'dc1'),
      ...says('dc2', 'dc1', '1x15 stale'),
      ...says('dc2', 'dc2', '_x16 1x60'),
    },
    'counter reset or interruption': { ...says('dc1', 'dc1'), ...says('dc2', 'dc2', '1x10 stale _x6 1x60') },
    'series missing': { ...says('dc1', 'dc1'), ...says('dc2', 'dc2', '1x10 stale') },
    'a domain of the same name in another group of clusters': {
      ...says('dc1', 'dc1'),
      'svc_cluster_group_info{cluster="test1", instance="t", primary_cluster="test1"}': '1x60',
      'svc_domain_active_cluster{cluster="test1", instance="t", domain="orders", active_cluster="test1"}':
        '1x60',
    },
    'clusters that say nothing of their group': Object.fromEntries(
      ['dc1', 'dc2'].map((cluster) => [
        `svc_domain_active_cluster{cluster="${cluster}", instance="a", domain="orders", active_cluster="${cluster}"}`,
        '1x60',
      ]),
    ),
    'domains of one cluster are active in different clusters': {
      ...says('dc1', 'dc1'),
      'svc_domain_active_cluster{cluster="dc1", instance="a", domain="bills", active_cluster="dc2"}': '1x60',
    },
    'two environments with the same names, of which each agrees with itself': {
      ...within('production', { ...says('dc1', 'dc1'), ...says('dc2', 'dc1') }),
      ...within('staging', { ...says('dc1', 'dc2'), ...says('dc2', 'dc2') }),
    },
    'two environments with the same group, of which each has clusters with other labels': {
      ...within('production', { ...says('prod-1', 'dc1'), ...says('prod-2', 'dc1') }),
      ...within('staging', { ...says('test-1', 'dc2'), ...says('test-2', 'dc2') }),
    },
  },
  cases: [
    fires('fires', bothDisagree, { ...says('dc1', 'dc1'), ...says('dc2', 'dc2') }),
    fires(
      'three clusters of which one fails',
      [disagrees('dc1', 'dc1', '2'), disagrees('dc2', 'dc1', '2'), disagrees('dc3', 'dc3', '2')],
      { ...says('dc1', 'dc1'), ...says('dc2', 'dc1'), ...says('dc3', 'dc3') },
    ),
    fires('two agents that report the same', bothDisagree, {
      ...says('dc1', 'dc1'),
      ...says('dc1', 'dc1', '1x60', 'b'),
      ...says('dc2', 'dc2'),
    }),
    fires(
      'two environments with the same names, of which one disagrees',
      bothDisagree.map(({ labels, value }) => ({
        labels: { ...labels, environment: 'production' },
        value,
      })),
      {
        ...within('production', { ...says('dc1', 'dc1'), ...says('dc2', 'dc2') }),
        ...within('staging', { ...says('dc1', 'dc1'), ...says('dc2', 'dc1') }),
      },
    ),
  ],
};

/** The series with the time of the last failover of a domain, by its values. */
const failedOver = series('svc_domain_last_failover_timestamp_seconds', 'domain="orders"');
const spread = (clusters: string): Series => ({
  'svc_domain_clusters{domain="orders"}': clusters,
  'svc_domain_global{domain="orders"}': '1x99',
  svc_clusters: '3x99',
});

export const replicationPlans: readonly (Plan | HandWritten)[] = [
  {
    alert: 'SvcReplicationLag',
    at: 15,
    ...scenes(lag, { bad: '2x3 400x20', good: '2x20', edge: '300x20', reset: '2x5 400x3 2 400x20' }),
    agentsDiffer: 'fires',
    labels: toDc2,
    value: '6m 40s',
  },
  {
    alert: 'SvcReplicationTaskFailures',
    at: 15,
    bad: { [`svc_replication_task_failures_total{${pair}}`]: '0+720x20' },
    good: { [`svc_replication_task_failures_total{${pair}}`]: '0+60x20' },
    edge: { [`svc_replication_task_failures_total{${pair}}`]: '0+600x20' },
    reset: { [`svc_replication_task_failures_total{${pair}}`]: '900000x8 0+60x20' },
    labels: toDc2,
    value: '12',
    twice: '24',
    more: [
      fires(
        'agents of which each sees a part',
        '12',
        Object.fromEntries(
          ['a', 'b', 'c'].map((instance) => [
            `svc_replication_task_failures_total{cluster="dc1", instance="${instance}", ${pair}}`,
            '0+240x20',
          ]),
        ),
      ),
    ],
  },
  {
    alert: 'SvcReplicationLagUnknown',
    at: 45,
    bad: { svc_clusters: '3x60' },
    good: { svc_clusters: '3x60', ...lag('5x60') },
    edge: { svc_clusters: '1x60' },
    reset: { svc_clusters: '3x60', ...lag('_x20 5 stale') },
    agentsDiffer: 'is silent',
    labels: {},
    value: '3',
  },
  state('SvcClusterUnreachable', series('svc_cluster_up', 'remote_cluster="dc3"'), 5, {
    remote_cluster: 'dc3',
  }),
  disagreement,
  {
    alert: 'SvcDomainFailover',
    at: 10,
    ...scenes(failedOver, { bad: '300x40', good: '-90000x40', edge: '-300x40', reset: '300x5 -90000x40' }),
    agentsDiffer: 'fires',
    labels: { domain: 'orders' },
    value: '5m 0s',
  },
  {
    alert: 'SvcDomainTooFewClusters',
    at: 75,
    ...scenes(spread, { bad: '2x99', good: '4x99', edge: '3x99', reset: '2x60 3 2x99' }),
    agentsDiffer: 'is silent',
    labels: { domain: 'orders' },
    value: '2',
    silent: {
      'a local domain has one cluster by nature': {
        [`svc_domain_clusters{${at}, domain="orders"}`]: '1x99',
        [`svc_domain_global{${at}, domain="orders"}`]: '0x99',
        [`svc_clusters{${at}}`]: '3x99',
      },
      'the group has no more clusters': {
        [`svc_domain_clusters{${at}, domain="orders"}`]: '2x99',
        [`svc_domain_global{${at}, domain="orders"}`]: '1x99',
        [`svc_clusters{${at}}`]: '2x99',
      },
    },
  },
];
/** The plans for alerts on archival: src/monitoring/alerts/clusters.ts. */
export const archivalPlans: readonly Plan[] = [
  state('SvcArchiveDown', series('svc_archival_up', 'archive="history", scheme="file"'), 10, {
    archive: 'history',
    scheme: 'file',
  }),
  {
    alert: 'SvcArchivalStalled',
    at: 130,
    bad: archived('-90000x200', '0+60x200'),
    good: archived('0x200', '0+60x200'),
    edge: archived('-86400+60x200', '0+60x200'),
    reset: archived('0x19 -90000x54 5000 -90000x99', '0+60x200'),
    agentsDiffer: 'is silent',
    labels: { archive: 'history', scheme: 'file' },
    value: '1d 3h 10m 0s',
    silent: {
      'nothing completes, so that nothing is there to archive': {
        [`svc_archival_newest_object_timestamp_seconds{${at}, archive="history", scheme="file"}`]:
          '-90000x200',
        [`svc_workflow_completed{${at}, domain="orders"}`]: '70x200',
      },
    },
  },
  {
    alert: 'SvcRetentionBeforeArchive',
    at: 130,
    bad: kept('-700000x200', '604800x200'),
    good: kept('0x200', '604800x200'),
    edge: kept('-604800+60x200', '604800x200'),
    reset: kept('0x19 -700000x54 5000 -700000x99', '604800x200'),
    agentsDiffer: 'is silent',
    labels: { archive: 'history', scheme: 'file' },
    value: '8d 4h 36m 40s',
    silent: {
      'a domain with a shorter retention that does not archive': {
        [`svc_archival_newest_object_timestamp_seconds{${at}, archive="history", scheme="file"}`]:
          '-90000x200',
        [`svc_workflow_completed{${at}, domain="orders"}`]: '0+60x200',
        [`svc_domain_retention_seconds{${at}, domain="orders"}`]: '604800x200',
        [`svc_domain_archival_enabled{${at}, domain="orders", archive="history"}`]: '1x200',
        [`svc_domain_retention_seconds{${at}, domain="tests"}`]: '86400x200',
        [`svc_domain_archival_enabled{${at}, domain="tests", archive="history"}`]: '0x200',
        [`svc_domain_archival_enabled{${at}, domain="tests", archive="visibility"}`]: '1x200',
      },
      'the domain with the shortest retention, and nothing completes': {
        [`svc_archival_newest_object_timestamp_seconds{${at}, archive="history", scheme="file"}`]:
          '-700000x200',
        [`svc_workflow_completed{${at}, domain="orders"}`]: '70x200',
        [`svc_domain_retention_seconds{${at}, domain="orders"}`]: '604800x200',
        [`svc_domain_archival_enabled{${at}, domain="orders", archive="history"}`]: '1x200',
      },
    },
  },
  {
    alert: 'SvcArchivalOff',
    at: 40,
    ...scenes(archives, { bad: '1x10 0x60', good: '1x60', edge: '1x30 0x60', reset: '1x10 0x20 1 0x60' }),
    agentsDiffer: 'is silent',
    labels: { domain: 'orders', archive: 'history' },
    value: '0',
    silent: {
      'the owner never archived': {
        [`svc_domain_archival_enabled{${at}, domain="orders", archive="history"}`]: '0x60',
      },
    },
    more: [
      fires('an agent that was started after it was turned off', '0', {
        [`svc_domain_archival_enabled{${at}, domain="orders", archive="history"}`]: '1x10 0x60',
        'svc_domain_archival_enabled{cluster="dc1", instance="b", domain="orders", archive="history"}':
          '_x10 0x60',
      }),
    ],
  },
];
function archived(newest: string, completed: string): Series {
  return {
    'svc_archival_newest_object_timestamp_seconds{archive="history", scheme="file"}': newest,
    'svc_workflow_completed{domain="orders"}': completed,
  };
}
function archives(enabled: string): Series {
  return { 'svc_domain_archival_enabled{domain="orders", archive="history"}': enabled };
}

function kept(newest: string, retention: string): Series {
  return {
    ...archived(newest, '0+60x200'),
    'svc_domain_retention_seconds{domain="orders"}': retention,
    'svc_domain_archival_enabled{domain="orders", archive="history"}': '1x200',
  };
}
const usable = series('svc_archival_up', 'archive="history", scheme="file"');
const completed = series('svc_workflow_completed', 'domain="orders"');
const written = series('svc_archival_newest_object_timestamp_seconds', 'archive="history", scheme="file"');
/** The plans for alerts on archives that look back for days. */
export const weekLongPlans: readonly Plan[] = [
  {
    alert: 'SvcArchivalNeverWritten',
    at: 11_760,
    every: 10,
    bad: { ...usable('1x1200'), ...completed('0+120x1200') },
    good: { ...usable('1x1200'), ...completed('0+120x1200'), ...written('0x1200') },
    // Eight days ago, workflows had been closing for less than an hour.
    edge: { ...usable('1x1200'), ...completed('0x21 0+120x1200') },
    reset: { ...usable('1x1200'), ...completed('9000x10 0x1200') },
    agentsDiffer: 'is silent',
    labels: { archive: 'history', scheme: 'file' },
    value: '1',
    silent: {
      'a domain that keeps its workflows for longer': {
        [`svc_archival_up{${at}, archive="history", scheme="file"}`]: '1x1200',
        [`svc_workflow_completed{${at}, domain="orders"}`]: '0+120x1200',
        [`svc_domain_retention_seconds{${at}, domain="orders"}`]: '2592000x1200',
      },
      'an archive that cannot be used': {
        [`svc_archival_up{${at}, archive="history", scheme="file"}`]: '0x1200',
        [`svc_workflow_completed{${at}, domain="orders"}`]: '0+120x1200',
      },
    },
  },
];
