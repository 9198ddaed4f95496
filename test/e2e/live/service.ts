import { execFileSync } from 'node:child_process';
import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import type { Meter, Timings } from './page.ts';
import { type FakeRole, type Pair, startRole } from './role.ts';

/** A service in two clusters, dc1 and dc2, with every number of its pages that a fault changes. */
export interface LiveService {
  /** The roles: dc1's four, the second hosts of its history and worker, two of dc2 and one of dc3. */
  readonly roles: Readonly<Record<RoleName, FakeRole>>;
  readonly heap: Meter;
  readonly gcPause: Meter;
  /** The starts that the process itself counts; nothing else counts those of dc2. */
  readonly starts: Meter;
  readonly startsInDc2: Meter;
  readonly storeErrors: Meter;
  readonly storeCalls: Timings;
  readonly workflowTimeouts: Meter;
  readonly workflowFailures: Meter;
  /** The workflows of a canary that complete. */
  readonly canary: Meter;
  /** The workflows that complete on dc1's second host of history, which has none until its shards move there. */
  readonly canaryOnSecond: Meter;
  readonly shardsClosed: Meter;
  /** The transfer tasks of history. */
  readonly transferTasks: Timings;
  readonly replicationLag: Meter;
  readonly replicationFailures: Meter;
  readonly growingBacklog: Meter;
  readonly stalledBacklog: Meter;
  readonly abandonedBacklog: Meter;
  readonly unpolledBacklog: Meter;
  /** The workers that poll the list of `unpolledBacklog`. */
  readonly pollers: Meter;
  readonly stalledDispatch: Meter;
  readonly frontendErrors: Meter;
  readonly frontendCalls: Timings;
  /** The certificates of the frontend: one for a year, one for five days. */
  readonly certificates: Readonly<Record<'long' | 'short', Pair>>;
  readonly authorities: string;
  /** The file with the certificate of dc2's frontend. */
  readonly dc2Authorities: string;
  /** A certificate that the agents do not trust. */
  readonly untrusted: Pair;
  stop(): Promise<void>;
}

const roleNames = [
  ...(['frontend', 'history', 'matching', 'worker'] as const),
  ...(['second history', 'second worker', 'dc2 frontend', 'dc2 history', 'dc3 frontend'] as const),
];
type RoleName = (typeof roleNames)[number];

/** How many calls of each kind the service makes per second while it is well. */
const usual = { storeCalls: 2000, frontendCalls: 20, workflows: 5, tasks: 10 };
export const {
  frontendCalls: frontendCallsPerSecond,
  tasks: tasksPerSecond,
  workflows: workflowsPerSecond,
} = usual;

function selfSigned(directory: string, days: number): Pair {
  const [key, cert] = [join(directory, `${days}.key`), join(directory, `${days}.pem`)];
  execFileSync(
    'openssl',
    [
      ...['req', '-x509', '-newkey', 'ec', '-pkeyopt', 'ec_paramgen_curve:P-256', '-nodes', '-keyout', key],
      ...['-out', cert, '-days', String(days), '-subj', `/CN=frontend-${days}`],
      ...['-addext', 'subjectAltName=IP:127.0.0.1'],
    ],
    { stdio: 'pipe' },
  );
  return { cert: readFileSync(cert, 'utf8'), key: readFileSync(key, 'utf8') };
}

export async function startService(directory: string): Promise<LiveService> {
  const certificates = { long: selfSigned(directory, 365), short: selfSigned(directory, 5) };
  const authorities = join(directory, 'authorities.pem');
  writeFileSync(authorities, certificates.long.cert + certificates.short.cert);
  const dc2Authorities = join(directory, 'dc2-authorities.pem');
  writeFileSync(dc2Authorities, certificates.long.cert);
  const untrusted = selfSigned(directory, 30);
  const started = await Promise.all(
    roleNames.map(async (name) => {
      const pair = name.endsWith('frontend') ? certificates.long : undefined;
      return [name, await startRole(directory, name.replace(' ', '-'), pair)] as const;
    }),
  );
  const roles = Object.fromEntries(started) as Record<RoleName, FakeRole>;
  for (const { page } of Object.values(roles)) page.gauge('svc_num_goroutines', {}, 50);
  return {
    roles,
    certificates,
    authorities,
    dc2Authorities,
    untrusted,
    ...historyMeters(roles),
    ...otherMeters(roles),
    async stop() {
      await Promise.all(Object.values(roles).map((role) => role.stop()));
    },
  };
}

const call = { operation: 'UpdateWorkflowExecution' };
const workflows = { domain: 'orders', workflow_type: 'order' };
const canary = { domain: 'canary', workflow_type: 'echo' };

function historyMeters({
  history: { page },
  'second history': second,
  'dc2 history': other,
}: Record<RoleName, FakeRole>) {
  page.counter('svc_persistence_requests', call, usual.storeCalls);
  page.counter('svc_workflow_started', workflows, usual.workflows);
  page.counter('svc_workflow_completed', workflows, usual.workflows);
  const peers = { source_cluster: 'dc2', target_cluster: 'dc1' };
  other.page.gauge('svc_replication_latency', { source_cluster: 'dc1', target_cluster: 'dc2' }, 1);
  other.page.counter('svc_workflow_completed', workflows, usual.workflows);
  return {
    heap: page.gauge('svc_memory_heap', {}, 1e9),
    gcPause: page.counter('svc_memory_gc_pause_ms', {}, 1),
    starts: page.counter('svc_restarts'),
    startsInDc2: other.page.counter('svc_restarts'),
    storeErrors: page.counter('svc_persistence_errors', call),
    storeCalls: page.histogram('svc_persistence_latency', call, usual.storeCalls, 0.01),
    workflowTimeouts: page.counter('svc_workflow_timeout', workflows),
    workflowFailures: page.counter('svc_workflow_failed', workflows),
    canary: page.counter('svc_workflow_completed', canary, usual.workflows),
    canaryOnSecond: second.page.counter('svc_workflow_completed', canary),
    shardsClosed: page.counter('svc_history_shard_context_closed'),
    transferTasks: page.histogram(
      'svc_history_task_queue_latency',
      { operation: 'TransferActiveTaskDecision' },
      usual.tasks,
      0.01,
    ),
    replicationLag: page.gauge('svc_replication_latency', peers, 1),
    replicationFailures: page.counter('svc_history_replication_tasks_failed', peers),
  };
}

function otherMeters({ matching, frontend }: Record<RoleName, FakeRole>) {
  const list = (tasklist: string) => ({ domain: 'orders', tasklist });
  matching.page.counter('svc_matching_tasks_dispatched', list('growing'), usual.tasks);
  const start = { operation: 'StartWorkflowExecution' };
  frontend.page.counter('svc_frontend_client_requests', start, usual.frontendCalls);
  return {
    growingBacklog: matching.page.gauge('svc_matching_tasklist_backlog', list('growing'), 100),
    stalledBacklog: matching.page.gauge('svc_matching_tasklist_backlog', list('stalled')),
    abandonedBacklog: matching.page.gauge('svc_matching_tasklist_backlog', list('abandoned')),
    unpolledBacklog: matching.page.gauge('svc_matching_tasklist_backlog', list('unpolled')),
    pollers: matching.page.gauge('svc_matching_pollers', list('unpolled'), 2),
    stalledDispatch: matching.page.counter('svc_matching_tasks_dispatched', list('stalled'), usual.tasks),
    frontendErrors: frontend.page.counter('svc_frontend_client_errors', start),
    frontendCalls: frontend.page.histogram('svc_frontend_client_latency', start, usual.frontendCalls, 0.01),
  };
}
