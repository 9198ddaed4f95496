import type { Plan, Series } from './plan.ts';

const role = 'svc_service="history"';
const at = 'cluster="dc1", instance="a"';
const list = 'svc_service="matching", domain="orders", tasklist="pay"';
const pay = { domain: 'orders', tasklist: 'pay' };
const backlog = (values: string): Series => ({ [`svc_matching_tasklist_backlog{${list}}`]: values });
const timeouts = (values: string): Series => ({
  [`svc_workflow_timeout{${role}, domain="orders", workflow_type="Pay"}`]: values,
});
const closed = (timeout: string, completed: string): Series => ({
  ...timeouts(timeout),
  [`svc_workflow_completed{${role}, domain="orders", workflow_type="Pay"}`]: completed,
});

/** Of src/monitoring/rules/alerts/tasks.ts. */
export const taskPlans: readonly Plan[] = [
  {
    alert: 'SvcTaskListBacklogGrowth',
    at: 25,
    bad: backlog('0+12000x40'),
    good: backlog('500x40'),
    edge: backlog('0+6000x40'),
    reset: backlog('90000x15 0x40'),
    labels: pay,
    value: '200',
    twice: '400',
    more: [
      {
        shows: 'a backlog that drains',
        series: { [`svc_matching_tasklist_backlog{${at}, ${list}}`]: '2000000-40000x40' },
        at: 25,
        fires: [],
      },
      {
        shows: 'a task list that moves to another host',
        series: {
          [`svc_matching_tasklist_backlog{${at}, ${list}}`]: '900000x18 stale',
          [`svc_matching_tasklist_backlog{cluster="dc1", instance="b", ${list}}`]: '_x19 900000x40',
        },
        at: 25,
        fires: [],
      },
    ],
  },
  {
    alert: 'SvcTaskListStalled',
    at: 20,
    bad: { ...backlog('70x40'), [`svc_matching_tasks_dispatched{${list}}`]: '9000x40' },
    good: { ...backlog('70x40'), [`svc_matching_tasks_dispatched{${list}}`]: '0+60x40' },
    edge: { ...backlog('0x40'), [`svc_matching_tasks_dispatched{${list}}`]: '9000x40' },
    reset: { ...backlog('70x40'), [`svc_matching_tasks_dispatched{${list}}`]: '9000x15 0+60x40' },
    labels: pay,
    value: '70',
    twice: '140',
    more: [
      {
        shows: 'nothing was ever handed out',
        series: { [`svc_matching_tasklist_backlog{${at}, ${list}}`]: '70x40' },
        at: 20,
        fires: [{ labels: { cluster: 'dc1', ...pay }, value: '70' }],
      },
    ],
  },
  {
    alert: 'SvcWorkflowTimeouts',
    at: 15,
    bad: timeouts('0+600x20'),
    good: timeouts('0+60x20'),
    edge: timeouts('0+300x20'),
    reset: timeouts('900000x8 0+60x20'),
    labels: { domain: 'orders' },
    value: '10',
    twice: '20',
    more: [
      {
        shows: 'an old total is no news',
        series: {
          [`svc_workflow_timeout{${at}, ${role}, domain="orders", workflow_type="Pay"}`]: '900000x20',
          [`svc_workflow_started{${at}, ${role}, domain="orders", workflow_type="Pay"}`]: '0+600x20',
        },
        at: 15,
        fires: [],
      },
      {
        shows: 'a target that is new brings its old total along',
        series: {
          [`svc_workflow_timeout{${at}, ${role}, domain="orders", workflow_type="Pay"}`]: '_x10 900000x20',
          [`svc_workflow_started{${at}, ${role}, domain="orders", workflow_type="Pay"}`]: '_x10 900000x20',
        },
        at: 14,
        fires: [],
      },
      {
        shows: 'workflow types that stay below each by itself',
        series: {
          [`svc_workflow_timeout{${at}, ${role}, domain="orders", workflow_type="Pay"}`]: '0+240x20',
          [`svc_workflow_timeout{${at}, ${role}, domain="orders", workflow_type="Ship"}`]: '0+240x20',
        },
        at: 15,
        fires: [{ labels: { cluster: 'dc1', domain: 'orders' }, value: '8' }],
      },
      {
        shows: 'a series that is born with its first burst',
        series: {
          [`svc_workflow_timeout{${at}, ${role}, domain="orders", workflow_type="Pay"}`]: '_x10 6000x20',
          [`svc_workflow_started{${at}, ${role}, domain="orders", workflow_type="Pay"}`]: '0+600x20',
        },
        at: 14,
        fires: [{ labels: { cluster: 'dc1', domain: 'orders' }, value: '20' }],
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
    more: [
      {
        shows: 'every outcome counts',
        series: {
          ...Object.fromEntries(
            ['completed', 'failed', 'canceled', 'continued_as_new'].map((name) => [
              `svc_workflow_${name}{${at}, ${role}, domain="orders", workflow_type="Pay"}`,
              '0+27x40',
            ]),
          ),
          [`svc_workflow_timeout{${at}, ${role}, domain="orders", workflow_type="Pay"}`]: '0+12x40',
        },
        at: 20,
        fires: [{ labels: { cluster: 'dc1', domain: 'orders' }, value: '10%' }],
      },
      {
        shows: 'the few workflows of a quiet night',
        series: {
          [`svc_workflow_timeout{${at}, ${role}, domain="orders", workflow_type="Pay"}`]: '0+0.3x40',
        },
        at: 20,
        fires: [],
      },
      {
        shows: 'nothing but timeouts, and no other outcome ever',
        series: {
          [`svc_workflow_timeout{${at}, ${role}, domain="orders", workflow_type="Pay"}`]: '0+60x40',
        },
        at: 20,
        fires: [{ labels: { cluster: 'dc1', domain: 'orders' }, value: '100%' }],
      },
    ],
  },
];
