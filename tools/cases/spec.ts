import { fires, type Plan, scenes, series } from './case.ts';

const role = 'svc_service="history"';
const history = { svc_service: 'history' };
const store = { store: 'main', database: 'persistence', backup: 'nightly', backup_type: 'full' };
const backup = 'backup="nightly", store="main", database="persistence", backup_type="full"';
const pair = 'source_cluster="dc1", target_cluster="dc2"';
const toDc2 = { source_cluster: 'dc1', target_cluster: 'dc2' };

const start = 'svc_service="worker", operation="StartWorkflowExecution"';
const get = `${role}, operation="PersistenceGetWorkflowExecution"`;
/** The buckets of a timer in which this percentage of the observations is within the limit. */
const timer = (metric: string, labels: string, le: string, all: string) => (within: number) => ({
  [`${metric}_bucket{${labels}, le="${le}"}`]: `0+${within * 60}x60`,
  [`${metric}_bucket{${labels}, le="${all}"}`]: '0+6000x60',
  [`${metric}_bucket{${labels}, le="+Inf"}`]: '0+6000x60',
});
const frontend = timer('svc_frontend_client_latency', start, '0.5', '1');
const persistence = timer('svc_persistence_latency', get, '1', '2.5');
const pay = { svc_service: 'matching', domain: 'orders', tasklist: 'pay' };
const backlog = series(
  'svc_matching_tasklist_backlog',
  'svc_service="matching", domain="orders", tasklist="pay"',
);

/** The plans for the literal conditions. They also show what these conditions do not see. */
export const specPlans: readonly Plan[] = [
  {
    alert: 'SvcServiceDown',
    at: 10,
    bad: { 'up{job="frontend"}': '1 0x20' },
    good: { 'up{job="frontend"}': '1x20' },
    edge: { 'up{job="frontend"}': '1x20' },
    reset: { 'up{job="frontend"}': '1 0 1x20' },
    labels: { job: 'frontend' },
    instance: 'with pod',
    value: '0',
    silent: {
      'another role is none of its business': { 'up{job="history", cluster="dc1", instance="a"}': '0x20' },
    },
  },
  {
    alert: 'SvcHighRestartRate',
    at: 10,
    bad: { [`svc_restarts{${role}}`]: '0+12x10' },
    good: { [`svc_restarts{${role}}`]: '1x10' },
    edge: { [`svc_restarts{${role}}`]: '0+6x10' },
    reset: { [`svc_restarts{${role}}`]: '100x5 1x10' },
    labels: history,
    instance: 'with pod',
    value: '0.20',
    silent: {
      'a crash loop, in which each process starts its counter at 1, is not seen': {
        [`svc_restarts{cluster="dc1", instance="a", ${role}}`]: '1 _ 1 _ 1 _ 1 _ 1 _ 1',
      },
    },
  },
  {
    alert: 'SvcPersistenceErrorRate',
    at: 10,
    bad: { [`svc_persistence_errors{${get}}`]: '0+720x10' },
    good: { [`svc_persistence_errors{${get}}`]: '0+60x10' },
    edge: { [`svc_persistence_errors{${get}}`]: '0+600x10' },
    reset: {
      [`svc_persistence_errors{${get}}`]: '900000x5 0+60x10',
    },
    labels: { ...history, operation: 'PersistenceGetWorkflowExecution' },
    instance: 'with pod',
    value: '12',
  },
  {
    alert: 'SvcPersistenceLatency',
    at: 10,
    bad: persistence(50),
    good: persistence(100),
    edge: persistence(99),
    reset: {
      [`svc_persistence_latency_bucket{${get}, le="1"}`]: '9000000x5 0+6000x10',
      [`svc_persistence_latency_bucket{${get}, le="+Inf"}`]: '9900000x5 0+6000x10',
    },
    labels: { ...history, operation: 'PersistenceGetWorkflowExecution' },
    instance: 'with pod',
    value: '2.47s',
  },
  {
    alert: 'SvcTaskListBacklogGrowth',
    at: 10,
    ...scenes(backlog, { bad: '0+12000x10', good: '50x10', edge: '0+6000x10', reset: '90000x7 0x10' }),
    labels: pay,
    instance: 'with pod',
    value: '200',
    more: [
      fires(
        'a backlog that drains looks like one that grows',
        [
          {
            labels: { cluster: 'dc1', instance: 'a', ...pay },
            value: '4.667k',
          },
        ],
        {
          'svc_matching_tasklist_backlog{cluster="dc1", instance="a", svc_service="matching", domain="orders", tasklist="pay"}':
            '600000-40000x10',
        },
      ),
    ],
  },
  {
    alert: 'SvcWorkflowTimeouts',
    at: 10,
    bad: { [`svc_workflow_timeout{${role}, domain="orders", workflow_type="Pay"}`]: '0+600x10' },
    good: { [`svc_workflow_timeout{${role}, domain="orders", workflow_type="Pay"}`]: '0+60x10' },
    edge: { [`svc_workflow_timeout{${role}, domain="orders", workflow_type="Pay"}`]: '0+300x10' },
    reset: { [`svc_workflow_timeout{${role}, domain="orders", workflow_type="Pay"}`]: '900000x5 0+60x10' },
    labels: { ...history, domain: 'orders', workflow_type: 'Pay' },
    instance: 'with pod',
    value: '10',
  },
  {
    alert: 'SvcHeapMemory',
    at: 10,
    bad: { [`svc_memory_heap{${role}}`]: '9e9x20' },
    good: { [`svc_memory_heap{${role}}`]: '1e9x20' },
    edge: { [`svc_memory_heap{${role}}`]: '8e9x20' },
    reset: { [`svc_memory_heap{${role}}`]: '9e9x5 1e8x20' },
    labels: history,
    instance: 'with pod',
    value: '9G',
  },
  {
    alert: 'SvcGCPause',
    at: 10,
    bad: { [`svc_memory_gc_pause_ms{${role}}`]: '0+12000x10' },
    good: { [`svc_memory_gc_pause_ms{${role}}`]: '0+60x10' },
    edge: { [`svc_memory_gc_pause_ms{${role}}`]: '0+6000x10' },
    reset: { [`svc_memory_gc_pause_ms{${role}}`]: '900000x5 0+60x10' },
    labels: history,
    instance: 'with pod',
    value: '200',
    silent: {
      'a timer of that name is not seen': {
        [`svc_memory_gc_pause_ms_sum{cluster="dc1", instance="a", ${role}}`]: '0+30x10',
      },
    },
  },
  {
    alert: 'SvcFrontendLatency',
    at: 10,
    bad: frontend(50),
    good: frontend(100),
    edge: frontend(95),
    reset: {
      [`svc_frontend_client_latency_bucket{${start}, le="0.5"}`]: '9000000x5 0+6000x10',
      [`svc_frontend_client_latency_bucket{${start}, le="+Inf"}`]: '9900000x5 0+6000x10',
    },
    labels: { svc_service: 'worker', operation: 'StartWorkflowExecution' },
    instance: 'with pod',
    value: '950ms',
  },
  {
    alert: 'SvcBackupAge',
    at: 10,
    bad: { [`svc_backup_last_success_timestamp_seconds{${backup}}`]: '-90000x20' },
    good: { [`svc_backup_last_success_timestamp_seconds{${backup}}`]: '-80000x20' },
    edge: { [`svc_backup_last_success_timestamp_seconds{${backup}}`]: '-89400x20' },
    reset: { [`svc_backup_last_success_timestamp_seconds{${backup}}`]: '-95000x5 300x20' },
    agentsDiffer: 'is silent',
    labels: store,
    value: '1d 1h 10m 0s',
  },
  {
    alert: 'SvcBackupFailures',
    at: 60,
    bad: { [`svc_backup_failures_total{${backup}}`]: '0x30 36x60' },
    good: { [`svc_backup_failures_total{${backup}}`]: '7x60' },
    edge: { [`svc_backup_failures_total{${backup}}`]: '0x60' },
    reset: { [`svc_backup_failures_total{${backup}}`]: '7x30 0x30' },
    agentsDiffer: 'fires',
    labels: store,
    value: '0.0100',
    ending: { afterMinutes: 90 },
    silent: {
      'a first failure that brings its series along is not seen': {
        [`svc_backup_failures_total{cluster="dc1", instance="a", ${backup}}`]: '_x30 1x30',
      },
    },
  },
  {
    alert: 'SvcReplicationLag',
    at: 10,
    bad: { [`svc_replication_lag_seconds{${pair}}`]: '0 400x20' },
    good: { [`svc_replication_lag_seconds{${pair}}`]: '2x20' },
    edge: { [`svc_replication_lag_seconds{${pair}}`]: '300x20' },
    reset: { [`svc_replication_lag_seconds{${pair}}`]: '400x5 0x20' },
    agentsDiffer: 'fires',
    labels: toDc2,
    value: '6m 40s',
  },
  {
    alert: 'SvcReplicationTaskFailures',
    at: 10,
    bad: { [`svc_replication_task_failures_total{${pair}}`]: '0+720x10' },
    good: { [`svc_replication_task_failures_total{${pair}}`]: '0+60x10' },
    edge: { [`svc_replication_task_failures_total{${pair}}`]: '0+600x10' },
    reset: { [`svc_replication_task_failures_total{${pair}}`]: '900000x5 0+60x10' },
    labels: toDc2,
    value: '12',
    twice: '24',
  },
];
