import { type AddressInfo, createServer } from 'node:net';
import { join } from 'node:path';
import { parse, stringify } from 'yaml';

/** The port on which each part of the demo listens if the port is free; 0: any free port. */
export interface DemoPorts {
  metrics: number;
  admin: number;
  prometheus: number;
  alertmanager: number;
  /** The first port of each part of the example service. The parts have four, four, one, two and one ports. */
  health: number;
  pages: number;
  control: number;
  rpc: number;
  store: number;
}

/** The default ports of the agent, Prometheus and Alertmanager, and the ports of examples/agent.yaml. */
export const usualPorts: DemoPorts = {
  metrics: 9464,
  admin: 9465,
  prometheus: 9090,
  alertmanager: 9093,
  health: 7933,
  pages: 8000,
  control: 7930,
  rpc: 7833,
  store: 7940,
};

const parts: Readonly<Record<keyof DemoPorts, { what: string; count: number }>> = {
  metrics: { what: 'the agent’s metrics', count: 1 },
  admin: { what: 'the status page', count: 1 },
  prometheus: { what: 'Prometheus', count: 1 },
  alertmanager: { what: 'Alertmanager', count: 1 },
  health: { what: 'the roles’ health', count: 4 },
  pages: { what: 'the roles’ metrics', count: 4 },
  control: { what: 'the example service’s control port', count: 1 },
  rpc: { what: 'the clusters’ frontends', count: 2 },
  store: { what: 'the store', count: 1 },
};

/** The parts of the example service; the other parts are started after it. */
const serviceParts: readonly (keyof DemoPorts)[] = ['health', 'pages', 'control', 'rpc', 'store'];

/**
 * Chooses a port for each part of the example service, or for each of the other parts: the wanted port if it is free (if the part
 * has several in a row: if all are free), else another one. Also returns a message about ports that are in use. It must be called
 * just before the part starts, because another program may bind a port.
 */
export async function freePorts(
  wanted: DemoPorts,
  whose: 'service' | 'others',
): Promise<{ ports: DemoPorts; taken: string[] }> {
  const ports = { ...wanted };
  const taken: string[] = [];
  for (const key of Object.keys(parts) as (keyof DemoPorts)[]) {
    if (serviceParts.includes(key) !== (whose === 'service')) continue;
    const { what, count } = parts[key];
    // The store of another demo does not listen while it refuses connections, and needs its port again.
    const isBesideDemo = wanted.control !== 0 && ports.control !== wanted.control;
    const isAnyPort = wanted[key] === 0 || (key === 'store' && isBesideDemo);
    const row = isAnyPort ? [0] : Array.from({ length: count }, (_, i) => wanted[key] + i);
    const got = await Promise.all(row.map(tryPort));
    const missing = row.filter((_, i) => got[i] === undefined);
    if (missing.length === 1) taken.push(`port ${missing[0]} is taken; another port is used for ${what}`);
    if (missing.length > 1)
      taken.push(`ports ${missing.join(', ')} are taken; other ports are used for ${what}`);
    // The example service finds free ports itself; it needs several, which need not be consecutive.
    if (count > 1) ports[key] = missing.length > 0 ? 0 : wanted[key];
    else ports[key] = got[0] ?? (await tryPort(0)) ?? 0;
  }
  return { ports, taken };
}

/** A port on loopback if it is free. */
function tryPort(port: number): Promise<number | undefined> {
  const server = createServer();
  return new Promise((resolve) => {
    server.once('error', () => resolve(undefined));
    server.listen(port, '127.0.0.1', () => {
      const { port: got } = server.address() as AddressInfo;
      server.close(() => resolve(got));
    });
  });
}

/** An abstract socket of Linux: it has no file, and the kernel removes it together with its process. */
const turnAddress = '\0svc-agent-demo';
const turnWithinMs = 60_000;
const turnEveryMs = 100;

/**
 * Waits for the turn to choose ports and start programs on them: two demos that start at the same moment would choose the same
 * ports. Resolves with a function that ends the turn; it ends after a minute in any case. Systems other than Linux have no turns.
 * Rejects once aborted.
 */
export async function startTurn(signal: AbortSignal, print: (line: string) => void): Promise<() => void> {
  const deadlineMs = performance.now() + turnWithinMs;
  for (let isWaiting = false; process.platform === 'linux'; isWaiting = true) {
    signal.throwIfAborted();
    const server = createServer((socket) => socket.destroy());
    const fault = await new Promise<string | undefined>((resolve) => {
      server.once('error', ({ code }: NodeJS.ErrnoException) => resolve(code));
      server.listen(turnAddress, () => resolve(undefined));
    });
    if (fault === undefined) return () => void server.close();
    if (fault !== 'EADDRINUSE' || performance.now() > deadlineMs) break;
    if (!isWaiting) print('another demo is starting; this one starts after it');
    await new Promise((resolve) => setTimeout(resolve, turnEveryMs));
  }
  return () => {};
}

interface Database {
  name: string;
  /** The version of the database's schema. */
  version: string;
}

/** The description that the example service prints once it is ready. */
export interface ServiceAddresses {
  directory: string;
  incident: string;
  end: string;
  kinds: readonly string[];
  roles: Readonly<Record<string, { health: string; metrics: string; log: string }>>;
  /** Missing if the service has no store. */
  store?: { address: string; databases: Readonly<Record<string, Database>> };
  /** The cluster group. Its first cluster is the service's own. */
  group: {
    failoverVersionIncrement: number;
    clusters: readonly { name: string; initialFailoverVersion: number }[];
  };
  /** The clusters' frontends, host:port. */
  clusters: Readonly<Record<string, string>>;
  domains: readonly string[];
  archives: Readonly<Record<string, string>>;
}

/** The ports that the agent listens on. */
export interface AgentPorts {
  metrics: number;
  admin: number;
}

export interface MonitoringPorts {
  prometheus: number;
  alertmanager: number;
}

/** The file with the token of `admin.events`: planned work and deploys can be announced to the demo. */
export const eventTokenFile = (directory: string): string => join(directory, 'event-token');

/**
 * An `agent.yaml` for the example service. It probes more often than usual, so that incidents show soon. `describe` is the
 * command that describes a domain.
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
    admin: {
      listenAddress: `127.0.0.1:${ports.admin}`,
      events: { token: { file: eventTokenFile(service.directory) } },
    },
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
  return `# Written by svc-agent demo, and removed when the demo ends.\n${stringify(config, { aliasDuplicateObjects: false })}`;
}

const archive = { status: 'enabled', enableRead: true, provider: { filestore: {} } };

function storesOf({ store }: ServiceAddresses): object[] {
  if (!store) return [];
  return [
    {
      name: 'main',
      kind: 'postgres',
      // The example store is embedded and removed with the demo.
      accept: {
        archive_mode: 'the example keeps nothing',
        durable_settings: 'the example keeps nothing',
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

/**
 * A Prometheus configuration like the shipped one: a job for each role and one for the agent, with the shipped rules. `rules` is
 * the folder of the rule files.
 */
export function prometheusConfig(
  ports: AgentPorts & MonitoringPorts,
  roles: readonly string[],
  rules: string,
) {
  const job = (name: string, service: string) => ({
    job_name: name,
    honor_labels: true,
    params: { service: [service] },
    static_configs: [{ targets: [`127.0.0.1:${ports.metrics}`], labels: { cluster: 'demo' } }],
  });
  return stringify(
    {
      global: { scrape_interval: '5s', scrape_timeout: '5s', evaluation_interval: '5s' },
      rule_files: ['recommended', 'recording', 'slo'].map((pack) => join(rules, `${pack}.rules.yml`)),
      alerting: {
        alertmanagers: [{ static_configs: [{ targets: [`127.0.0.1:${ports.alertmanager}`] }] }],
      },
      scrape_configs: [...roles.map((role) => job(role, role)), job('svc-agent', 'agent')],
    },
    { aliasDuplicateObjects: false },
  );
}

/** The shipped Alertmanager configuration (its text), with receivers that send nothing. */
export function alertmanagerConfig(shipped: string): string {
  const config = parse(shipped) as { receivers: { name: string }[] };
  return stringify({ ...config, receivers: config.receivers.map(({ name }) => ({ name })) });
}
