import type { Role } from '../../src/core/catalog.ts';
import type { Conditions } from './incidents.ts';
import type { Metrics } from './metrics.ts';
import type { Random } from './random.ts';
import * as world from './world.ts';

/** One step of a role's work: `workflows` were started anywhere in the service during `seconds`. */
interface Step {
  seconds: number;
  workflows: number;
  conditions: Conditions;
}

/** A part of a role's work. It changes the metrics and returns the persistence calls that failed. */
export type Work = (step: Step) => readonly world.PersistenceOperation[];

const nothingFailed: readonly world.PersistenceOperation[] = [];

/** Calls to another role, counted and timed by the caller. */
function clientCalls(
  metrics: Metrics,
  random: Random,
  client: string,
  operations: readonly world.Operation[],
): Work {
  return ({ workflows }) => {
    for (const { name, perWorkflow, medianSeconds } of operations) {
      const tags = { operation: name };
      const calls = random.count(workflows * perWorkflow);
      metrics.add(`svc_${client}_client_requests`, tags, calls);
      metrics.add(`svc_${client}_client_errors`, tags, random.count(calls * 0.001));
      for (let i = 0; i < calls; i += 1) {
        metrics.observe(`svc_${client}_client_latency`, tags, random.longTail(medianSeconds));
      }
    }
    return nothingFailed;
  };
}

/** Persistence calls; of a role in trouble a fifth fail, and all are slow; of a store that refuses none comes through. */
function persistenceCalls(metrics: Metrics, random: Random, role: Role): Work {
  return ({ workflows, conditions }) => {
    const trouble = conditions.failingRole === role;
    const failingShare = conditions.refusingStore !== undefined ? 1 : trouble ? 0.2 : 0.0002;
    const failed: world.PersistenceOperation[] = [];
    for (const operation of world.persistenceOperations) {
      const tags = { operation: operation.name };
      const calls = random.count((workflows * operation.perWorkflow) / 4);
      metrics.add('svc_persistence_requests', tags, calls);
      metrics.add('svc_persistence_errors', tags, 0);
      for (let i = 0; i < calls; i += 1) {
        const median = operation.medianSeconds * (trouble ? 100 : 1);
        metrics.observe('svc_persistence_latency', tags, random.longTail(median));
        if (random.next() >= failingShare) continue;
        metrics.add('svc_persistence_errors', tags);
        failed.push(operation);
      }
    }
    return failed;
  };
}

/** Workflows that start, are open for half a minute on average, and end; history's own work besides. */
function historyWork(metrics: Metrics, random: Random): Work {
  const open = new Map<string, number>();
  return ({ workflows, seconds, conditions }) => {
    for (const list of world.taskLists) {
      const tags = { domain: list.domain, workflow_type: list.workflowType };
      const started = random.count(workflows * list.weight);
      const before = (open.get(list.name) ?? 0) + started;
      const ended = Math.min(before, random.count((before * seconds) / 30));
      open.set(list.name, before - ended);
      metrics.add('svc_workflow_started', tags, started);
      for (const { metric } of world.outcomes) metrics.add(metric, tags, 0);
      for (let i = 0; i < ended; i += 1) metrics.add(random.weighted(world.outcomes).metric, tags);
      taskLatencies(metrics, random, list, { started, starved: conditions.starvedTaskList === list.name });
    }
    cacheLookUps(metrics, random, workflows);
    metrics.add('svc_history_shard_context_closed', {}, random.count(seconds / 300));
    replication(metrics, random, workflows, conditions.laggingCluster);
    return nothingFailed;
  };
}

/** Changes go both ways, as each cluster is the active one of some domain; a cluster is about half a second behind. */
function replication(metrics: Metrics, random: Random, workflows: number, lagging: string | undefined) {
  metrics.add('svc_history_replication_tasks_applied', {}, random.count(workflows * 2));
  for (const { name: source } of world.clusterGroup.clusters) {
    for (const { name: target } of world.clusterGroup.clusters) {
      if (source === target) continue;
      const tags = { source_cluster: source, target_cluster: target };
      metrics.set('svc_replication_latency', tags, target === lagging ? behindSeconds : random.longTail(0.5));
    }
  }
}

/** Beyond the 300 s at which replication counts as behind (spec, Alert conditions). */
const behindSeconds = 900;

function taskLatencies(
  metrics: Metrics,
  random: Random,
  list: world.TaskList,
  { started, starved }: { started: number; starved: boolean },
) {
  const common = { domain: list.domain, tasklist: list.name };
  const kinds = [
    {
      task: 'decision',
      tags: { ...common, workflow_type: list.workflowType },
      perWorkflow: 3,
      workSeconds: 0.03,
    },
    {
      task: 'activity',
      tags: { ...common, activity_type: list.activityType },
      perWorkflow: 2,
      workSeconds: 0.4,
    },
  ];
  for (const { task, tags, perWorkflow, workSeconds } of kinds) {
    for (let i = random.count(started * perWorkflow); i > 0; i -= 1) {
      const waitSeconds = random.longTail(starved ? 4 : 0.02);
      metrics.observe(`svc_${task}_task_schedule_to_start_latency`, tags, waitSeconds);
      metrics.observe(`svc_${task}_task_execution_latency`, tags, random.longTail(workSeconds));
    }
  }
}

function cacheLookUps(metrics: Metrics, random: Random, workflows: number) {
  const lookUps = random.count(workflows * 8);
  metrics.add('svc_history_cache_requests', {}, lookUps);
  metrics.add('svc_history_cache_errors', {}, random.count(lookUps * 0.0005));
  for (let i = 0; i < lookUps; i += 1)
    metrics.observe('svc_history_cache_latency', {}, random.longTail(0.0004));
}

/** Tasks that come in and are handed out; what is not, is the backlog. Pollers have half as much again to spare. */
function matchingWork(metrics: Metrics, random: Random): Work {
  const backlog = new Map<string, number>();
  return ({ workflows, conditions }) => {
    for (const list of world.taskLists) {
      const tags = { domain: list.domain, tasklist: list.name };
      const expected = workflows * list.weight * world.tasksPerWorkflow;
      const added = random.count(expected);
      const polls = conditions.starvedTaskList === list.name ? 0 : random.count(expected * 1.5);
      const waiting = (backlog.get(list.name) ?? 0) + added;
      const dispatched = Math.min(waiting, polls);
      backlog.set(list.name, waiting - dispatched);
      metrics.add('svc_matching_tasks_added', tags, added);
      metrics.add('svc_matching_tasks_dispatched', tags, dispatched);
      metrics.add('svc_matching_poll_success', tags, dispatched);
      metrics.add('svc_matching_poll_timeout', tags, polls - dispatched);
      metrics.set('svc_matching_tasklist_backlog', tags, waiting - dispatched);
    }
    return nothingFailed;
  };
}

/** Everything one role does, by its place in the service. */
export function workOf(role: Role, metrics: Metrics, random: Random): readonly Work[] {
  const frontend = () => clientCalls(metrics, random, 'frontend', world.frontendOperations);
  const history = () => clientCalls(metrics, random, 'history', world.historyOperations);
  const matching = () => clientCalls(metrics, random, 'matching', world.matchingOperations);
  const own: Readonly<Record<Role, () => readonly Work[]>> = {
    frontend: () => [frontend(), history(), matching()],
    history: () => [history(), matching(), historyWork(metrics, random)],
    matching: () => [history(), matching(), matchingWork(metrics, random)],
    worker: () => [frontend(), history()],
  };
  return [persistenceCalls(metrics, random, role), ...own[role]()];
}
