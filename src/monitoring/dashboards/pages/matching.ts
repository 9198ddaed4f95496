import { at, column, type Dashboard, type PanelRow, table, timeseries } from '../dashboard.ts';
import { domain, instance, operation, type Queries, role, rowsOf, tasklist, top } from '../queries.ts';
import { callRow } from './shared.ts';

const list = 'domain, tasklist';

/** The expressions that more than one panel of this dashboard uses. */
function expressions({ peak, rate, s, total }: Queries) {
  const backlog = total('svc_matching_tasklist_backlog', list);
  const polled = (by = '') => rate('svc_matching_poll_success', by);
  const empty = (by = '') => rate('svc_matching_poll_timeout', by);
  return {
    backlog,
    longest: peak('svc_matching_tasklist_backlog', list),
    longestNow: (expr: string) => rowsOf(expr, 50, backlog),
    growth: `sum by (cluster, ${list}) (deriv(${s('svc_matching_tasklist_backlog')}[$__rate_interval]))`,
    added: (by = '') => rate('svc_matching_tasks_added', by),
    /** Some products count no dispatches; for these, polls that got a task are counted. */
    dispatched: (by = '') => `${rate('svc_matching_tasks_dispatched', by)} or ${polled(by)}`,
    polled,
    empty,
    pollSuccess: (by = '') => `${polled(by)} / (${polled(by)} + (${empty(by)} or 0 * ${polled(by)}) > 0)`,
  };
}
type Expressions = ReturnType<typeof expressions>;

const backlogs = (
  { total }: Queries,
  { backlog, longest, longestNow, growth, added, dispatched, polled, pollSuccess }: Expressions,
): PanelRow => ({
  title: 'Backlog',
  panels: [
    timeseries(
      'Backlog by task list',
      'Tasks that wait; the 20 task lists with the most tasks.',
      'count',
      top(20, backlog, longest),
      {
        runbooks: [
          ...(['SvcTaskListUnpolled', 'SvcTaskListStalled', 'SvcTaskListAbandoned'] as const),
          'SvcTaskListBacklogNotFalling',
        ],
      },
    ),
    timeseries(
      'Growth by task list',
      'Growth of the backlog; below 0 it drains. The 20 task lists with the longest backlog.',
      'perSecond',
      top(20, growth, longest),
      { limits: at('SvcTaskListBacklogGrowth') },
    ),
    timeseries(
      'Total backlog',
      'Tasks that wait in all task lists.',
      'count',
      total('svc_matching_tasklist_backlog'),
    ),
    table(
      'Task lists',
      'The 50 task lists with the longest backlog. Time to drain: the backlog divided by the successful polls.',
      { cluster: 'Cluster', domain: 'Domain', tasklist: 'Task list' },
      [
        column('Backlog', 'count', longestNow(backlog)),
        column('Growth', 'perSecond', longestNow(growth), { limits: at('SvcTaskListBacklogGrowth') }),
        column('Added', 'perSecond', longestNow(added(list))),
        column('Dispatched', 'perSecond', longestNow(`(${dispatched(list)})`)),
        column('Time to drain', 'duration', longestNow(`${backlog} / (${polled(list)} > 0)`)),
        column('Polls with a task', 'share', longestNow(pollSuccess(list))),
      ],
      { sortBy: 'Backlog' },
    ),
  ],
});

const flow = ({ added, dispatched, polled, empty, pollSuccess }: Expressions): PanelRow => ({
  title: 'Tasks and polls',
  panels: [
    timeseries(
      'Added and dispatched',
      'If more tasks are added than dispatched, the backlog grows. Where dispatches are not counted, polls that got a task.',
      'perSecond',
      [
        { name: 'added', expr: added() },
        { name: 'dispatched', expr: dispatched() },
      ],
    ),
    timeseries(
      'Dispatched by task list',
      'Tasks that pollers got; the 20 busiest task lists.',
      'perSecond',
      top(20, `(${dispatched(list)})`),
      { runbooks: ['SvcTaskListStalled'] },
    ),
    timeseries(
      'Added by task list',
      'Tasks added; the 20 busiest task lists.',
      'perSecond',
      top(20, added(list)),
    ),
    timeseries(
      'Polls',
      'Polls that got a task, and polls that ended without one. No polls at all: no worker is running.',
      'perSecond',
      [
        { name: 'with a task', expr: polled() },
        { name: 'without', expr: empty() },
      ],
      { width: 12 },
    ),
    timeseries(
      'Share of polls with a task',
      'Near 1 the pollers are busy, and more of them would help; near 0 they are idle. The 20 busiest task lists.',
      'share',
      top(20, pollSuccess(list)),
      { width: 12 },
    ),
  ],
});

export const matching: Dashboard = {
  name: 'matching',
  title: 'Matching',
  description: 'Task lists: backlog, tasks and polls, and the calls to matching.',
  choices: [
    role,
    instance,
    domain('svc_matching_tasks_added'),
    tasklist('svc_matching_tasks_added'),
    operation('svc_matching_client_requests'),
  ],
  rows(queries) {
    const shared = expressions(queries);
    return [backlogs(queries, shared), flow(shared), callRow('matching', queries)];
  },
};
