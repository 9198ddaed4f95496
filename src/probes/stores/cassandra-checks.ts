import type { StoreCheck } from '../../core/check-severity.ts';
import type { Clock } from '../../core/ports.ts';
import { excerpt } from '../probe.ts';
import type { CassandraRow } from './cassandra-connection.ts';
import type { CheckResult } from './store-report.ts';

/** With fewer replicas, a single node that is down breaks the majority. */
const leastReplicas = 3;

/** The values in `system_views.settings`, or the reason why they are not known. */
export type Settings = { values: ReadonlyMap<string, string> } | { unknown: string };

export function settingsOf(rows: readonly CassandraRow[]): Settings {
  return { values: new Map(rows.map(({ name, value }) => [String(name), String(value)])) };
}

/** Checks a setting of the node that must be on and has the check's name. */
function settingCheck(check: StoreCheck, settings: Settings): CheckResult {
  if ('unknown' in settings) return { check, holds: 'unknown', found: settings.unknown };
  const value = settings.values.get(check);
  if (value === undefined) return { check, holds: 'unknown', found: `system_views.settings has no ${check}` };
  return { check, holds: value === 'true', found: `${check} = ${value}` };
}

export function settingChecks(settings: Settings): CheckResult[] {
  return [settingCheck('incremental_backups', settings), settingCheck('auto_snapshot', settings)];
}

/**
 * The number of copies of each row, by datacenter if the strategy distinguishes datacenters; `3/1` means three copies, one of
 * them transient.
 */
function replicasOf(replication: Readonly<Record<string, unknown>>): Map<string, number> {
  const { class: _, ...factors } = replication;
  return new Map(
    Object.entries(factors).map(([place, factor]) => [place, Number(String(factor).replace(/\/\d+$/, ''))]),
  );
}

/** The number of nodes in each datacenter, including this node and the nodes that are down. */
type NodeCounts = ReadonlyMap<string, number>;

export function nodeCounts(local: CassandraRow, peers: readonly CassandraRow[]): NodeCounts {
  const counts = new Map<string, number>();
  for (const { data_center } of [local, ...peers])
    if (data_center != null) counts.set(String(data_center), (counts.get(String(data_center)) ?? 0) + 1);
  return counts;
}

const nodesText = (count: number) => (count === 1 ? '1 node' : `${count} nodes`);

/**
 * Checks the copies and the strategy of a keyspace. Each datacenter that has any copies (with SimpleStrategy: the cluster) needs
 * three, and as many nodes as copies: with fewer, writes to the missing copies fail.
 */
export function replicationChecks({ replication }: CassandraRow, nodes: NodeCounts): CheckResult[] {
  const check = 'replication_factor';
  const options = (replication ?? {}) as Readonly<Record<string, unknown>>;
  const strategy = String(options.class ?? 'none').replace(/^.*\./, '');
  const isSimple = strategy === 'SimpleStrategy';
  if (!isSimple && strategy !== 'NetworkTopologyStrategy')
    return [{ check, holds: 'unknown', found: `replication = ${strategy}` }];
  const all = [...nodes.values()].reduce((sum, count) => sum + count, 0);
  const replicas = [...replicasOf(options)]
    .filter(([, count]) => count !== 0)
    .map(([place, count]) => ({ place, count, nodes: isSimple ? all : (nodes.get(place) ?? 0) }));
  const described = replicas.map(({ place, count, nodes: there }) => {
    const where = place === check ? '' : ` in ${place}`;
    return `${count}${where}${count > there ? ` on ${nodesText(there)}` : ''}`;
  });
  const isEnough = replicas.every(({ count, nodes: there }) => count >= leastReplicas && count <= there);
  return [
    {
      check,
      holds: replicas.length > 0 && isEnough,
      found: `replication_factor = ${described.join(', ') || 0} (${strategy})`,
    },
    { check: 'replication_strategy', holds: !isSimple, found: `class = ${strategy}` },
  ];
}

export function durableWritesCheck({ durable_writes }: CassandraRow): CheckResult {
  const check = 'durable_writes';
  if (typeof durable_writes !== 'boolean')
    return { check, holds: 'unknown', found: 'durable_writes is hidden' };
  return { check, holds: durable_writes, found: `durable_writes = ${durable_writes}` };
}

/** Checks whether all nodes that this one lists have the same schema; nodes that are down count, too. */
export function agreementCheck(local: CassandraRow, peers: readonly CassandraRow[]): CheckResult {
  const nodes = [local, ...peers].filter(({ schema_version }) => schema_version != null);
  const versions = new Set(nodes.map(({ schema_version }) => String(schema_version)));
  const down = versions.size > 1 ? '; nodes that are down count too' : '';
  return {
    check: 'schema_agreement',
    holds: versions.size === 0 ? 'unknown' : versions.size === 1,
    found: `schema versions: ${versions.size}, on nodes: ${nodes.length}${down}`,
  };
}

/** Rows, or the reason why there are none: this user may not see them, or this version does not have them. */
export type CassandraAnswer =
  | { rows: readonly CassandraRow[]; unknown?: undefined }
  | { rows?: undefined; unknown: string };

/** What one poll reads about the other nodes and about this node's snapshots. */
export interface WatchedNodes {
  /** The number of other nodes in the cluster. */
  peers: number;
  /** The rows of the virtual table `gossip_info`. */
  gossip: CassandraAnswer;
  /** The rows of the virtual table `snapshots`. */
  snapshots: CassandraAnswer;
}

/** A node increases its heartbeat every second; gossip spreads it to all nodes within a few seconds. */
const silentMs = 20_000;
/** Statuses of a node that was removed or has left. */
const goneStatus = /^(?:LEFT|REMOV)/i;
/** How long incremental backups and logs are retained in the spec's schedule. */
const longestKeptMs = 7 * 86_400_000;
const namedAtMost = 3;

interface Beat {
  beat: string;
  sinceMs: number;
  /** Whether the heartbeat was ever seen to change. */
  hasMoved: boolean;
}

/**
 * The checks `nodes` and `snapshots`. No table shows whether a node is up: a node is down if its heartbeat does not change from
 * one poll to the next. Before 5.0 no heartbeat can be read.
 */
export function watchNodes({ nowMs, monotonicMs }: Pick<Clock, 'nowMs' | 'monotonicMs'>) {
  let beats: ReadonlyMap<string, Beat> = new Map();
  return (watched: unknown): CheckResult[] => {
    if (watched === undefined) return [];
    const { peers, gossip, snapshots } = watched as WatchedNodes;
    if (gossip.rows) beats = beatsOf(gossip.rows, beats, monotonicMs());
    return [nodesCheck(peers, gossip, beats, monotonicMs()), snapshotsCheck(snapshots, nowMs())];
  };
}

function beatsOf(
  rows: readonly CassandraRow[],
  before: ReadonlyMap<string, Beat>,
  atMs: number,
): Map<string, Beat> {
  const beats = new Map<string, Beat>();
  for (const { address, generation, heartbeat, status_with_port: status } of rows) {
    const text = String(status ?? '');
    if (goneStatus.test(text)) continue;
    const name = String(address);
    const known = before.get(name);
    // A node that shuts down cleanly announces it in its status.
    const beat = /^shutdown/i.test(text) ? 'shutdown' : `${generation}:${heartbeat}`;
    const isSame = known?.beat === beat;
    beats.set(name, {
      beat,
      sinceMs: isSame ? known.sinceMs : atMs,
      hasMoved: (isSame ? known.hasMoved : known !== undefined) && beat !== 'shutdown',
    });
  }
  return beats;
}

function nodesCheck(
  peers: number,
  gossip: CassandraAnswer,
  beats: ReadonlyMap<string, Beat>,
  atMs: number,
): CheckResult {
  const check = 'nodes';
  if (peers === 0) return { check, holds: true, found: 'the cluster has one node' };
  if (gossip.rows === undefined)
    return { check, holds: 'unknown', found: `other nodes: ${peers}; ${gossip.unknown}` };
  const all = [...beats];
  const down = all.filter(([, { beat, sinceMs }]) => beat === 'shutdown' || atMs - sinceMs >= silentMs);
  const names = down.slice(0, namedAtMost).map(([name]) => excerpt(name, 60));
  if (down.length > 0)
    return { check, holds: false, found: `down: ${down.length} of ${all.length} nodes, ${names.join(', ')}` };
  // Nodes that are missing in gossip_info have sent nothing since this node started.
  const isSeen = all.every(([, { hasMoved }]) => hasMoved) && all.length > peers;
  const found = isSeen ? `nodes: ${all.length}, all up` : `nodes: ${peers + 1}, not all have been seen twice`;
  return { check, holds: isSeen ? true : 'unknown', found };
}

/** Checks the snapshots. Snapshots that expire by themselves do not count. */
function snapshotsCheck({ rows, unknown }: CassandraAnswer, nowMs: number): CheckResult {
  const check = 'snapshots';
  if (rows === undefined) return { check, holds: 'unknown', found: unknown };
  const old = new Set<string>();
  for (const { name, created_at, expires_at, ephemeral } of rows) {
    const createdMs = created_at instanceof Date ? created_at.getTime() : Number.NaN;
    if (expires_at == null && ephemeral !== true && nowMs - createdMs > longestKeptMs) old.add(String(name));
  }
  if (old.size === 0) {
    const count = new Set(rows.map(({ name }) => String(name))).size;
    return { check, holds: true, found: `snapshots: ${count}, none older than 7 days` };
  }
  const names = [...old].slice(0, namedAtMost).map((name) => excerpt(name, 60));
  return { check, holds: false, found: `older than 7 days: ${old.size}, ${names.join(', ')}` };
}
