import type { ClusterGroupOptions } from '../../probes/clusters/options.ts';
import type { Parsed, ParsedMetrics } from './blocks.ts';
import { entriesAt, type MapNode } from './tree.ts';
import type { AgentConfig, MetricsConfig, ReporterConfig, ServiceConfig } from './types.ts';

/** What the configuration itself does not say. */
export interface Surroundings {
  /** The checked tree: it has the order that plain data may lose. */
  tree: MapNode;
  roles: readonly string[];
  /** As used, option included. */
  serviceConfig: readonly string[];
  /** `currentClusterName`, from wherever it is known. */
  clusterName: string | undefined;
  instance: string;
  stateDirectory: string;
}

/** Checked parts as the one configuration that everything is built from. */
export function fill(parsed: Parsed, around: Surroundings): AgentConfig {
  const { tree, roles, clusterName } = around;
  const metrics = metricsConfig(parsed.metrics, clusterName);
  const adminOff = tree.entries.get('admin')?.node;
  return {
    roles,
    serviceConfig: around.serviceConfig,
    scope: parsed.scope,
    instance: parsed.instance || around.instance,
    stateDirectory: around.stateDirectory,
    stateFsync: parsed.stateFsync,
    metrics,
    services: serviceNames(tree, roles).map((name) =>
      serviceConfig(name, parsed, roles, metrics.tags.cluster),
    ),
    stores: parsed.stores,
    clusterGroupMetadata: parsed.clusterGroupMetadata && clusterGroup(parsed.clusterGroupMetadata, tree),
    archival: parsed.archival,
    domainDefaults: parsed.domainDefaults,
    domains: parsed.domains,
    backups: parsed.backups,
    limits: parsed.limits,
    admin: adminOff?.kind === 'scalar' && adminOff.value === null ? undefined : parsed.admin,
    log: parsed.log,
  };
}

/** Services in the file's order, then roles that only an option or the service's files name. */
function serviceNames(tree: MapNode, roles: readonly string[]): string[] {
  return [...new Set([...entriesAt(tree, 'services').map(([name]) => name), ...roles])];
}

function serviceConfig(
  name: string,
  { services }: Parsed,
  roles: readonly string[],
  cluster: string | undefined,
): ServiceConfig {
  const given = Object.hasOwn(services, name) ? services[name] : undefined;
  return {
    vocabulary: 'auto',
    ...given,
    name,
    selected: roles.includes(name),
    metrics: given?.metrics && metricsConfig(given.metrics, cluster),
  };
}

function metricsConfig(block: ParsedMetrics, cluster: string | undefined): MetricsConfig {
  return {
    tags:
      cluster === undefined || Object.hasOwn(block.tags, 'cluster') ? block.tags : { ...block.tags, cluster },
    prefix: block.prefix,
    reportingIntervalMs: block.reportingInterval,
    reporter: reporter(block),
  };
}

function reporter({
  pullmetrics,
  pushmetrics,
  hostedmetrics,
  reportingInterval,
}: ParsedMetrics): ReporterConfig | undefined {
  if (pullmetrics) return { kind: 'pullmetrics', options: pullmetrics };
  if (pushmetrics) {
    const flushIntervalMs = pushmetrics.flushIntervalMs ?? reportingInterval;
    return { kind: 'pushmetrics', options: { ...pushmetrics, flushIntervalMs } };
  }
  return hostedmetrics && { kind: 'hostedmetrics', options: hostedmetrics };
}

function clusterGroup(
  { clusterGroup: byName, ...rest }: NonNullable<Parsed['clusterGroupMetadata']>,
  tree: MapNode,
): ClusterGroupOptions {
  const names = entriesAt(tree, 'clusterGroupMetadata', 'clusterGroup').map(([name]) => name);
  return { ...rest, clusters: names.map((name) => ({ name, ...byName[name]! })) };
}
