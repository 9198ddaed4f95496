import { at } from '../alerts.ts';
import { domain, instance, operation, role, tasklist } from '../choices.ts';
import { peak, rate, rowsOf, top, total } from '../expr.ts';
import type { Dashboard, Row } from '../model.ts';
import { column, table, timeseries } from '../panels.ts';
import { callPanels } from './calls.ts';

const list = 'domain, tasklist';
const backlog = total('svc_matching_tasklist_backlog', list);
const longest = peak('svc_matching_tasklist_backlog', list);
const longestNow = (expr: string) => rowsOf(expr, 50, backlog);
const added = (by = '') => rate('svc_matching_tasks_added', by);
const dispatched = (by = '') => rate('svc_matching_tasks_dispatched', by);
const polled = (by = '') => rate('svc_matching_poll_success', by);
const empty = (by = '') => rate('svc_matching_poll_timeout', by);
const growth = `sum by (cluster, ${list}) (deriv(svc_matching_tasklist_backlog[$__rate_interval]))`;
const pollSuccess = (by = '') => `${polled(by)} / (${polled(by)} + (${empty(by)} or 0 * ${polled(by)}) > 0)`;

const backlogs: Row = {
  title: 'Backlog',
  panels: [
    timeseries(
      'Backlog by task list',
      'Tasks that wait; the 20 longest lists.',
      'count',
      top(20, backlog, longest),
      {
        runbooks: ['SvcTaskListStalled'],
      },
    ),
    timeseries(
      'Growth by task list',
      'How fast the backlog grows; below 0 it drains. The 20 longest lists.',
      'perSecond',
      top(20, growth, longest),
      { limits: at('SvcTaskListBacklogGrowth') },
    ),
    timeseries(
      'Whole backlog',
      'Tasks that wait in all task lists.',
      'count',
      total('svc_matching_tasklist_backlog'),
    ),
    table(
      'Task lists',
      'The 50 longest task lists now. Time to drain: the backlog by what is handed out now.',
      { cluster: 'Cluster', domain: 'Domain', tasklist: 'Task list' },
      [
        column('Backlog', 'count', longestNow(backlog)),
        column('Growth', 'perSecond', longestNow(growth), { limits: at('SvcTaskListBacklogGrowth') }),
        column('Added', 'perSecond', longestNow(added(list))),
        column('Dispatched', 'perSecond', longestNow(dispatched(list))),
        column('Time to drain', 'duration', longestNow(`${backlog} / (${dispatched(list)} > 0)`)),
        column('Polls with a task', 'share', longestNow(pollSuccess(list))),
      ],
      { sortBy: 'Backlog' },
    ),
  ],
};

const flow: Row = {
  title: 'Tasks and polls',
  panels: [
    timeseries(
      'Added and dispatched',
      'Where more is added than dispatched, the backlog grows.',
      'perSecond',
      [
        { name: 'added', expr: added() },
        { name: 'dispatched', expr: dispatched() },
      ],
    ),
    timeseries(
      'Dispatched by task list',
      'Tasks handed to pollers; the 20 busiest lists.',
      'perSecond',
      top(20, dispatched(list)),
      { runbooks: ['SvcTaskListStalled'] },
    ),
    timeseries(
      'Added by task list',
      'Tasks added to lists; the 20 busiest lists.',
      'perSecond',
      top(20, added(list)),
    ),
    timeseries(
      'Polls',
      'Polls that got a task and polls that ended without one. No poll at all: the workers of the domain are gone.',
      'perSecond',
      [
        { name: 'with a task', expr: polled() },
        { name: 'without', expr: empty() },
      ],
      { width: 12 },
    ),
    timeseries(
      'Share of polls with a task',
      'Near 1 the pollers are busy and more of them would help; near 0 they idle. The 20 busiest lists.',
      'share',
      top(20, pollSuccess(list)),
      { width: 12 },
    ),
  ],
};

export const matching: Dashboard = {
  name: 'matching',
  title: 'Matching',
  description:
    'Task lists: what waits, what is handed out, who polls, and the calls to the role that does it.',
  choices: [
    role,
    instance,
    domain('svc_matching_tasks_added'),
    tasklist('svc_matching_tasks_added'),
    operation('svc_matching_client_requests'),
  ],
  rows: [backlogs, flow, { title: 'Calls to matching', panels: callPanels('matching') }],
};
