import type { DomainDescription, FailoverEntry } from './description.ts';

/** What is kept of a domain from look to look, across restarts, so that a failover counts once. JSON. */
export interface FailoverMemory {
  active?: string;
  /** The last one shown; a lower one is an old view. */
  version?: number;
  /** Keys of recorded failovers that were seen; missing until a look could show any. */
  keys?: string[];
  /** Time of the newest of them, ms since the epoch. */
  newestMs?: number;
  /** Failovers that were counted by other evidence and that the history may still bring. */
  owed: number;
  /** The last failover, ms since the epoch. */
  lastMs?: number;
}

type Seen = Pick<DomainDescription, 'activeCluster' | 'failoverVersion' | 'failoverHistory'>;

const mostKeys = 50;

/** What an earlier look left, or undefined for anything else. */
export function failoverMemory(recalled: unknown): FailoverMemory | undefined {
  if (typeof recalled !== 'object' || recalled === null) return undefined;
  const { active, version, keys, newestMs, owed, lastMs } = recalled as Record<string, unknown>;
  const number = (value: unknown) => (Number.isFinite(value) ? (value as number) : undefined);
  return {
    active: typeof active === 'string' ? active : undefined,
    version: number(version),
    keys: Array.isArray(keys) ? keys.filter((key) => typeof key === 'string') : undefined,
    newestMs: number(newestMs),
    owed: number(owed) ?? 0,
    lastMs: number(lastMs),
  };
}

/**
 * The failovers between the last look and this one, a lower bound: as many as the history has new entries, or,
 * where it has none, one if the active cluster changed or the failover version rose. The first look ever counts
 * none. `nowMs` is since the epoch.
 */
export function countFailovers(
  memory: FailoverMemory | undefined,
  seen: Seen,
  nowMs: number,
): { count: number; memory: FailoverMemory } {
  const history = seen.failoverHistory;
  const isNew = (entry: FailoverEntry) => memory?.keys === undefined || isUnseen(entry, memory);
  const learnt = (history ?? []).filter(isNew);
  const fresh = memory?.keys === undefined ? [] : learnt;
  const paid = Math.min(memory?.owed ?? 0, fresh.length);
  const moved = memory !== undefined && hasMoved(memory, seen);
  const inferred = moved && fresh.length === 0 ? 1 : 0;
  const lent = memory?.keys === undefined ? 0 : inferred;
  const count = inferred + fresh.length - paid;
  // After news, evidence that this look does not show is out of date: its next change would be no news.
  const before = inferred + fresh.length > 0 ? undefined : memory;
  const isOld = memory !== undefined && isOldView(memory, seen);
  const newestLearntMs = latest(...learnt.map(({ atMs }) => atMs));
  return {
    count,
    memory: {
      active: isOld ? memory.active : (seen.activeCluster ?? before?.active),
      version: isOld ? memory.version : (seen.failoverVersion ?? before?.version),
      keys: history
        ? [...learnt.map(({ key }) => key), ...(memory?.keys ?? [])].slice(0, mostKeys)
        : memory?.keys,
      newestMs: latest(memory?.newestMs, newestLearntMs),
      owed: isUpToDate(seen, fresh) ? 0 : (memory?.owed ?? 0) - paid + lent,
      lastMs: newestLearntMs ?? (count > 0 ? nowMs : memory?.lastMs),
    },
  };
}

/** A history keeps few entries: one older than the newest seen has dropped out of what is remembered. */
function isUnseen({ key, atMs }: FailoverEntry, { keys = [], newestMs }: FailoverMemory): boolean {
  return !keys.includes(key) && (atMs === undefined || newestMs === undefined || atMs >= newestMs);
}

function hasMoved(memory: FailoverMemory, seen: Seen): boolean {
  if (isOldView(memory, seen)) return false;
  const { activeCluster, failoverVersion } = seen;
  const renamed =
    memory.active !== undefined && activeCluster !== undefined && activeCluster !== memory.active;
  const rose =
    memory.version !== undefined && failoverVersion !== undefined && failoverVersion > memory.version;
  return renamed || rose;
}

/** A cluster that has not heard of the last failover yet still shows the lower version: versions never fall. */
function isOldView({ version }: FailoverMemory, { failoverVersion }: Seen): boolean {
  return version !== undefined && failoverVersion !== undefined && failoverVersion < version;
}

/** Whether the history has caught up with what was counted without it. */
function isUpToDate({ activeCluster, failoverHistory }: Seen, fresh: readonly FailoverEntry[]): boolean {
  const newest = failoverHistory?.[0];
  return fresh.length > 0 && newest?.to !== undefined && newest.to === activeCluster;
}

function latest(...values: readonly (number | undefined)[]): number | undefined {
  const known = values.filter((value) => value !== undefined);
  return known.length === 0 ? undefined : Math.max(...known);
}
