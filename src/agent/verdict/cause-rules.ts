import { dirname } from 'node:path';
import type { ScrapeFailureReason } from '../../core/reasons.ts';
import type { ProbeStatus, StatusFacts } from '../report.ts';
import { type Begun, dependentReasons, isFatal, isOwnReason } from './found.ts';
import { type KindOfProblem, processFaults } from './kinds.ts';
import { isPassing, onceOf, probeNamed } from './named.ts';
import { checkSource } from './store-evidence.ts';

export type Related = (
  cause: Begun,
  effect: Begun,
  facts: Pick<StatusFacts, 'probes' | 'exceeded'>,
) => boolean;

/** Which kinds of problems can cause which others, and how a cause and its effect must be related. */
interface Rule {
  causes: readonly KindOfProblem[];
  effects: readonly KindOfProblem[];
  related: Related;
}

const lostStore = ['disk_full', 'store_down'] as const;
const storeFaults = ['disk_full', 'locks', 'connections', 'store_down', 'read_only', 'schema'] as const;
const deadRole = ['crash_loop', 'role_down', 'fatal', 'role_failing'] as const;
const callFaults = ['persistence_errors', 'request_errors', 'frontend_latency'] as const;
/** Problems of history's own work, which requests depend on. */
const historyFaults = ['shard_movement', 'task_latency'] as const;
const listFaults = ['list_unpolled', 'list_stalled', 'backlog_growth'] as const;
const workFaults = [...listFaults, ...(['workflow_timeouts', 'workflow_failures', 'canary'] as const)];
/** Problems of work that failing or slow calls cause. A few failing calls do not keep workers from polling. */
const workOfCalls = workFaults.filter((kind) => kind !== 'list_unpolled');
const archiveFaults = ['archival_stalled', 'retention_unarchived'] as const;
const domainFaults = ['domain', 'failover', 'disagreement'] as const;
const replicationFaults = ['replication_failures', 'replication_lag', 'replication'] as const;
/** Problems of backups that begin when a store cannot be read. */
const backupsNotMade = [
  ...(['wal_stalled', 'backup_failed', 'backup_missing', 'backup_unread', 'backup_late'] as const),
] as const;
const recoveryFaults = ['recovery', 'not_proven'] as const;
const backupFaults = [...backupsNotMade, ...(['backup_gone', 'backup_damaged', 'backup_offsite'] as const)];

const sameStore: Related = (cause, effect) => cause.about.store === effect.about.store;
/** What the details of a store's probe say about it and about the servers that it follows. */
interface StoreDetails {
  identity?: string;
  address?: string;
  follows?: readonly unknown[];
}

/**
 * Whether a store is a standby of another store, and does not keep up with it. A standby knows its primary by its identity, or
 * only by its address.
 */
const isStandby: Related = (cause, effect, facts) => {
  const detailsOf = (probe: string | undefined): StoreDetails =>
    probeNamed(facts, probe)?.last?.details ?? {};
  const { follows = [] } = detailsOf(effect.about.probe);
  const { identity, address } = detailsOf(cause.about.probe);
  const isReplica = effect.from?.includes(checkSource(effect.about.probe!, 'replica')) ?? false;
  return isReplica && [identity, address?.toLowerCase()].some((name) => name && follows.includes(name));
};

/** Whether backups or their store can explain a fault of recovery. That nobody ever tried a recovery has nothing to do with them. */
const weakensRecovery: Related = (cause, effect, facts) =>
  sameStore(cause, effect, facts) && (effect.reason !== 'drill_missing' || cause.kind === 'recovery');
const sameRole: Related = (cause, effect) => cause.about.role === effect.about.role;
/** Whether only this role has slow calls. Then the reason is not the store, but what happens to this role. */
const slowAlone: Related = (cause, effect, facts) =>
  sameRole(cause, effect, facts) &&
  !facts.exceeded.some(({ kind, about: { role } }) => kind === effect.kind && role !== effect.about.role);
/** Whether two log files, or patterns of them, of one role are in one directory. */
const sameDirectory: Related = (cause, effect, facts) =>
  sameRole(cause, effect, facts) && dirname(cause.subject) === dirname(effect.subject);
const sameProbe: Related = (cause, effect) => cause.about.probe === effect.about.probe;
const always: Related = () => true;

/** The roles that each role calls. */
const calls: Readonly<Record<string, readonly string[]>> = {
  worker: ['frontend', 'history', 'matching'],
  frontend: ['history', 'matching'],
  matching: ['history'],
  history: ['matching'],
};

/** Whether one role calls another. A role with an unknown name is called by none and calls none. */
const isCalledBy = (callee = '', caller = ''): boolean => calls[caller]?.includes(callee) ?? false;

/** Reasons of a scrape that fails because nothing serves the page. */
const mayBeGone: ReadonlySet<string> = new Set<ScrapeFailureReason>([
  ...(['refused', 'unreachable', 'reset', 'too_slow'] as const),
]);

/** Matches log texts in which a role blames its store. */
const blamesStore =
  /persist|database|sql|cassandra|\bstore\b|shard|connection|dial tcp|timed? ?out|unavailable|schema/i;
/** Whether the reason of an effect is its own: credentials, certificates, names. */
const isOfItself = ({ reason = '' }: Begun): boolean => isOwnReason(reason);

/** Whether the last log entries of a role are fatal and blame something other than its store. */
function blamesItself({ evidence }: Begun): boolean {
  const words = evidence.filter(isFatal);
  return words.length > 0 && !words.some(({ text }) => blamesStore.test(text));
}

export const saysFatal = ({ evidence }: Begun): boolean => evidence.some(isFatal);

/** Whether the processes of at least half of all roles are gone. */
const areGone = onceOf((probes: readonly ProbeStatus[]): boolean => {
  const roles = probes.filter(({ kind, last }) => kind === 'health' && last);
  return roles.filter(({ last }) => last!.reason === 'refused').length * 2 >= roles.length;
});

/** Whether the process of the role is gone, and at least half of all roles are gone, too. */
const isGoneWithOthers: Related = (_cause, effect, { probes }) =>
  effect.reason === 'refused' && areGone(probes) && !blamesItself(effect);

/**
 * Whether a store can explain the state of a role. If a process is gone while others live, the store that all of them use is not
 * the reason, unless the last log entries of the role say so.
 */
const isOfStore: Related = (cause, effect, facts) => {
  if (blamesItself(effect) || isOwnReason(effect.reason ?? '')) return false;
  // A role serves its metrics without the store. If the role is healthy, the store can explain only the end of its process.
  if (effect.kind === 'scrape_down' && effect.reason !== 'refused') return false;
  return effect.reason !== 'refused' || saysFatal(effect) || isGoneWithOthers(cause, effect, facts);
};

/** Whether a role says that its store is at fault. */
const saysStore: Related = (_cause, effect) =>
  !blamesItself(effect) && (dependentReasons.has(effect.reason ?? '') || saysFatal(effect));

/** Whether a running role lacks a role that it calls. If it lacked its store, it would say so. */
const isCaller: Related = (cause, effect) =>
  isCalledBy(cause.about.role, effect.about.role) &&
  dependentReasons.has(effect.reason ?? '') &&
  effect.reason !== 'persistence' &&
  !blamesItself(effect);

const ofRequests: Related = ({ about: { role = '' } }, { about }) =>
  about.callee === role || isCalledBy(role, about.callee) || about.role === role;

const sharesCluster: Related = (cause, effect) =>
  cause.about.clusters?.some((name) => effect.about.clusters?.includes(name)) ?? false;

const sameWork: Related = (cause, effect) =>
  cause.about.domain === effect.about.domain &&
  (effect.about.tasklist === undefined || effect.about.tasklist === cause.about.tasklist);

/** Whether a role is needed to run tasks: history and matching hand them out, and workers ask the frontend for them. */
const runsWork: Related = ({ about: { role = '' } }) => /^(?:frontend|history|matching)$/.test(role);
/**
 * Whether a role is needed for replication: history applies the tasks of other clusters, and the worker applies those about
 * domains.
 */
const replicates: Related = ({ about: { role = '' } }) => role === 'history' || role === 'worker';
/** Whether the role is the frontend, which reads domains from the store. */
const isFrontend: Related = ({ about: { role } }) => role === 'frontend';

/**
 * Narrows what a role explains: a page that cannot be scraped is a reason only if the process may be gone. It is no reason if the
 * page answers with an error, or if the role passes its health check.
 */
const ifProcess =
  (related: Related): Related =>
  (cause, effect, facts) =>
    (cause.kind !== 'scrape_down' ||
      (mayBeGone.has(cause.reason ?? '') && !isPassing(cause.about.role, facts))) &&
    related(cause, effect, facts);

export const rules: readonly Rule[] = [
  {
    causes: ['disk_full'],
    effects: ['store_down', 'read_only', 'data_at_risk'],
    related: (cause, effect, facts) => sameStore(cause, effect, facts) && !isOfItself(effect),
  },
  // Sessions that wait keep their connections.
  { causes: ['locks'], effects: ['connections'], related: sameStore },
  {
    causes: ['locks', 'connections'],
    effects: ['store_down'],
    related: (cause, effect, facts) =>
      sameStore(cause, effect, facts) && effect.reason === 'too_many_connections',
  },
  {
    causes: lostStore,
    effects: [...backupsNotMade, ...recoveryFaults, 'flapping', 'stale', 'data_at_risk'],
    related: weakensRecovery,
  },
  { causes: lostStore, effects: ['recovery_weak'], related: isStandby },
  { causes: lostStore, effects: processFaults, related: isOfStore },
  { causes: ['locks', 'read_only', 'schema'], effects: processFaults, related: saysStore },
  // A role refuses to start with the wrong schema.
  { causes: ['schema'], effects: ['role_down', 'crash_loop'], related: isGoneWithOthers },
  { causes: storeFaults, effects: ['persistence_latency', 'persistence_errors'], related: always },
  // Calls that time out are slow, too.
  { causes: [...deadRole, 'persistence_errors'], effects: ['persistence_latency'], related: slowAlone },
  {
    causes: [...lostStore, 'read_only'],
    effects: [...callFaults, ...historyFaults, ...workFaults, ...domainFaults, ...replicationFaults],
    related: always,
  },
  { causes: lostStore, effects: [...archiveFaults, 'log_silent'], related: always },
  { causes: ['log_deleted', 'log_disk_full', 'log_gone'], effects: ['log_silent'], related: sameRole },
  // The file that was deleted is the file that is missing.
  { causes: ['log_deleted'], effects: ['log_gone'], related: sameDirectory },
  {
    causes: ['locks', 'persistence_latency'],
    effects: ['persistence_latency', 'request_errors', 'frontend_latency', ...historyFaults],
    related: always,
  },
  {
    causes: ['heap', 'gc_pause', ...deadRole],
    effects: [...processFaults, 'flapping'],
    related: (cause, effect, facts) =>
      sameRole(cause, effect, facts) && !isOfItself(effect) && !effect.whileWell,
  },
  { causes: ['heap'], effects: ['gc_pause'], related: sameRole },
  {
    causes: deadRole,
    effects: ['stale', 'log_silent', 'persistence_errors', 'gc_pause'],
    related: sameRole,
  },
  { causes: processFaults, effects: ['role_down', 'role_failing'], related: ifProcess(isCaller) },
  {
    causes: ['gc_pause', ...processFaults],
    effects: ['request_errors', 'frontend_latency'],
    related: ifProcess(ofRequests),
  },
  // A host that ends or stands still gives up its shards.
  { causes: ['heap', 'gc_pause', ...processFaults], effects: historyFaults, related: ifProcess(sameRole) },
  {
    causes: ['shard_movement'],
    effects: ['task_latency', 'request_errors', 'frontend_latency'],
    related: always,
  },
  { causes: historyFaults, effects: workOfCalls, related: always },
  { causes: processFaults, effects: workFaults, related: ifProcess(runsWork) },
  { causes: deadRole, effects: replicationFaults, related: replicates },
  { causes: deadRole, effects: domainFaults, related: isFrontend },
  {
    causes: ['crash_loop', 'role_down'],
    effects: archiveFaults,
    related: ({ about, reason = '' }) => about.role === 'worker' && !isOwnReason(reason),
  },
  {
    causes: ['persistence_errors'],
    effects: ['request_errors', 'frontend_latency', ...historyFaults, ...workOfCalls],
    related: always,
  },
  {
    causes: ['request_errors', 'frontend_latency'],
    effects: ['frontend_latency', ...workOfCalls],
    related: always,
  },
  { causes: listFaults, effects: workFaults, related: sameWork },
  {
    causes: ['cluster_down'],
    effects: [...replicationFaults, ...domainFaults],
    related: (cause, effect, facts) =>
      sharesCluster(cause, effect, facts) && effect.reason !== 'command_missing',
  },
  { causes: ['cluster_down'], effects: ['replication'], related: always },
  { causes: replicationFaults, effects: ['replication_lag', 'replication', 'failover'], related: always },
  {
    causes: ['disagreement'],
    effects: ['failover'],
    related: (cause, effect) => cause.about.domain === effect.about.domain,
  },
  {
    causes: ['archive_down', 'archival_stalled'],
    effects: archiveFaults,
    related: (cause, effect) => cause.about.archive === effect.about.archive,
  },
  { causes: [...backupFaults, ...recoveryFaults], effects: recoveryFaults, related: weakensRecovery },
  {
    causes: [...processFaults, 'store_down', 'cluster_down'],
    effects: ['certificate'],
    related: (cause, effect, facts) => sameProbe(cause, effect, facts) && cause.reason === 'tls_expired',
  },
  { causes: [...processFaults, 'store_down', 'cluster_down'], effects: ['flapping'], related: sameProbe },
];
