import { fires, type Plan, type Series, scenes, series } from './case.ts';

const role = 'svc_service="history"';
const at = 'cluster="dc1", instance="a"';
const timeouts = series('svc_workflow_timeout', `${role}, domain="orders", workflow_type="Pay"`);
const closed = (timeout: string, completed: string): Series => ({
  ...timeouts(timeout),
  [`svc_workflow_completed{${role}, domain="orders", workflow_type="Pay"}`]: completed,
});
/** A canary that completes 108 workflows a minute. */
const withCanary = (timeouts: string): Series => ({
  [`svc_workflow_timeout{${at}, ${role}, domain="canary", workflow_type="Late"}`]: timeouts,
  [`svc_workflow_completed{${at}, ${role}, domain="canary", workflow_type="Echo"}`]: '0+108x40',
});
const failed = (failures: string, completed: string): Series => ({
  [`svc_workflow_failed{${role}, domain="orders", workflow_type="Pay"}`]: failures,
  [`svc_workflow_completed{${role}, domain="orders", workflow_type="Pay"}`]: completed,
});
const canary = (completed: string): Series => ({
  [`svc_workflow_completed{${role}, domain="canary", workflow_type="Echo"}`]: completed,
  'up{job="history"}': '1x99',
});
/** A canary that completes nothing from minute 30 on, beside other series. */
const silentCanary = (...beside: [series: string, values: string][]): Series => ({
  [`svc_workflow_completed{${at}, ${role}, domain="canary", workflow_type="Echo"}`]: '0+10x30 300x60',
  ...Object.fromEntries(beside.map(([series, values]) => [series.replace('{', `{${at}, `), values])),
});
/** The plans for alerts on workflows: src/monitoring/alerts/workflows.ts. */
export const workflowPlans: readonly Plan[] = [
  {
    alert: 'SvcWorkflowTimeouts',
    at: 15,
    ...scenes(timeouts, { bad: '0+600x20', good: '0+60x20', edge: '0+300x20', reset: '900000x8 0+60x20' }),
    labels: { domain: 'orders' },
    value: '10',
    twice: '20',
    silent: {
      'an old total is no news': {
        [`svc_workflow_timeout{${at}, ${role}, domain="orders", workflow_type="Pay"}`]: '900000x20',
        [`svc_workflow_started{${at}, ${role}, domain="orders", workflow_type="Pay"}`]: '0+600x20',
      },
    },
    more: [
      {
        shows: 'a target that is new brings its old total along',
        series: {
          [`svc_workflow_timeout{${at}, ${role}, domain="orders", workflow_type="Pay"}`]: '_x10 900000x20',
          [`svc_workflow_started{${at}, ${role}, domain="orders", workflow_type="Pay"}`]: '_x10 900000x20',
        },
        at: 14,
        fires: [],
      },
      fires('workflow types that stay below each by itself', '8', {
        [`svc_workflow_timeout{${at}, ${role}, domain="orders", workflow_type="Pay"}`]: '0+240x20',
        [`svc_workflow_timeout{${at}, ${role}, domain="orders", workflow_type="Ship"}`]: '0+240x20',
      }),
      {
        shows: 'a series that is born with its first burst',
        series: {
          [`svc_workflow_timeout{${at}, ${role}, domain="orders", workflow_type="Pay"}`]: '_x10 6000x20',
          [`svc_workflow_started{${at}, ${role}, domain="orders", workflow_type="Pay"}`]: '0+600x20',
        },
        at: 14,
        fires: '20',
      },
    ],
  },
  {
    alert: 'SvcWorkflowTimeoutShare',
    at: 20,
    bad: closed('0+12x40', '0+108x40'),
    good: closed('0+1x40', '0+108x40'),
    edge: closed('0+6x40', '0+114x40'),
    reset: closed('9000x8 0+1x40', '9000x8 0+108x40'),
    labels: { domain: 'orders' },
    value: '10%',
    silent: {
      'the few workflows of a quiet night': {
        [`svc_workflow_timeout{${at}, ${role}, domain="orders", workflow_type="Pay"}`]: '0+0.3x40',
      },
      'a canary, which times out on purpose': {
        [`svc_workflow_timeout{${at}, ${role}, domain="a_canary", workflow_type="Pay"}`]: '0+60x40',
      },
      'a canary with as large a share': {
        ...withCanary('0+12x40'),
        [`svc_workflow_timeout{${at}, ${role}, domain="orders", workflow_type="Pay"}`]: '0+12x40',
        [`svc_workflow_completed{${at}, ${role}, domain="orders", workflow_type="Pay"}`]: '0+108x40',
      },
      'half of the workflows, as of those of the canary': {
        ...withCanary('0+108x40'),
        [`svc_workflow_timeout{${at}, ${role}, domain="orders", workflow_type="Pay"}`]: '0+60x40',
        [`svc_workflow_completed{${at}, ${role}, domain="orders", workflow_type="Pay"}`]: '0+60x40',
      },
    },
    more: [
      fires('a canary that loses as many, which is not on purpose', '90%', {
        ...withCanary('0+972x40'),
        [`svc_workflow_timeout{${at}, ${role}, domain="orders", workflow_type="Pay"}`]: '0+108x40',
        [`svc_workflow_completed{${at}, ${role}, domain="orders", workflow_type="Pay"}`]: '0+12x40',
      }),
      fires('every outcome counts', '10%', {
        ...Object.fromEntries(
          ['completed', 'failed', 'canceled', 'continued_as_new'].map((name) => [
            `svc_workflow_${name}{${at}, ${role}, domain="orders", workflow_type="Pay"}`,
            '0+27x40',
          ]),
        ),
        [`svc_workflow_timeout{${at}, ${role}, domain="orders", workflow_type="Pay"}`]: '0+12x40',
      }),
      fires('a canary with a smaller share', '10%', {
        ...withCanary('0+11x40'),
        [`svc_workflow_timeout{${at}, ${role}, domain="orders", workflow_type="Pay"}`]: '0+12x40',
        [`svc_workflow_completed{${at}, ${role}, domain="orders", workflow_type="Pay"}`]: '0+108x40',
      }),
      fires('nothing but timeouts, and no other outcome ever', '100%', {
        [`svc_workflow_timeout{${at}, ${role}, domain="orders", workflow_type="Pay"}`]: '0+60x40',
      }),
    ],
  },
  {
    alert: 'SvcWorkflowFailures',
    at: 20,
    bad: failed('0+30x40', '0+70x40'),
    good: failed('0+1x40', '0+70x40'),
    edge: failed('0+24x40', '0+96x40'),
    reset: failed('9000x8 0+1x40', '9000x8 0+108x40'),
    labels: { domain: 'orders' },
    value: '30%',
    silent: {
      'the few workflows of a quiet night': {
        [`svc_workflow_failed{${at}, ${role}, domain="orders", workflow_type="Pay"}`]: '0+0.3x40',
      },
      'a canary, which fails on purpose': {
        [`svc_workflow_failed{${at}, ${role}, domain="a_canary", workflow_type="Pay"}`]: '0+30x40',
      },
    },
    more: [
      fires('every outcome counts', '40%', {
        ...Object.fromEntries(
          ['completed', 'timeout', 'canceled', 'continued_as_new'].map((name) => [
            `svc_workflow_${name}{${at}, ${role}, domain="orders", workflow_type="Pay"}`,
            '0+15x40',
          ]),
        ),
        [`svc_workflow_failed{${at}, ${role}, domain="orders", workflow_type="Pay"}`]: '0+40x40',
      }),
    ],
  },
  {
    alert: 'SvcCanaryFailing',
    at: 50,
    bad: canary('0+10x30 300x60'),
    good: canary('0+10x99'),
    edge: canary('0+1x10 10x99'),
    reset: canary('0+10x42 0+10x60'),
    agentsDiffer: 'is silent',
    labels: { domain: 'canary' },
    value: '300',
    twice: '600',
    silent: {
      'history that no scrape reaches': {
        [`svc_workflow_completed{${at}, ${role}, domain="canary", workflow_type="Echo"}`]: '0+10x30 stale',
        [`up{${at}, job="history"}`]: '1x30 0x60',
        [`svc_role_scrape_up{${at}, ${role}}`]: '1x99',
      },
      'a target of history that is new, and one that is gone': {
        ...silentCanary(['up{job="history"}', '1x42 stale']),
        'up{cluster="dc1", instance="b", job="history"}': '_x37 1x60',
      },
      'the history of another cluster': {
        ...silentCanary(),
        'up{cluster="dc2", instance="b", job="history"}': '1x99',
      },
      'a canary that completes something every eight minutes': {
        [`svc_workflow_completed{${at}, ${role}, domain="canary", workflow_type="Echo"}`]:
          '0x7 9x7 18x7 27x7 36x7 45x7 54x7',
        [`up{${at}, job="history"}`]: '1x99',
      },
      'domains of others, and a canary of archival': {
        [`svc_workflow_completed{${at}, ${role}, domain="orders", workflow_type="Pay"}`]: '0+10x30 300x60',
        [`svc_workflow_completed{${at}, ${role}, domain="canary_archival", workflow_type="A"}`]:
          '0+10x30 300x60',
        [`up{${at}, job="history"}`]: '1x99',
      },
    },
    more: [
      fires('history started again, and nothing has completed since', '305', {
        [`svc_workflow_completed{${at}, ${role}, domain="canary", workflow_type="Echo"}`]: '0+10x30 stale',
        [`up{${at}, job="history"}`]: '1x30 0 1x60',
      }),
      {
        shows: 'history started again 14 minutes ago',
        series: silentCanary(['up{job="history"}', '1x30 0x3 1x60']),
        at: 48,
        fires: [],
      },
      fires('one instance of history is down, another one answers', '300', {
        ...silentCanary(['up{job="history"}', '1x99']),
        'up{cluster="dc1", instance="b", job="history"}': '0x99',
      }),
      ...(['svc_role_scrape_up', 'svc_role_up'] as const).flatMap((name) =>
        [true, false].map((isUp) => ({
          shows: `no scrape but that of the agents: ${name} is ${isUp ? '1' : '0 for a minute'}`,
          series: silentCanary([`${name}{${role}}`, isUp ? '1x99' : '1x42 0 1x99']),
          at: 50,
          fires: isUp ? [{ labels: { cluster: 'dc1', domain: 'canary' }, value: '300' }] : [],
        })),
      ),
    ],
  },
];
const closedShards = series('svc_history_shard_context_closed', role);
const waited = (
  values: { quick: string; all: string },
  operation = 'TransferActiveTaskDecision',
  where = '',
): Series => {
  const name = 'svc_history_task_queue_latency';
  const labels = `${where}${role}, operation="${operation}"`;
  return {
    [`${name}_bucket{${labels}, le="5"}`]: values.quick,
    [`${name}_bucket{${labels}, le="10"}`]: values.all,
    [`${name}_bucket{${labels}, le="+Inf"}`]: values.all,
    [`${name}_count{${labels}}`]: values.all,
  };
};
const halfLate = { quick: '0+600x60', all: '0+1200x60' };
/** The plans for alerts on the work of history: src/monitoring/alerts/workflows.ts. */
export const historyPlans: readonly Plan[] = [
  {
    alert: 'SvcShardMovement',
    at: 25,
    ...scenes(closedShards, { bad: '0+12x60', good: '0+1x60', edge: '0+6x60', reset: '9000x18 0+1x60' }),
    labels: {},
    value: '200m',
    twice: '400m',
    more: [
      {
        shows: 'a host that was started again, and its 4,000 shards',
        series: { [`svc_history_shard_context_closed{${at}, ${role}}`]: '0x5 4000x60' },
        at: 11,
        fires: [],
      },
    ],
  },
  {
    alert: 'SvcHistoryTaskLatency',
    at: 20,
    bad: waited(halfLate),
    good: waited({ quick: '0+1200x60', all: '0+1200x60' }),
    edge: waited({ quick: '0+1140x60', all: '0+1200x60' }),
    reset: waited({ quick: '900000x8 0+1200x60', all: '990000x8 0+1200x60' }),
    labels: { queue: 'transfer' },
    value: '9.5s',
    silent: {
      'standby tasks wait by design': waited(halfLate, 'TransferStandbyTaskDecision', `${at}, `),
      'one late task in a quiet night': waited(
        { quick: '0+1x60', all: '0+2x60' },
        'TransferActiveTaskDecision',
        `${at}, `,
      ),
    },
    more: [
      fires(
        'the queue of timers',
        [{ labels: { cluster: 'dc1', queue: 'timer' }, value: '9.5s' }],
        waited(halfLate, 'TimerActiveTaskUserTimer', `${at}, `),
      ),
    ],
  },
];
