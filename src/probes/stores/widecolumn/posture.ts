import type { StoreCheck } from '../../../core/reasons.ts';
import type { StoreVerdict } from '../store.ts';
import type { Row } from './connection.ts';

/** Below it one node that is lost, or one that lags, takes the majority with it. */
const leastReplicas = 3;

/** What `system_views.settings` says, or why that is not known. */
export type Settings = { values: ReadonlyMap<string, string> } | { unknown: string };

export function settingsOf(rows: readonly Row[]): Settings {
  return { values: new Map(rows.map(({ name, value }) => [String(name), String(value)])) };
}

/** A setting of the node that must be on and has the check's name. */
function settingVerdict(check: StoreCheck, settings: Settings): StoreVerdict {
  if ('unknown' in settings) return { check, holds: 'unknown', found: settings.unknown };
  const value = settings.values.get(check);
  if (value === undefined) return { check, holds: 'unknown', found: `system_views.settings has no ${check}` };
  return { check, holds: value === 'true', found: `${check} = ${value}` };
}

export function settingVerdicts(settings: Settings): StoreVerdict[] {
  return [settingVerdict('incremental_backups', settings), settingVerdict('auto_snapshot', settings)];
}

/** Copies of each row, by datacenter where the strategy has them; `3/1` are three, one of them transient. */
function replicasOf(replication: Readonly<Record<string, unknown>>): Map<string, number> {
  const { class: _, ...factors } = replication;
  return new Map(
    Object.entries(factors).map(([place, factor]) => [place, Number(String(factor).replace(/\/\d+$/, ''))]),
  );
}

/** A keyspace's copies: in each datacenter that has any (SimpleStrategy: in all) there must be three. */
export function replicationVerdict({ replication }: Row): StoreVerdict {
  const check = 'replication_factor';
  const options = (replication ?? {}) as Readonly<Record<string, unknown>>;
  const strategy = String(options.class ?? 'none').replace(/^.*\./, '');
  if (strategy !== 'SimpleStrategy' && strategy !== 'NetworkTopologyStrategy')
    return { check, holds: 'unknown', found: `replication = ${strategy}` };
  const replicas = [...replicasOf(options)].filter(([, count]) => count !== 0);
  const found = replicas
    .map(([place, count]) => (place === check ? `${count}` : `${count} in ${place}`))
    .join(', ');
  return {
    check,
    holds: replicas.length > 0 && replicas.every(([, count]) => count >= leastReplicas),
    found: `replication_factor = ${found || 0} (${strategy})`,
  };
}

export function durableWritesVerdict({ durable_writes }: Row): StoreVerdict {
  const check = 'durable_writes';
  if (typeof durable_writes !== 'boolean')
    return { check, holds: 'unknown', found: 'durable_writes is not told' };
  return { check, holds: durable_writes, found: `durable_writes = ${durable_writes}` };
}

/** Whether all nodes that this one knows have one schema; rows of nodes that are down stay, and count too. */
export function agreementVerdict(local: Row, peers: readonly Row[]): StoreVerdict {
  const nodes = [local, ...peers].filter(({ schema_version }) => schema_version != null);
  const versions = new Set(nodes.map(({ schema_version }) => String(schema_version)));
  const down = versions.size > 1 ? '; nodes that are down count too' : '';
  return {
    check: 'schema_agreement',
    holds: versions.size === 0 ? 'unknown' : versions.size === 1,
    found: `schema versions: ${versions.size}, on nodes: ${nodes.length}${down}`,
  };
}
