import type { StoreCheck } from '../../core/reasons.ts';
import type { Row } from './cassandra-connection.ts';
import type { CheckResult } from './store-report.ts';

/** With fewer, one node that is down takes the majority with it. */
const leastReplicas = 3;

/** The values in `system_views.settings`, or why they are not known. */
export type Settings = { values: ReadonlyMap<string, string> } | { unknown: string };

export function settingsOf(rows: readonly Row[]): Settings {
  return { values: new Map(rows.map(({ name, value }) => [String(name), String(value)])) };
}

/** A setting of the node that must be on and has the check's name. */
function settingCheck(check: StoreCheck, settings: Settings): CheckResult {
  if ('unknown' in settings) return { check, holds: 'unknown', found: settings.unknown };
  const value = settings.values.get(check);
  if (value === undefined) return { check, holds: 'unknown', found: `system_views.settings has no ${check}` };
  return { check, holds: value === 'true', found: `${check} = ${value}` };
}

export function settingChecks(settings: Settings): CheckResult[] {
  return [settingCheck('incremental_backups', settings), settingCheck('auto_snapshot', settings)];
}

/** Copies of each row, by datacenter where the strategy has them; `3/1` are three, one of them transient. */
function replicasOf(replication: Readonly<Record<string, unknown>>): Map<string, number> {
  const { class: _, ...factors } = replication;
  return new Map(
    Object.entries(factors).map(([place, factor]) => [place, Number(String(factor).replace(/\/\d+$/, ''))]),
  );
}

/** How many nodes each datacenter has, this node and those that are down included. */
export type NodeCounts = ReadonlyMap<string, number>;

export function nodeCounts(local: Row, peers: readonly Row[]): NodeCounts {
  const counts = new Map<string, number>();
  for (const { data_center } of [local, ...peers])
    if (data_center != null) counts.set(String(data_center), (counts.get(String(data_center)) ?? 0) + 1);
  return counts;
}

const nodesText = (count: number) => (count === 1 ? '1 node' : `${count} nodes`);

/**
 * The copies and the strategy of a keyspace. Each datacenter that has any copies (with SimpleStrategy: the cluster)
 * needs three, and as many nodes as copies: with fewer, writes to the missing copies fail.
 */
export function replicationChecks({ replication }: Row, nodes: NodeCounts): CheckResult[] {
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

export function durableWritesCheck({ durable_writes }: Row): CheckResult {
  const check = 'durable_writes';
  if (typeof durable_writes !== 'boolean')
    return { check, holds: 'unknown', found: 'durable_writes is hidden' };
  return { check, holds: durable_writes, found: `durable_writes = ${durable_writes}` };
}

/** Whether all nodes that this one knows have the same schema; nodes that are down count too. */
export function agreementCheck(local: Row, peers: readonly Row[]): CheckResult {
  const nodes = [local, ...peers].filter(({ schema_version }) => schema_version != null);
  const versions = new Set(nodes.map(({ schema_version }) => String(schema_version)));
  const down = versions.size > 1 ? '; nodes that are down count too' : '';
  return {
    check: 'schema_agreement',
    holds: versions.size === 0 ? 'unknown' : versions.size === 1,
    found: `schema versions: ${versions.size}, on nodes: ${nodes.length}${down}`,
  };
}
