import { type Dashboard, heatmap, type PanelRow, percentiles, timeseries } from '../dashboard.ts';
import { domain, instance, type Queries, tasklist, top } from '../queries.ts';

const row = (
  { distribution, quantile }: Queries,
  title: string,
  metric: string,
  type: string,
  meaning: string,
): PanelRow => ({
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
    heatmap(`${title}: distribution`, 'Distribution over all chosen clusters.', distribution(metric), {
      width: 6,
    }),
  ],
});

const waiting =
  'Time that tasks wait for a worker. If it grows, start more workers or use a separate task list.';
const working = 'Time from the start of a task to the answer of the worker.';
const metric = (task: string, span: string) => `svc_${task}_task_${span}_latency`;
const spans = [
  ['schedule_to_start', 'wait', waiting],
  ['execution', 'execution', working],
] as const;

export const taskLatency: Dashboard = {
  name: 'task-latency',
  title: 'Task latency',
  description: 'How long decision and activity tasks wait for a worker, and how long the worker takes.',
  choices: [
    instance,
    domain('svc_decision_task_schedule_to_start_latency_count'),
    tasklist('svc_decision_task_schedule_to_start_latency_count'),
  ],
  rows: (queries) => [
    ...spans.flatMap(([span, word, meaning]) => [
      row(queries, `Decision task ${word}`, metric('decision', span), 'workflow_type', meaning),
      row(queries, `Activity task ${word}`, metric('activity', span), 'activity_type', meaning),
    ]),
    {
      title: 'Tasks',
      panels: (['decision', 'activity'] as const).map((task) =>
        timeseries(
          `Started and finished ${task} tasks`,
          'If fewer tasks finish than start, workers take tasks and do not answer.',
          'perSecond',
          [
            { name: 'started', expr: queries.observations(metric(task, 'schedule_to_start')) },
            { name: 'finished', expr: queries.observations(metric(task, 'execution')) },
          ],
          { width: 12 },
        ),
      ),
    },
  ],
};
