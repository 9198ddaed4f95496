import type { Role } from '../../src/core/catalog.ts';
import { type Metrics, metricsOf, type Tags } from './metrics.ts';

/** What a catalog metric is called by a server of the product: names and tags of pages that one sent under load. */
type Sent = readonly (readonly [name: string, tags: Tags])[];
type Row = (tags: Tags, role: Role) => Sent;

const as =
  (name: string, more: Tags = {}): Row =>
  (tags) => [[name, { ...tags, ...more }]];

const plain = { is_retry: 'false', task_category: 'none' };
/** The operations of which the product knows the domain: it counts them by domain, and in a sum of all domains. */
const ofDomain = /^Persistence(Create|Update|Append)/;

/** Calls to the store: those of a domain in two families, the others in a third one. */
function persistence(what: string): Row {
  return ({ operation = '' }) => {
    const call = { operation: operation.replace(/^Persistence/, '') };
    if (!ofDomain.test(operation)) return [[`persistence_${what}`, { ...call, ...plain }]];
    // The sum of the errors has the name of the family without domains.
    const sum = what === 'errors' ? 'persistence_errors' : `persistence_${what}_rollup`;
    return [
      [`persistence_${what}_per_domain`, { ...call, domain: 'orders', is_retry: 'false' }],
      [sum, call],
    ];
  };
}

const callees = { frontend: 'FrontendClient', history: 'HistoryClient', matching: 'MatchingClient' } as const;

/** Calls between roles, by the caller. The frontend counts what it was asked itself. */
function client(callee: keyof typeof callees, what: string): Row {
  return ({ operation = '' }, role) => {
    if (callee === 'frontend' && role === 'frontend') {
      const asked = { operation, caller: 'orders', transport: 'grpc' };
      const own: Sent[number] = [`cadence_${what}`, { ...asked, domain: 'orders' }];
      return what === 'latency' ? [own, [own[0], { ...asked, domain: 'all' }]] : [own];
    }
    const tags = {
      cadence_role: `${callee}_client`,
      is_retry: 'false',
      operation: callees[callee] + operation,
    };
    return [[`cadence_client_${what}`, tags]];
  };
}

const clients = Object.fromEntries(
  (['frontend', 'history', 'matching'] as const).flatMap((callee) =>
    ['requests', 'errors', 'latency'].map((what) => [`svc_${callee}_client_${what}`, client(callee, what)]),
  ),
);

const closed =
  (name: string): Row =>
  ({ domain = '', workflow_type: workflowType = '' }) => [
    [name, { domain, workflowType, operation: 'CompletionStats', stats_type: 'count' }],
  ];

const queued =
  (operation: string): Row =>
  ({ domain = '', tasklist = '' }) =>
    [domain, 'all'].map((of) => [
      'schedule_to_start_history_queue_latency_per_tl',
      { domain: of, operation, tasklist },
    ]);

/** Of a task list, and the same without it. */
const ofList =
  (name: string): Row =>
  ({ domain = '', tasklist = '' }) => [
    [`${name}_per_tl`, { domain, operation: 'TaskListMgr', tasklist, tasklistType: 'decision' }],
    [name, { operation: 'TaskListMgr' }],
  ];

const cached = {
  cache_type: 'mutablestate',
  operation: 'HistoryCacheGetOrCreate',
  shard_id: '0',
  source_cluster: 'none',
};

/** What is missing here the product does not send: tasks dispatched, and how long their execution takes. */
const rows: Readonly<Record<string, Row>> = {
  ...clients,
  svc_restarts: as('restarts'),
  svc_num_goroutines: as('num_goroutines'),
  svc_gomaxprocs: as('gomaxprocs'),
  svc_memory_allocated: as('memory_allocated'),
  svc_memory_heap: as('memory_heap'),
  svc_memory_heapidle: as('memory_heapidle'),
  svc_memory_heapinuse: as('memory_heapinuse'),
  svc_memory_stack: as('memory_stack'),
  svc_memory_num_gc: as('memory_num_gc'),
  svc_memory_gc_pause_ms: as('memory_gc_pause_ms'),
  svc_persistence_requests: persistence('requests'),
  svc_persistence_errors: persistence('errors'),
  svc_persistence_latency: persistence('latency'),
  svc_workflow_started: ({ domain = '', workflow_type: workflowType = '' }) => [
    [
      'workflow_started_count',
      { domain, workflowType, operation: 'TransferActiveTaskRecordWorkflowStarted' },
    ],
  ],
  svc_workflow_completed: closed('workflow_success'),
  svc_workflow_failed: closed('workflow_failed'),
  svc_workflow_timeout: closed('workflow_timeout'),
  svc_workflow_canceled: closed('workflow_cancel'),
  svc_workflow_continued_as_new: closed('workflow_continued_as_new'),
  svc_decision_task_schedule_to_start_latency: queued('TransferActiveTaskDecision'),
  svc_activity_task_schedule_to_start_latency: queued('TransferActiveTaskActivity'),
  svc_history_cache_requests: as('cache_requests', cached),
  svc_history_cache_errors: as('cache_errors', cached),
  svc_history_cache_latency: as('cache_latency', cached),
  svc_history_shard_context_closed: as('shard_closed_count', { operation: 'ShardController' }),
  svc_history_replication_tasks_applied: as('replication_tasks_applied'),
  svc_replication_latency: ({ source_cluster = '', target_cluster = '' }) => [
    ['replication_latency', { active_cluster: source_cluster, target_cluster, instance: '0' }],
  ],
  svc_matching_tasks_added: ({ domain = '', tasklist = '' }) => [
    [
      'cadence_requests_per_tl',
      { caller: 'cadence_history', domain, operation: 'AddDecisionTask', tasklist, transport: 'grpc' },
    ],
  ],
  svc_matching_poll_success: ofList('poll_success'),
  svc_matching_poll_timeout: ofList('poll_timeouts'),
  svc_matching_tasklist_backlog: (tags, role) => ofList('task_backlog')(tags, role).slice(0, 1),
};

/** What the product sends in another unit: pauses in seconds, lags in nanoseconds. */
const factors: Readonly<Record<string, number>> = {
  svc_memory_gc_pause_ms: 1e-3,
  svc_replication_latency: 1e9,
};

/**
 * The metrics of a role as the product sends them: its names and units, families that double others, and no counter
 * before its first event.
 */
export function createProductMetrics(role: Role): Metrics {
  const sent = metricsOf({ cadence_service: `cadence_${role}` }, role);
  const each = (
    name: string,
    tags: Tags,
    value: number,
    record: (...sent: [string, Tags, number]) => void,
  ) => {
    for (const [as, having] of rows[name]?.(tags, role) ?? [])
      record(as, having, value * (factors[name] ?? 1));
  };
  return {
    add(name, tags, increase = 1) {
      if (increase === 0) return;
      each(name, tags, increase, name === 'svc_memory_gc_pause_ms' ? sent.observe : sent.add);
    },
    set: (name, tags, value) => each(name, tags, value, sent.set),
    observe: (name, tags, seconds) => each(name, tags, seconds, sent.observe),
    families: sent.families,
  };
}
