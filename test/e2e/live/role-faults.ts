import { critical, type Expected, type Fault, type Severity, warning } from './fault.ts';
import { frontendCallsPerSecond, tasksPerSecond, workflowsPerSecond } from './service.ts';

const dc1 = { cluster: 'dc1' };
const history = { ...dc1, svc_service: 'history' };
const onFirst = { instance: 'first' };

/** The four windows of an objective; the faster the budget burns, the higher the severity. */
const burns = (alert: string, says: RegExp): Expected[] =>
  (['critical', 'critical', 'warning', 'warning'] satisfies Severity[]).map((severity, at) => ({
    alert,
    severity,
    pack: 'slo',
    labels: { ...dc1, window: ['1h', '6h', '1d', '3d'][at]! },
    says,
    ...(severity === 'warning' && { heldBackBy: [`${alert} slo critical`] }),
  }));

/** The inhibitors of an outage: its inhibitions have two sources, and Alertmanager names either of them. */
const during = (outage: string, recovering: string): string[] => [
  `${outage} recommended critical`,
  `${recovering} recommended info`,
];

/** Faults of the service's roles that show in their answers. */
export const roleFaults: readonly Fault[] = [
  {
    what: 'the only frontend of dc2 does not answer its page',
    provoke: ({ service }) => service.roles['dc2 frontend'].serve(false),
    undo: ({ service }) => service.roles['dc2 frontend'].serve(true),
    alerts: [
      critical(
        'SvcServiceDown',
        { cluster: 'dc2', job: 'frontend', svc_service: 'frontend' },
        /^No target of job frontend answers its scrape, and no health check of the role passes: the highest up is 0\./,
      ),
    ],
  },
  {
    what: 'one of two history hosts of dc1 does not answer its page',
    provoke: ({ service }) => service.roles['second history'].serve(false),
    undo: ({ service }) => service.roles['second history'].serve(true),
    alerts: [
      warning(
        'SvcInstanceDown',
        { ...history, job: 'history', instance: 'second' },
        /^Target 127\.0\.0\.1:\d+ of job history .* up is 0\./,
      ),
    ],
  },
  {
    what: 'the targets of job worker are taken away',
    provoke: (stage) => stage.prometheusBy({ withoutJob: 'worker' }),
    undo: (stage) => stage.prometheusBy({}),
    alerts: [
      critical(
        'SvcTargetsVanished',
        { ...dc1, job: 'worker' },
        /^Job worker has no targets now \(within the last day: 1\)\./,
      ),
      critical(
        'SvcRoleAbsent',
        { job: 'worker' },
        /job worker at all \(absent returns 1\)\./,
        'SvcTargetsVanished recommended critical',
      ),
    ],
  },
  {
    what: 'matching answers its health check with ok: false',
    provoke: ({ service }) => service.roles.matching.feel(false),
    undo: ({ service }) => service.roles.matching.feel(true),
    alerts: [
      critical(
        'SvcRoleUnhealthy',
        { ...dc1, svc_service: 'matching', reason: 'not_ok' },
        /svc_role_up is 0, reason not_ok\./,
      ),
      warning(
        'SvcHealthFailing',
        { ...dc1, svc_service: 'matching', ...onFirst, reason: 'not_ok' },
        /is 0, reason not_ok\./,
        ...during('SvcRoleUnhealthy', 'SvcRoleRecovering'),
      ),
    ],
  },
  {
    what: 'one of two worker hosts of dc1 answers its health check with ok: false',
    provoke: ({ service }) => service.roles['second worker'].feel(false),
    undo: ({ service }) => service.roles['second worker'].feel(true),
    alerts: [
      warning(
        'SvcHealthFailing',
        { ...dc1, svc_service: 'worker', instance: 'second', reason: 'not_ok' },
        /^svc_role_up of worker on .* is 0, reason not_ok\./,
      ),
    ],
  },
  {
    what: 'the history host that does not answer its page answers its health check with ok: false',
    provoke: ({ service }) => service.roles['second history'].feel(false),
    undo: ({ service }) => service.roles['second history'].feel(true),
    alerts: [
      warning(
        'SvcHealthFailing',
        { ...history, instance: 'second', reason: 'not_ok' },
        /^svc_role_up of history on .* is 0, reason not_ok\./,
        'SvcInstanceDown recommended warning',
      ),
    ],
  },
  {
    what: 'the history of dc2 says that its persistence fails, as its store is down',
    provoke: ({ service }) => service.roles['dc2 history'].feel(false, 'persistence is unavailable'),
    undo: ({ service }) => service.roles['dc2 history'].feel(true),
    alerts: [
      critical(
        'SvcRoleUnhealthy',
        { cluster: 'dc2', svc_service: 'history', reason: 'persistence' },
        /reason persistence\./,
        ...during('SvcStoreDown', 'SvcStoreRecovering'),
      ),
      warning(
        'SvcHealthFailing',
        { cluster: 'dc2', svc_service: 'history', instance: 'other', reason: 'persistence' },
        /reason persistence\./,
        ...during('SvcStoreDown', 'SvcStoreRecovering'),
      ),
    ],
  },
  {
    what: 'the only agent of dc3 is killed',
    provoke: ({ agents }) => agents.lone.kill(),
    undo: ({ agents }) => agents.lone.restart(),
    alerts: [
      critical(
        'SvcRoleUnwatched',
        { cluster: 'dc3', job: 'frontend' },
        /^All agents beside job frontend are down \(targets: 1\)\./,
      ),
      warning(
        'SvcAgentDown',
        { cluster: 'dc3', job: 'svc-agent', instance: 'lone' },
        /up is 0\./,
        ...during('SvcRoleUnwatched', 'SvcAgentsRecovering'),
      ),
    ],
  },
  {
    what: 'history starts again and again',
    provoke: ({ service }) => service.starts.rise(1),
    again: ({ service }) => service.roles.history.say('info', 'Starting service history'),
    undo: ({ service }) => service.starts.rise(0),
    alerts: [
      critical('SvcHighRestartRate', history, /restart [\d.]+ times\/s in total, above 0\.1\/s\./),
      critical(
        'SvcCrashLooping',
        { ...history, ...onFirst },
        /restarted \d+ times in 15m, above 2\./,
        'SvcHighRestartRate recommended critical',
      ),
    ],
  },
  {
    what: 'history’s heap is of 9 GB',
    provoke: ({ service }) => service.heap.set(9e9),
    undo: ({ service }) => service.heap.set(1e9),
    alerts: [warning('SvcHeapMemory', { ...history, ...onFirst }, /at least 9GB for 10m/)],
  },
  {
    what: 'history stands still for half of the time',
    provoke: ({ service }) => service.gcPause.rise(500),
    undo: ({ service }) => service.gcPause.rise(1),
    alerts: [warning('SvcGCPause', { ...history, ...onFirst }, /pauses for [\d.]+ ms\/s/)],
  },
  {
    what: 'half of history’s calls to the store fail',
    provoke: ({ service }) => service.storeErrors.rise(1000),
    undo: ({ service }) => service.storeErrors.rise(0),
    alerts: [
      critical('SvcPersistenceErrorRate', history, /has [\d.]+ persistence errors\/s/),
      warning(
        'SvcPersistenceErrorRatio',
        history,
        /^[\d.]+% of the persistence calls of history fail/,
        'SvcPersistenceErrorRate recommended critical',
      ),
    ],
  },
  {
    what: 'history’s calls to the store take 4 s',
    provoke: ({ service }) => service.storeCalls.flow(2000, 4),
    undo: ({ service }) => service.storeCalls.flow(2000, 0.01),
    alerts: [
      warning(
        'SvcPersistenceLatency',
        { ...history, operation: 'UpdateWorkflowExecution' },
        /is [\d.]+s, above 1s\./,
      ),
    ],
  },
  {
    what: 'a backlog grows by 500 tasks a second',
    provoke: ({ service }) => service.growingBacklog.rise(500),
    undo: ({ service }) => service.growingBacklog.set(100),
    alerts: [
      warning(
        'SvcTaskListBacklogGrowth',
        { ...dc1, domain: 'orders', tasklist: 'growing' },
        /^The backlog of task list growing in domain orders grows by [\d.]+k? tasks\/s/,
      ),
      warning(
        'SvcTaskListBacklogNotFalling',
        { ...dc1, domain: 'orders', tasklist: 'growing' },
        /^The backlog of task list growing in domain orders was at least [\d.]+k? throughout/,
      ),
    ],
  },
  {
    what: 'tasks wait that no poller takes',
    provoke({ service }) {
      service.stalledBacklog.set(50);
      service.stalledDispatch.rise(0);
    },
    undo({ service }) {
      service.stalledBacklog.set(0);
      service.stalledDispatch.rise(tasksPerSecond);
    },
    alerts: [
      critical(
        'SvcTaskListStalled',
        { ...dc1, domain: 'orders', tasklist: 'stalled' },
        /^At least 50 tasks have waited in task list stalled/,
      ),
      warning(
        'SvcTaskListAbandoned',
        { ...dc1, domain: 'orders', tasklist: 'stalled' },
        /^At least 50 tasks/,
        'SvcTaskListStalled recommended critical',
      ),
    ],
  },
  {
    what: 'the workers of a task list are gone, and tasks wait',
    provoke({ service }) {
      service.pollers.set(0);
      service.unpolledBacklog.set(30);
    },
    undo({ service }) {
      service.pollers.set(2);
      service.unpolledBacklog.set(0);
    },
    alerts: [
      critical(
        'SvcTaskListUnpolled',
        { ...dc1, domain: 'orders', tasklist: 'unpolled' },
        /^The backlog of task list unpolled in domain orders is 30, above 0, and no worker has polled it for 2m\./,
      ),
      critical(
        'SvcTaskListStalled',
        { ...dc1, domain: 'orders', tasklist: 'unpolled' },
        /^At least 30/,
        'SvcTaskListUnpolled recommended critical',
      ),
    ],
  },
  {
    what: 'three tasks wait in a list that nobody polls',
    provoke: ({ service }) => service.abandonedBacklog.set(3),
    undo: ({ service }) => service.abandonedBacklog.set(0),
    alerts: [
      warning(
        'SvcTaskListAbandoned',
        { ...dc1, domain: 'orders', tasklist: 'abandoned' },
        /^The backlog of task list abandoned in domain orders was at least 3 for an hour/,
      ),
    ],
  },
  {
    what: 'workflows time out',
    provoke: ({ service }) => service.workflowTimeouts.rise(1000),
    undo: ({ service }) => service.workflowTimeouts.rise(0),
    alerts: [
      warning('SvcWorkflowTimeouts', { ...dc1, domain: 'orders' }, /orders has [\d.]+ timeouts\/s/),
      warning(
        'SvcWorkflowTimeoutShare',
        { ...dc1, domain: 'orders' },
        /^[\d.]+% of the closed workflows/,
        'SvcWorkflowTimeouts recommended warning',
      ),
    ],
  },
  {
    what: 'workflows fail',
    provoke: ({ service }) => service.workflowFailures.rise(1000),
    undo: ({ service }) => service.workflowFailures.rise(0),
    alerts: [
      warning(
        'SvcWorkflowFailures',
        { ...dc1, domain: 'orders' },
        /^[\d.]+% of the closed workflows of domain orders failed, above 20%\./,
      ),
    ],
  },
  {
    what: 'the canary completes nothing any more',
    provoke: ({ service }) => service.canary.rise(0),
    undo: ({ service }) => service.canary.rise(workflowsPerSecond),
    alerts: [
      critical(
        'SvcCanaryFailing',
        { ...dc1, domain: 'canary' },
        /^The canary in domain canary completed [\d.]+k? workflows within a day, more than 10, and none/,
      ),
    ],
  },
  {
    what: 'shards move all the time',
    provoke: ({ service }) => service.shardsClosed.rise(10),
    undo: ({ service }) => service.shardsClosed.rise(0),
    alerts: [warning('SvcShardMovement', dc1, /^The history hosts of dc1 release [\d.]+m? shards\/s/)],
  },
  {
    what: 'transfer tasks wait for 8 s',
    provoke: ({ service }) => service.transferTasks.flow(tasksPerSecond, 8),
    undo: ({ service }) => service.transferTasks.flow(tasksPerSecond, 0.01),
    alerts: [
      warning(
        'SvcHistoryTaskLatency',
        { ...dc1, queue: 'transfer' },
        /is [\d.]+s, above 5s\./,
        'SvcShardMovement recommended warning',
      ),
    ],
  },
  {
    what: 'all calls to the frontend take 2 s',
    provoke: ({ service }) => service.frontendCalls.flow(frontendCallsPerSecond, 2),
    undo: ({ service }) => service.frontendCalls.flow(frontendCallsPerSecond, 0.01),
    alerts: [
      warning('SvcFrontendLatency', dc1, /without long polls and lists, is [\d.]+m?s, above 500ms\./),
      ...burns(
        'SvcFrontendLatencyBurn',
        /^[\d.]+% of the requests to the frontend took longer than 0\.5s in \d[hd];/,
      ),
    ],
  },
  {
    what: 'half of the calls to the frontend fail',
    provoke: ({ service }) => service.frontendErrors.rise(frontendCallsPerSecond / 2),
    undo: ({ service }) => service.frontendErrors.rise(0),
    alerts: [
      warning(
        'SvcRequestErrors',
        { ...dc1, svc_service: 'frontend', callee: 'frontend' },
        /^[\d.]+% of the requests from frontend to frontend fail/,
      ),
      ...burns('SvcFrontendAvailabilityBurn', /^[\d.]+% of the requests to the frontend failed in \d[hd];/),
    ],
  },
];
