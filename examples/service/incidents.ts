import { roles } from '../../src/core/catalog.ts';
import type { Random } from './random.ts';
import { clusterGroup, databaseRoles, domainNames, taskLists } from './world.ts';

interface IncidentRow {
  /** What its targets are. */
  what: string;
  targets: readonly string[];
  /** The target if none is named. */
  usual: string;
  /** There is none of it in a service without a store. */
  needsStore?: true;
}

const clusterNames = clusterGroup.clusters.map(({ name }) => name);
const taskListNames = taskLists.map((list) => list.name);

const incidents = {
  'persistence-errors': { what: 'role', targets: roles, usual: 'history' },
  restart: { what: 'role', targets: roles, usual: 'matching' },
  backlog: { what: 'task list', targets: taskListNames, usual: 'order-processing' },
  fatal: { what: 'role', targets: roles, usual: 'worker' },
  'store-down': { what: 'store', targets: ['main'], usual: 'main', needsStore: true },
  'schema-behind': { what: 'database', targets: databaseRoles, usual: 'persistence', needsStore: true },
  failover: { what: 'domain', targets: domainNames, usual: 'orders' },
  'cluster-down': { what: 'cluster', targets: clusterNames, usual: 'dc2' },
  'replication-behind': { what: 'cluster', targets: clusterNames, usual: 'dc2' },
} as const satisfies Readonly<Record<string, IncidentRow>>;

export type IncidentKind = keyof typeof incidents;

/** Something goes wrong, or is done on purpose; the target is one of the kind's own. */
export interface Incident {
  kind: IncidentKind;
  target: string;
}

const rows: Readonly<Record<IncidentKind, IncidentRow>> = incidents;

/** What can happen, in the order in which people read it. */
export function incidentKinds({ hasStore }: { hasStore: boolean }): IncidentKind[] {
  return (Object.keys(rows) as IncidentKind[]).filter((kind) => hasStore || !rows[kind].needsStore);
}

/** What is wrong at the moment. */
export interface Conditions {
  /** The role whose persistence calls fail now and then. */
  failingRole?: string;
  /** The task list whose workers are gone. */
  starvedTaskList?: string;
  /** The store that refuses connections, so that every persistence call fails. */
  refusingStore?: string;
  /** The database whose schema is older than the service expects. */
  outdatedDatabase?: string;
  /** The cluster whose frontend and roles do not answer. */
  lostCluster?: string;
  /** The cluster that does not apply what is replicated to it. */
  laggingCluster?: string;
}

/** Reads `restart history`, `backlog`, …: a kind and, if the usual one will not do, a target. Throws what to say. */
export function parseIncident(text: string, kinds: readonly IncidentKind[]): Incident {
  const [word, target] = text.trim().split(/\s+/);
  const kind = kinds.find((one) => one === word);
  if (!kind) throw new Error(`no such incident: ${word || '(nothing)'}; use ${kinds.join(', ')}`);
  const { what, targets, usual } = rows[kind];
  if (target !== undefined && !targets.includes(target)) {
    throw new Error(`no such ${what}: ${target}; use ${targets.join(', ')}`);
  }
  return { kind, target: target ?? usual };
}

/** What a person types: an incident that begins, or the end of one kind (of all kinds if none is named). */
export type Order = { strike: Incident } | { end: IncidentKind | undefined };

/** Reads an incident, `end` or `end KIND`. Throws what to say. */
export function parseOrder(text: string, kinds: readonly IncidentKind[]): Order {
  const [word, ...rest] = text.trim().split(/\s+/);
  if (word !== 'end') return { strike: parseIncident(text, kinds) };
  if (rest.length === 0) return { end: undefined };
  return { end: parseIncident(rest.join(' '), kinds).kind };
}

/** What goes wrong next, if nobody says so. */
export function randomIncident(random: Random, kinds: readonly IncidentKind[]): Incident {
  const kind = kinds[random.integer(0, kinds.length - 1)] ?? 'restart';
  const { targets, usual } = rows[kind];
  return { kind, target: targets[random.integer(0, targets.length - 1)] ?? usual };
}
