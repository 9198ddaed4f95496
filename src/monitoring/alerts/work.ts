import { alertGroup } from '../alert.ts';
import { increaseWithNewSeries, type Names, site } from '../names.ts';

const byRole = `${site}, svc_service`;
const byOperation = `${byRole}, operation`;
const list = `${site}, domain, tasklist`;

/**
 * Persistence errors per second. A role whose own reporter loses the series of the metric still logs the errors, but only some of
 * them, so the rate from the log has its own limit.
 */
const errorsCounted = ({ m }: Names): string =>
  `sum by (${byRole}) (${increaseWithNewSeries(m('svc_persistence_errors'), m('svc_persistence_requests'), '5m')}) / 300`;
const errorsLogged = ({ m }: Names): string =>
  `sum by (${byRole}) (rate(${m('svc_log_persistence_errors_total')}[5m]))`;
const loggedAtMost = 0.2;
/** Roles that had an error lately: a rate over five minutes stays high for minutes after the errors have ended. */
const errorsGoOn = ({ m }: Names): string =>
  (['svc_persistence_errors', 'svc_log_persistence_errors_total'] as const)
    .map((name) => `sum by (${byRole}) (increase(${m(name)}[2m])) > 0`)
    .join('\nor ');

/** The alerts on calls of the roles to their store. */
export const persistence = alertGroup({
  name: 'svc-persistence',
  dashboard: 'persistence',
  alerts: [
    {
      name: 'SvcPersistenceErrorRatio',
      severity: 'warning',
      // Requests may be missing for series that the role's reporter lost. Each failed call was a request.
      expr: ({ m }, threshold) => {
        const rate = (what: string) => `sum by (${byRole}) (rate(${m(`svc_persistence_${what}`)}[5m]))`;
        return [
          `${rate('errors')} / (${rate('requests')} > ${rate('errors')} or ${rate('errors')}) > ${threshold}`,
          `and ${rate('requests')} > 0.2`,
          `and sum by (${byRole}) (increase(${m('svc_persistence_errors')}[2m])) > 0`,
        ].join('\n');
      },
      threshold: 0.05,
      unit: 'share',
      for: '5m',
      summary: 'A large share of the persistence calls of {{ $labels.svc_service }} fails.',
      description:
        '{{ $value | humanizePercentage }} of the persistence calls of {{ $labels.svc_service }} fail, above $threshold.',
      firstSteps: 'Find the operations that fail, and compare with the state of the store.',
    },
    {
      name: 'SvcPersistenceErrorRate',
      severity: 'critical',
      expr: (names, threshold) =>
        [
          `(${errorsCounted(names)} > ${threshold}`,
          `or ${errorsLogged(names)} > ${loggedAtMost})`,
          `and (${errorsGoOn(names)})`,
        ].join('\n'),
      threshold: 10,
      // This is a minute longer than SvcStoreDown, which therefore fires first and inhibits this alert.
      for: '3m',
      summary: 'Persistence calls of {{ $labels.svc_service }} fail.',
      description: `{{ $labels.svc_service }} has {{ $value | humanize }} persistence errors/s. The limit is $threshold/s for counted errors and ${loggedAtMost}/s for logged ones, because a role logs only some of its errors.`,
      firstSteps:
        'Check whether the store answers (svc_store_up), then its connections, its disk and the errors in the log of the role.',
    },
    {
      name: 'SvcPersistenceLatency',
      severity: 'warning',
      expr: ({ m }, threshold) => {
        const latency = m('svc_persistence_latency');
        return [
          `histogram_quantile(0.99, sum by (${byOperation}, le) (rate(${latency}_bucket[5m]))) > ${threshold}`,
          `and sum by (${byOperation}) (rate(${latency}_count[5m])) > 0.2`,
        ].join('\n');
      },
      threshold: 1,
      unit: 'seconds',
      for: '5m',
      summary: '{{ $labels.operation }} of {{ $labels.svc_service }} is slow.',
      description:
        'The 99th percentile of {{ $labels.operation }} in {{ $labels.svc_service }} is {{ $value | humanizeDuration }}, above $threshold.',
      firstSteps: 'Check the load, the locks and the slow queries of the store, then the disk below it.',
    },
  ],
});

const backlogOf = ({ m }: Names): string => `sum by (${list}) (${m('svc_matching_tasklist_backlog')})`;

/** Task lists that hand out tasks: dispatches if the product counts them, otherwise polls that got a task. */
const busy = ({ m }: Names, span: string): string =>
  ['svc_matching_tasks_dispatched', 'svc_matching_poll_success']
    .map((name) => `unless sum by (${list}) (rate(${m(name as `svc_${string}`)}[${span}])) > 0`)
    .join('\n');

/**
 * Task lists that no worker polls: lists without pollers if the product counts them, otherwise lists without a poll. A poll that
 * finds nothing ends within a minute.
 */
function unpolled({ m }: Names): string {
  const pollers = `sum by (${list}) (${m('svc_matching_pollers')})`;
  const polls = (['svc_matching_poll_success', 'svc_matching_poll_timeout'] as const).map(m);
  const polled = polls.map((name) => `unless sum by (${list}) (increase(${name}[2m])) > 0`);
  const counts = polls.map((name) => `group by (${site}) (${name})`).join(' or ');
  return [
    `${pollers} == 0`,
    `or (sum by (${list}) (${m('svc_matching_tasklist_backlog')}) and on (${site}) (${counts})`,
    `unless ${pollers}`,
    `${polled.join('\n')})`,
  ].join('\n');
}

/** The alerts on task lists. */
export const tasks = alertGroup({
  name: 'svc-tasks',
  dashboard: 'matching',
  alerts: [
    {
      name: 'SvcTaskListUnpolled',
      severity: 'critical',
      expr: (names, threshold) => `(${backlogOf(names)} > ${threshold})\nand (\n${unpolled(names)}\n)`,
      threshold: 0,
      isState: true,
      for: '2m',
      summary:
        'No worker polls task list {{ $labels.tasklist }} in domain {{ $labels.domain }}, and tasks wait.',
      description:
        'The backlog of task list {{ $labels.tasklist }} in domain {{ $labels.domain }} is {{ $value | humanize }}, above $threshold, and no worker has polled it for 2m.',
      firstSteps:
        'Start the workers of the domain. If they run, check which task list and domain they poll, and whether they reach the frontend.',
    },
    {
      name: 'SvcTaskListBacklogGrowth',
      severity: 'warning',
      expr: (names, threshold) => `deriv(${backlogOf(names)}[10m:1m]) > ${threshold}`,
      threshold: 100,
      for: '5m',
      summary: 'The backlog of task list {{ $labels.tasklist }} in domain {{ $labels.domain }} grows fast.',
      description:
        'The backlog of task list {{ $labels.tasklist }} in domain {{ $labels.domain }} grows by {{ $value | humanize }} tasks/s, above $threshold/s.',
      firstSteps: 'Check whether the workers of the domain run and poll; start more of them.',
    },
    {
      name: 'SvcTaskListBacklogNotFalling',
      severity: 'warning',
      // This holds whatever the growth: in the last hour the backlog never fell to what it had been in the hour before.
      expr: (names, threshold) =>
        [
          `(min_over_time(${backlogOf(names)}[1h:1m])`,
          `> max_over_time(${backlogOf(names)}[1h:1m] offset 65m)) > ${threshold}`,
        ].join('\n'),
      threshold: 10,
      summary:
        'The backlog of task list {{ $labels.tasklist }} in domain {{ $labels.domain }} keeps growing.',
      description:
        'The backlog of task list {{ $labels.tasklist }} in domain {{ $labels.domain }} was at least {{ $value | humanize }} throughout the last hour, more than at any time in the hour before.',
      firstSteps: 'Compare tasks added with polls that succeed: the domain needs more workers or less work.',
    },
    {
      name: 'SvcTaskListAbandoned',
      severity: 'warning',
      expr: (names, threshold) =>
        [`min_over_time(${backlogOf(names)}[1h:1m]) > ${threshold}`, busy(names, '1h')].join('\n'),
      threshold: 0,
      for: '1h',
      summary: 'No worker gets tasks from task list {{ $labels.tasklist }} in domain {{ $labels.domain }}.',
      description:
        'The backlog of task list {{ $labels.tasklist }} in domain {{ $labels.domain }} was at least {{ $value | humanize }} for an hour, and no poll got a task.',
      firstSteps:
        'Find out who started these workflows. Start a worker for the task list, or terminate workflows that are not needed.',
    },
    {
      name: 'SvcTaskListStalled',
      severity: 'critical',
      expr: (names, threshold) =>
        [`min_over_time(${backlogOf(names)}[5m:1m]) > ${threshold}`, busy(names, '5m')].join('\n'),
      threshold: 10,
      for: '5m',
      summary: 'Task list {{ $labels.tasklist }} in domain {{ $labels.domain }} is stalled.',
      description:
        'At least {{ $value | humanize }} tasks have waited in task list {{ $labels.tasklist }} of domain {{ $labels.domain }} for 10m, above $threshold, and no poll got a task.',
      firstSteps:
        'Check whether the workers of the domain run and poll this task list; then whether matching answers.',
    },
  ],
});
