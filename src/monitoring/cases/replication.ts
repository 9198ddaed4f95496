import type { HandWritten, Plan, Series } from './plan.ts';
import { series, state } from './state.ts';

const at = 'cluster="dc1", instance="a"';
const pair = 'source_cluster="dc1", target_cluster="dc2"';
const toDc2 = { source_cluster: 'dc1', target_cluster: 'dc2' };
const lag = series('svc_replication_lag_seconds', pair);

/** Of src/monitoring/rules/alerts/replication.ts. */
export const replicationPlans: readonly (Plan | HandWritten)[] = [
  {
    alert: 'SvcReplicationLag',
    at: 15,
    bad: lag('2x3 400x20'),
    good: lag('2x20'),
    edge: lag('300x20'),
    reset: lag('400x12 2 400x20'),
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
    agentsDiffer: 'fires',
    labels: toDc2,
    value: '12',
  },
  {
    alert: 'SvcReplicationLagUnknown',
    at: 45,
    bad: { svc_clusters: '3x60' },
    good: { svc_clusters: '3x60', ...lag('5x60') },
    edge: { svc_clusters: '1x60' },
    reset: { svc_clusters: '3x60', ...lag('_x40 5 stale') },
    agentsDiffer: 'is silent',
    labels: {},
    value: '3',
  },
  state('SvcClusterUnreachable', series('svc_cluster_up', 'remote_cluster="dc3"'), 5, {
    remote_cluster: 'dc3',
  }),
  {
    alert: 'SvcDomainDisagreement',
    cases: disagreement(),
  },
  {
    alert: 'SvcDomainTooFewClusters',
    at: 75,
    bad: { 'svc_domain_clusters{domain="orders"}': '2x99', 'svc_domain_global{domain="orders"}': '1x99' },
    good: { 'svc_domain_clusters{domain="orders"}': '4x99', 'svc_domain_global{domain="orders"}': '1x99' },
    edge: { 'svc_domain_clusters{domain="orders"}': '3x99', 'svc_domain_global{domain="orders"}': '1x99' },
    reset: {
      'svc_domain_clusters{domain="orders"}': '2x60 3 2x99',
      'svc_domain_global{domain="orders"}': '1x99',
    },
    agentsDiffer: 'is silent',
    labels: { domain: 'orders' },
    value: '2',
    more: [
      {
        shows: 'a local domain has one cluster by nature',
        series: {
          [`svc_domain_clusters{${at}, domain="orders"}`]: '1x99',
          [`svc_domain_global{${at}, domain="orders"}`]: '0x99',
        },
        at: 75,
        fires: [],
      },
    ],
  },
];

function disagreement(): HandWritten['cases'] {
  const says = (cluster: string, active: string, values = '1x60', instance = cluster): Series => ({
    [`svc_domain_active_cluster{cluster="${cluster}", instance="${instance}", domain="orders", active_cluster="${active}"}`]:
      values,
  });
  const firing = (cluster: string, active_cluster: string, value: string) => ({
    labels: { cluster, domain: 'orders', active_cluster },
    value,
  });
  const both = [firing('dc1', 'dc1', '2'), firing('dc2', 'dc2', '2')];
  return [
    { shows: 'healthy', series: { ...says('dc1', 'dc1'), ...says('dc2', 'dc1') }, at: 20, fires: [] },
    { shows: 'fires', series: { ...says('dc1', 'dc1'), ...says('dc2', 'dc2') }, at: 20, fires: both },
    {
      shows: 'exactly on the threshold',
      series: {
        ...says('dc1', 'dc1'),
        ...says('dc2', 'dc1', '1x15 stale'),
        ...says('dc2', 'dc2', '_x16 1x60'),
      },
      at: 20,
      fires: [],
    },
    {
      shows: 'counter reset or interruption',
      series: { ...says('dc1', 'dc1'), ...says('dc2', 'dc2', '1x10 stale _x6 1x60') },
      at: 20,
      fires: [],
    },
    {
      shows: 'series missing',
      series: { ...says('dc1', 'dc1'), ...says('dc2', 'dc2', '1x10 stale') },
      at: 20,
      fires: [],
    },
    {
      shows: 'three clusters of which one is ill',
      series: { ...says('dc1', 'dc1'), ...says('dc2', 'dc1'), ...says('dc3', 'dc3') },
      at: 20,
      fires: [firing('dc1', 'dc1', '2'), firing('dc2', 'dc1', '2'), firing('dc3', 'dc3', '2')],
    },
    {
      shows: 'two agents that report the same',
      series: { ...says('dc1', 'dc1'), ...says('dc1', 'dc1', '1x60', 'b'), ...says('dc2', 'dc2') },
      at: 20,
      fires: both,
    },
    {
      shows: 'domains of one cluster are active where they please',
      series: {
        ...says('dc1', 'dc1'),
        'svc_domain_active_cluster{cluster="dc1", instance="a", domain="bills", active_cluster="dc2"}':
          '1x60',
      },
      at: 20,
      fires: [],
    },
  ];
}
