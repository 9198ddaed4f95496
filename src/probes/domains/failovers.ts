import type { ClusterGroupOptions, ClusterOptions } from '../clusters/block.ts';
import type { Finding } from '../probe.ts';
import type { DomainDescription, FailoverEntry } from './description.ts';

/** The numbers that decide to which cluster a failover version belongs. */
type VersionRules = Pick<ClusterGroupOptions, 'failoverVersionIncrement' | 'clusters'>;

const initialVersions = ({ initialFailoverVersion, newInitialFailoverVersion }: ClusterOptions): number[] => [
  initialFailoverVersion,
  ...(newInitialFailoverVersion === undefined ? [] : [newInitialFailoverVersion]),
];

/**
 * The cluster to which a failover version belongs: the cluster whose initial version, or new initial version, equals it modulo
 * the increment. Undefined for a version of no cluster, and for a negative version, which means that there is none.
 */
export function clusterOfVersion(
  version: number,
  { failoverVersionIncrement, clusters }: VersionRules,
): ClusterOptions | undefined {
  if (version < 0) return undefined;
  const initial = version % failoverVersionIncrement;
  return clusters.find((cluster) => initialVersions(cluster).includes(initial));
}

/** A rise of more failovers than this between two polls means that the numbering changed. */
const mostFailovers = 100;

/**
 * The least number of failovers that lead from one failover version to another. A failover to a cluster uses the next version
 * that belongs to it, so the version rises by less than the increment each time; to return to the same cluster takes two
 * failovers. With two clusters the number is exact. 1 for versions that failovers of this group do not produce.
 */
export function failoversBetween(
  from: number,
  to: number,
  { failoverVersionIncrement, clusters }: VersionRules,
): number {
  const initials = new Set(clusters.flatMap(initialVersions));
  const isOfGroup = (version: number) => version >= 0 && initials.has(version % failoverVersionIncrement);
  if (to <= from) return 0;
  if (!isOfGroup(from) || !isOfGroup(to) || to - from > mostFailovers * failoverVersionIncrement) return 1;
  let failovers = 0;
  for (let version = from; version < to; failovers++) {
    // One failover reaches at most the last version of the group before the increment is full.
    const most = Math.min(to, version + failoverVersionIncrement - 1);
    const next = Math.max(...[...initials].map((initial) => lastVersionUpTo(most, initial)));
    if (next <= version) return 1;
    version = next;
  }
  return failovers;

  function lastVersionUpTo(most: number, initial: number): number {
    return (
      most -
      ((((most - initial) % failoverVersionIncrement) + failoverVersionIncrement) % failoverVersionIncrement)
    );
  }
}

/** What is remembered about a domain between checks, even across restarts, so that a failover counts once; JSON. */
export interface FailoverMemory {
  active?: string;
  /** The highest version seen; a lower version is an old view. */
  version?: number;
  /** The active cluster in the output with this version. */
  versionActive?: string;
  /** Keys of the history's entries that were seen; missing until an output had a history. */
  keys?: string[];
  /** Time of the newest of these entries, ms since the epoch. */
  newestMs?: number;
  /** The number of failovers that were counted by other evidence and may still appear in the history. */
  owed: number;
  /** The time of the last failover, ms since the epoch. */
  lastMs?: number;
  /** The highest version that any cluster described. */
  newest?: number;
  /** Whether the clusters disagreed. */
  disagreed?: boolean;
}

type DomainState = Pick<
  DomainDescription,
  'activeCluster' | 'failoverVersion' | 'failoverHistory' | 'activeActive'
>;

const mostKeys = 50;

/** What an earlier check remembered; undefined for anything else. */
export function failoverMemory(recalled: unknown): FailoverMemory | undefined {
  if (typeof recalled !== 'object' || recalled === null) return undefined;
  const { active, version, versionActive, keys, newestMs, owed, lastMs, newest, disagreed } =
    recalled as Record<string, unknown>;
  const number = (value: unknown) => (Number.isFinite(value) ? (value as number) : undefined);
  return {
    active: typeof active === 'string' ? active : undefined,
    version: number(version),
    versionActive: typeof versionActive === 'string' ? versionActive : undefined,
    keys: Array.isArray(keys) ? keys.filter((key) => typeof key === 'string') : undefined,
    newestMs: number(newestMs),
    owed: number(owed) ?? 0,
    lastMs: number(lastMs),
    newest: number(newest),
    disagreed: disagreed === true,
  };
}

/**
 * The number of failovers since the last check, as a lower bound: the new entries of the history, or as many as the rise of the
 * failover version needs, if that is more. A history has few entries, and may be updated later than the version. The first check
 * counts none. `nowMs` is since the epoch.
 */
export function countFailovers(
  memory: FailoverMemory | undefined,
  seen: DomainState,
  nowMs: number,
  group?: VersionRules,
): { count: number; memory: FailoverMemory } {
  const history = seen.failoverHistory;
  const isNew = (entry: FailoverEntry) => memory?.keys === undefined || isUnseen(entry, memory);
  const learnt = (history ?? []).filter(isNew);
  const fresh = memory?.keys === undefined ? [] : learnt;
  const paid = Math.min(memory?.owed ?? 0, fresh.length);
  const moved = memory === undefined ? 0 : movesBetween(memory, seen, group);
  const inferred = Math.max(0, moved - fresh.length);
  const lent = memory?.keys === undefined ? 0 : inferred;
  const count = inferred + fresh.length - paid;
  // After a failover, remembered values that this output does not show are out of date: their next change is not another
  // failover.
  const before = inferred + fresh.length > 0 ? undefined : memory;
  const isOld = memory !== undefined && isOldView(memory, seen);
  const newestLearntMs = latest(...learnt.map(({ atMs }) => atMs));
  return {
    count,
    memory: {
      active: isOld ? memory.active : (seen.activeCluster ?? before?.active),
      version: isOld ? memory.version : (seen.failoverVersion ?? before?.version),
      versionActive: isOld || seen.failoverVersion === undefined ? before?.versionActive : seen.activeCluster,
      keys: history
        ? [...learnt.map(({ key }) => key), ...(memory?.keys ?? [])].slice(0, mostKeys)
        : memory?.keys,
      newestMs: latest(memory?.newestMs, newestLearntMs),
      owed: isUpToDate(seen, fresh) ? 0 : (memory?.owed ?? 0) - paid + lent,
      lastMs: newestLearntMs ?? (count > 0 ? nowMs : memory?.lastMs),
    },
  };
}

/**
 * Whether an entry was not seen yet. An entry that is older than the newest entry that was seen was seen, too, and is no longer
 * remembered.
 */
function isUnseen({ key, atMs }: FailoverEntry, { keys = [], newestMs }: FailoverMemory): boolean {
  return !keys.includes(key) && (atMs === undefined || newestMs === undefined || atMs >= newestMs);
}

/** The least number of failovers that the active cluster and the failover version show. */
function movesBetween(memory: FailoverMemory, seen: DomainState, group: VersionRules | undefined): number {
  if (isOldView(memory, seen)) return 0;
  const { activeCluster, failoverVersion, activeActive } = seen;
  const renamed =
    memory.active !== undefined && activeCluster !== undefined && activeCluster !== memory.active;
  const [from, to] = [memory.version, failoverVersion];
  if (from === undefined || to === undefined || to <= from) return renamed ? 1 : 0;
  if (activeActive) return 1;
  if (group) return failoversBetween(from, to, group);
  // If a version rises under the same name, the domain moved to another cluster and back.
  return memory.versionActive !== undefined && activeCluster === memory.versionActive ? 2 : 1;
}

/** Whether a view is old. Versions never fall: a cluster with a lower version has not replicated the last failover yet. */
function isOldView({ version }: FailoverMemory, { failoverVersion }: DomainState): boolean {
  return version !== undefined && failoverVersion !== undefined && failoverVersion < version;
}

/**
 * The version of a failover that no earlier check saw, if there is one. Global domains are eventually consistent: until the next
 * check, a cluster with a lower version is late, and does not disagree. `views` are those of all clusters.
 */
export function versionUnderWay(
  memory: FailoverMemory | undefined,
  views: readonly DomainState[],
): { newest?: number; underWay?: number } {
  const newest = latest(memory?.newest, ...views.map(({ failoverVersion }) => failoverVersion));
  const isNew = memory?.newest !== undefined && newest !== memory.newest && !memory.disagreed;
  return { newest, underWay: isNew ? newest : undefined };
}

/** Whether a failover that is under way has not reached a cluster yet. */
export const isBefore = ({ failoverVersion }: DomainState, underWay: number | undefined): boolean =>
  underWay !== undefined && failoverVersion !== undefined && failoverVersion < underWay;

/** Whether the history contains everything that was counted without it. */
function isUpToDate(
  { activeCluster, failoverHistory }: DomainState,
  fresh: readonly FailoverEntry[],
): boolean {
  const newest = failoverHistory?.[0];
  return fresh.length > 0 && newest?.to !== undefined && newest.to === activeCluster;
}

function latest(...values: readonly (number | undefined)[]): number | undefined {
  const known = values.filter((value) => value !== undefined);
  return known.length === 0 ? undefined : Math.max(...known);
}

/** A cluster that is further behind than this is not ready (spec, Alert conditions: replication lag above 300 s). */
const mostLagSeconds = 300;

/** Whether a domain can fail over now; if not, or if that is not known, why. */
interface FailoverReadiness {
  /** Undefined if it is not known. */
  ready?: boolean;
  why: string;
}

interface ReadinessInput {
  /** The domain as this cluster describes it. */
  own: DomainDescription;
  /** The domain as other clusters describe it, by cluster; only clusters that answered. */
  views: ReadonlyMap<string, DomainDescription>;
  group: ClusterGroupOptions;
  underWay?: number;
  /** The last finding of another probe. */
  latest: (probe: string) => Finding | undefined;
}

/**
 * Whether a domain can fail over: one of its other clusters must answer, have replicated all but a little, and describe the
 * domain as the active cluster does. Undefined for a local domain, which never fails over.
 */
export function failoverReadiness(input: ReadinessInput): FailoverReadiness | undefined {
  const { own, group } = input;
  const { activeCluster, clusters, global } = own;
  if (global === false) return undefined;
  if (activeCluster === undefined) return { why: 'the output does not show where the domain is active' };
  const standbys = group.clusters
    .filter(({ name, enabled }) => enabled && name !== activeCluster && (clusters?.includes(name) ?? true))
    .map(({ name }) => name);
  if (standbys.length === 0) return { ready: false, why: 'no other cluster has the domain' };
  const assessed = standbys.map((standby) => standbyReadiness(standby, activeCluster, input));
  return (
    assessed.find(({ ready }) => ready === true) ?? {
      ready: assessed.some(({ ready }) => ready === undefined) ? undefined : false,
      why: assessed.map(({ why }) => why).join('; '),
    }
  );
}

/** The readiness of a standby cluster. The first failing check decides, or else the first check with an unknown result. */
function standbyReadiness(standby: string, active: string, input: ReadinessInput): FailoverReadiness {
  const checks = [health(standby, input), agreement(standby, active, input), lag(standby, active, input)];
  const decisive =
    checks.find(({ ready }) => ready === false) ?? checks.find(({ ready }) => ready === undefined);
  return decisive ?? { ready: true, why: `${standby} answers, agrees and is up to date` };
}

/** Whether a cluster answers. This cluster has just described the domain, so it does. */
function health(standby: string, { group, latest }: ReadinessInput): FailoverReadiness {
  if (standby === group.currentClusterName) return { ready: true, why: '' };
  const finding = latest(`cluster/${standby}`);
  if (finding === undefined) return { why: `the health of ${standby} is not known` };
  return { ready: finding.reason === undefined, why: `${standby}: ${finding.msg}` };
}

function agreement(
  standby: string,
  active: string,
  { own, views, group, underWay }: ReadinessInput,
): FailoverReadiness {
  const view = (cluster: string) => (cluster === group.currentClusterName ? own : views.get(cluster));
  const [here, there] = [view(standby), view(active)];
  if (here?.activeCluster === undefined || there?.activeCluster === undefined) {
    const unknown = here?.activeCluster === undefined ? standby : active;
    return { why: `where the domain is active is not known through ${unknown}` };
  }
  const late = isBefore(here, underWay) ? standby : isBefore(there, underWay) ? active : undefined;
  if (late !== undefined) return { why: `the last failover of the domain has not reached ${late} yet` };
  const ready = here.activeCluster === active && there.activeCluster === active;
  return { ready, why: `${standby} says ${here.activeCluster}, ${active} says ${there.activeCluster}` };
}

function lag(standby: string, active: string, { group, latest }: ReadinessInput): FailoverReadiness {
  const gauges = latest(`replication/${group.currentClusterName}`)?.gauges ?? [];
  const seconds = gauges.find(
    ({ name, labels }) =>
      name === 'svc_replication_lag_seconds' &&
      labels.source_cluster === active &&
      labels.target_cluster === standby,
  )?.value;
  if (seconds === undefined) return { why: `the lag of ${standby} behind ${active} is not known` };
  return { ready: seconds <= mostLagSeconds, why: `${standby} is ${seconds} s behind ${active}` };
}
