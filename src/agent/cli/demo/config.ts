import { join } from 'node:path';
import { stringify } from 'yaml';

interface Database {
  name: string;
  /** Of its schema. */
  version: string;
}

/** What the example service says of itself once it is ready. */
export interface ServiceAddresses {
  directory: string;
  incident: string;
  /** What can go wrong there. */
  kinds: readonly string[];
  roles: Readonly<Record<string, { health: string; metrics: string; log: string }>>;
  /** Missing where it has none. */
  store?: { address: string; databases: Readonly<Record<string, Database>> };
  /** The first cluster is the service's own. */
  group: {
    failoverVersionIncrement: number;
    clusters: readonly { name: string; initialFailoverVersion: number }[];
  };
  /** The clusters' frontends, host:port. */
  clusters: Readonly<Record<string, string>>;
  domains: readonly string[];
  /** URIs. */
  archives: Readonly<Record<string, string>>;
}

/** The ports the agent shall listen on. */
export interface AgentPorts {
  metrics: number;
  admin: number;
}

/**
 * An `agent.yaml` for the example service, which probes more often than one would, so that there is something to see.
 * `describe` is the command that describes a domain.
 */
export function demoConfig(
  service: ServiceAddresses,
  describe: readonly string[],
  ports: AgentPorts,
): string {
  const config = {
    roles: Object.keys(service.roles),
    stateDirectory: join(service.directory, 'state'),
    metrics: {
      tags: { cluster: 'demo' },
      pullmetrics: { listenAddress: `127.0.0.1:${ports.metrics}` },
    },
    admin: { listenAddress: `127.0.0.1:${ports.admin}` },
    services: mapValues(service.roles, ({ health, metrics, log }) => ({
      logs: { paths: [`${log}*`], startAt: 'beginning' },
      health: { url: health, interval: '5s' },
      scrape: metrics,
    })),
    stores: storesOf(service),
    clusterGroupMetadata: groupOf(service),
    domains: { watch: service.domains, describe: { command: describe, interval: '10s' } },
    archival: mapValues(service.archives, () => archive),
    domainDefaults: {
      archival: mapValues(service.archives, (uri) => ({ status: 'enabled', URI: uri })),
    },
  };
  return `# Written by svc-agent demo; it goes when the demo ends.\n${stringify(config, { aliasDuplicateObjects: false })}`;
}

const archive = { status: 'enabled', enableRead: true, provider: { filestore: {} } };

function storesOf({ store }: ServiceAddresses): object[] {
  if (!store) return [];
  return [
    {
      name: 'main',
      kind: 'postgres',
      // The example store is embedded, and gone with the demo.
      accept: {
        archive_mode: 'nothing of the example is kept',
        durable_settings: 'nothing of the example is kept',
      },
      address: store.address,
      databases: mapValues(store.databases, ({ name }) => name),
      schema: mapValues(store.databases, ({ version }) => version),
      interval: '5s',
    },
  ];
}

function groupOf({ group, clusters }: ServiceAddresses): object {
  const [own] = group.clusters;
  return {
    failoverVersionIncrement: group.failoverVersionIncrement,
    primaryClusterName: own?.name,
    currentClusterName: own?.name,
    clusterGroup: Object.fromEntries(
      group.clusters.map(({ name, initialFailoverVersion }) => [
        name,
        { enabled: true, initialFailoverVersion, rpcAddress: clusters[name], rpcTransport: 'grpc' },
      ]),
    ),
  };
}

function mapValues<T, U>(map: Readonly<Record<string, T>>, of: (value: T) => U): Record<string, U> {
  return Object.fromEntries(Object.entries(map).map(([key, value]) => [key, of(value)]));
}

/** A server's configuration that scrapes the agent, one job per role, for whoever has one. */
export function prometheusConfig({ metrics }: AgentPorts, roles: readonly string[]): string {
  const jobs = [...roles, 'svc-agent'].map((job) => {
    const service = job === 'svc-agent' ? 'agent' : job;
    return `  - job_name: ${job}
    params: {service: [${service}]}
    static_configs: [{targets: ["127.0.0.1:${metrics}"]}]
`;
  });
  return `global: {scrape_interval: 5s}\nscrape_configs:\n${jobs.join('')}`;
}
