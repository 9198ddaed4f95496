import type { Clock } from '../../core/ports.ts';
import { excerpt } from '../probe.ts';
import type { Row } from './cassandra-connection.ts';
import type { CheckResult } from './store-report.ts';

/** Rows, or why there are none: rows that this user may not see, or that this version does not have. */
export type Answer = { rows: readonly Row[]; unknown?: undefined } | { rows?: undefined; unknown: string };

/** What one poll sees of the other nodes and of this node's snapshots. */
export interface WatchedNodes {
  /** How many other nodes belong to the cluster. */
  peers: number;
  /** The virtual table `gossip_info`. */
  gossip: Answer;
  /** The virtual table `snapshots`. */
  snapshots: Answer;
}

/** A node increases its heartbeat every second, and gossip tells it to all within a few. */
const silentMs = 20_000;
/** Of a node that was removed or has left. */
const goneStatus = /^(?:LEFT|REMOV)/i;
/** The retention of incremental backups and logs in the spec's schedule. */
const longestKeptMs = 7 * 86_400_000;
const namedAtMost = 3;

interface Beat {
  beat: string;
  sinceMs: number;
  /** Whether it was ever seen to change. */
  hasMoved: boolean;
}

/**
 * The checks `nodes` and `snapshots`. No table says whether a node is up: one whose heartbeat stands still from one
 * poll to the next is down. Before 5.0 no heartbeat can be read.
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

function beatsOf(rows: readonly Row[], before: ReadonlyMap<string, Beat>, atMs: number): Map<string, Beat> {
  const beats = new Map<string, Beat>();
  for (const { address, generation, heartbeat, status_with_port: status } of rows) {
    const text = String(status ?? '');
    if (goneStatus.test(text)) continue;
    const name = String(address);
    const known = before.get(name);
    // A node that stops in good order says so.
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
  gossip: Answer,
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
  // Nodes of which gossip knows nothing have not been heard of since this node started.
  const isSeen = all.every(([, { hasMoved }]) => hasMoved) && all.length > peers;
  const found = isSeen ? `nodes: ${all.length}, all up` : `nodes: ${peers + 1}, not all were seen twice`;
  return { check, holds: isSeen ? true : 'unknown', found };
}

/** Snapshots that expire by themselves do not count. */
function snapshotsCheck({ rows, unknown }: Answer, nowMs: number): CheckResult {
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
