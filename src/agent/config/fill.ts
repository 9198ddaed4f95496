import type { ClusterGroupOptions } from '../../probes/clusters/block.ts';
import { agentBlock, type Parsed, type ParsedMetrics } from './blocks.ts';
import { errorWords, issueFaults } from './issues.ts';
import { entriesAt, type MapNode, placedFault, plainValue } from './tree.ts';
import type { AgentConfig, MetricsConfig, PlacedFault, ReporterConfig, ServiceConfig } from './types.ts';

/** Parses the tree by the schema. A check of the schema that throws got a value of a type that it does not expect. */
export function parsed(tree: MapNode): { data?: Parsed; faults: PlacedFault[] } {
  try {
    const result = agentBlock.safeParse(plainValue(tree), { error: errorWords, jitless: true });
    return result.success
      ? { data: result.data, faults: [] }
      : { faults: issueFaults(result.error.issues, tree) };
  } catch {
    const message =
      'a value that cannot be checked; use texts, numbers, lists and maps as in svc-agent schema';
    return { faults: [placedFault(tree.place, [], message)] };
  }
}

/** Values that the configuration itself does not contain. */
interface ConfigContext {
  /** The validated tree, which has the keys in their order. */
  tree: MapNode;
  roles: readonly string[];
  /** The paths of the service's files, including those of `--service-config`. */
  serviceConfig: readonly string[];
  dynamicConfig: string | undefined;
  /** `currentClusterName` from `agent.yaml`, else from the service's files. */
  clusterName: string | undefined;
  instance: string;
  stateDirectory: string;
}

/** The configuration from which everything is built. */
export function fill(parsed: Parsed, around: ConfigContext): AgentConfig {
  const { tree, roles, clusterName } = around;
  const metrics = metricsConfig(parsed.metrics, clusterName);
  const adminOff = tree.entries.get('admin')?.node;
  return {
    roles,
    serviceConfig: around.serviceConfig,
    dynamicConfig: around.dynamicConfig,
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
    recovery: parsed.recovery,
    maintenance: parsed.maintenance,
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
