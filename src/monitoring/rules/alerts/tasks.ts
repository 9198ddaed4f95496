import type { RuleGroup } from '../alert.ts';
import { increaseWithBirths } from '../born.ts';

const list = 'cluster, domain, tasklist';
const timeouts = increaseWithBirths('svc_workflow_timeout', 'svc_workflow_started', '5m');
const outcome = (name: string) => `sum by (cluster, domain) (rate(svc_workflow_${name}[5m]))`;
/** Closed runs; an outcome that never came is 0. */
const others = ['completed', 'failed', 'canceled', 'continued_as_new']
  .map((name) => `(${outcome(name)} or 0 * ${outcome('timeout')})`)
  .join(' + ');
const closed = `${outcome('timeout')} + ${others}`;

/** Task lists and the workflows whose tasks wait in them. */
export const tasks: RuleGroup = {
  name: 'svc-tasks',
  alerts: [
    {
      name: 'SvcTaskListBacklogGrowth',
      severity: 'warning',
      expr: `deriv(sum by (${list}) (svc_matching_tasklist_backlog)[10m:1m]) > $threshold`,
      threshold: 100,
      for: '5m',
      summary: 'The backlog of a task list grows.',
      description:
        'Task list {{ $labels.tasklist }} of {{ $labels.domain }} grows by {{ $value | humanize }} tasks/s, above $threshold/s.',
      dashboard: 'matching',
    },
    {
      name: 'SvcTaskListStalled',
      severity: 'critical',
      expr:
        `sum by (${list}) (svc_matching_tasklist_backlog) > $threshold` +
        ` unless sum by (${list}) (rate(svc_matching_tasks_dispatched[5m])) > 0`,
      threshold: 0,
      for: '10m',
      summary: 'Tasks wait and none is handed out.',
      description:
        'Task list {{ $labels.tasklist }} of {{ $labels.domain }} has {{ $value | humanize }} tasks waiting and hands out none.',
      dashboard: 'matching',
    },
    {
      name: 'SvcWorkflowTimeouts',
      severity: 'warning',
      expr: `sum by (cluster, domain) (${timeouts}) / 300 > $threshold`,
      threshold: 5,
      for: '2m',
      summary: 'Workflows time out.',
      description: 'Domain {{ $labels.domain }} has {{ $value | humanize }} timeouts/s, above $threshold/s.',
      dashboard: 'history',
    },
    {
      name: 'SvcWorkflowTimeoutShare',
      severity: 'warning',
      expr: `${outcome('timeout')} / (${closed}) > $threshold and ${outcome('timeout')} > 0.01`,
      threshold: 0.05,
      for: '10m',
      summary: 'A large share of the workflows times out.',
      description:
        '{{ $value | humanizePercentage }} of the workflows that close in domain {{ $labels.domain }} time out, above $threshold.',
      dashboard: 'history',
    },
  ],
};
