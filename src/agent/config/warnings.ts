import { volumeWarning } from '../../reporters/hosted/block.ts';
import { literalSecrets, scalarsOf } from './secrets.ts';
import { isSecret, type MapNode, placedFault, placeOf } from './tree.ts';
import type { AgentConfig, PlacedFault } from './types.ts';

/** Valid settings that are most likely mistakes. */
export function warningsOf(config: AgentConfig, tree: MapNode, file: string): PlacedFault[] {
  return [
    ...literalSecrets(tree, file),
    ...nothingReported(config, tree),
    ...nothingWatched(config, tree),
    ...peersUnreachable(config, tree),
    ...domainsUndescribed(config, tree),
    ...manySamples(config, tree),
    ...shellVariables(tree),
  ];
}

/** Variables in the syntax of a shell: `$NAME` is plain text here, and the default of `${NAME:-x}` is `-x`. */
function shellVariables(tree: MapNode): PlacedFault[] {
  return [...scalarsOf(tree)].flatMap(({ node, path }) => {
    const text = node.written ?? node.value;
    if (typeof text !== 'string' || isSecret(path)) return [];
    const [, dashed] = /\$\{([A-Za-z_]\w*):-/.exec(text) ?? [];
    const [, bare] = /^\$([A-Za-z_]\w*)$/.exec(text) ?? [];
    const message =
      dashed !== undefined
        ? `the default of ${dashed} begins with a dash; write \${${dashed}:default} without one`
        : bare !== undefined && `plain text here, not a variable; write \${${bare}}`;
    return message ? [placedFault(placeOf(tree, path), path, message, text)] : [];
  });
}

function nothingReported({ metrics, services }: AgentConfig, tree: MapNode): PlacedFault[] {
  if (metrics.reporter || services.some((service) => service.metrics?.reporter)) return [];
  const message =
    'no reporter, so only the admin listener shows anything; set pullmetrics, pushmetrics or hostedmetrics';
  return [placedFault(placeOf(tree, ['metrics']), ['metrics'], message)];
}

function nothingWatched({ services }: AgentConfig, tree: MapNode): PlacedFault[] {
  return services
    .filter(
      ({ selected, logs, health, scrape, statsd }) => selected && !logs && !health && !scrape && !statsd,
    )
    .map(({ name }) => {
      const path = ['services', name];
      return placedFault(placeOf(tree, path), path, 'nothing to watch; set logs, health, scrape or statsd');
    });
}

/** Peers without an address. The agent of a host needs only their names, for the replication lag. */
function peersUnreachable(
  { clusterGroupMetadata: group, scope, services }: AgentConfig,
  tree: MapNode,
): PlacedFault[] {
  if (scope === 'host' && services.some(({ selected, scrape }) => selected && scrape)) return [];
  const peers = group?.clusters.filter(({ enabled, name }) => enabled && name !== group.currentClusterName);
  // A group with names only shows where domains are active; its peers are probed by another agent.
  if (!group?.clusters.some(({ rpcAddress }) => rpcAddress !== undefined)) return [];
  return (peers ?? [])
    .filter(({ rpcAddress }) => rpcAddress === undefined)
    .map(({ name }) => {
      const path = ['clusterGroupMetadata', 'clusterGroup', name, 'rpcAddress'];
      return placedFault(
        placeOf(tree, path),
        path,
        'missing, so the agent does not check whether the cluster answers; set host:port',
      );
    });
}

function domainsUndescribed({ domains }: AgentConfig, tree: MapNode): PlacedFault[] {
  if (!domains || domains.watch.length === 0 || domains.describe) return [];
  const path = ['domains', 'describe'];
  const message = 'missing, so nothing is known of the watched domains; set command';
  return [placedFault(placeOf(tree, path), path, message)];
}

/** Hosted platforms bill by samples, and the default interval is that of a local reporter. */
function manySamples({ metrics, services }: AgentConfig, tree: MapNode): PlacedFault[] {
  const blocks = [
    { path: ['metrics'], block: metrics },
    ...services.map(({ name, metrics: own }) => ({ path: ['services', name, 'metrics'], block: own })),
  ];
  return blocks.flatMap(({ path: above, block }) => {
    if (block?.reporter?.kind !== 'hostedmetrics') return [];
    const message = volumeWarning(block.reportingIntervalMs);
    const path = [...above, 'reportingInterval'];
    return message === undefined ? [] : [placedFault(placeOf(tree, path), path, message)];
  });
}
