import type { ProbeStatus, StatusFacts } from '../../src/agent/report.ts';

/**
 * A small model of a cluster: a store, four roles, task lists with workers, a second cluster, archives and backups. A test sets a
 * fault, what depends on it fails by the model's own rules, and the model returns what an agent would see. It does not know kinds
 * of problems, limits or causes.
 */

/** A series of a page or of the agent. */
interface Sample {
  service: string;
  labels: Readonly<Record<string, string>>;
  value: number;
  buckets?: readonly (readonly [number, number])[];
}

type Failure = readonly [reason: string, msg: string, phase?: string];

const roleNames = ['frontend', 'history', 'matching', 'worker'] as const;
export type RoleName = (typeof roleNames)[number];

interface RoleState {
  /** How the health check of the role fails. */
  health?: Failure | undefined;
  /** Whether nothing of the role runs: neither health nor page answers, and it does no work. */
  gone: boolean;
  /** If set, the role restarts with every step, and logs this text before it ends. */
  crashesWith?: string | undefined;
  pageClosed: boolean;
  heap: number;
  pauses: number;
  /** The number of persistence calls that fail and are logged per second for a reason of the role's own. */
  ownErrors: number;
}

/** The state of the world; a fault sets some of it. */
export interface WorldState {
  store: { failure?: Failure | undefined; readOnly: boolean; slow: boolean; checks: Record<string, string> };
  roles: Record<RoleName, RoleState>;
  /** The share of requests to a role that fail for a reason of the role's own. */
  failingRequests: Partial<Record<RoleName, number>>;
  frontendSlow: boolean;
  /** The state of the workers of the domain `orders`. */
  workers: 'well' | 'gone' | 'stuck' | 'late';
  backlogGrowth: number;
  timeouts: number;
  cluster?: Failure | undefined;
  replicationLagSeconds: number;
  replicationFailures: number;
  domain?: Failure | undefined;
  archive?: Failure | undefined;
  /** The age of the newest object in the archive. */
  archiveAgeSeconds: number;
  /** The number of workflows that fail per second. */
  failures: number;
  canaryGone: boolean;
  /** The number of shards that history releases per second. */
  shardsMove: number;
  tasksLate: boolean;
  backups: Partial<Record<'nightly' | 'wal', Failure>>;
  walStalled: boolean;
  certificateDays: number;
  logState: string;
  lagBytes: number;
  reporterFails: boolean;
  stateDegraded?: string | undefined;
  reloadError?: string | undefined;
  drops: number;
  lost: number;
  /** A fatal entry that a role logs every five minutes. */
  fatal?: { role: RoleName; msg: string } | undefined;
}

const stepMs = 15_000;
const startMs = Date.parse('2026-03-01T08:00:00.000Z');

const healthyRole = (): RoleState => ({ gone: false, pageClosed: false, heap: 1e9, pauses: 2, ownErrors: 0 });

const healthy = (): WorldState => ({
  store: { readOnly: false, slow: false, checks: {} },
  roles: {
    frontend: healthyRole(),
    history: healthyRole(),
    matching: healthyRole(),
    worker: healthyRole(),
  },
  failingRequests: {},
  frontendSlow: false,
  workers: 'well',
  backlogGrowth: 0,
  timeouts: 0,
  replicationLagSeconds: 2,
  replicationFailures: 0,
  archiveAgeSeconds: 60,
  failures: 0,
  canaryGone: false,
  shardsMove: 0,
  tasksLate: false,
  backups: {},
  walStalled: false,
  certificateDays: 90,
  logState: 'following',
  lagBytes: 0,
  reporterFails: false,
  drops: 0,
  lost: 0,
});

type Totals = Map<string, Sample & { value: number }>;

/** Counters that continue from step to step. */
function createTotals() {
  const totals = new Map<string, Totals>();
  return {
    add(family: string, service: string, labels: Record<string, string>, perStep: number, within?: number) {
      const group = totals.get(family) ?? new Map();
      totals.set(family, group);
      const key = JSON.stringify([service, labels]);
      const known = group.get(key) ?? {
        service,
        labels,
        value: 0,
        ...(within !== undefined && { buckets: [[1, 0]] }),
      };
      known.value += perStep;
      if (within !== undefined) known.buckets = [[within, known.buckets[0][1] + (labels.slow ? 0 : perStep)]];
      group.set(key, known);
    },
    /** Adds calls with their latencies; `slow` of them took longer than `bound` seconds. */
    observe(family: string, service: string, operation: string, bound: number, calls: number, slow: number) {
      const group = totals.get(family) ?? new Map();
      totals.set(family, group);
      const key = `${service} ${operation}`;
      const known = group.get(key) ?? { service, labels: { operation }, value: 0, buckets: [[bound, 0]] };
      known.value += calls;
      known.buckets = [[bound, known.buckets[0][1] + calls - slow]];
      group.set(key, known);
    },
    reset(service: string) {
      for (const [family, group] of totals)
        for (const [key, { service: of }] of group)
          if (of === service && !family.startsWith('svc_log') && !family.startsWith('svc_role'))
            group.delete(key);
    },
    rows: (family: string): Sample[] => [...(totals.get(family)?.values() ?? [])],
  };
}

/** A probe that fails three times before its target counts as down. */
interface Watch {
  failures: number;
  failingSince?: string;
  since: number;
  state: 'up' | 'down';
}

interface Seen {
  nowMs: number;
  monotonicMs: number;
  facts: Partial<StatusFacts>;
  rows(family: string): Sample[];
}

/** Creates the model. `state` may be changed between two steps. */
export function createWorld(state: WorldState = healthy()) {
  const totals = createTotals();
  const watches = new Map<string, Watch>();
  const restarts: Record<string, number> = {};
  /** When each page was last read. */
  const takenMs = new Map<string, number>();
  const failingMs = new Map<string, number>();
  const words = new Map<string, { at: string; level: string; msg: string }[]>();
  let step = 0;
  let backlog = 0;

  const nowMs = () => startMs + step * stepMs;
  const time = (ms = nowMs()) => new Date(ms).toISOString();
  const seconds = stepMs / 1e3;

  const say = (role: string, level: 'error' | 'fatal', msg: string) => {
    totals.add('svc_log_entries_total', role, { level }, 1);
    const entry = { at: time(), level, msg, service: role, logger: '', workflow: 'wf-1', run: 'run-1' };
    words.set(role, [entry, ...(words.get(role) ?? [])].slice(0, 3));
  };

  const storeIsLost = () => state.store.failure !== undefined;

  /** How the health check of a role fails, depending on its own state and on the store. */
  const healthOf = (role: RoleName): Failure | undefined => {
    const { gone, health, crashesWith } = state.roles[role];
    if (gone || crashesWith) return ['refused', 'connect ECONNREFUSED 127.0.0.1:7933', 'connect'];
    if (health) return health;
    if (storeIsLost()) return ['persistence', 'persistence is not available'];
    // The frontend calls both other roles, and is not well without them.
    if (role === 'frontend' && (isOut('history') || isOut('matching')))
      return ['not_ok', 'a dependency is down'];
    return undefined;
  };
  const isOut = (role: RoleName): boolean => {
    const { gone, crashesWith, health } = state.roles[role];
    return gone || crashesWith !== undefined || health !== undefined;
  };
  /** Whether a role serves its page and counts nothing. */
  const hangs = (role: RoleName): boolean => state.roles[role].health?.[0] === 'first_byte_timeout';
  const hasPage = (role: RoleName): boolean => {
    const { gone, crashesWith, pageClosed } = state.roles[role];
    return !gone && !crashesWith && !pageClosed;
  };
  const servesWork = () =>
    !storeIsLost() && !state.store.readOnly && !isOut('history') && !isOut('matching') && !isOut('frontend');

  /** The failure to describe a domain. If the client is missing, this is the failure, whoever would answer it. */
  const domainFailure = (isLost: boolean): Failure | undefined =>
    isLost && state.domain?.[0] !== 'command_missing' ? ['command_failed', 'no answer'] : state.domain;

  const probe = (
    name: string,
    failure: Failure | undefined,
    details: object,
    intervalMs = 15_000,
    threshold = 1,
  ): ProbeStatus => {
    const watch = watches.get(name) ?? { failures: 0, since: nowMs(), state: 'up' };
    watches.set(name, watch);
    watch.failures = failure ? watch.failures + 1 : 0;
    watch.failingSince = failure ? (watch.failingSince ?? time()) : undefined;
    const next = failure ? (watch.failures >= threshold ? 'down' : watch.state) : 'up';
    if (next !== watch.state) watch.since = nowMs();
    watch.state = next;
    const [reason, msg = 'ok', phase] = failure ?? [];
    return {
      name,
      kind: name.split('/')[0] as ProbeStatus['kind'],
      target: '127.0.0.1:7233',
      state: watch.state,
      since: time(watch.since),
      flapping: false,
      intervalMs,
      timeoutMs: 5_000,
      nextRun: time(nowMs() + intervalMs),
      isRunning: false,
      consecutiveFailures: watch.failures,
      failingSince: watch.failingSince,
      skipped: { overlap: 0, backlog: 0 },
      last: {
        at: time(),
        ok: failure === undefined,
        reason,
        msg,
        durationMs: 4,
        ...(phase && { phasesMs: { [phase]: 4 } }),
        details,
      } as ProbeStatus['last'],
    };
  };

  /** Simulates the work of the roles in a step: calls of the store, requests to each other, tasks and workflows. */
  const work = () => {
    for (const role of roleNames) {
      const own = state.roles[role];
      if (own.gone || own.crashesWith || hangs(role)) continue;
      const calls = 40 * seconds;
      const isFailing = storeIsLost() || (state.store.readOnly && role !== 'frontend');
      const failed = isFailing ? calls : own.ownErrors * seconds;
      totals.add('svc_persistence_requests', role, { operation: 'Update' }, calls);
      if (failed > 0) totals.add('svc_persistence_errors', role, { operation: 'Update' }, failed);
      totals.add('svc_log_persistence_errors_total', role, {}, failed / 2);
      if (isFailing) say(role, 'error', 'persistence: dial tcp: connection refused');
      else if (own.ownErrors > 0) say(role, 'error', 'persistence: i/o timeout');
      totals.observe('svc_persistence_latency', role, 'Update', 1, calls, state.store.slow ? calls * 0.2 : 0);
      totals.add('svc_memory_gc_pause_ms', role, {}, own.pauses * seconds);
      totals.add('svc_log_bytes_total', role, {}, 4_000);
    }
    const callers = {
      frontend: ['worker'],
      history: ['frontend', 'matching'],
      matching: ['frontend', 'history'],
    };
    for (const [callee, from] of Object.entries(callers))
      for (const caller of from) {
        if (isOut(caller as RoleName)) continue;
        const calls = 20 * seconds;
        const isBroken = isOut(callee as RoleName) || storeIsLost();
        const share = isBroken ? 1 : (state.failingRequests[callee as RoleName] ?? 0);
        totals.add(`svc_${callee}_client_requests`, caller, { operation: 'Do' }, calls);
        if (share > 0) totals.add(`svc_${callee}_client_errors`, caller, { operation: 'Do' }, calls * share);
      }
    if (!isOut('frontend')) {
      const isSlow =
        state.frontendSlow || state.store.slow || storeIsLost() || isOut('history') || isOut('matching');
      totals.observe(
        'svc_frontend_client_latency',
        'frontend',
        'StartWorkflowExecution',
        0.5,
        300,
        isSlow ? 120 : 2,
      );
    }
    workTasks();
  };

  const workTasks = () => {
    const list = { domain: 'orders', tasklist: 'default' };
    const serves = servesWork();
    const hands = serves && state.workers !== 'gone' && state.workers !== 'stuck';
    const polls = serves && state.workers !== 'gone';
    const added = isOut('frontend') || storeIsLost() ? 0 : 5 * seconds;
    backlog = hands && state.backlogGrowth === 0 ? 0 : backlog + added + state.backlogGrowth * seconds;
    const isKnown = !state.roles.matching.gone && !state.roles.matching.crashesWith;
    if (isKnown) totals.add('svc_matching_poll_success', 'matching', list, hands ? 5 * seconds : 0);
    if (isKnown) totals.add('svc_matching_poll_timeout', 'matching', list, polls ? 2 : 0);
    const done = hands ? 5 * seconds : 0;
    const late = state.timeouts > 0 ? state.timeouts : hands || added === 0 ? 0 : 1;
    if (isOut('history')) return;
    totals.add('svc_workflow_completed', 'history', { domain: 'orders', workflow_type: 'o' }, done);
    totals.add('svc_workflow_timeout', 'history', { domain: 'orders', workflow_type: 'o' }, late * seconds);
    const failed = state.failures * seconds;
    totals.add('svc_workflow_failed', 'history', { domain: 'orders', workflow_type: 'o' }, failed);
    const echoes = serves && !state.canaryGone ? seconds : 0;
    totals.add('svc_workflow_completed', 'history', { domain: 'canary', workflow_type: 'echo' }, echoes);
    totals.add('svc_history_shard_context_closed', 'history', {}, state.shardsMove * seconds);
    const isLate = state.tasksLate || state.store.slow;
    const operation = 'TransferActiveTaskDecision';
    totals.observe('svc_history_task_queue_latency', 'history', operation, 5, 150, isLate ? 60 : 0);
  };

  const live = () => {
    for (const role of roleNames) {
      const own = state.roles[role];
      restarts[role] ??= 0;
      if (own.crashesWith) {
        if (step % 4 === 0) {
          restarts[role]++;
          totals.add('svc_role_restarts_total', role, {}, 1);
          say(role, 'fatal', own.crashesWith);
        }
        totals.reset(role);
      } else totals.add('svc_role_restarts_total', role, {}, 0);
      if (own.gone) totals.reset(role);
      if (!hangs(role)) totals.add('svc_log_entries_total', role, { level: 'info' }, 50);
    }
    if (state.fatal && step % 20 === 0) say(state.fatal.role, 'fatal', state.fatal.msg);
    totals.add(
      'svc_agent_dropped_total',
      '',
      { component: 'statsd', reason: 'buffer_full' },
      state.drops * seconds,
    );
    totals.add('svc_log_skipped_bytes_total', 'history', { reason: 'vanished' }, state.lost * seconds);
    totals.add(
      'svc_replication_task_failures_total',
      '',
      { source_cluster: 'dc1', target_cluster: 'dc2' },
      state.replicationFailures * seconds,
    );
  };

  const probes = (): ProbeStatus[] => {
    const { store } = state;
    const checks = Object.entries(store.checks).map(([check, found]) => ({
      check,
      holds: false,
      found,
      severity: check === 'connections' || check === 'lock_waits' ? 'advice' : 'data_at_risk',
    }));
    const frontendLost = isOut('frontend') || storeIsLost();
    const lag = state.replicationLagSeconds;
    const cannot = state.cluster ? 'dc2: no answer' : lag > 300 ? `dc2 is ${lag} s behind dc1` : undefined;
    const domainDetails = {
      global: true,
      clusters: ['dc1', 'dc2'],
      activeCluster: 'dc1',
      failover: { ready: cannot === undefined, why: cannot },
    };
    return [
      ...roleNames.map((role) => probe(`health/${role}`, healthOf(role), {}, 15_000, 3)),
      probe(
        'store/main/persistence',
        store.failure,
        store.failure ? {} : { schema: '0.37', readOnly: store.readOnly, checks },
      ),
      probe('cluster/dc1', undefined, {}),
      probe('cluster/dc2', state.cluster, {}),
      probe('domain/orders', domainFailure(frontendLost), domainDetails),
      probe('archive/history', state.archive, {}),
      probe('backup/nightly', state.backups.nightly, { store: 'main', type: 'full' }, 60_000),
      probe('backup/wal', state.backups.wal, { store: 'main', type: 'log' }, 60_000),
    ];
  };

  const facts = (): Partial<StatusFacts> => ({
    now: time(),
    startedAt: time(startMs - 3_600_000),
    roles: roleNames,
    probes: probes(),
    scrapes: roleNames.map((service) => {
      const up = hasPage(service);
      if (up) takenMs.set(service, nowMs());
      if (up) failingMs.delete(service);
      else if (!failingMs.has(service)) failingMs.set(service, nowMs());
      const what = { reason: 'refused' as const, what: 'connect ECONNREFUSED', atMs: nowMs() };
      const page = { series: 9, samples: 9, bytes: 9, invalidLines: 0, durationMs: 3 };
      return {
        ...{ service, url: 'http://127.0.0.1:9090/metrics', up, lastTakenMs: takenMs.get(service) },
        ...{
          lastFailure: up ? undefined : what,
          failingSinceMs: failingMs.get(service),
          failures: {},
          page,
          firstInvalid: undefined,
          vocabulary: 'svc',
        },
      };
    }),
    restarts: { ...restarts },
    logs: [
      {
        path: '/var/log/history.log',
        services: ['history'],
        offset: 9,
        lagBytes: state.lagBytes,
        state: state.logState,
      },
    ],
    entries: {
      ...{ services: [], loggers: [], loggerCount: 0, lastErrors: [] },
      lastWords: [...words].map(([service, entries]) => ({ service, entries: entries as never })),
    },
    domains: [{ domain: 'orders', activeCluster: 'dc1', failovers: 0 }],
    replication: state.cluster
      ? []
      : [{ source: 'dc1', target: 'dc2', lagSeconds: state.replicationLagSeconds }],
    certificates: [
      { probe: 'health/frontend', notAfter: time(startMs + state.certificateDays * 86_400_000) },
    ],
    state: {
      ...{ directory: '/var/lib/svc-agent', sequence: step, commitFailures: 0 },
      ...(state.stateDegraded !== undefined && { degraded: state.stateDegraded }),
    },
    config: {
      ...{ files: ['/etc/agent.yaml'], lastReloadSuccessful: state.reloadError === undefined },
      ...(state.reloadError !== undefined && { lastReloadError: state.reloadError }),
    },
    reporters: state.reporterFails
      ? [
          {
            ...{
              block: 'metrics',
              kind: 'hostedmetrics',
              target: 'https://metrics.example.com',
              failures: 3,
            },
            ...{
              lastFailure: { reason: 'refused' as const, what: 'connection refused', at: time() },
              failingSince: time(startMs + 21 * stepMs),
            },
          },
        ]
      : [],
  });

  const moment = (ageSeconds: number) => nowMs() / 1e3 - ageSeconds;
  const gauges: Readonly<Record<string, () => Sample[]>> = {
    svc_matching_tasklist_backlog: () =>
      state.roles.matching.gone || state.roles.matching.crashesWith
        ? []
        : [{ service: 'matching', labels: { domain: 'orders', tasklist: 'default' }, value: backlog }],
    svc_memory_heap: () =>
      roleNames.map((service) => ({ service, labels: {}, value: state.roles[service].heap })),
    svc_role_scrape_up: () =>
      roleNames.map((service) => ({ service, labels: {}, value: hasPage(service) ? 1 : 0 })),
    svc_role_up: () =>
      roleNames.map((service) => ({ service, labels: {}, value: healthOf(service) ? 0 : 1 })),
    svc_store_wal_oldest_unarchived_timestamp_seconds: () => [
      {
        service: '',
        labels: { store: 'main', database: 'persistence' },
        value: moment(state.walStalled ? 900 : 10),
      },
    ],
    svc_domain_retention_seconds: () => [{ service: '', labels: { domain: 'orders' }, value: 604_800 }],
    svc_domain_archival_enabled: () => [
      { service: '', labels: { domain: 'orders', archive: 'history' }, value: 1 },
    ],
    svc_archival_newest_object_timestamp_seconds: () => [
      {
        service: '',
        labels: { archive: 'history', scheme: 's3' },
        value: moment(state.archiveAgeSeconds),
      },
    ],
  };

  return {
    state,
    /** Ends every fault. */
    heal() {
      for (const key of Object.keys(state)) delete (state as Partial<WorldState>)[key as keyof WorldState];
      Object.assign(state, healthy());
    },
    /** Lets a quarter of a minute pass and returns what an agent sees. */
    step(): Seen {
      step++;
      work();
      live();
      const seen = facts();
      return {
        nowMs: nowMs(),
        monotonicMs: step * stepMs,
        facts: seen,
        rows: (family) => gauges[family]?.() ?? totals.rows(family),
      };
    },
  };
}
