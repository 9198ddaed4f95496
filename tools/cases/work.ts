import { fires, type Plan, type Series, scenes, series } from './case.ts';

const role = 'svc_service="history"';
const history = { svc_service: 'history' };
const at = 'cluster="dc1", instance="a"';
const operation = 'operation="PersistenceGetWorkflowExecution"';
export const buckets = (
  metric: string,
  labels: string,
  le: string,
  withinPercent: number,
  perMinute = 6000,
): Series => ({
  [`${metric}_bucket{${labels}, le="${le}"}`]: `0+${(withinPercent * perMinute) / 100}x60`,
  [`${metric}_bucket{${labels}, le="${le === '1' ? '2.5' : '1'}"}`]: `0+${perMinute}x60`,
  [`${metric}_bucket{${labels}, le="+Inf"}`]: `0+${perMinute}x60`,
  [`${metric}_count{${labels}}`]: `0+${perMinute}x60`,
});
export const restarted = (metric: string, labels: string, le: string): Series => ({
  [`${metric}_bucket{${labels}, le="${le}"}`]: '9000000x5 0+6000x60',
  [`${metric}_bucket{${labels}, le="+Inf"}`]: '9900000x5 0+6000x60',
  [`${metric}_count{${labels}}`]: '9900000x5 0+6000x60',
});
const calls = (errors: string, requests: string): Series => ({
  [`svc_persistence_errors{${role}, ${operation}}`]: errors,
  [`svc_persistence_requests{${role}, ${operation}}`]: requests,
});
/** The plans for alerts on calls to the store: src/monitoring/alerts/work.ts. */
export const persistencePlans: readonly Plan[] = [
  {
    alert: 'SvcPersistenceErrorRate',
    at: 15,
    bad: calls('0+720x20', '0+9000x20'),
    good: calls('0+60x20', '0+9000x20'),
    edge: calls('0+600x20', '0+9000x20'),
    reset: calls('900000x8 0+60x20', '900000x8 0+9000x20'),
    labels: history,
    value: '12',
    twice: '24',
    silent: {
      'a logged error now and then': {
        [`svc_log_persistence_errors_total{${at}, ${role}, ${operation}}`]: '0+12x20',
      },
    },
    more: [
      fires(
        'instances and operations that stay below each by itself',
        '16',
        Object.fromEntries(
          ['a', 'b', 'c', 'd'].map((instance) => [
            `svc_persistence_errors{cluster="dc1", instance="${instance}", ${role}, ${operation}}`,
            '0+240x20',
          ]),
        ),
      ),
      {
        shows: 'a series that is born with its first burst',
        series: {
          [`svc_persistence_errors{${at}, ${role}, ${operation}}`]: '_x10 9000+1x20',
          [`svc_persistence_requests{${at}, ${role}, ${operation}}`]: '0+9000x20',
        },
        at: 14,
        fires: '30.02',
      },
      {
        shows: 'a burst that is over before it would notify',
        series: {
          [`svc_persistence_errors{${at}, ${role}, ${operation}}`]: '0x9 9000x20',
          [`svc_log_persistence_errors_total{${at}, ${role}, ${operation}}`]: '0x9 900x20',
        },
        at: 14,
        fires: [],
      },
      fires('the role’s own reporter lost the series, and the role logs what failed', '333.3m', {
        [`svc_log_persistence_errors_total{${at}, ${role}, ${operation}}`]: '0+20x20',
      }),
      {
        shows: 'a target that is new brings its old total along',
        series: {
          [`svc_persistence_errors{${at}, ${role}, ${operation}}`]: '_x10 9000x20',
          [`svc_persistence_requests{${at}, ${role}, ${operation}}`]: '_x10 90000x20',
        },
        at: 14,
        fires: [],
      },
    ],
  },
  {
    alert: 'SvcPersistenceErrorRatio',
    at: 15,
    bad: calls('0+12x20', '0+120x20'),
    good: calls('0+1x20', '0+120x20'),
    edge: calls('0+6x20', '0+120x20'),
    reset: calls('90000x8 0+1x20', '90000x8 0+120x20'),
    labels: history,
    value: '10%',
    silent: {
      'every second call of a quiet night': {
        [`svc_persistence_errors{${at}, ${role}, ${operation}}`]: '0+1x20',
        [`svc_persistence_requests{${at}, ${role}, ${operation}}`]: '0+2x20',
      },
      'three minutes of errors that are over': {
        [`svc_persistence_errors{${at}, ${role}, ${operation}}`]: '0x8 120 240 360x20',
        [`svc_persistence_requests{${at}, ${role}, ${operation}}`]: '0+120x20',
      },
    },
    more: [
      fires('some series of the requests are missing', '100%', {
        [`svc_persistence_errors{${at}, ${role}, ${operation}}`]: '0+60x20',
        [`svc_persistence_requests{${at}, ${role}, ${operation}}`]: '0+30x20',
      }),
    ],
  },
  {
    alert: 'SvcPersistenceLatency',
    at: 15,
    bad: buckets('svc_persistence_latency', `${role}, ${operation}`, '1', 50),
    good: buckets('svc_persistence_latency', `${role}, ${operation}`, '1', 100),
    edge: buckets('svc_persistence_latency', `${role}, ${operation}`, '1', 99),
    reset: restarted('svc_persistence_latency', `${role}, ${operation}`, '1'),
    labels: { ...history, operation: 'PersistenceGetWorkflowExecution' },
    value: '2.47s',
    silent: {
      'one slow call in a quiet night': buckets(
        'svc_persistence_latency',
        `${at}, ${role}, ${operation}`,
        '1',
        50,
        2,
      ),
    },
  },
];
const list = 'svc_service="matching", domain="orders", tasklist="pay"';
const pay = { domain: 'orders', tasklist: 'pay' };
const backlog = series('svc_matching_tasklist_backlog', list);
const polls = series('svc_matching_poll_success', list);
const pollers = series('svc_matching_pollers', list);
const dispatches = series('svc_matching_tasks_dispatched', list);
/** The plans for alerts on task lists: src/monitoring/alerts/work.ts. */
export const taskPlans: readonly Plan[] = [
  {
    alert: 'SvcTaskListUnpolled',
    at: 15,
    bad: { ...backlog('70x60'), ...pollers('0x60') },
    good: { ...backlog('70x60'), ...pollers('2x60') },
    edge: { ...backlog('0x60'), ...pollers('0x60') },
    reset: { ...backlog('70x60'), ...pollers('2x12 0 2 0x60') },
    agentsDiffer: 'is silent',
    labels: pay,
    value: '70',
    twice: '140',
    silent: {
      'no poller, and the task has waited for a minute': {
        [`svc_matching_tasklist_backlog{${at}, ${list}}`]: '0x13 1x60',
        [`svc_matching_pollers{${at}, ${list}}`]: '0x60',
      },
      'polls that find nothing although tasks wait': {
        [`svc_matching_tasklist_backlog{${at}, ${list}}`]: '1x60',
        [`svc_matching_poll_timeout{${at}, ${list}}`]: '0+1x60',
      },
      'polls that get tasks': {
        [`svc_matching_tasklist_backlog{${at}, ${list}}`]: '1x60',
        [`svc_matching_poll_success{${at}, ${list}}`]: '0+1x60',
      },
      'pollers that all are busy, so that no poll ends': {
        [`svc_matching_tasklist_backlog{${at}, ${list}}`]: '1x60',
        [`svc_matching_poll_success{${at}, ${list}}`]: '9x60',
        [`svc_matching_pollers{${at}, ${list}}`]: '1x60',
      },
      'a product that counts neither pollers nor polls': {
        [`svc_matching_tasklist_backlog{${at}, ${list}}`]: '70x60',
      },
    },
    more: [
      fires('a product that counts polls, and a list without any', '1', {
        [`svc_matching_tasklist_backlog{${at}, ${list}}`]: '1x60',
        [`svc_matching_poll_timeout{${at}, svc_service="matching", domain="orders", tasklist="ship"}`]:
          '0+1x60',
      }),
    ],
  },
  {
    alert: 'SvcTaskListBacklogGrowth',
    at: 25,
    ...scenes(backlog, { bad: '0+12000x40', good: '500x40', edge: '0+6000x40', reset: '90000x15 0x40' }),
    labels: pay,
    value: '200',
    twice: '400',
    silent: {
      'a backlog that drains': { [`svc_matching_tasklist_backlog{${at}, ${list}}`]: '2000000-40000x40' },
      'a task list that moves to another host': {
        [`svc_matching_tasklist_backlog{${at}, ${list}}`]: '900000x18 stale',
        [`svc_matching_tasklist_backlog{cluster="dc1", instance="b", ${list}}`]: '_x19 900000x40',
      },
    },
  },
  {
    alert: 'SvcTaskListBacklogNotFalling',
    at: 150,
    bad: backlog('0+5x200'),
    good: backlog('500x200'),
    edge: backlog('5x88 10x200'),
    reset: backlog('0+5x140 100 705+5x60'),
    labels: pay,
    value: '450',
    twice: '900',
    ending: { afterMinutes: 70 },
    silent: {
      'a backlog that rises and falls': {
        [`svc_matching_tasklist_backlog{${at}, ${list}}`]: '0+50x40 2000-50x39 50+50x40 2050-50x40',
      },
    },
    more: [
      fires('a backlog that grows by a task in four minutes', '22.5', {
        [`svc_matching_tasklist_backlog{${at}, ${list}}`]: '0+0.25x200',
      }),
    ],
  },
  {
    alert: 'SvcTaskListStalled',
    at: 30,
    bad: { ...backlog('70x60'), ...polls('9000x60'), ...dispatches('9000x60') },
    good: { ...backlog('70x60'), ...polls('0+60x60') },
    edge: { ...backlog('10x60'), ...polls('9000x60') },
    reset: { ...backlog('70x60'), ...polls('9000x15 0+60x60') },
    labels: pay,
    value: '70',
    twice: '140',
    silent: {
      'a product that counts dispatches': {
        [`svc_matching_tasklist_backlog{${at}, ${list}}`]: '70x60',
        [`svc_matching_tasks_dispatched{${at}, ${list}}`]: '0+60x60',
      },
      'one task in a list that nobody polls': { [`svc_matching_tasklist_backlog{${at}, ${list}}`]: '1x60' },
      'the backlog was gone for a moment': {
        [`svc_matching_tasklist_backlog{${at}, ${list}}`]: '70x25 0 70x60',
      },
    },
    more: [
      fires('no poll ever got a task', '70', { [`svc_matching_tasklist_backlog{${at}, ${list}}`]: '70x60' }),
      fires('twenty tasks', '20', { [`svc_matching_tasklist_backlog{${at}, ${list}}`]: '20x60' }),
    ],
  },
  {
    alert: 'SvcTaskListAbandoned',
    at: 200,
    bad: { ...backlog('1x300'), ...polls('9000x300'), ...dispatches('9000x300') },
    good: { ...backlog('1x300'), ...polls('0+1x300') },
    edge: { ...backlog('0x300'), ...polls('9000x300') },
    reset: { ...backlog('1x150 0 1x300'), ...polls('9000x300') },
    labels: pay,
    value: '1',
    twice: '2',
    ending: { afterMinutes: 80 },
    silent: {
      'a product that counts dispatches': {
        [`svc_matching_tasklist_backlog{${at}, ${list}}`]: '70x300',
        [`svc_matching_tasks_dispatched{${at}, ${list}}`]: '0+1x300',
      },
    },
  },
];
