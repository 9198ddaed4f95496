import type { Kind } from './model.ts';

/** The four roles of the watched service (spec, What the service does). */
export const roles = ['frontend', 'history', 'matching', 'worker'] as const;
export type Role = (typeof roles)[number];

/** The unit of a metric. `timestamp` is seconds since the epoch; `none` is a plain count or a 0/1 state. */
export type Unit = 'none' | 'seconds' | 'milliseconds' | 'bytes' | 'timestamp';

/** A metric in the form that dashboards, rules and help texts use. */
export interface Metric {
  name: string;
  kind: Kind;
  unit: Unit;
  /** Tags in addition to the global ones and, for a role's metrics, to `svc_service`. */
  tags: readonly string[];
  /** The group of the metric on the page docs/reference/metrics.md. */
  group: string;
  /** The help text, on one line. */
  help: string;
  /** Set for a gauge whose series are added up when two raw series become one. */
  additive?: true;
}

/** One metric of the service's own catalog (spec, Metric catalog). */
export interface CatalogMetric extends Metric {
  /** The roles that send the metric: all roles for process and memory metrics, otherwise the roles whose work it measures. */
  roles: readonly Role[];
}

type CatalogRow = Omit<CatalogMetric, 'name' | 'group' | 'tags' | 'roles'> & { tags?: readonly string[] };
interface Group {
  group: string;
  roles?: readonly Role[];
  tags?: readonly string[];
  /** The rows by metric name without `svc_`. */
  rows: Readonly<Record<string, CatalogRow>>;
}

const counter = (help: string): CatalogRow => ({ kind: 'counter', unit: 'none', help });
const latency = (help: string, tags?: readonly string[]): CatalogRow => ({
  kind: 'histogram',
  unit: 'seconds',
  help,
  tags,
});
const gauge = (help: string): CatalogRow => ({ kind: 'gauge', unit: 'none', help });
const bytes = (help: string): CatalogRow => ({ kind: 'gauge', unit: 'bytes', help });

/** The three metrics of a kind of call; `calls` is the subject of their help texts. */
const callsOf = (prefix: string, calls: string): Readonly<Record<string, CatalogRow>> => ({
  [`${prefix}_requests`]: counter(`${calls} made.`),
  [`${prefix}_errors`]: counter(`${calls} that failed.`),
  [`${prefix}_latency`]: latency(`Time from request to answer of ${calls.toLowerCase()}.`),
});

const decision = ['domain', 'tasklist', 'workflow_type'];
const activity = ['domain', 'tasklist', 'activity_type'];

const groups: readonly Group[] = [
  {
    group: 'Process',
    rows: {
      restarts: counter('Starts of the process; begins at 1 in each new process.'),
      num_goroutines: gauge('Number of goroutines.'),
      gomaxprocs: gauge('Threads that may run Go code at the same time.'),
    },
  },
  {
    group: 'Memory',
    rows: {
      memory_allocated: bytes('Memory that is allocated and not yet freed.'),
      memory_heap: bytes('Heap obtained from the operating system.'),
      memory_heapidle: bytes('Heap in spans without objects.'),
      memory_heapinuse: bytes('Heap in spans with at least one object.'),
      memory_stack: bytes('Stacks in use.'),
      memory_num_gc: counter('Garbage collections completed.'),
      memory_gc_pause_ms: {
        kind: 'counter',
        unit: 'milliseconds',
        help: 'Time for which the process was paused for garbage collection.',
      },
    },
  },
  { group: 'Persistence', tags: ['operation'], rows: callsOf('persistence', 'Persistence calls') },
  {
    group: 'Frontend client',
    roles: ['frontend', 'worker'],
    tags: ['operation'],
    rows: callsOf('frontend_client', 'Calls to the frontend'),
  },
  {
    group: 'History client',
    tags: ['operation'],
    rows: callsOf('history_client', 'Calls to the history service'),
  },
  {
    group: 'Matching client',
    roles: ['frontend', 'history', 'matching'],
    tags: ['operation'],
    rows: callsOf('matching_client', 'Calls to the matching service'),
  },
  {
    group: 'Workflow lifecycle',
    roles: ['history'],
    tags: ['domain', 'workflow_type'],
    rows: {
      workflow_started: counter('Workflow executions started.'),
      workflow_completed: counter('Workflow executions that completed.'),
      workflow_failed: counter('Workflow executions that failed.'),
      workflow_timeout: counter('Workflow executions that timed out.'),
      workflow_canceled: counter('Workflow executions that were canceled.'),
      workflow_continued_as_new: counter('Workflow executions that continued as a new run.'),
    },
  },
  {
    group: 'Task latency',
    roles: ['history'],
    rows: {
      decision_task_schedule_to_start_latency: latency(
        'Time that decision tasks wait for a poller.',
        decision,
      ),
      activity_task_schedule_to_start_latency: latency(
        'Time that activity tasks wait for a poller.',
        activity,
      ),
      decision_task_execution_latency: latency('Time from start to answer of decision tasks.', decision),
      activity_task_execution_latency: latency('Time from start to answer of activity tasks.', activity),
    },
  },
  {
    group: 'History service',
    roles: ['history'],
    rows: {
      ...callsOf('history_cache', 'Lookups in the history cache'),
      history_shard_context_closed: counter('Shards that this host released.'),
      history_replication_tasks_applied: counter('Replication tasks from other clusters that were applied.'),
    },
  },
  {
    group: 'Matching service',
    roles: ['matching'],
    tags: ['domain', 'tasklist'],
    rows: {
      matching_tasks_added: counter('Tasks added to a task list.'),
      matching_tasks_dispatched: counter('Tasks handed to a poller.'),
      matching_poll_success: counter('Polls that got a task.'),
      matching_poll_timeout: counter('Polls that ended without a task.'),
      matching_tasklist_backlog: { ...gauge('Tasks waiting in a task list.'), additive: true },
    },
  },
];

/** Every metric of the spec's table, in its order. The names are sanitized. */
export const catalog: readonly CatalogMetric[] = groups.flatMap((of) =>
  Object.entries(of.rows).map(([name, row]) => ({
    ...row,
    name: `svc_${name}`,
    group: of.group,
    roles: of.roles ?? roles,
    tags: row.tags ?? of.tags ?? [],
  })),
);

const byName = new Map(catalog.map((metric) => [metric.name, metric]));

/** The catalog's metric with this sanitized name. */
export function findMetric(name: string): CatalogMetric | undefined {
  return byName.get(name);
}
