import type { RuleGroup } from '../alert.ts';
import { increaseWithNewSeries, type Names, site } from '../names.ts';

const byRole = `${site}, svc_service`;
const byOperation = `${byRole}, operation`;
const list = `${site}, domain, tasklist`;

/**
 * Persistence errors per second. A role whose own reporter loses the series of the metric still logs them, but
 * only some of them: the log's rate has a limit of its own.
 */
const errorsCounted = ({ m }: Names): string =>
  `sum by (${byRole}) (${increaseWithNewSeries(m('svc_persistence_errors'), m('svc_persistence_requests'), '5m')}) / 300`;
const errorsLogged = ({ m }: Names): string =>
  `sum by (${byRole}) (rate(${m('svc_log_persistence_errors_total')}[5m]))`;
const loggedAtMost = 0.2;

/** Calls of the roles to their store. */
export const persistence: RuleGroup = {
  name: 'svc-persistence',
  alerts: [
    {
      name: 'SvcPersistenceErrorRate',
      severity: 'critical',
      expr: (names, threshold) =>
        [`${errorsCounted(names)} > ${threshold}`, `or ${errorsLogged(names)} > ${loggedAtMost}`].join('\n'),
      threshold: 10,
      // A minute longer than SvcStoreDown, which then is there first and inhibits it.
      for: '3m',
      summary: 'Persistence calls of {{ $labels.svc_service }} fail.',
      description: `{{ $labels.svc_service }} has {{ $value | humanize }} persistence errors/s. The limit is $threshold/s for counted errors and ${loggedAtMost}/s for logged ones, because a role logs only some of its errors.`,
      firstSteps:
        'Check whether the store answers (svc_store_up), then its connections, its disk and the errors in the log of the role.',
      dashboard: 'persistence',
    },
    {
      name: 'SvcPersistenceErrorRatio',
      severity: 'warning',
      // Requests may be missing for series that the role's reporter lost; each failed call was a request.
      expr: ({ m }, threshold) => {
        const rate = (what: string) => `sum by (${byRole}) (rate(${m(`svc_persistence_${what}`)}[5m]))`;
        return [
          `${rate('errors')} / (${rate('requests')} > ${rate('errors')} or ${rate('errors')}) > ${threshold}`,
          `and ${rate('requests')} > 0.2`,
        ].join('\n');
      },
      threshold: 0.05,
      unit: 'share',
      for: '5m',
      summary: 'A large share of the persistence calls of {{ $labels.svc_service }} fails.',
      description:
        '{{ $value | humanizePercentage }} of the persistence calls of {{ $labels.svc_service }} fail, above $threshold.',
      firstSteps: 'Find the operations that fail, and compare with the state of the store.',
      dashboard: 'persistence',
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
      dashboard: 'persistence',
    },
  ],
};

const backlogOf = ({ m }: Names): string => `sum by (${list}) (${m('svc_matching_tasklist_backlog')})`;

/** Task lists that hand out tasks: dispatches where the product counts them, else polls that got a task. */
const busy = ({ m }: Names, span: string): string =>
  ['svc_matching_tasks_dispatched', 'svc_matching_poll_success']
    .map((name) => `unless sum by (${list}) (rate(${m(name as `svc_${string}`)}[${span}])) > 0`)
    .join('\n');

const outcome = ({ m }: Names, name: string): string =>
  `sum by (${site}, domain) (rate(${m(`svc_workflow_${name}`)}[5m]))`;

/** Closed runs; an outcome that never occurred is 0. */
function closed(names: Names): string {
  const timeouts = outcome(names, 'timeout');
  const others = ['completed', 'failed', 'canceled', 'continued_as_new'];
  return [timeouts, ...others.map((name) => `(${outcome(names, name)} or 0 * ${timeouts})`)].join(' + ');
}

/** Task lists, and the workflows whose tasks wait in them. */
export const tasks: RuleGroup = {
  name: 'svc-tasks',
  alerts: [
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
      dashboard: 'matching',
    },
    {
      name: 'SvcTaskListBacklogNotFalling',
      severity: 'warning',
      // Whatever the growth: in the last hour the backlog never fell to what it had been in the hour before.
      expr: (names, threshold) =>
        [
          `(min_over_time(${backlogOf(names)}[1h:1m])`,
          `> max_over_time(${backlogOf(names)}[1h:1m] offset 65m)) > ${threshold}`,
        ].join('\n'),
      threshold: 10,
      summary:
        'The backlog of task list {{ $labels.tasklist }} in domain {{ $labels.domain }} keeps growing.',
      description:
        'Task list {{ $labels.tasklist }} in domain {{ $labels.domain }} had at least {{ $value | humanize }} tasks waiting throughout the last hour, more than at any time in the hour before.',
      firstSteps: 'Compare tasks added with polls that succeed: the domain needs more workers or less work.',
      dashboard: 'matching',
    },
    {
      name: 'SvcTaskListStalled',
      severity: 'critical',
      expr: (names, threshold) =>
        [`min_over_time(${backlogOf(names)}[10m:1m]) > ${threshold}`, busy(names, '10m')].join('\n'),
      threshold: 10,
      for: '5m',
      summary: 'Task list {{ $labels.tasklist }} in domain {{ $labels.domain }} is stalled.',
      description:
        'At least {{ $value | humanize }} tasks have waited in task list {{ $labels.tasklist }} of domain {{ $labels.domain }} for 10m, above $threshold, and no poll got one.',
      firstSteps:
        'Check whether the workers of the domain run and poll this task list; then whether matching answers.',
      dashboard: 'matching',
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
        'At least {{ $value | humanize }} tasks have waited in task list {{ $labels.tasklist }} of domain {{ $labels.domain }} for an hour, and no poll got one.',
      firstSteps:
        'Find out who started these workflows. Start a worker for the task list, or terminate workflows that are not needed.',
      dashboard: 'matching',
    },
    {
      name: 'SvcWorkflowTimeouts',
      severity: 'warning',
      expr: ({ m }, threshold) =>
        `sum by (${site}, domain) (${increaseWithNewSeries(m('svc_workflow_timeout'), m('svc_workflow_started'), '5m')}) / 300 > ${threshold}`,
      threshold: 5,
      for: '2m',
      summary: 'Workflows of domain {{ $labels.domain }} time out.',
      description: 'Domain {{ $labels.domain }} has {{ $value | humanize }} timeouts/s, above $threshold/s.',
      firstSteps:
        'Check the backlog and the task latency of the domain; then the timeouts that the workflows set.',
      dashboard: 'history',
    },
    {
      name: 'SvcWorkflowTimeoutShare',
      severity: 'warning',
      expr: (names, threshold) =>
        [
          `${outcome(names, 'timeout')} / (${closed(names)}) > ${threshold}`,
          `and ${outcome(names, 'timeout')} > 0.01`,
        ].join('\n'),
      threshold: 0.05,
      unit: 'share',
      for: '10m',
      summary: 'A large share of the workflows of domain {{ $labels.domain }} times out.',
      description:
        '{{ $value | humanizePercentage }} of the closed workflows of domain {{ $labels.domain }} timed out, above $threshold.',
      firstSteps: 'Find the workflow types that time out; check the task latency of their task lists.',
      dashboard: 'history',
    },
  ],
};

/** Calls that wait for work by design, or whose duration depends on the request. */
export const slowByDesign =
  'operation!~".*(Poll|GetWorkflowExecutionHistory|QueryWorkflow|List|Count|Scan).*"';

/** Share of the requests to a role that fail, by caller. A failed request counts as one even where the series of requests is missing. */
function failedShare({ m }: Names, callee: string): string {
  const rate = (what: string) => `sum by (${byRole}) (rate(${m(`svc_${callee}_client_${what}`)}[5m]))`;
  const calls = `(${rate('requests')} > ${rate('errors')} or ${rate('errors')})`;
  return `label_replace(${rate('errors')} / ${calls} and ${rate('requests')} > 0.2, "callee", "${callee}", "", "")`;
}

/** Requests between the roles, as their callers see them. */
export const requests: RuleGroup = {
  name: 'svc-requests',
  alerts: [
    {
      name: 'SvcFrontendLatency',
      severity: 'warning',
      expr: ({ m }, threshold) => {
        const latency = m('svc_frontend_client_latency');
        return [
          `histogram_quantile(0.95, sum by (${site}, le) (rate(${latency}_bucket{${slowByDesign}}[5m]))) > ${threshold}`,
          `and sum by (${site}) (rate(${latency}_count{${slowByDesign}}[5m])) > 0.2`,
        ].join('\n');
      },
      threshold: 0.5,
      unit: 'seconds',
      for: '5m',
      summary: 'Calls to the frontend of {{ $labels.cluster }} are slow.',
      description:
        'The 95th percentile of calls to the frontend of {{ $labels.cluster }}, without long polls and lists, is {{ $value | humanizeDuration }}, above $threshold.',
      firstSteps: 'See which operations are slow; compare with the latency of history and of persistence.',
      dashboard: 'frontend',
    },
    {
      name: 'SvcRequestErrors',
      severity: 'warning',
      expr: (names, threshold) =>
        `(\n${['frontend', 'history', 'matching'].map((role) => failedShare(names, role)).join('\nor ')}\n) > ${threshold}`,
      threshold: 0.05,
      unit: 'share',
      for: '5m',
      summary: 'A large share of the requests from {{ $labels.svc_service }} to {{ $labels.callee }} fails.',
      description:
        '{{ $value | humanizePercentage }} of the requests from {{ $labels.svc_service }} to {{ $labels.callee }} fail, above $threshold.',
      firstSteps:
        'Find the operations that fail, then read the errors in the log of the role that is called.',
      dashboard: 'overview',
    },
  ],
};
