import { readFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { gunzipSync } from 'node:zlib';

/**
 * Pages of a real service, recorded under load, and the expected value of each catalog metric: sums of the raw page, computed by
 * a parser that shares nothing with the agent.
 */

export interface Sample {
  name: string;
  labels: Readonly<Record<string, string>>;
  value: number;
}

const files = fileURLToPath(new URL('./fixtures/real-service/', import.meta.url));
export const rawPage = (name: string) => gunzipSync(readFileSync(`${files}${name}.txt.gz`)).toString();

/** Parses the samples of a text page. The recorded pages have no timestamps and no escapes that matter. */
export function parse(page: string): Sample[] {
  return page
    .split('\n')
    .filter((line) => line !== '' && !line.startsWith('#'))
    .map((line) => {
      const [, name = '', pairs = '', value = ''] = /^(\w+)(?:\{(.*)\})? (\S+)$/.exec(line) ?? [];
      const labels = [...pairs.matchAll(/(\w+)="((?:[^"\\]|\\.)*)"/g)].map(([, key, text]) => [key, text]);
      return { name, labels: Object.fromEntries(labels), value: Number(value.replace('Inf', 'Infinity')) };
    });
}

type Take = (sample: Sample) => boolean;
/** The key by which a sample is added up: the labels that matter, in the catalog's spelling. */
type Key = (labels: Sample['labels']) => string;

export function sums(samples: readonly Sample[], take: Take, key: Key): Record<string, number> {
  const sum: Record<string, number> = {};
  for (const sample of samples) {
    if (!take(sample)) continue;
    const at = key(sample.labels);
    sum[at] = (sum[at] ?? 0) + sample.value;
  }
  return sum;
}

const by =
  (...tags: string[]): Key =>
  (labels) =>
    tags.map((tag) => labels[tag] ?? '').join(' ');

interface Row {
  pages: string[];
  /** The metric of the catalog, and the raw metrics whose sum it is. */
  metric: string;
  from: string[];
  /** Labels of the catalog that are compared, with their raw names where these differ. */
  tags?: string[];
  raw?: string[];
  prefix?: string;
  /** Whether a raw series counts. */
  take?: (labels: Sample['labels']) => boolean;
}

const notAll = ({ domain }: Sample['labels']) => domain !== 'all';
const role = (name: string) => (labels: Sample['labels']) => labels.cadence_role === `${name}_client`;
const clientTags = {
  tags: ['domain', 'tasklist', 'workflow_type'],
  raw: ['Domain', 'TaskList', 'WorkflowType'],
};
const activityTags = {
  tags: [...clientTags.tags, 'activity_type'],
  raw: [...clientTags.raw, 'ActivityType'],
};

const counters: Row[] = [
  {
    pages: ['frontend', 'history', 'matching', 'worker'],
    metric: 'svc_persistence_requests',
    from: ['persistence_requests', 'persistence_requests_per_domain'],
    tags: ['operation'],
    prefix: 'Persistence',
  },
  {
    pages: ['frontend', 'history', 'matching'],
    metric: 'svc_persistence_domain_requests',
    from: ['persistence_requests_per_domain'],
    tags: ['operation', 'domain'],
    prefix: 'Persistence',
  },
  {
    pages: ['frontend'],
    metric: 'svc_frontend_client_requests',
    from: ['cadence_requests'],
    tags: ['operation'],
    prefix: 'FrontendClient',
  },
  {
    pages: ['history', 'matching'],
    metric: 'svc_served_requests',
    from: ['cadence_requests'],
    tags: ['operation'],
  },
  {
    pages: ['history', 'matching'],
    metric: 'svc_served_errors',
    from: ['cadence_errors', 'cadence_errors_context_timeout', 'cadence_errors_service_busy'],
    tags: ['operation'],
  },
  ...['history', 'matching'].flatMap((callee) =>
    ['requests', 'errors'].map((what) => ({
      pages: ['frontend', 'history', 'matching'],
      metric: `svc_${callee}_client_${what}`,
      from: [`cadence_client_${what}`],
      tags: ['operation'],
      take: role(callee),
    })),
  ),
  ...Object.entries({
    workflow_started_count: 'started',
    workflow_success: 'completed',
    workflow_failed: 'failed',
    workflow_timeout: 'timeout',
    workflow_cancel: 'canceled',
    workflow_continued_as_new: 'continued_as_new',
  }).map(([raw, name]) => ({
    pages: ['history'],
    metric: `svc_workflow_${name}`,
    from: [raw],
    tags: ['domain', 'workflow_type'],
    raw: ['domain', 'workflowType'],
  })),
  {
    pages: ['matching'],
    metric: 'svc_matching_tasks_added',
    from: ['cadence_requests_per_tl'],
    tags: ['domain', 'tasklist', 'operation'],
    take: ({ operation = '' }) => /^Add(Decision|Activity)Task$/.test(operation),
  },
  ...Object.entries({
    poll_success_per_tl: 'poll_success',
    poll_timeouts_per_tl: 'poll_timeout',
    task_backlog_per_tl: 'tasklist_backlog',
    poller_count_per_tl: 'pollers',
    tasks_expired_per_tl: 'tasks_expired',
  }).map(([raw, name]) => ({
    pages: ['matching'],
    metric: `svc_matching_${name}`,
    from: [raw],
    tags: ['domain', 'tasklist', 'tasklist_type'],
    raw: ['domain', 'tasklist', 'tasklistType'],
  })),
  ...['requests', 'errors'].map((what) => ({
    pages: ['history'],
    metric: `svc_history_cache_${what}`,
    from: [`cache_${what}`],
    tags: ['operation'],
  })),
  ...['restarts', 'num_goroutines', 'gomaxprocs', 'memory_heap', 'memory_num_gc'].map((name) => ({
    pages: ['frontend', 'history', 'matching', 'worker'],
    metric: `svc_${name}`,
    from: [name],
  })),
];

const latencies: Row[] = [
  {
    pages: ['frontend', 'history', 'matching', 'worker'],
    metric: 'svc_persistence_latency',
    from: ['persistence_latency', 'persistence_latency_per_domain'],
    tags: ['operation'],
    prefix: 'Persistence',
  },
  {
    pages: ['frontend'],
    metric: 'svc_frontend_client_latency',
    from: ['cadence_latency'],
    tags: ['operation'],
    prefix: 'FrontendClient',
    take: notAll,
  },
  ...['history', 'matching'].map((callee) => ({
    pages: ['frontend', 'history', 'matching'],
    metric: `svc_${callee}_client_latency`,
    from: ['cadence_client_latency'],
    tags: ['operation'],
    take: role(callee),
  })),
  ...['Decision', 'Activity'].map((task) => ({
    pages: ['history'],
    metric: `svc_${task.toLowerCase()}_task_schedule_to_start_latency`,
    from: ['schedule_to_start_history_queue_latency_per_tl'],
    tags: ['domain', 'tasklist'],
    take: (labels: Sample['labels']) => notAll(labels) && labels.operation === `TransferActiveTask${task}`,
  })),
  {
    pages: ['history'],
    metric: 'svc_activity_task_end_to_end_latency',
    from: ['activity_end_to_end_latency'],
    tags: ['domain', 'tasklist', 'workflow_type', 'activity_type'],
    raw: ['domain', 'tasklist', 'workflowType', 'activityType'],
    take: notAll,
  },
  { pages: ['history'], metric: 'svc_history_task_latency', from: ['task_latency'], tags: ['operation'] },
  { pages: ['history'], metric: 'svc_history_cache_latency', from: ['cache_latency'], tags: ['operation'] },
  ...['scheduled_to_start', 'execution'].flatMap((what) => [
    {
      pages: ['sdk-bench-worker'],
      metric: `svc_decision_task_${what.replace('scheduled', 'schedule')}_latency`,
      from: [`cadence_decision_${what}_latency_ns`],
      ...clientTags,
    },
    {
      pages: ['sdk-bench-worker'],
      metric: `svc_activity_task_${what.replace('scheduled', 'schedule')}_latency`,
      from: [`cadence_activity_${what}_latency_ns`],
      ...activityTags,
    },
  ]),
];

const parts: Row[] = latencies.flatMap((row) => [
  ...['_sum', '_count'].map((part) => ({
    ...row,
    metric: row.metric + part,
    from: row.from.map((name) => name + part),
  })),
  {
    ...row,
    metric: `${row.metric}_bucket`,
    from: row.from.map((name) => `${name}_bucket`),
    tags: [...(row.tags ?? []), 'le'],
    raw: [...(row.raw ?? row.tags ?? []), 'le'],
  },
]);

export const pageNames = ['frontend', 'history', 'matching', 'worker', 'sdk-bench-worker'];

/** Every metric, for every page that contains it. */
export const recordedCases = [...counters, ...parts].flatMap((row) =>
  row.pages.map((page): [page: string, metric: string, row: Row] => [page, row.metric, row]),
);

/** Compares the metric on the raw page with what the agent shows, by the catalog's labels. */
export function compare(
  { metric, from, tags = [], raw = tags, prefix = '', take = () => true }: Row,
  samples: readonly Sample[],
  shown: readonly Sample[],
): { expected: Record<string, number>; found: Record<string, number> } {
  const rawKey: Key = (labels) =>
    raw.map((tag) => (tag === 'operation' ? prefix : '') + (labels[tag] ?? '')).join(' ');
  return {
    expected: sums(samples, ({ name, labels }) => from.includes(name) && take(labels), rawKey),
    found: sums(shown, ({ name }) => name === metric, by(...tags)),
  };
}
