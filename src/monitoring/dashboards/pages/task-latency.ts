import { domain, instance, tasklist } from '../choices.ts';
import { distribution, observations, quantile, top } from '../expr.ts';
import type { Dashboard, Row } from '../model.ts';
import { heatmap, percentiles, timeseries } from '../panels.ts';

const row = (title: string, metric: string, type: string, meaning: string): Row => ({
  title,
  panels: [
    timeseries(
      `${title}: percentiles`,
      meaning,
      'seconds',
      percentiles((q) => quantile(q, metric)),
      { width: 6 },
    ),
    timeseries(
      `${title}: p95 by task list`,
      `${meaning} The 20 slowest task lists.`,
      'seconds',
      top(20, quantile(0.95, metric, 'domain, tasklist')),
      { width: 6, runbooks: ['SvcTaskListBacklogGrowth'] },
    ),
    timeseries(
      `${title}: p95 by type`,
      `${meaning} The 20 slowest types.`,
      'seconds',
      top(20, quantile(0.95, metric, type)),
      { width: 6 },
    ),
    heatmap(
      `${title}: distribution`,
      'How many took how long, over all chosen clusters.',
      distribution(metric),
      {
        width: 6,
      },
    ),
  ],
});

const waiting =
  'How long tasks wait for a poller. What grows here wants more workers, or a task list of its own.';
const working = 'How long the workers of the domain work on tasks, from start to answer.';
const metric = (task: string, span: string) => `svc_${task}_task_${span}_latency`;
const spans = [
  ['schedule_to_start', 'wait', waiting],
  ['execution', 'execution', working],
] as const;

export const taskLatency: Dashboard = {
  name: 'task-latency',
  title: 'Task latency',
  description: 'How long decision and activity tasks wait for a worker and how long it works on them.',
  choices: [
    instance,
    domain('svc_decision_task_schedule_to_start_latency_count'),
    tasklist('svc_decision_task_schedule_to_start_latency_count'),
  ],
  rows: [
    ...spans.flatMap(([span, word, meaning]) => [
      row(`Decision task ${word}`, metric('decision', span), 'workflow_type', meaning),
      row(`Activity task ${word}`, metric('activity', span), 'activity_type', meaning),
    ]),
    {
      title: 'Tasks',
      panels: (['decision', 'activity'] as const).map((task) =>
        timeseries(
          `Started and finished ${task} tasks`,
          'Fewer finished than started: workers take tasks and do not answer.',
          'perSecond',
          [
            { name: 'started', expr: observations(metric(task, 'schedule_to_start')) },
            { name: 'finished', expr: observations(metric(task, 'execution')) },
          ],
          { width: 12 },
        ),
      ),
    },
  ],
};
